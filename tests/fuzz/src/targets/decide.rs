//! Decisions: whatever clients, steps, clocks, operators and crashes ask in whatever order, every theorem holds, what
//! is accepted fits into the store, and an answer is the same the second time.
//!
//! ```text
//! create
//! event go e1 {"by": 2}
//! transition waiting | set data.n += 1 | condition ready true
//! pass 60000
//! fire bell
//! ```

use super::world::{Answered, World};
use super::{holds, script};
use crate::target::{Broken, Seen, Target};
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, StagedDue, StagedTimer, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, Name, Principal};
use interlock_kernel::machine::{Machine, StateKind};
use interlock_kernel::record::{AnswerKind, Condition, Expect, Failure, Key, Record};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::WallTime;
use interlock_kernel::view::{Claim, Event};
use std::sync::{Arc, LazyLock};

/// See the module.
pub(crate) struct Decide;

const WORDS: &str = "\
    create¦create fail¦create use¦create recreate¦create same {\"size\": 2}¦event go e1 {\"by\": 1}¦\
    event note e2 {\"text\": \"x\"}¦event stop e3¦event tick e4¦event stay e5 [1]¦event held e6¦\
    expect 1 1 1 1 1 go e7 {\"by\": 1}¦apply {\"size\": 3}¦apply {\"size\": 101}¦transition idle¦\
    transition waiting¦transition working¦transition busy¦transition calm¦transition held¦save¦\
    zombie transition idle¦zombie end x¦stale save¦end failed¦end permanent failed¦due¦fire bell¦fire after¦\
    pass 1000¦pass 60000¦pass 4000000¦pass 90000000¦kill why¦unpark¦delete¦crash¦recover¦sweep¦audit¦deploy job¦\
    deploy next¦deploy plain¦rollback 1¦rollback 2¦at job/a¦at job/b¦at plain/p¦ | data {\"n\": 1, \"log\": []}¦ | outputs {\"done\": 1}¦ | set data.n += 1¦ | set data.x = data¦ | set data.a.b.c.d = data¦ | set outputs.x = from data¦ | set data.log << data¦ | set data.n remove¦ | condition ready true¦\
    transition dated | set data.until = 5000¦fire until¦fire daily¦fire nudge¦fire again¦fire alarm¦ | timer nudge 5000¦\
     | timer again at 90000¦ | timer again cancel¦ | timer alarm 1¦ | timer bell 1¦ | timer nudge 400000000000¦\
    spoil 5 9 1¦spoil 7 30 255¦\n";

/// Lines of a script that are played: longer ones only repeat.
const LINES_MAX: usize = 40;

/// The machines, by the word that deploys them.
static MACHINES: LazyLock<Vec<(&'static str, Arc<Machine>)>> = LazyLock::new(|| {
    let texts = [
        ("job", include_str!("../../machines/job.toml")),
        ("next", include_str!("../../machines/job-next.toml")),
        ("plain", include_str!("../../machines/plain.toml")),
    ];
    let read = |(word, text)| Some((word, Arc::new(interlock_manifest::parse(word, text).manifest?.machine)));
    texts.into_iter().filter_map(read).collect()
});

impl Target for Decide {
    fn name(&self) -> &'static str {
        "decide"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        holds!(MACHINES.len() == 3, "the machines are not accepted");
        let text = String::from_utf8_lossy(input);
        let mut seen = Seen::default();
        let world = World { wrote: None, ..prepared()? };
        let once = play(&text, &mut seen, world.clone())?;
        if !once.spoiled {
            once.folds()?;
        }
        let twice = play(&text, &mut seen, World { unchecked: true, ..world })?;
        holds!(once.records == twice.records, "the same script leaves other records the second time");
        Ok(seen)
    }
}

/// Every record that the corpus of scripts writes.
pub(super) fn played() -> Vec<(Key, Record)> {
    let scripts = crate::corpus(&Decide).unwrap_or_default();
    let worlds = scripts.iter().filter_map(|(_, script)| {
        play(&String::from_utf8_lossy(script), &mut Seen::default(), prepared().ok()?).ok()?.wrote
    });
    worlds.flatten().collect()
}

