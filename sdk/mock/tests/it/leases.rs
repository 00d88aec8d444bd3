//! Leases of a step: taken, renewed, given back, required, lost; and clients that have them meanwhile.

use interlock::{Done, Entity, Failure, Rejection, checkpoint, to};
use interlock_mock::{End, Fault, MockHost, Steps, at};
use serde_json::json;
use std::time::Duration;

const COPIER: &str = r#"
machine = "copier"
owner   = "tests <tests@example.com>"
initial = "idle"
component = "copier.wasm"
desired.schema = false
outputs.schema = false
[data]
default = { copies = 0 }
schema = { type = "object" }
[events]
start.schema = false

[leases]
disk     = { ttl = "10s", max = "1m", hold_max = "5m" }
"tape-*" = { ttl = "30s" }

[states.idle]
kind = "rest"
on.start = { to = "copying" }

[states.copying]
step = "copy"
to   = ["idle", { to = "copied", requires = ["disk"] }]
deadline = "1h"
retry = { attempts = 4, first = "1s", jitter = 0 }
on_failure = "park"

[states.copied]
after = { wait = "2s", to = "idle" }
"#;

const SECOND: Duration = Duration::from_secs(1);

/// A copier whose step was started, and is held before its first call.
fn copying(step: impl Fn(&Entity) -> Result<Done, Failure> + Send + Sync + 'static) -> MockHost {
    let mut host = MockHost::new(COPIER, Steps::one("copy", step));
    host.create("a").accepted();
    host.send("a", "start", json!(null)).accepted();
    host
}

fn take(copier: &Entity) -> Result<Done, Failure> {
    let disk = copier.lease("disk")?;
    copier.save(checkpoint().data(&json!({ "copies": 1, "token": disk.token() })))?;
    Ok(copier.transition(to("copied"))?)
}

fn code(answer: Result<impl Sized, Rejection>) -> String {
    answer.err().map_or("accepted".to_owned(), |no| no.code)
}

#[test]
fn a_lease_is_taken_renewed_and_given_back() {
    let mut host = copying(|copier| {
        let disk = copier.lease("disk")?;
        assert_eq!((disk.name().as_str(), disk.time_left()), ("disk", SECOND * 10));
        assert!(disk.token() > interlock::fencing::token(copier));
        let again = copier.lease_for("disk", SECOND * 20)?;
        assert_eq!((again.token(), again.time_left()), (disk.token(), SECOND * 20), "it has it: renewed");
        disk.extend_for(SECOND * 60)?;
        assert_eq!(disk.time_left(), SECOND * 60);
        disk.extend()?;
        assert_eq!(disk.time_left(), SECOND * 10, "what the machine declares");
        assert!(disk.still_holds());
        let token = disk.token();
        disk.release()?;
        assert!(!again.still_holds(), "another handle of the same grant");
        assert_eq!(code(again.release()), "fenced");
        let anew = copier.lease("disk")?;
        assert!(anew.token() > token);
        Ok(copier.transition(to("idle"))?)
    });
    let ran = host.step("a");
    assert_eq!(ran.end, End::Done, "{ran}");
    let lease = host.lease("disk");
    assert_eq!(lease.holder(), None, "it ended with its execution");
    let entries = ["acquired", "extended", "extended", "extended", "released", "fenced", "acquired", "released"];
    assert_eq!(lease.entries(), entries);
}

#[test]
fn dropping_a_lease_gives_nothing_back_and_the_end_of_the_execution_does() {
    let mut host = copying(|copier| {
        drop(copier.lease("disk")?);
        Ok(copier.transition(to("copied"))?)
    });
    host.run();
    host.entity("a").state_is("copied");
    assert_eq!(host.lease("disk").holder(), host.entity("a").locked_by().as_deref());
    host.acquire("disk", "rival", SECOND * 5).refused("busy");
    host.advance(SECOND * 2);
    host.entity("a").state_is("idle");
    host.acquire("disk", "rival", SECOND * 5).accepted();
    assert_eq!(host.lease("disk").entries(), ["acquired", "contended", "released", "acquired"]);
}

#[test]
fn what_a_machine_was_not_granted_is_not_found_and_a_beginning_grants_many() {
    let mut host = copying(|copier| {
        let no = copier.lease("disc").unwrap_err();
        assert_eq!((no.code.as_str(), no.expected.as_str()), ("not_found", "one of disk, tape-*"));
        assert_eq!(code(copier.lease("tape-")), "accepted");
        assert_eq!(copier.lease("tape-7")?.time_left(), SECOND * 30);
        Ok(copier.transition(to("idle"))?)
    });
    assert_eq!(host.step("a").end, End::Done);
}

#[test]
fn bad_names_and_times_are_refused_and_counted() {
    let mut host = copying(|copier| {
        let long = "x".repeat(201);
        for name in ["", "a\nb", "disk*", &long] {
            assert_eq!(code(copier.lease(name)), "invalid", "{name:?}");
        }
        for ttl in [Duration::ZERO, Duration::from_millis(999), SECOND * 61, Duration::MAX] {
            assert_eq!(code(copier.lease_for("disk", ttl)), "limit", "{ttl:?}");
        }
        let disk = copier.lease("disk")?;
        for ttl in [Duration::ZERO, Duration::MAX] {
            assert_eq!(code(disk.extend_for(ttl)), "limit", "{ttl:?}");
        }
        assert_eq!(disk.time_left(), SECOND * 10, "as it was");
        for refused in 11..=16 {
            assert_eq!(code(copier.lease("nothing")), "not_found", "{refused}");
        }
        let _ = copier.lease("nothing");
        Ok(copier.transition(to("idle"))?)
    });
    let _ = host.step("a").failed("refusals");
}

