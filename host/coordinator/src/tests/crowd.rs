//! Many at once: queues, slots, races, and the same thing twice.

use super::world::{Hands, Kept, POOL, World, accepted, command, deploy, entity, parse, rest};
use super::{check, run};
use crate::{Attempt, Coordinator, Ended, Executor, Options, SubmitError};
use expect_test::expect;
use interlock_kernel::command::{Change, Create, OnExisting, Outcome, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::record::{AnswerKind, Expect};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::{Event, Start};
use interlock_store::{ManualClock, Mem};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

#[test]
fn queued_events_are_taken_in_turn_before_anybody_meets_rest() {
    check(
        r#"
        deploy one
        create a
        send a grow {"size":2} id=g1
        send a grow {"size":3} id=g2
        send a grow {"size":2} id=g3
        wait a g2 1h
        wait a g3 1h
        send a grow {"size":3} id=g2
        send a grow {"size":5} id=g2
        show a
        step a to provisioning data={"size":2,"target":2,"nodes":[]}
        step a#1 returns
        advance 90s
        step a to ready data={"size":2,"target":2,"nodes":[]}
        answer a g2
        step a to provisioning
        advance 90s
        step a to ready data={"size":3,"target":3,"nodes":[]}
        answer a g3
        show a
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a grow {"size":2} id=g1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            send a grow {"size":3} id=g2
                queued v2 planning
            send a grow {"size":2} id=g3
                queued v2 planning
            wait a g2 1h
            wait a g3 1h
            send a grow {"size":3} id=g2
                queued v2 planning (replayed)
            send a grow {"size":5} id=g2
                REFUSED id_reused: expected event g2 with the name and payload it had before, got another name or payload
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t1 Running inbox 2
                data {"nodes":[],"size":1,"target":2}
            step a to provisioning data={"size":2,"target":2,"nodes":[]}
                committed v3
            step a#1 returns
            advance 90s
                * pool/a attempt 1 token t2 runs verify in verifying
            step a to ready data={"size":2,"target":2,"nodes":[]}
                committed v5
                * pool/a attempt 1 token t3 runs plan in planning
            answer a g2
                Ok(Some("accepted @i1.2 v6 planning"))
            step a to provisioning
                committed v7
            advance 90s
                * pool/a attempt 1 token t4 runs verify in verifying
            step a to ready data={"size":3,"target":3,"nodes":[]}
                committed v9
                * g2: succeeded in ready v9 execution Some(2) outputs None
                * g3: refused v9 ready: guard: expected event.size gt data.size, got 2 and 3
            answer a g3
                Ok(Some("refused v9 ready: guard: expected event.size gt data.size, got 2 and 3"))
            show a
                ready v9 visit 9 generation 0 observed 0 unlocked
                data {"nodes":[],"size":3,"target":3}
        "#]],
    );
}

#[test]
fn attempts_without_a_slot_wait_and_their_deadlines_with_them() {
    check(
        r#"
        slots 1
        kill-9
        boot
        deploy one
        create a
        create b
        create c
        send a resize {"size":2} id=e1
        send b resize {"size":2} id=e2
        send c resize {"size":2} id=e3
        attempts
        show b
        advance 29s
        step a to provisioning
        step a returns
        # b has had its slot for 29 s only, however long it waited
        advance 29s
        kill c enough
        step b to provisioning
        step b returns
        attempts
        "#,
        expect![[r#"
            slots 1
            kill-9
            boot
            deploy one
                revision 1
            create a
                created @i1 v1
            create b
                created @i2 v1
            create c
                created @i3 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            send b resize {"size":2} id=e2
                accepted @i2.1 v2 planning
            send c resize {"size":2} id=e3
                accepted @i3.1 v2 planning
            attempts
                pool/a token t1 Running
                pool/b token t2 WaitingForSlot
                pool/c token t3 WaitingForSlot
            show b
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t2 WaitingForSlot
                data {"nodes":[],"size":1,"target":2}
            advance 29s
            step a to provisioning
                committed v3
            step a returns
                * pool/b attempt 1 token t2 runs plan in planning
            # b has had its slot for 29 s only, however long it waited
            advance 29s
            kill c enough
                killed v3
            step b to provisioning
                committed v3
            step b returns
            attempts
        "#]],
    );
}

#[test]
fn a_late_wait_is_told_how_its_own_execution_ended() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        step a fails no-room permanent=yes
        send a resize {"size":3} id=e2
        step a to provisioning data={"size":3,"target":3,"nodes":[]}
        advance 90s
        step a to ready
        wait a e1 1h
        wait a e2 1h
        kill a enough
        wait a e2 1h
        delete a
        wait a e2 1h
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            step a fails no-room permanent=yes
            send a resize {"size":3} id=e2
                accepted @i1.2 v4 planning
                * pool/a attempt 1 token t2 runs plan in planning
            step a to provisioning data={"size":3,"target":3,"nodes":[]}
                committed v5
            advance 90s
                * pool/a attempt 1 token t3 runs verify in verifying
            step a to ready
                committed v7
            wait a e1 1h
                * e1: failed in ready v3 execution Some(1) outputs None
            wait a e2 1h
                * e2: succeeded in ready v7 execution Some(2) outputs None
            kill a enough
                killed v8
            wait a e2 1h
                * e2: succeeded in ready v7 execution Some(2) outputs None
            delete a
                killed v8
            wait a e2 1h
                * e2: gone
        "#]],
    );
}

#[test]
fn a_wait_with_a_limit_says_where_it_stands() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        wait a e1 10s
        advance 10s
        wait a e1 10m
        step a fails no-room permanent=yes
        show a
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            wait a e1 10s
            advance 10s
                * e1: not yet: accepted @i1.1 v2 planning; now planning v2
            wait a e1 10m
            step a fails no-room permanent=yes
                * e1: failed in ready v3 execution Some(1) outputs None
            show a
                ready v3 visit 3 generation 0 observed 0 unlocked
                data {"nodes":[],"size":1,"target":1}
                condition interlock/execution failed: no-room
        "#]],
    );
}