/// A host that has booted, with a revision of each machine; it keeps what it writes.
fn prepared() -> Result<World, Broken> {
    static READY: LazyLock<Result<World, Broken>> = LazyLock::new(|| {
        let mut world = World::new();
        world.open()?;
        for (digest, (_, machine)) in (1..).zip(MACHINES.iter()).filter(|(_, (word, _))| *word != "next") {
            drop(world.deploy(machine, digest)?);
        }
        Ok(world)
    });
    READY.clone()
}

fn play(text: &str, seen: &mut Seen, mut world: World) -> Result<World, Broken> {
    let mut at = id("job/a")?;
    for line in text.lines().take(LINES_MAX) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "at" {
            at = rest.parse().unwrap_or(at);
            continue;
        }
        let Some(answered) = play_line(&mut world, &at, word, rest)? else { continue };
        match &answered {
            Ok(outcome) => seen.note(&(word, std::mem::discriminant(outcome))),
            Err(refused) => {
                seen.note(&(word, refused.code));
                seen.say(&refused.expected);
            }
        }
        if let Some(head) = world.head(&at) {
            let lock = head.lock.as_ref().map(|lock| (lock.attempt.is_some(), lock.retry.is_some(), lock.saves > 0));
            let park = head.park.as_ref().map(|park| park.code.as_str());
            seen.note(&(word, head.state.as_str(), lock, park, head.inbox.length.min(2), answered.is_ok()));
        }
    }
    Ok(world)
}

fn id(text: &str) -> Result<EntityId, Broken> {
    text.parse().map_err(|bad| Broken(format!("{bad}")))
}

/// Plays a line; none if it is no command.
fn play_line(world: &mut World, at: &EntityId, word: &str, rest: &str) -> Result<Option<Answered>, Broken> {
    let verb = match word {
        "create" => create(at, rest),
        "event" => return event(world, at, rest, Expect::default()),
        "expect" => {
            let mut words = rest.splitn(6, ' ');
            let mut number = || words.next().and_then(|word| word.parse().ok());
            let (incarnation, execution, visit) = (number(), number(), number());
            let expect = Expect { incarnation, execution, visit, generation: number(), version: number() };
            return event(world, at, words.next().unwrap_or_default(), expect);
        }
        "apply" => Doc::parse(rest).ok().map(|desired| Verb::Apply {
            entity: at.clone(),
            desired,
            expect: None,
            checked: None,
        }),
        "transition" | "save" | "end" => return attempt(world, at, word, rest, Who::Newest),
        "zombie" | "stale" => {
            let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            return attempt(world, at, word, rest, if word == "zombie" { Who::Oldest } else { Who::Stale });
        }
        "due" => Some(Verb::Due(at.clone())),
        "fire" => fire(world, at, rest),
        "kill" => Some(Verb::Kill { entity: at.clone(), reason: rest.to_owned() }),
        "unpark" => Some(Verb::Unpark(at.clone())),
        "delete" => Some(Verb::Delete(at.clone())),
        "recover" => Some(Verb::Recover(at.clone())),
        "sweep" => Some(Verb::Sweep),
        "audit" => {
            let found = world
                .records
                .0
                .keys()
                .filter(|key| matches!(key, Key::Due(_, of) | Key::Timer(_, of, _) | Key::Open(_, of) if of == at));
            Some(Verb::Audit { entity: at.clone(), found: found.cloned().collect(), abandoned: None })
        }
        "rollback" => rest.parse().ok().map(|to| Verb::Rollback { machine: at.machine.clone(), to }),
        "deploy" => {
            let found = (1..).zip(MACHINES.iter()).find(|(_, (known, _))| *known == rest);
            return found.map(|(digest, (_, machine))| world.deploy(machine, digest)).transpose();
        }
        "crash" => {
            world.open()?;
            return Ok(None);
        }
        "pass" => {
            world.pass(rest.parse().unwrap_or(0).min(40 * 86_400_000));
            return Ok(None);
        }
        "spoil" => {
            spoil(world, rest);
            return Ok(None);
        }
        _ => None,
    };
    verb.map(|verb| world.run(Principal::local(), verb)).transpose()
}

