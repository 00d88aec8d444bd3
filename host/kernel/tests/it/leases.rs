//! Leases as clients and steps ask for them: taken, renewed, given back, waited for in line, refused by name.

use crate::build::{Mc, create, entity, machine, rest, step, to, wait};
use crate::world::World;
use expect_test::expect_file;
use interlock_kernel::FencingToken;
use interlock_kernel::command::{Acquire, LeaseAsk, Outcome, Verb};
use interlock_kernel::ids::{EntityId, ExecutionId, LeaseName, Principal};
use interlock_kernel::limits::LEASE_KEPT_MS;
use interlock_kernel::machine::LeaseSpec;
use interlock_kernel::record::{Key, Lease, LeaseEntry, LeaseWhat, Owner, Record, Terms};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::time::StoreTime;
use interlock_kernel::view::{LeaseClaim, View};

/// A client's request, in a few words: its grant is named like its label.
#[derive(Clone)]
pub(crate) struct Ask(Acquire);

pub(crate) fn lease(name: &str) -> LeaseName {
    name.parse().unwrap()
}

pub(crate) fn ask(name: &str, label: &str, ttl_ms: u64) -> Ask {
    let terms = Terms { ttl_ms, hold_ms: 600_000, delay_ms: 0 };
    let (lease, grant) = (lease(name), label.parse().unwrap());
    Ask(Acquire { lease, grant, label: label.to_owned(), terms, wait_ms: None })
}

impl Ask {
    pub(crate) fn waits(mut self, wait_ms: u64) -> Self {
        self.0.wait_ms = Some(wait_ms);
        self
    }

    pub(crate) fn delayed(mut self, delay_ms: u64) -> Self {
        self.0.terms.delay_ms = delay_ms;
        self
    }

    pub(crate) fn held_at_most(mut self, hold_ms: u64) -> Self {
        self.0.terms.hold_ms = hold_ms;
        self
    }
}

impl From<Ask> for Verb {
    fn from(Ask(ask): Ask) -> Self {
        Self::Acquire(Box::new(ask))
    }
}

pub(crate) fn spec(ttl_ms: u64) -> LeaseSpec {
    LeaseSpec { ttl_ms, ttl_ms_max: 60_000, hold_ms: 600_000, delay_ms: 0 }
}

