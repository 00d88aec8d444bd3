//! Every verb twice, in every state: the second call answers what the first left, and has no effect.

use crate::build::{create, doc, event, name};
use crate::lifecycle::stands;
use crate::semantics::{idle, job, working};
use crate::show;
use crate::world::World;
use expect_test::expect_file;
use interlock_kernel::command::{Create, Deploy, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::EntityId;
use interlock_kernel::view::View;
use std::fmt::Write;

type Make = fn(&World, &EntityId) -> Option<Verb>;

/// Verbs of operators and clients, and those of the host that name an entity.
const VERBS: [(&str, Make); 14] = [
    ("create", |_, _| Some(Verb::Create(Box::new(create("job/a"))))),
    ("create, use, with event", |_, _| {
        let event = Some(event("note", "n1"));
        Some(Verb::Create(Box::new(Create { on_existing: OnExisting::Use, event, ..create("job/a") })))
    }),
    ("apply", |_, id| Some(Verb::Apply { entity: id.clone(), desired: doc("{}"), expect: Some(0), checked: None })),
    ("delete", |_, id| Some(Verb::Delete(id.clone()))),
    ("kill", |_, id| Some(Verb::Kill { entity: id.clone(), reason: "enough".to_owned() })),
    ("unpark", |_, id| Some(Verb::Unpark(id.clone()))),
    ("note", |_, id| Some(Verb::Deliver { entity: id.clone(), event: Box::new(event("note", "n1")) })),
    ("run", |_, id| Some(Verb::Deliver { entity: id.clone(), event: Box::new(event("run", "r9")) })),
    ("later", |_, id| Some(Verb::Deliver { entity: id.clone(), event: Box::new(event("later", "l1")) })),
    ("save", |world, id| Some(Verb::Save(world.starts.get(id)?.claim.clone(), Box::default()))),
    ("transition", |world, id| {
        Some(Verb::Transition(world.starts.get(id)?.claim.clone(), name("idle"), Box::default()))
    }),
    ("end", |world, id| Some(Verb::End(world.starts.get(id)?.claim.clone(), crate::world::failure("slow")))),
    ("due", |_, id| Some(Verb::Due(id.clone()))),
    ("continue", |_, id| Some(Verb::Continue(id.clone()))),
];

#[test]
fn every_verb_twice_in_every_state() {
    let mut table = String::new();
    for (verb, make) in VERBS {
        for (stand, mut world, id) in stands() {
            let Some(asked) = make(&world, &id) else { continue };
            if verb == "due" {
                world.pass(world.find_head(&id).and_then(|head| head.due).map_or(0, |due| due.0));
            }
            let first = world.run(asked.clone());
            let after = (world.at(&id), world.records.clone());
            let second = world.run(asked);
            let twice = (world.at(&id), world.records.clone());
            let effect = if after.1 == twice.1 { "" } else { " (a fact)" };
            assert_eq!(after.0, twice.0, "{verb} twice at {stand}");
            let _ = writeln!(
                table,
                "{verb} at {stand}\n  1 {}\n  2 {}{effect}",
                show::outcome(&first),
                show::outcome(&second)
            );
        }
    }
    expect_file!["golden/twice.txt"].assert_eq(&table);
}

#[test]
fn recover_fire_and_audit_twice_have_one_effect() {
    let (mut world, id) = working();
    world.open();
    world.ok(Verb::Recover(id.clone()));
    let records = world.records.clone();
    world.ok(Verb::Recover(id.clone()));
    assert!(world.records == records);
    let token = world.claim(&id).token;
    let audit = || Verb::Audit { entity: id.clone(), found: Vec::new(), abandoned: Some(token) };
    world.run(audit()).unwrap();
    let records = world.records.clone();
    world.run(audit()).unwrap();
    assert!(world.records == records);
}

#[test]
fn sessions_deploys_and_sweeps_twice() {
    let (mut world, _) = idle();
    world.ok(Verb::CloseSession);
    let records = world.records.clone();
    world.ok(Verb::CloseSession);
    world.ok(Verb::Sweep);
    let machine = std::sync::Arc::new(job().0);
    let digest = Digest::of(&[b"job, second edition".as_slice()]);
    let deploy =
        || Verb::Deploy(Box::new(Deploy { machine: machine.clone(), digest, component: None, source: String::new() }));
    assert!(world.records == records);
    world.ok(deploy());
    let records = world.records.clone();
    world.ok(deploy());
    assert!(world.records == records);
}

#[test]
fn a_boot_that_is_told_again_is_the_same_session() {
    let (mut world, _) = working();
    let boot = || Verb::OpenSession { nonce: "once".to_owned(), secret: [9; 32] };
    let first = world.ok(boot());
    let records = world.records.clone();
    let again = world.ok(boot());
    assert!(
        matches!((&first, &again), (Outcome::Session(a, 1), Outcome::Session(b, 0)) if a == b),
        "{first:?} {again:?}"
    );
    assert!(world.records == records);
}

#[test]
fn a_second_boot_closes_the_first_and_keeps_the_secret() {
    let (mut world, id) = working();
    use interlock_kernel::record::{Closed, Key, Record};
    let secret = world.records.get(&Key::Secret);
    let first = world.claim(&id);
    world.session = interlock_kernel::time::Session::NONE;
    let opened = world.ok(Verb::OpenSession { nonce: "second".to_owned(), secret: [9; 32] });
    assert!(matches!(opened, Outcome::Session(_, 1)));
    assert_eq!(world.records.get(&Key::Secret), secret);
    let sessions: Vec<_> = world.records.iter().filter(|(key, _)| matches!(key, Key::Session(_))).collect();
    assert_eq!(sessions.len(), 2, "the first is kept while it has an orphan");
    let Record::Session(old) = sessions[0].1 else { panic!() };
    assert_eq!(old.closed, Some(Closed::Lost));
    // Until it is taken up, the orphan's host may even finish: its token is still the open one.
    world.run(Verb::Transition(first, name("idle"), Box::default())).unwrap();
    world.open();
    assert_eq!(world.records.keys().filter(|key| matches!(key, Key::Session(_))).count(), 1);
}