/// `same`, `fail`, `use` or `recreate`, and what is desired.
fn create(at: &EntityId, rest: &str) -> Option<Verb> {
    let (policy, desired) = rest.split_once(' ').unwrap_or((rest, ""));
    let on_existing = match policy {
        "fail" => OnExisting::Fail,
        "use" => OnExisting::Use,
        "recreate" => OnExisting::Recreate,
        _ => OnExisting::Same,
    };
    let desired = Doc::parse(desired).ok();
    let create = Create { entity: at.clone(), desired, labels: Default::default(), on_existing, event: None };
    Some(Verb::Create(Box::new(create)))
}

/// Delivers `NAME ID PAYLOAD`. What was answered once is answered the same again, and writes nothing.
fn event(world: &mut World, at: &EntityId, rest: &str, expect: Expect) -> Result<Option<Answered>, Broken> {
    let mut words = rest.splitn(3, ' ');
    let (name, id) = (words.next().and_then(|word| word.parse().ok()), words.next().and_then(|word| word.parse().ok()));
    let (Some(name), Some(id)) = (name, id) else { return Ok(None) };
    let payload = words.next().and_then(|text| Doc::parse(text).ok());
    let event = Event { id, name, payload, expect, checked: None };
    let verb = || Verb::Deliver { entity: at.clone(), event: Box::new(event.clone()) };
    let before = world.head(at).cloned();
    let answered = world.run(Principal::local(), verb())?;
    if world.spoiled {
        return Ok(Some(answered));
    }
    match &answered {
        Ok(Outcome::Answered { answer, .. }) => {
            let records = world.records.clone();
            let again = world.run(Principal::local(), verb())?;
            let Ok(Outcome::Answered { answer: second, replayed }) = &again else {
                return Err(Broken(format!("{answer:?}, and then {again:?}")));
            };
            holds!(*replayed && world.records == records, "the same event again changes something: {second:?}");
            let settled = answer.kind != AnswerKind::Queued;
            holds!(!settled || second == answer, "{answer:?}, and then {second:?}");
        }
        Ok(other) => return Err(Broken(format!("an event is answered {other:?}"))),
        Err(refused) => {
            let resting = before.and_then(|head| {
                let revision = world.revision(at, head.revision)?;
                let state = revision.machine.state(&head.state)?;
                (state.kind == StateKind::Rest && state.on.contains_key(&event.name) && expect == Expect::default())
                    .then_some(())
            });
            let fair = matches!(refused.code, Code::Invalid | Code::Guard | Code::Limit | Code::IdReused);
            holds!(resting.is_none() || fair, "at rest, and refused: {refused}");
        }
    }
    Ok(Some(answered))
}

/// Which attempt asks.
#[derive(Clone, Copy, PartialEq)]
enum Who {
    /// The newest, which has read what is there.
    Newest,
    /// The newest, with what it read when it began.
    Stale,
    /// The first there ever was.
    Oldest,
}