/// `plan` takes leases as it likes, `work` needs one, `both` two, one of them by data; `hold` waits.
pub(crate) fn pool_machine() -> Mc {
    machine("pool", "idle")
        .data(r#"{"other":"disk"}"#)
        .event("go")
        .event("plan")
        .event("both")
        .event("on")
        .state("idle", rest().on("go", to("work")).on("plan", to("plan")).on("both", to("both")))
        .state("plan", step("plan").to(to("plan")).to(to("hold")).to(to("work")).to(to("both")).to(to("idle")))
        .state("work", step("work").attempts(3).to(to("idle")).to(to("work")).to(to("hold")))
        .state("both", step("both").to(to("idle")).to(to("hold")))
        .state("hold", wait().on("on", to("work")).deadline(300_000).on_exhausted(to("idle")))
        .grants("quota", spec(9_000))
        .grants("d*", spec(9_000))
        .needs("work", &[r#""quota""#])
        .needs("both", &[r#""quota""#, "data.other"])
        .requires("work", "hold", &[r#""quota""#])
        .requires("plan", "hold", &[r#""disk""#])
}

/// Two entities of that machine.
pub(crate) fn pool() -> (World, EntityId, EntityId) {
    let (mut world, a) = World::of(pool_machine(), "pool/a");
    world.create(create("pool/b")).unwrap();
    (world, a, "pool/b".parse().unwrap())
}

/// What steps and clients do, in a few words.
impl World {
    pub(crate) fn lease(&self, name: &str) -> Lease {
        self.leases().remove(&lease(name)).unwrap_or_else(|| panic!("nothing is known of {name}"))
    }

    /// Who has it now, as people are told.
    pub(crate) fn holder(&self, name: &str) -> String {
        let known = self.leases().remove(&lease(name)).unwrap_or_default();
        let holder = known.held(StoreTime(self.store)).cloned();
        holder.map_or("nobody".to_owned(), |holder| holder.owner.shown(&holder.label))
    }

    pub(crate) fn lease_token(&self, name: &str) -> FencingToken {
        self.lease(name).holder.unwrap_or_else(|| panic!("nobody has {name}")).token
    }

    /// The kinds of what became of it, oldest first.
    pub(crate) fn became(&self, name: &str) -> Vec<LeaseWhat> {
        self.lease_entries(name).into_iter().map(|entry| entry.what).collect()
    }

    pub(crate) fn lease_entries(&self, name: &str) -> Vec<LeaseEntry> {
        let wanted = lease(name);
        let entries = self.records.iter().filter_map(|(key, record)| match (key, record) {
            (Key::LeaseEntry(of, _), Record::LeaseEntry(entry)) if *of == wanted => Some(entry.as_ref().clone()),
            _ => None,
        });
        entries.collect()
    }

    /// The newest attempt asks.
    pub(crate) fn step_asks(&mut self, id: &EntityId, ask: LeaseAsk) -> Result<Outcome, Rejection> {
        let claim = self.claim(id);
        self.run_as(Principal::execution(&claim.execution), Verb::Lease(claim, ask))
    }

    pub(crate) fn takes(&mut self, id: &EntityId, name: &str) -> LeaseClaim {
        match self.step_asks(id, LeaseAsk::Acquire(lease(name), None)) {
            Ok(Outcome::Leased { claim, .. }) => claim,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Time passes to what the index says of a lease, and the host looks.
    pub(crate) fn lapse(&mut self, name: &str) {
        let due = self.lease(name).due.unwrap().0;
        self.pass(due.saturating_sub(self.store));
        self.ok(Verb::Lapse(lease(name)));
    }

    pub(crate) fn extend(
        &mut self,
        name: &str,
        label: &str,
        token: u64,
        ttl_ms: Option<u64>,
    ) -> Result<Outcome, Rejection> {
        self.run(Verb::Extend { lease: lease(name), grant: label.parse().unwrap(), token, ttl_ms })
    }

    pub(crate) fn release(&mut self, name: &str, label: &str, token: u64) -> Result<Outcome, Rejection> {
        self.run(Verb::Release { lease: lease(name), grant: label.parse().unwrap(), token })
    }

    pub(crate) fn withdraw(&mut self, name: &str, label: &str) -> Outcome {
        self.ok(Verb::Withdraw { lease: lease(name), grant: label.parse().unwrap() })
    }

    pub(crate) fn granted(&mut self, ask: Ask) -> (u64, bool, u64) {
        match self.ok(ask.into()) {
            Outcome::Leased { claim, new, ttl_ms, .. } => (claim.token.get(), new, ttl_ms),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn code(answered: Result<Outcome, Rejection>) -> Code {
    answered.unwrap_err().code
}

pub(crate) fn owner(label: &str) -> Owner {
    Owner::Grant(label.parse().unwrap())
}

#[test]
fn of_two_who_ask_one_gets_it_and_the_other_hears_who_has_it_until_when() {
    let mut world = World::with(pool_machine());
    let (token, new, ttl_ms) = world.granted(ask("build", "one", 5_000));
    assert!(new && ttl_ms == 5_000);
    world.pass(2_000);
    let refused = world.refused(ask("build", "two", 5_000).into());
    assert_eq!((refused.code, refused.retryable, refused.retry_after_ms), (Code::Busy, true, Some(3_000)));
    assert!(refused.got.contains("held by one for 2 s, at least 3 s more"), "{}", refused.got);
    let detail = refused.detail.unwrap();
    assert_eq!((&detail.value()["owner"], &detail.value()["token"]), (&"one".into(), &token.into()));
    assert_eq!(world.became("build"), [LeaseWhat::Acquired, LeaseWhat::Contended]);
    assert_eq!(world.lease_entries("build")[1].owner, "two");
}

#[test]
fn asking_again_under_one_grant_renews_and_keeps_the_token() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    world.pass(4_000);
    assert_eq!(world.granted(ask("build", "one", 6_000)), (token, false, 6_000));
    assert_eq!(world.lease("build").holder.unwrap().until, StoreTime(10_000));
}

#[test]
fn a_lease_is_over_at_its_time_and_not_a_millisecond_before() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    world.pass(4_999);
    assert_eq!(world.code(ask("build", "two", 5_000).into()), Code::Busy);
    assert!(world.extend("build", "one", token, None).is_ok());
    world.pass(5_000);
    assert_eq!(world.holder("build"), "nobody");
    let refused = world.extend("build", "one", token, None).unwrap_err();
    assert_eq!((refused.code, refused.expected.as_str()), (Code::Fenced, "no grant: the lease is free"));
    let (higher, new, _) = world.granted(ask("build", "two", 5_000));
    assert!(new && higher > token);
}

#[test]
fn extend_and_release_take_the_current_grant_and_token_and_others_are_on_record() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    for (label, token) in [("two", token), ("one", token - 1), ("one", token + 1)] {
        assert_eq!(code(world.extend("build", label, token, None)), Code::Fenced);
        assert_eq!(code(world.release("build", label, token)), Code::Fenced);
    }
    let fenced = world.lease_entries("build").into_iter().filter(|entry| entry.what == LeaseWhat::Fenced);
    let notes: Vec<String> = fenced.map(|entry| entry.note).collect();
    assert_eq!(notes.len(), 6);
    assert_eq!(notes[0], format!("expected token {token} of one, got token {token} of a client"));
    assert_eq!(world.holder("build"), "one", "and nothing else came of it");
    assert_eq!(world.release("build", "one", token), Ok(Outcome::Released));
    assert_eq!(code(world.release("build", "one", token)), Code::Fenced, "given back once");
    assert_eq!(code(world.release("never", "one", token)), Code::Fenced, "of which nothing was known");
}

#[test]
fn an_owner_of_before_is_fenced_by_the_token_of_its_own_later_grant() {
    let mut world = World::with(pool_machine());
    let (first, ..) = world.granted(ask("build", "one", 5_000));
    world.pass(5_000);
    let (second, ..) = world.granted(ask("build", "one", 5_000));
    assert!(second > first);
    assert_eq!(code(world.release("build", "one", first)), Code::Fenced);
    assert_eq!(world.holder("build"), "one");
}

#[test]
fn what_is_given_back_is_free_at_once() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    world.release("build", "one", token).unwrap();
    assert!(world.granted(ask("build", "two", 5_000)).0 > token);
}

#[test]
fn extension_is_told_as_granted_and_the_bound_in_all_is_kept() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000).held_at_most(12_000));
    let mut told = Vec::new();
    for _ in 0..2 {
        world.pass(4_000);
        let Ok(Outcome::Leased { ttl_ms, new, .. }) = world.extend("build", "one", token, None) else { panic!() };
        assert!(!new);
        told.push(ttl_ms);
    }
    let Ok(Outcome::Leased { ttl_ms, .. }) = world.extend("build", "one", token, Some(60_000)) else { panic!() };
    told.push(ttl_ms);
    assert_eq!(told, [5_000, 4_000, 4_000]);
    world.lapse("build");
    assert_eq!((world.store, world.holder("build")), (12_000, "nobody".to_owned()));
    let whats = world.became("build");
    assert_eq!(whats.last(), Some(&LeaseWhat::Expired), "{whats:?}");
}

#[test]
fn a_restart_neither_shortens_nor_ends_a_grant_and_ends_the_lines_of_clients() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    world.ok(ask("build", "two", 5_000).waits(60_000).into());
    world.open();
    assert_eq!(world.holder("build"), "one");
    assert!(world.extend("build", "one", token, None).is_ok(), "a grant is the client's, not the boot's");
    assert!(world.lease("build").line.is_empty(), "the connection that waited is gone");
    world.release("build", "one", token).unwrap();
    assert_eq!(world.holder("build"), "nobody");
}

#[test]
fn a_lease_that_nobody_wants_is_forgotten_after_a_day_and_its_tokens_go_on() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    world.pass(1_000);
    world.release("build", "one", token).unwrap();
    assert_eq!(world.lease("build").due, Some(StoreTime(1_000 + LEASE_KEPT_MS)), "a whole day from then on");
    world.pass(LEASE_KEPT_MS - 1);
    world.ok(Verb::Lapse(lease("build")));
    assert_eq!(world.became("build").len(), 2);
    world.pass(1);
    world.ok(Verb::Lapse(lease("build")));
    assert!(world.leases().is_empty());
    assert!(world.granted(ask("build", "one", 5_000)).0 > token);
}

#[test]
fn a_step_takes_renews_and_gives_back_and_each_is_progress_for_all_it_has() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    let disk = world.takes(&a, "disk");
    assert_eq!(disk.token.get(), world.seq);
    world.pass(5_000);
    let quota = world.takes(&a, "quota");
    assert_eq!(world.lease("disk").holder.unwrap().until, StoreTime(14_000), "renewed by what was asked of another");
    world.pass(5_000);
    assert_eq!(world.takes(&a, "quota"), quota, "taken again is renewed");
    world.pass(5_000);
    world.step_asks(&a, LeaseAsk::Extend(disk.clone(), Some(60_000))).unwrap();
    let until = |world: &World, name| world.lease(name).holder.unwrap().until.0;
    assert_eq!((until(&world, "disk"), until(&world, "quota")), (75_000, 24_000));
    world.pass(5_000);
    world.step_asks(&a, LeaseAsk::Release(disk.clone())).unwrap();
    assert_eq!((world.holder("disk"), until(&world, "quota")), ("nobody".to_owned(), 29_000));
    world.pass(5_000);
    world.save(&a, Default::default()).unwrap();
    assert_eq!(until(&world, "quota"), 34_000);
    assert_eq!(world.head(&a).lock.unwrap().progress.0, world.wall);
    let refused = world.step_asks(&a, LeaseAsk::Extend(disk.clone(), None)).unwrap_err();
    assert_eq!(refused.code, Code::Fenced, "given back is not held");
    assert_eq!(code(world.step_asks(&a, LeaseAsk::Release(disk))), Code::Fenced);
    assert_eq!(world.head(&a).leases, [lease("quota")]);
}

#[test]
fn an_attempt_asks_only_for_what_its_machine_was_granted_and_within_its_terms() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    let refused = world.step_asks(&a, LeaseAsk::Acquire(lease("secret"), None)).unwrap_err();
    assert_eq!((refused.code, refused.expected.as_str()), (Code::NotFound, "one of d*, quota"));
    assert_eq!(refused.got, "secret, not granted to pool");
    for (ttl_ms, fits) in [(999, false), (1_000, true), (60_000, true), (60_001, false)] {
        let answered = world.step_asks(&a, LeaseAsk::Acquire(lease("disk"), Some(ttl_ms)));
        assert_eq!(answered.map(drop).map_err(|refused| refused.code), if fits { Ok(()) } else { Err(Code::Limit) });
    }
    let held = LeaseClaim { lease: lease("disk"), token: world.lease_token("disk") };
    assert_eq!(code(world.step_asks(&a, LeaseAsk::Extend(held, Some(60_001)))), Code::Limit);
    world.granted(ask("quota", "one", 60_000));
    let refused = world.step_asks(&a, LeaseAsk::Acquire(lease("quota"), None)).unwrap_err();
    assert_eq!((refused.code, refused.retry_after_ms), (Code::Busy, Some(60_000)), "a step only tries");
    assert!(world.lease("quota").line.is_empty());
}

#[test]
fn an_attempt_that_is_not_the_open_one_asks_in_vain() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    world.takes(&a, "disk");
    let (zombie, held) = (world.claim(&a), world.lease_token("disk"));
    world.go(&a, "plan");
    let held = LeaseClaim { lease: lease("disk"), token: held };
    for ask in [LeaseAsk::Acquire(lease("quota"), None), LeaseAsk::Extend(held.clone(), None), LeaseAsk::Release(held)]
    {
        assert_eq!(world.code(Verb::Lease(zombie.clone(), ask)), Code::Fenced);
    }
    assert_eq!(world.holder("disk"), "pool/a@3.1", "its execution has it still");
    let execution = ExecutionId { entity: entity("pool/none"), ..zombie.execution.clone() };
    let nobody = interlock_kernel::view::Claim { execution, ..zombie };
    assert_eq!(world.code(Verb::Lease(nobody, LeaseAsk::Acquire(lease("quota"), None))), Code::Fenced);
}

#[test]
fn a_move_takes_the_lease_that_it_requires() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    let refused = world.transition(&a, "hold", Default::default()).unwrap_err();
    assert_eq!((refused.code, refused.expected.as_str()), (Code::Require, "lease disk, held by the execution"));
    assert_eq!(refused.got, "held by nobody");
    let (token, ..) = world.granted(ask("disk", "one", 60_000));
    assert_eq!(world.transition(&a, "hold", Default::default()).unwrap_err().got, "held by one");
    world.release("disk", "one", token).unwrap();
    world.takes(&a, "disk");
    world.go(&a, "hold");
}

#[test]
fn a_lease_as_its_transcript_tells() {
    let (mut world, a, b) = pool();
    drop(world.transcript());
    world.granted(ask("quota", "one", 5_000));
    world.send(&a, "go", "a1");
    world.send(&b, "go", "b1");
    world.pass(5_000);
    world.ok(Verb::Lapse(lease("quota")));
    world.due(&a);
    world.go(&a, "idle");
    world.due(&b);
    world.pass(9_000);
    world.ok(Verb::Lapse(lease("quota")));
    let mut told = world.transcript();
    for entry in world.lease_entries("quota") {
        let token = entry.token.map_or(String::new(), |token| format!(" token {token}"));
        told.push_str(&format!(
            "l{} {} {}{token}: {} by {}\n",
            entry.number, entry.what, entry.owner, entry.note, entry.by
        ));
    }
    expect_file!["golden/leases.txt"].assert_eq(&told);
    assert!(matches!(world.records.get(&Key::Lease(lease("quota"))), Ok(Some(Record::Lease(_)))));
}

#[test]
fn an_extension_on_request_is_on_record_with_what_was_promised() {
    let mut world = World::with(pool_machine());
    let (token, ..) = world.granted(ask("build", "one", 5_000));
    world.extend("build", "one", token, Some(6_000)).unwrap();
    assert_eq!(world.became("build"), [LeaseWhat::Acquired, LeaseWhat::Extended]);
    assert_eq!(world.lease_entries("build")[1].note, "for 6 s");
}

#[test]
fn a_machine_without_leases_says_so() {
    let (mut world, a) = World::of(pool_machine().with(|machine| machine.leases = Default::default()), "pool/a");
    world.send(&a, "plan", "p");
    let refused = world.step_asks(&a, LeaseAsk::Acquire(lease("disk"), None)).unwrap_err();
    assert_eq!((refused.code, refused.expected.as_str()), (Code::NotFound, "a machine with leases"));
}

#[test]
fn of_two_leases_the_one_that_is_given_back_leaves_the_head() {
    let (mut world, a, _) = pool();
    world.send(&a, "plan", "p");
    let (disk, _) = (world.takes(&a, "disk"), world.takes(&a, "quota"));
    world.step_asks(&a, LeaseAsk::Release(disk)).unwrap();
    assert_eq!(world.head(&a).leases, [lease("quota")]);
}