fn create(key: &str) -> interlock_kernel::command::Command {
    command(Verb::Create(Box::new(Create {
        entity: entity(key),
        desired: None,
        labels: BTreeMap::new(),
        on_existing: OnExisting::Same,
        event: None,
    })))
}

fn resize(key: &str, id: &str, size: u64) -> interlock_kernel::command::Command {
    let event = Event {
        id: parse(id),
        name: parse("resize"),
        payload: Some(Doc::new(serde_json::json!({ "size": size }))),
        expect: Expect::default(),
        checked: None,
    };
    command(Verb::Deliver { entity: entity(key), event: Box::new(event) })
}

#[test]
fn two_starts_with_one_id_at_the_same_moment_are_one_execution() {
    run(async {
        let world = World::new(Kept::AsItIs).await;
        let host = world.host();
        accepted(host.submit(deploy(POOL, "one")).await);
        accepted(host.submit(create("a")).await);
        world.mem.hold();
        let (left, right, mem) = (host.clone(), host.clone(), world.mem.clone());
        let left = tokio::spawn(async move { left.submit(resize("a", "e1", 4)).await });
        let right = tokio::spawn(async move { right.submit(resize("a", "e1", 4)).await });
        rest().await;
        mem.release();
        let mut replays = Vec::new();
        for answer in [left.await, right.await] {
            let Ok(Ok(Outcome::Answered { answer, replayed })) = answer else { panic!("{answer:?}") };
            assert_eq!((answer.kind, answer.execution), (AnswerKind::Accepted, Some(1)));
            replays.push(replayed);
        }
        replays.sort_unstable();
        assert_eq!(replays, [false, true]);
        let Ok(Some(found)) = host.entity(&entity("a")).await else { panic!("no entity") };
        assert_eq!((found.head.executions, found.head.version.get()), (1, 2));
    });
}