/// `transition TO | PART ...`, `save | PART ...`, `end [permanent] CODE`.
fn attempt(world: &mut World, at: &EntityId, word: &str, rest: &str, who: Who) -> Result<Option<Answered>, Broken> {
    let start = if who == Who::Oldest { world.oldest.get(at) } else { world.newest.get(at) };
    let Some(mut claim) = start.map(|start| start.claim.clone()) else { return Ok(None) };
    if let Some(head) = world.head(at).filter(|_| who == Who::Newest) {
        claim.read = head.version;
    }
    let mut parts = rest.split(" | ").map(str::trim);
    let first = parts.next().unwrap_or_default();
    let verb = match word {
        "transition" => {
            let Some(to) = first.parse::<Name>().ok() else { return Ok(None) };
            Verb::Transition(claim.clone(), to, Box::new(change(parts)))
        }
        "save" => Verb::Save(claim.clone(), Box::new(change(parts))),
        "end" => {
            let permanent = first.starts_with("permanent");
            let code = first.trim_start_matches("permanent ").to_owned();
            let reason = "as the script says".to_owned();
            Verb::End(claim.clone(), Failure { permanent, code, reason, retry_after_ms: None })
        }
        _ => return Ok(None),
    };
    let held = holds_lock(world, at, &claim);
    let answered = world.run(Principal::execution(&claim.execution), verb)?;
    let fenced = matches!(&answered, Err(refused) if refused.code == Code::Fenced);
    holds!(world.spoiled || fenced != held, "an attempt that holds: {held}, and it hears {answered:?}");
    Ok(Some(answered))
}

fn holds_lock(world: &World, at: &EntityId, claim: &Claim) -> bool {
    let head = world.head(at);
    let open = head.and_then(|head| head.lock.as_ref()).and_then(|lock| lock.attempt);
    open.is_some_and(|open| open.token == claim.token)
}

fn change<'a>(parts: impl Iterator<Item = &'a str>) -> Change {
    let mut change = Change::default();
    for part in parts {
        let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
        match word {
            "data" => change.data = Doc::parse(rest).ok().or(change.data),
            "outputs" => change.outputs = Doc::parse(rest).ok().or(change.outputs),
            "set" => change.set.extend(script::mutation(rest)),
            "condition" => {
                let (kind, status) = rest.split_once(' ').unwrap_or((rest, "unknown"));
                change.conditions.push(Condition {
                    kind: kind.to_owned(),
                    status: status.to_owned(),
                    reason: "Said".to_owned(),
                    message: String::new(),
                    since: WallTime(0),
                });
            }
            "timer" => change.stage.timers.extend(staged(rest)),
            _ => {}
        }
    }
    change
}

/// `NAME MS`, `NAME at MS`, `NAME cancel`.
fn staged(text: &str) -> Option<StagedTimer> {
    let (name, due) = text.split_once(' ')?;
    let due = match (due, due.strip_prefix("at ")) {
        ("cancel", _) => StagedDue::Cancelled,
        (_, Some(at)) => StagedDue::At(WallTime(at.parse().ok()?)),
        (ms, None) => StagedDue::After(ms.parse().ok()?),
    };
    Some(StagedTimer { name: name.parse().ok()?, due })
}

/// A timer of the visit, or one that is no more.
fn fire(world: &mut World, at: &EntityId, rest: &str) -> Option<Verb> {
    let (name, due) = rest.split_once(' ').unwrap_or((rest, ""));
    let timer: Name = name.parse().ok()?;
    let set = world.head(at).and_then(|head| head.timers.iter().find(|set| set.name == timer).map(|set| set.due));
    let due = due.parse().ok().map(WallTime).or(set)?;
    Some(Verb::Fire { entity: at.clone(), timer, due })
}

/// Changes one byte of one stored record, if what comes out still is one: `spoil RECORD BYTE BITS`.
fn spoil(world: &mut World, rest: &str) {
    let mut numbers = rest.split(' ').map(|word| word.parse::<usize>().unwrap_or_default());
    let mut number = || numbers.next().unwrap_or_default();
    let (record, byte, bits) = (number(), number(), u8::try_from(number() % 256).unwrap_or_default());
    let all = world.records.0.len().max(1);
    let Some((key, found)) = world.records.0.iter().nth(record % all) else { return };
    let (key, mut bytes) = (key.clone(), found.encode(key));
    let length = bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(byte % length) {
        *byte ^= bits;
    }
    if let Ok(read) = Record::decode(&key, &bytes) {
        world.spoiled = true;
        world.records.0.insert(key, read);
    }
}
