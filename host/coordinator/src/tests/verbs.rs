//! Every verb, twice.

use super::check;
use expect_test::expect;

#[test]
fn a_second_call_answers_what_the_first_left() {
    check(
        r#"
        deploy one
        deploy one
        deploy two
        rollback 1
        rollback 1
        create a {"image":"x"}
        create a {"image":"x"}
        create a {"image":"y"}
        create a {"image":"x"} existing=fail
        create a {"image":"y"} existing=use
        apply a {"image":"y"} generation=1
        apply a {"image":"y"} generation=1
        apply a {"image":"z"} generation=1
        apply a {"image":"z"}
        send a resize {"size":4} id=e1
        send a resize {"size":4} id=e1
        send a resize {"size":5} id=e1
        kill a enough
        kill a enough
        unpark a
        send a resize {"size":5} id=e2
        send a resize {"size":4} id=e1
        delete a
        delete a
        send a resize {"size":6} id=e3
        create a {"image":"x"}
        create a {"image":"q"} existing=recreate
        history a
        kill a enough
        create a {"image":"q"} existing=recreate
        history a
        "#,
        expect![[r#"
            deploy one
                revision 1
            deploy one
                revision 1, already active
            deploy two
                revision 2
            rollback 1
                revision 3
            rollback 1
                revision 3, already active
            create a {"image":"x"}
                created @i1 v1
                * pool/a attempt 1 token t1 runs plan in planning
            create a {"image":"x"}
                there already: @i1 v2
            create a {"image":"y"}
                REFUSED conflict: expected no entity with this key, got one that was created with another request
            create a {"image":"x"} existing=fail
                REFUSED conflict: expected no entity with this key, got one that was created already
            create a {"image":"y"} existing=use
                there already: @i1 v2
            apply a {"image":"y"} generation=1
                generation 2
            apply a {"image":"y"} generation=1
                generation 2
            apply a {"image":"z"} generation=1
                REFUSED conflict: expected generation 1, got generation 2
            apply a {"image":"z"}
                REFUSED invalid: expected If-Match with the generation it replaces (now 2), got none
            send a resize {"size":4} id=e1
                REFUSED busy: expected unlocked, got locked by pool/a@i1.1 for 0 ms, planning, attempt 1 (started by desired-changed); retry in 1000 ms
            send a resize {"size":4} id=e1
                REFUSED busy: expected unlocked, got locked by pool/a@i1.1 for 0 ms, planning, attempt 1 (started by desired-changed); retry in 1000 ms
            send a resize {"size":5} id=e1
                REFUSED busy: expected unlocked, got locked by pool/a@i1.1 for 0 ms, planning, attempt 1 (started by desired-changed); retry in 1000 ms
            kill a enough
                killed v3
                * pool/a attempt 1 token t1 is stopped: fenced: killed
            kill a enough
                killed v3, as before
            unpark a
                killed v3, as before
            send a resize {"size":5} id=e2
                late v3 killed: late: expected an entity that is not final, got killed (final)
            send a resize {"size":4} id=e1
                late v3 killed: late: expected an entity that is not final, got killed (final)
            delete a
                killed v3
            delete a
                REFUSED not_found: expected an entity, got none with this key
            send a resize {"size":6} id=e3
                REFUSED not_found: expected an entity, got none with this key
            create a {"image":"x"}
                created @i2 v1
                * pool/a attempt 1 token t2 runs plan in planning
            create a {"image":"q"} existing=recreate
                REFUSED busy: expected unlocked, got locked by pool/a@i2.1 for 0 ms, planning, attempt 1 (started by desired-changed); retry in 1000 ms
            history a
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | desired-changed | .1 attempt 1 token t2 by host
            kill a enough
                killed v3
                * pool/a attempt 1 token t2 is stopped: fenced: killed
            create a {"image":"q"} existing=recreate
                created @i3 v1
                * pool/a attempt 1 token t3 runs plan in planning
            history a
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | desired-changed | .1 attempt 1 token t3 by host
        "#]],
    );
}

#[test]
fn what_is_not_allowed_says_what_is() {
    check(
        r#"
        send a resize {"size":4} id=e0
        deploy one
        send a resize {"size":4} id=e0
        create a
        send a resize {"size":400} id=e1
        send a resiz {"size":4} id=e1
        send a resize {"size":1} id=e1
        send a note id=n1
        send a resize {"size":4} id=e2 version=9
        send a resize {"size":4} id=e3 visit=0
        send a resize {"size":4} id=e4
        step a to verifying
        step a to provisioning data={"size":0}
        step a to provisioning
        history a
        stats
        "#,
        expect![[r#"
            send a resize {"size":4} id=e0
                REFUSED not_found: expected a deployed machine, got none with this name
            deploy one
                revision 1
            send a resize {"size":4} id=e0
                REFUSED not_found: expected an entity, got none with this key
            create a
                created @i1 v1
            send a resize {"size":400} id=e1
                REFUSED invalid: expected at most 64, got 400
            send a resiz {"size":4} id=e1
                REFUSED invalid: expected one of grow, note, resize, got resiz (did you mean resize?)
            send a resize {"size":1} id=e1
                REFUSED guard: expected event.size ne data.size, got 1 and 1
            send a note id=n1
                REFUSED not_allowed: expected one of grow, resize, got note in ready
            send a resize {"size":4} id=e2 version=9
                REFUSED conflict: expected version 9, got version 1
            send a resize {"size":4} id=e3 visit=0
                late v1 ready: late: expected visit 0, got visit 1
            send a resize {"size":4} id=e4
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            step a to verifying
                REFUSED not_allowed: expected provisioning or planning, got verifying
            step a to provisioning data={"size":0}
                REFUSED invalid: expected a value: it is required, got nothing
            step a to provisioning
                committed v3
            history a
                h1 v1 ready | created | by local
                h2 v1 ready | fact NotAllowed: not_allowed: pool/a: expected one of grow, resize, got note in ready | by local
                h3 v1 ready | fact Late: resize: late: pool/a: expected visit 0, got visit 1 | by local
                h4 v2 ready -> planning | event resize | .1 attempt 1 token t1 by local
                h5 v3 planning -> provisioning | plan | .1 attempt 1 token t1 by pool/a@i1.1
            stats
                dispatched 1 deadlines 0 due 0 timers 0 recovered 0 repaired 0 jumps 0 resyncs 0 refused [(Invalid, 3), (NotFound, 2), (Conflict, 1), (NotAllowed, 2), (Guard, 1)]
        "#]],
    );
}

#[test]
fn a_conflict_is_reloaded_and_decided_anew() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":4} id=e1
        send a note id=n1
        step a to provisioning
        step a holds
        step a reload
        step a to provisioning
        step a holds
        step a reload
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a resize {"size":4} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            send a note id=n1
                accepted @i1.1 v3 planning
            step a to provisioning
                REFUSED conflict: expected version 2, got version 3; retry in 0 ms
            step a holds
                Ok(true)
            step a reload
                planning v3 data {"nodes":["noted"],"size":1,"target":4}
            step a to provisioning
                committed v4
            step a holds
                Ok(false)
            step a reload
                REFUSED fenced: expected attempt 1, token t1, got no open attempt
        "#]],
    );
}

#[test]
fn a_deploy_while_an_entity_is_locked_leaves_both_directions_of_the_lock_agreeing() {
    check(
        r#"
        deploy one
        create a
        create b
        send a resize {"size":4} id=e1
        deploy two
        show a
        reconcile
        step a to provisioning
        reconcile
        advance 90s
        reconcile
        step a to ready
        show a
        reconcile
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            create b
                created @i2 v1
            send a resize {"size":4} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            deploy two
                revision 2
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t1 Running
                data {"nodes":[],"size":1,"target":4}
            reconcile
                Ok([])
            step a to provisioning
                committed v3
            reconcile
                Ok([])
            advance 90s
                * pool/a attempt 1 token t2 runs verify in verifying
            reconcile
                Ok([])
            step a to ready
                committed v5
            show a
                ready v5 visit 5 generation 0 observed 0 unlocked
                data {"nodes":[],"size":1,"target":4}
            reconcile
                Ok([])
        "#]],
    );
}

#[test]
fn exhausted_retries_park_and_an_operator_goes_on() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":4} id=e1
        step a to provisioning
        advance 90s
        wait a e1 1h
        step a fails no-nodes
        advance 1s
        step a fails no-nodes
        show a
        send a resize {"size":5} id=e2
        unpark a
        unpark a
        wait a e1 1h
        step a vanishes
        advance 1s
        step a fails broken permanent=yes
        show a
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a resize {"size":4} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            step a to provisioning
                committed v3
            advance 90s
                * pool/a attempt 1 token t2 runs verify in verifying
            wait a e1 1h
            step a fails no-nodes
            advance 1s
                * pool/a attempt 2 token t3 runs verify in verifying
            step a fails no-nodes
                * e1: parked in verifying v4 execution 1: exhausted
            show a
                verifying v4 visit 4 generation 0 observed 0 locked by .1 failed 2 lost 0 PARKED exhausted: no-nodes: as the script says
                data {"nodes":[],"size":1,"target":4}
            send a resize {"size":5} id=e2
                REFUSED busy: expected unlocked, got locked by pool/a@i1.1 for 91 s, verifying, parked: exhausted (started by resize)
            unpark a
                verifying v4
                * pool/a attempt 3 token t4 runs verify in verifying
            unpark a
                verifying v4, as before
            wait a e1 1h
            step a vanishes
            advance 1s
                * pool/a attempt 4 token t5 runs verify in verifying
            step a fails broken permanent=yes
                * e1: failed in lost v5 execution Some(1) outputs None
            show a
                lost v5 visit 5 generation 0 observed 0 unlocked
                data {"nodes":[],"size":1,"target":4}
                condition interlock/execution failed: broken
        "#]],
    );
}

