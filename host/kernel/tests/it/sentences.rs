//! What stands in a history, in the words that people read.

use crate::build::name;
use crate::semantics::working;
use crate::world::{failure, permanent};
use expect_test::expect;
use interlock_kernel::record::{BeginReason, EffectWhat, Entry, FactKind, Failure, What};
use interlock_kernel::rejection::{Code, Rejection};

fn named(code: &str, reason: &str) -> Failure {
    Failure { reason: reason.to_owned(), ..failure(code) }
}

#[test]
fn every_entry_has_its_sentence() {
    let (mut world, id) = working();
    let refused = Rejection::new(Code::Late, &id, "visit 1", "visit 2");
    let fact = |kind, text: &str| What::Fact(kind, text.to_owned());
    let all = [
        What::Created,
        What::Event(name("run")),
        What::Queued(name("later")),
        What::Refused(name("later"), Box::new(refused.clone())),
        What::Applied(7),
        What::DesiredChanged,
        What::Transition(name("work")),
        What::Saved(name("work")),
        What::Timer(name("bell")),
        What::Begun(BeginReason::Retry),
        What::Begun(BeginReason::LostWithHost),
        What::Begun(BeginReason::HostStopped),
        What::Begun(BeginReason::Unparked),
        What::Ended(failure("slow"), Some(2_000)),
        What::Ended(permanent("burnt"), None),
        What::Ended(named("failed", "the disk is full\nand nobody came"), None),
        What::Ended(named("failed", ""), None),
        What::Ended(named("failed", &"ü".repeat(48)), None),
        What::Ended(named("failed", &"ü".repeat(49)), None),
        What::FailurePath(failure("slow")),
        What::Parked("exhausted".to_owned(), "five times".to_owned()),
        What::Unparked,
        What::Killed("enough".to_owned()),
        What::Deleted,
        fact(FactKind::Fenced, "fenced: job/a@3.1: expected no open attempt, got attempt 1"),
        fact(FactKind::Late, &refused.to_string()),
        fact(FactKind::Denied, "denied: job/a: expected the owner, got somebody"),
        fact(FactKind::NotAllowed, "not_allowed: job/a: expected one of run, got stop"),
        fact(FactKind::StaleTimer, "timer bell of 7 is not of this visit"),
        fact(FactKind::Repaired, "missing index entry"),
        fact(FactKind::LateEffect, "try 1 of effect 2 is over"),
        What::Effect(EffectWhat::Done, name("tickets"), 7, "status 201".to_owned()),
    ];
    let entry = Entry { from: name("idle"), attempt: Some(3), ..world.last_entry(&id) };
    let mut lines: Vec<String> = all.into_iter().map(|what| Entry { what, ..entry.clone() }.sentence()).collect();
    // An event in place stays; one that enters the same state begins an attempt there, or came from another.
    for (from, attempt) in [("working", None), ("working", Some(1)), ("idle", None)] {
        let what = What::Event(name("note"));
        lines.push(Entry { what, from: name(from), attempt, ..entry.clone() }.sentence());
    }
    // A result that enters no other state has no arrow; a retry says nothing more.
    let what = What::Effect(EffectWhat::Retried, name("tickets"), 7, String::new());
    lines.push(Entry { what, from: name("working"), ..entry.clone() }.sentence());
    world.send(&id, "note", "n1");
    lines.push(world.last_entry(&id).sentence());
    expect![[r#"
        created, working
        run -> working
        later queued
        later refused when its turn came: late
        desired written, generation 7
        desired-changed -> working
        work -> working
        work saved
        bell -> working
        attempt 3 begun
        attempt 2 lost with its host, begun again
        attempt 2 stopped with its host, begun again
        attempt 3 begun after unpark
        attempt 3 failed: slow, next in 2 s
        attempt 3 failed: burnt
        attempt 3 failed: the disk is full
        attempt 3 failed: failed
        attempt 3 failed: üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü
        attempt 3 failed: üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü...
        failed: slow -> working
        parked: exhausted
        unparked
        killed: enough
        deleted
        fenced: job/a@3.1: expected no open attempt, got attempt 1
        late: job/a: expected visit 1, got visit 2
        denied: job/a: expected the owner, got somebody
        not allowed: job/a: expected one of run, got stop
        stale timer: timer bell of 7 is not of this visit
        repaired: missing index entry
        late effect: try 1 of effect 2 is over
        effect 7 on tickets done: status 201 -> working
        note, stays working
        note -> working
        note -> working
        effect 7 on tickets retried
        note, stays working"#]]
    .assert_eq(&lines.join("\n"));
}