#[test]
fn a_transition_that_requires_a_lease_is_refused_without_it() {
    let mut host = copying(|copier| {
        let no = copier.transition(to("copied")).unwrap_err();
        assert_eq!((no.code.as_str(), no.got.as_str()), ("require", "held by rival"));
        Ok(copier.transition(to("idle"))?)
    });
    host.acquire("disk", "rival", SECOND * 30).accepted();
    assert_eq!(host.step("a").end, End::Done);
}

#[test]
fn a_step_that_finds_it_taken_says_who_has_it_and_comes_again() {
    let mut host = copying(take);
    host.acquire("disk", "rival", SECOND * 30).accepted();
    let no = host.step("a").refused("busy").clone();
    assert!(no.retryable && no.got.starts_with("held by rival"), "{no}");
    assert_eq!(no.retry_after, Some(SECOND * 30));
    host.advance(SECOND * 10);
    host.extend("disk", "rival", SECOND * 40).accepted();
    host.advance(SECOND * 20);
    let _ = host.ran()[1].refused("busy");
    host.release("disk", "rival").accepted();
    host.release("disk", "rival").refused("fenced");
    host.advance(SECOND * 21);
    host.entity("a").state_is("copied");
}

#[test]
fn a_lost_lease_ends_the_attempt_and_the_next_grant_has_a_higher_token() {
    let mut host = copying(take);
    host.fault(at("copy").call(2), Fault::LeaseLost);
    host.run();
    let ran = host.ran()[0].clone();
    assert_eq!(ran.refused("fenced").expected, "no open attempt");
    assert_eq!(host.lease("disk").token(), None, "nobody has it in the meantime");
    host.advance(SECOND);
    let entity = host.entity("a");
    entity.state_is("copied");
    let lease = host.lease("disk");
    assert_eq!(lease.entries(), ["acquired", "expired", "acquired"]);
    assert_eq!(lease.token(), entity.data()["token"].as_u64());
    assert!(entity.history().iter().any(|line| line.contains("lease-lost")), "{entity}");
}

#[test]
fn time_that_passes_its_ttl_takes_the_lease_and_somebody_else_gets_it() {
    let mut host = copying(take);
    host.hold(at("copy").call(2));
    host.run();
    host.acquire("disk", "rival", SECOND * 30).refused("busy");
    host.advance(SECOND * 10);
    host.acquire("disk", "rival", SECOND * 30).accepted();
    host.let_go();
    host.run();
    let told = host.ran()[0].refusals().into_iter().map(|no| no.code.clone()).collect::<Vec<_>>();
    assert_eq!(told, ["fenced"], "its save did not come through");
    assert_eq!(*host.entity("a").data(), json!({ "copies": 0 }));
    host.advance(SECOND * 60);
    host.entity("a").state_is("idle");
    assert_eq!(host.entity("a").data()["copies"], 1);
}

#[test]
fn a_lease_outlives_a_crash_with_its_token() {
    let mut host = copying(take);
    host.fault(at("copy").call(2), Fault::Crash);
    host.advance(SECOND);
    host.entity("a").state_is("copied");
    assert_eq!(host.lease("disk").entries(), ["acquired", "extended"], "the same grant");
    assert!(host.story().contains("acquire disk: held for 10000 ms, token "), "{}", host.story());
}

fn renew(copier: &Entity) -> Result<Done, Failure> {
    let disk = copier.lease("disk")?;
    disk.extend_for(SECOND * 60)?;
    Ok(copier.transition(to("copied"))?)
}

/// As oban 1488: what nobody knows to be renewed is not counted upon.
#[test]
fn a_renewal_that_nobody_knows_of_ends_the_attempt_and_the_lease_when_it_would_have_ended() {
    for (fault, left) in [
        (Fault::Unknown { kept: false }, SECOND * 10),
        (Fault::Unavailable, SECOND * 10),
        (Fault::Unknown { kept: true }, SECOND * 60),
    ] {
        let mut host = copying(renew);
        host.fault(at("copy").call(2), fault);
        host.run();
        let _ = host.ran()[0].failed("unavailable");
        // Back-off is a second: what the execution has lasts as long as that, and its time to live.
        let lease = host.lease("disk");
        assert!(lease.time_left().is_some_and(|time| time >= left), "{fault:?}: {lease}");
        host.acquire("disk", "rival", SECOND).refused("busy");
        host.advance(SECOND);
        host.entity("a").state_is("copied");
        let token = host.lease("disk").token();
        assert_eq!(lease.token(), token, "{fault:?}: the same grant");
    }
}

#[test]
fn a_lease_that_is_not_there_cannot_be_lost() {
    let panic = std::panic::catch_unwind(|| {
        let mut host = copying(|copier| Ok(copier.transition(to("idle"))?));
        host.fault(at("copy"), Fault::LeaseLost);
        host.run();
    });
    let said = panic.unwrap_err().downcast::<String>().unwrap();
    assert!(said.ends_with("to have a lease to lose, got none"), "{said}");
}
