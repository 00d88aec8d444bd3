//! Clocks, deadlines, restarts.

use super::check;
use expect_test::expect;

#[test]
fn a_step_of_twenty_minutes_under_a_moving_clock_keeps_its_lock_and_finishes() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        step a to provisioning
        advance 90s
        advance 10m
        wall forward 24h
        advance 1s
        wall back 48h
        send a resize {"size":3} id=e2
        advance 10m
        show a
        step a to ready data={"size":2,"target":2,"nodes":[]}
        show a
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
            step a to provisioning
                committed v3
            advance 90s
                * pool/a attempt 1 token t2 runs verify in verifying
            advance 10m
            wall forward 24h
            advance 1s
            wall back 48h
            send a resize {"size":3} id=e2
                REFUSED busy: expected unlocked, got locked by pool/a@i1.1 for 0 ms, verifying, attempt 1 (started by resize); retry in 1000 ms
            advance 10m
            show a
                verifying v4 visit 4 generation 0 observed 0 locked by .1 attempt 1 token t2 Running
                data {"nodes":[],"size":1,"target":2}
            step a to ready data={"size":2,"target":2,"nodes":[]}
                committed v5
            show a
                ready v5 visit 5 generation 0 observed 0 unlocked
                data {"nodes":[],"size":2,"target":2}
            reconcile
                Ok([])
        "#]],
    );
}

#[test]
fn a_clock_set_forward_fires_each_timer_once_and_set_back_none_early() {
    check(
        r#"
        deploy one
        create a
        create b
        send a resize {"size":2} id=e1
        send b resize {"size":2} id=e1
        step a to provisioning
        wall forward 1h
        advance 1s
        step b to provisioning
        wall back 1h
        advance 89s
        show b
        advance 1s
        stats
        wall forward 59m
        advance 1s
        advance 58s
        show b
        advance 1s
        stats
        history b
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
            send b resize {"size":2} id=e1
                accepted @i2.1 v2 planning
                * pool/b attempt 1 token t2 runs plan in planning
            step a to provisioning
                committed v3
            wall forward 1h
            advance 1s
                * pool/a attempt 1 token t3 runs verify in verifying
            step b to provisioning
                committed v3
            wall back 1h
            advance 89s
            show b
                provisioning v3 visit 3 generation 0 observed 0 locked by .1 timer after at 3691000
                data {"nodes":[],"size":1,"target":2}
            advance 1s
            stats
                dispatched 3 deadlines 0 due 0 timers 1 recovered 0 repaired 0 jumps 2 resyncs 0 refused []
            wall forward 59m
            advance 1s
            advance 58s
            show b
                provisioning v3 visit 3 generation 0 observed 0 locked by .1 timer after at 3691000
                data {"nodes":[],"size":1,"target":2}
            advance 1s
                * pool/b attempt 1 token t4 runs verify in verifying
            stats
                dispatched 4 deadlines 0 due 0 timers 2 recovered 0 repaired 0 jumps 3 resyncs 0 refused []
            history b
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | event resize | .1 attempt 1 token t2 by local
                h3 v3 planning -> provisioning | plan | .1 attempt 1 token t2 by pool/b@i2.1
                h4 v4 provisioning -> verifying | timer after | .1 attempt 1 token t4 by host
        "#]],
    );
}

#[test]
fn a_timer_that_falls_due_while_nobody_asks_is_noticed_by_the_next_host_on_its_own() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        step a to provisioning
        kill-9
        advance 60s
        boot
        advance 29s
        stats
        advance 1s
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
            step a to provisioning
                committed v3
            kill-9
            advance 60s
            boot
            advance 29s
            stats
                dispatched 0 deadlines 0 due 0 timers 0 recovered 0 repaired 0 jumps 0 resyncs 0 refused []
            advance 1s
                * pool/a attempt 1 token t2 runs verify in verifying
            stats
                dispatched 1 deadlines 0 due 0 timers 1 recovered 0 repaired 0 jumps 0 resyncs 0 refused []
        "#]],
    );
}

#[test]
fn a_save_resets_the_idle_deadline_and_not_the_total_one() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        step a seed
        advance 29s
        step a save data={"size":1,"target":2,"nodes":["n1"]}
        step a seed
        advance 29s
        step a save data={"size":1,"target":2,"nodes":["n1","n2"]}
        advance 29s
        show a
        advance 1s
        advance 1s
        # the retry starts from the last save, and draws what it would have drawn
        step a seed
        step a#1 seed
        step a reload
        step a to provisioning
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            step a seed
                seed r1
            advance 29s
            step a save data={"size":1,"target":2,"nodes":["n1"]}
                committed v3
            step a seed
                seed r2
            advance 29s
            step a save data={"size":1,"target":2,"nodes":["n1","n2"]}
                committed v4
            advance 29s
            show a
                planning v4 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t1 Running
                data {"nodes":["n1","n2"],"size":1,"target":2}
            advance 1s
                * pool/a attempt 1 token t1 is stopped: idle-deadline: plan was without progress for 30 s
            advance 1s
                * pool/a attempt 2 token t2 runs plan in planning
            # the retry starts from the last save, and draws what it would have drawn
            step a seed
                seed r3
            step a#1 seed
                seed r3
            step a reload
                planning v4 data {"nodes":["n1","n2"],"size":1,"target":2}
            step a to provisioning
                committed v5
        "#]],
    );
}