#[test]
fn a_watch_resumes_where_it_was_and_says_when_it_cannot() {
    check(
        r#"
        watch all from=0.0
        deploy one
        create a
        create b
        send a resize {"size":4} id=e1
        watch
        watch
        watch b from=0.0
        watch
        step a to provisioning
        watch
        watch all
        watch
        send b resize {"size":4} id=e1
        watch
        watch all from=99999999.0
        watch
        "#,
        expect![[r#"
            watch all from=0.0
            deploy one
                revision 1
            create a
                created @i1 v1
            create b
                created @i2 v1
            send a resize {"size":4} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            watch
                pool/a: h1 v1 ready | created | by local
                pool/b: h1 v1 ready | created | by local
                pool/a: h2 v2 ready -> planning | event resize | .1 attempt 1 token t1 by local
            watch
                nothing
            watch b from=0.0
            watch
                pool/b: h1 v1 ready | created | by local
            step a to provisioning
                committed v3
            watch
                nothing
            watch all
            watch
                nothing
            send b resize {"size":4} id=e1
                accepted @i2.1 v2 planning
                * pool/b attempt 1 token t2 runs plan in planning
            watch
                pool/b: h2 v2 ready -> planning | event resize | .1 attempt 1 token t2 by local
            watch all from=99999999.0
            watch
                expected a position up to 8.0, got a later one: list again
        "#]],
    );
}