#[test]
fn two_workers_race_for_one_entity_and_the_other_is_told_who_holds_it() {
    run(async {
        let world = World::new(Kept::AsItIs).await;
        let host = world.host();
        accepted(host.submit(deploy(POOL, "one")).await);
        accepted(host.submit(create("a")).await);
        let tasks: Vec<_> = (0..16_u64)
            .map(|nth| {
                let host = host.clone();
                tokio::spawn(async move { host.submit(resize("a", &format!("e{nth}"), 2 + nth)).await })
            })
            .collect();
        let mut won = 0;
        for task in tasks {
            match task.await {
                Ok(Ok(Outcome::Answered { .. })) => won += 1,
                Ok(Err(SubmitError::Rejected(no))) => {
                    assert_eq!(no.code, Code::Busy);
                    assert!(no.got.contains("locked by pool/a@"), "{no}");
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((won, host.stats().refusals(Code::Busy)), (1, 15));
    });
}

/// Hands every attempt to two runs of the same step.
#[derive(Clone, Default)]
struct Echo(Arc<Mutex<Vec<Start>>>);

impl Executor for Echo {
    fn start(&self, attempt: Attempt) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(attempt.start().clone());
        tokio::spawn(async move {
            let to = |to: &str| attempt.transition(parse(to), Change::default());
            let first = to("provisioning").await;
            let second = to("provisioning").await;
            assert!(first.is_ok(), "{first:?}");
            let code = second.as_ref().err().and_then(SubmitError::rejection).map(|no| no.code);
            assert_eq!(code, Some(Code::Spent));
            attempt.finish(Ended::Returned);
        });
    }
}

#[test]
fn the_same_attempt_dispatched_twice_commits_once() {
    run(async {
        let store = Arc::new(Mem::new(Arc::new(ManualClock::new())));
        let hands = Hands::default();
        let opened = Coordinator::open(store.clone(), Arc::new(hands.clone()), Options::default()).await;
        let Ok(host) = opened else { panic!("{opened:?}") };
        accepted(host.submit(deploy(POOL, "one")).await);
        accepted(host.submit(create("a")).await);
        accepted(host.submit(resize("a", "e1", 4)).await);
        rest().await;
        let first = hands.last("a");
        // As after a wake-up that was lost and found again: the host forgets, reads, and starts it anew.
        let again = crate::read::start(host.core(), entity("a")).await;
        let Ok(Some(again)) = again else { panic!("{again:?}") };
        host.core().push(Box::new(again.clone()));
        assert_eq!(host.attempts(9).len(), 1, "one token runs once while the host knows it");
        host.core().forget(first.token().get());
        host.core().push(Box::new(again));
        rest().await;
        let second = hands.last("a");
        assert_eq!(first.token(), second.token());
        assert_eq!(first.seed(), second.seed());
        let won = first.transition(parse("provisioning"), Change::default()).await;
        let lost = second.transition(parse("provisioning"), Change::default()).await;
        assert!(won.is_ok(), "{won:?}");
        assert_eq!(lost.err().and_then(|error| error.rejection().map(|no| no.code)), Some(Code::Fenced));
        let Ok(Some(found)) = host.entity(&entity("a")).await else { panic!("no entity") };
        assert_eq!(found.head.version.get(), 3);
    });
}

#[test]
fn a_step_that_transitions_twice_is_told_that_it_is_spent() {
    run(async {
        let store = Arc::new(Mem::new(Arc::new(ManualClock::new())));
        let echo = Echo::default();
        let opened = Coordinator::open(store, Arc::new(echo.clone()), Options::default()).await;
        let Ok(host) = opened else { panic!("{opened:?}") };
        accepted(host.submit(deploy(POOL, "one")).await);
        for nth in 0..8_u64 {
            accepted(host.submit(create(&format!("a{nth}"))).await);
            accepted(host.submit(resize(&format!("a{nth}"), "e1", 4)).await);
        }
        rest().await;
        assert_eq!(echo.0.lock().unwrap_or_else(PoisonError::into_inner).len(), 8);
        let stats = host.stats();
        assert_eq!((stats.dispatched, stats.running, stats.waiting), (8, 0, 0));
    });
}

#[test]
fn a_long_queue_drops_documents_and_reads_them_again_when_their_turn_comes() {
    run(async {
        let store = Arc::new(Mem::new(Arc::new(ManualClock::new())));
        let hands = Hands::default();
        let options = Options { executions_max: 1, ..Options::default() };
        let opened = Coordinator::open(store, Arc::new(hands.clone()), options).await;
        let Ok(host) = opened else { panic!("{opened:?}") };
        accepted(host.submit(deploy(POOL, "one")).await);
        for nth in 0..400_u64 {
            accepted(host.submit(create(&format!("a{nth}"))).await);
            accepted(host.submit(resize(&format!("a{nth}"), "e1", 4)).await);
        }
        for nth in 0..400_u64 {
            rest().await;
            let key = format!("a{nth}");
            let attempt = hands.take_last(&key);
            let data = attempt.start().documents.data.as_ref().map(Doc::text);
            assert_eq!(data, Some(r#"{"nodes":[],"size":1,"target":4}"#), "{key}");
            let moved = attempt.transition(parse("provisioning"), Change::default()).await;
            assert!(moved.is_ok(), "{key}: {moved:?}");
            attempt.finish(Ended::Returned);
        }
        rest().await;
        assert_eq!((host.stats().running, host.stats().waiting), (0, 0));
    });
}
