//! What should never be wrong, made wrong on purpose; and commits whose fate is unknown.

use super::check;
use expect_test::expect;

#[test]
fn a_planted_mismatch_of_the_lock_is_found_and_repaired() {
    check(
        r#"
        deploy one
        create a
        create b
        send a resize {"size":2} id=e1
        reconcile
        plant no-open a
        reconcile
        reconcile
        plant stray-open b
        plant stray-due b
        plant no-due a
        reconcile
        reconcile
        step a to provisioning
        history a
        history b
        stats
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            create b
                created @i2 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            reconcile
                Ok([])
            plant no-open a
                planted
            reconcile
                Ok(["missing index entry: Open(SessionId(s1), EntityId { machine: MachineName(\"pool\"), key: EntityKey(\"a\") })"])
            reconcile
                Ok([])
            plant stray-open b
                planted
            plant stray-due b
                planted
            plant no-due a
                planted
            reconcile
                Ok(["missing index entry: Due(StoreTime(900000), EntityId { machine: MachineName(\"pool\"), key: EntityKey(\"a\") })", "index entry without cause: Due(StoreTime(7), EntityId { machine: MachineName(\"pool\"), key: EntityKey(\"b\") })", "index entry without cause: Open(SessionId(s1), EntityId { machine: MachineName(\"pool\"), key: EntityKey(\"b\") })"])
            reconcile
                Ok([])
            step a to provisioning
                committed v3
            history a
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | event resize | .1 attempt 1 token t1 by local
                h3 v2 planning | fact Repaired: missing index entry: Open(SessionId(s1), EntityId { machine: MachineName("pool"), key: EntityKey("a") }) | .1 by host
                h4 v2 planning | fact Repaired: missing index entry: Due(StoreTime(900000), EntityId { machine: MachineName("pool"), key: EntityKey("a") }) | .1 by host
                h5 v3 planning -> provisioning | plan | .1 attempt 1 token t1 by pool/a@i1.1
            history b
                h1 v1 ready | created | by local
                h2 v1 ready | fact Repaired: index entry without cause: Due(StoreTime(7), EntityId { machine: MachineName("pool"), key: EntityKey("b") }) | by host
                h3 v1 ready | fact Repaired: index entry without cause: Open(SessionId(s1), EntityId { machine: MachineName("pool"), key: EntityKey("b") }) | by host
            stats
                dispatched 1 deadlines 0 due 0 timers 0 recovered 0 repaired 4 jumps 0 resyncs 0 refused []
        "#]],
    );
}

#[test]
fn the_reconciler_finds_by_itself_what_was_planted() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        plant no-open a
        plant stray-due a
        advance 1s
        advance 1s
        advance 1s
        advance 1s
        stats
        reconcile
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            plant no-open a
                planted
            plant stray-due a
                planted
            advance 1s
            advance 1s
            advance 1s
            advance 1s
            stats
                dispatched 1 deadlines 0 due 0 timers 0 recovered 0 repaired 2 jumps 0 resyncs 0 refused []
            reconcile
                Ok([])
        "#]],
    );
}

#[test]
fn an_open_attempt_that_nobody_runs_is_begun_again_by_the_reconciler() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        forget a
        attempts
        advance 1s
        advance 1s
        advance 1s
        advance 1s
        advance 1s
        advance 1s
        step a#1 to provisioning
        step a to provisioning
        history a
        stats
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            forget a
            attempts
            advance 1s
            advance 1s
                * pool/a attempt 2 token t2 runs plan in planning
            advance 1s
            advance 1s
            advance 1s
            advance 1s
            step a#1 to provisioning
                REFUSED fenced: expected attempt 2, token t2, got attempt 1, token t1
            step a to provisioning
                committed v3
            history a
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | event resize | .1 attempt 1 token t1 by local
                h3 v2 planning | begun again: LostWithHost | .1 attempt 2 token t2 by host
                h4 v2 planning | fact Repaired: an open attempt that nobody runs | .1 by host
                h5 v2 planning | fact Fenced: fenced: pool/a@i1.1: expected attempt 2, token t2, got attempt 1, token t1 | .1 attempt 1 token t1 by pool/a@i1.1
                h6 v3 planning -> provisioning | plan | .1 attempt 2 token t2 by pool/a@i1.1
            stats
                dispatched 2 deadlines 0 due 0 timers 0 recovered 0 repaired 1 jumps 0 resyncs 0 refused [(Fenced, 1)]
        "#]],
    );
}

#[test]
fn a_step_whose_commit_failed_may_ask_again() {
    check(
        r#"
        deploy one
        create a
        fail-next unavailable
        send a resize {"size":2} id=e1
        send a resize {"size":2} id=e1
        fail-next unavailable
        step a to provisioning
        step a to provisioning
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            fail-next unavailable
            send a resize {"size":2} id=e1
                FAILED expected a store that accepts this, got: a planted fault
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            fail-next unavailable
            step a to provisioning
                FAILED expected a store that accepts this, got: a planted fault
            step a to provisioning
                committed v3
        "#]],
    );
}

#[test]
fn an_attempt_begun_by_a_commit_of_unknown_fate_is_found() {
    check(
        r#"
        deploy one
        create a
        fail-next kept
        send a resize {"size":2} id=e1
        show a
        advance 1s
        show a
        send a resize {"size":2} id=e1
        fail-next kept
        step a to provisioning
        step a returns
        advance 1s
        advance 90s
        stats
        history a
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            fail-next kept
            send a resize {"size":2} id=e1
                FAILED expected a durable answer, got an unknown fate: a planted fault
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t1
                data {"nodes":[],"size":1,"target":2}
            advance 1s
                * pool/a attempt 1 token t1 runs plan in planning
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t1 Running
                data {"nodes":[],"size":1,"target":2}
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning (replayed)
            fail-next kept
            step a to provisioning
                FAILED expected a durable answer, got an unknown fate: a planted fault
            step a returns
            advance 1s
            advance 90s
                * pool/a attempt 1 token t2 runs verify in verifying
            stats
                dispatched 2 deadlines 0 due 0 timers 1 recovered 0 repaired 0 jumps 0 resyncs 2 refused [(Fenced, 1)]
            history a
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | event resize | .1 attempt 1 token t1 by local
                h3 v3 planning -> provisioning | plan | .1 attempt 1 token t1 by pool/a@i1.1
                h4 v4 provisioning -> verifying | timer after | .1 attempt 1 token t2 by host
        "#]],
    );
}