#[test]
fn the_total_deadline_ends_a_step_that_keeps_saving() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        step a to provisioning
        advance 90s
        advance 20m
        step a save
        advance 10m
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
            step a to provisioning
                committed v3
            advance 90s
                * pool/a attempt 1 token t2 runs verify in verifying
            advance 20m
            step a save
                committed v5
            advance 10m
                * pool/a attempt 1 token t2 is stopped: total-deadline: verify was not done within 30 min
            show a
                verifying v5 visit 4 generation 0 observed 0 locked by .1 next attempt at 1891000 failed 1 lost 0
                data {"nodes":[],"size":1,"target":2}
        "#]],
    );
}

#[test]
fn the_tenth_attempt_lost_with_its_host_parks_as_a_crash_loop() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":2} id=e1
        wait a e1 1h
        kill-9
        boot
        kill-9
        boot
        show a
        advance 1s
        kill-9
        boot
        advance 2s
        kill-9
        boot
        advance 4s
        kill-9
        boot
        advance 8s
        kill-9
        boot
        advance 16s
        kill-9
        boot
        advance 32s
        kill-9
        boot
        advance 1m
        kill-9
        boot
        show a
        advance 1m
        kill-9
        boot
        show a
        wait a e1 1h
        unpark a
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
            wait a e1 1h
            kill-9
                e1: the wait ended with the host: true
            boot
                * pool/a attempt 2 token t2 runs plan in planning
            kill-9
            boot
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 next attempt at 1000 failed 0 lost 2
                data {"nodes":[],"size":1,"target":2}
            advance 1s
                * pool/a attempt 3 token t3 runs plan in planning
            kill-9
            boot
            advance 2s
                * pool/a attempt 4 token t4 runs plan in planning
            kill-9
            boot
            advance 4s
                * pool/a attempt 5 token t5 runs plan in planning
            kill-9
            boot
            advance 8s
                * pool/a attempt 6 token t6 runs plan in planning
            kill-9
            boot
            advance 16s
                * pool/a attempt 7 token t7 runs plan in planning
            kill-9
            boot
            advance 32s
                * pool/a attempt 8 token t8 runs plan in planning
            kill-9
            boot
            advance 1m
                * pool/a attempt 9 token t9 runs plan in planning
            kill-9
            boot
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 next attempt at 183000 failed 0 lost 9
                data {"nodes":[],"size":1,"target":2}
            advance 1m
                * pool/a attempt 10 token t10 runs plan in planning
            kill-9
            boot
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 failed 0 lost 10 PARKED crash-loop: 10 attempts of this visit were lost with their host
                data {"nodes":[],"size":1,"target":2}
            wait a e1 1h
                * e1: parked in planning v2 execution 1: crash-loop
            unpark a
                planning v2
                * pool/a attempt 11 token t11 runs plan in planning
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 11 token t11 Running
                data {"nodes":[],"size":1,"target":2}
        "#]],
    );
}

#[test]
fn a_graceful_stop_counts_nowhere() {
    check(
        r#"
        deploy one
        create a
        create b
        send a resize {"size":2} id=e1
        send b resize {"size":2} id=e1
        stop 0ms
        boot
        show a
        show b
        step a to provisioning
        history a
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
            send b resize {"size":2} id=e1
                accepted @i2.1 v2 planning
                * pool/b attempt 1 token t2 runs plan in planning
            stop 0ms
                stopped in good order
            boot
                * pool/a attempt 2 token t3 runs plan in planning
                * pool/b attempt 2 token t4 runs plan in planning
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 2 token t3 Running
                data {"nodes":[],"size":1,"target":2}
            show b
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 2 token t4 Running
                data {"nodes":[],"size":1,"target":2}
            step a to provisioning
                committed v3
            history a
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | event resize | .1 attempt 1 token t1 by local
                h3 v2 planning | begun again: HostStopped | .1 attempt 2 token t3 by host
                h4 v3 planning -> provisioning | plan | .1 attempt 2 token t3 by pool/a@i1.1
        "#]],
    );
}

#[test]
fn orphans_are_begun_again_as_slots_come_free_oldest_first() {
    check(
        r#"
        deploy one
        create c
        create b
        create a
        send c resize {"size":2} id=e1
        send b resize {"size":2} id=e1
        send a resize {"size":2} id=e1
        slots 1
        kill-9
        boot
        attempts
        show a
        step c to provisioning
        step c returns
        attempts
        step b to provisioning
        step b returns
        attempts
        stats
        "#,
        expect![[r#"
            deploy one
                revision 1
            create c
                created @i1 v1
            create b
                created @i2 v1
            create a
                created @i3 v1
            send c resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/c attempt 1 token t1 runs plan in planning
            send b resize {"size":2} id=e1
                accepted @i2.1 v2 planning
                * pool/b attempt 1 token t2 runs plan in planning
            send a resize {"size":2} id=e1
                accepted @i3.1 v2 planning
                * pool/a attempt 1 token t3 runs plan in planning
            slots 1
            kill-9
            boot
                * pool/c attempt 2 token t4 runs plan in planning
            attempts
                pool/c token t4 Running
                pool/b token t5 WaitingForSlot
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t3
                data {"nodes":[],"size":1,"target":2}
            step c to provisioning
                committed v3
            step c returns
                * pool/b attempt 2 token t5 runs plan in planning
            attempts
                pool/b token t5 Running
                pool/a token t6 WaitingForSlot
            step b to provisioning
                committed v3
            step b returns
                * pool/a attempt 2 token t6 runs plan in planning
            attempts
                pool/a token t6 Running
            stats
                dispatched 3 deadlines 0 due 0 timers 0 recovered 3 repaired 0 jumps 0 resyncs 0 refused []
        "#]],
    );
}
