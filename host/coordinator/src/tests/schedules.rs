//! Schedules under a moving clock, over restarts and deaths.

use super::check;
use expect_test::expect;

#[test]
fn a_schedule_raises_its_event_whenever_it_comes() {
    check(
        r#"
        schedule grow-a a grow 4
        deploy one
        schedule grow-a a grow 4 cron=*/5_*_*_*_*
        create a
        coming
        advance 5m
        show a
        advance 5m
        firings grow-a
        history a
        "#,
        expect![[r#"
            schedule grow-a a grow 4
                REFUSED not_found: expected a deployed machine, got none with this name
            deploy one
                revision 1
            schedule grow-a a grow 4 cron=*/5_*_*_*_*
                Declared { revision: 1, new: true }
            create a
                created @i1 v1
            coming
                in 300000 ms: the schedule grow-a
            advance 5m
                * pool/a attempt 1 token t1 runs plan in planning
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t1 Running
                data {"nodes":[],"size":1,"target":4}
            advance 5m
                * pool/a attempt 1 token t1 is stopped: idle-deadline: plan was without progress for 30 s
            firings grow-a
                due 300000 looked at 300000: accepted (execution 1)
                due 600000 looked at 600000: skipped: execution 1 of pool/a was under way
                next 900000, raised 1, passed 1
            history a
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | event grow | .1 attempt 1 token t1 by schedule/grow-a
                h3 v2 planning | failed: idle-deadline (plan was without progress for 30 s), next in Some(1000) ms | .1 attempt 1 token t1 by host
        "#]],
    );
}

#[test]
fn a_clock_set_forward_and_back_raises_no_due_time_twice() {
    check(
        r#"
        deploy one
        create a
        schedule grow-a a grow 4
        wall forward 10m
        advance 1s
        firings grow-a
        wall back 5m
        advance 1m
        firings grow-a
        advance 5m
        firings grow-a
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            schedule grow-a a grow 4
                Declared { revision: 1, new: true }
            wall forward 10m
            advance 1s
                * pool/a attempt 1 token t1 runs plan in planning
            firings grow-a
                due 60000 looked at 601000: missed: nobody could look
                due 600000 looked at 601000: accepted (execution 1)
                next 660000, raised 1, passed 1
            wall back 5m
            advance 1m
                * pool/a attempt 1 token t1 is stopped: idle-deadline: plan was without progress for 30 s
            firings grow-a
                due 60000 looked at 601000: missed: nobody could look
                due 600000 looked at 601000: accepted (execution 1)
                next 660000, raised 1, passed 1
            advance 5m
                * pool/a attempt 2 token t2 runs plan in planning
            firings grow-a
                due 60000 looked at 601000: missed: nobody could look
                due 600000 looked at 601000: accepted (execution 1)
                due 660000 looked at 661000: skipped: execution 1 of pool/a was under way
                next 720000, raised 1, passed 2
        "#]],
    );
}

#[test]
fn what_came_while_no_host_ran_is_made_up_for_once_the_latest_is_and_a_death_raises_none_twice() {
    check(
        r#"
        deploy one
        create a
        create b
        schedule grow-a a grow 4
        schedule grow-b b grow 4 catch_up=none
        kill-9
        advance 10m
        boot
        firings grow-a
        firings grow-b
        kill-9
        boot
        firings grow-a
        show a
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            create b
                created @i2 v1
            schedule grow-a a grow 4
                Declared { revision: 1, new: true }
            schedule grow-b b grow 4 catch_up=none
                Declared { revision: 1, new: true }
            kill-9
            advance 10m
            boot
                * pool/a attempt 1 token t1 runs plan in planning
                * pool/b attempt 1 token t2 runs plan in planning
            firings grow-a
                due 60000 looked at 600000: missed: nobody could look
                due 600000 looked at 600000: accepted (execution 1)
                next 660000, raised 1, passed 1
            firings grow-b
                due 60000 looked at 600000: missed: nobody could look
                due 540000 looked at 600000: accepted (execution 1)
                due 600000 looked at 600000: skipped: execution 1 of pool/b was under way
                next 660000, raised 1, passed 2
            kill-9
            boot
                * pool/a attempt 2 token t3 runs plan in planning
                * pool/b attempt 2 token t4 runs plan in planning
            firings grow-a
                due 60000 looked at 600000: missed: nobody could look
                due 600000 looked at 600000: accepted (execution 1)
                next 660000, raised 1, passed 1
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 2 token t3 Running failed 0 lost 1
                data {"nodes":[],"size":1,"target":4}
        "#]],
    );
}

#[test]
fn a_lost_answer_of_the_store_loses_no_due_time() {
    check(
        r#"
        deploy one
        create a
        schedule grow-a a grow 4
        fail-next unavailable
        advance 1m
        advance 2s
        firings grow-a
        fail-next lost
        advance 1m
        advance 5s
        firings grow-a
        fail-next kept
        advance 1m
        advance 5s
        firings grow-a
        show a
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            schedule grow-a a grow 4
                Declared { revision: 1, new: true }
            fail-next unavailable
            advance 1m
            advance 2s
                * pool/a attempt 1 token t1 runs plan in planning
            firings grow-a
                due 60000 looked at 62000: accepted (execution 1)
                next 120000, raised 1, passed 0
            fail-next lost
            advance 1m
                * pool/a attempt 1 token t1 is stopped: idle-deadline: plan was without progress for 30 s
            advance 5s
                * pool/a attempt 2 token t2 runs plan in planning
            firings grow-a
                due 60000 looked at 62000: accepted (execution 1)
                due 120000 looked at 127000: skipped: execution 1 of pool/a was under way
                next 180000, raised 1, passed 1
            fail-next kept
            advance 1m
                * pool/a attempt 2 token t2 is stopped: idle-deadline: plan was without progress for 30 s
            advance 5s
                * pool/a attempt 3 token t3 runs plan in planning
            firings grow-a
                due 60000 looked at 62000: accepted (execution 1)
                due 120000 looked at 127000: skipped: execution 1 of pool/a was under way
                due 180000 looked at 187000: skipped: execution 1 of pool/a was under way
                next 240000, raised 1, passed 2
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 3 token t3 Running failed 2 lost 0
                data {"nodes":[],"size":1,"target":4}
        "#]],
    );
}

#[test]
fn an_operator_pauses_resumes_and_drops_a_schedule() {
    check(
        r#"
        deploy one
        create a
        schedule grow-a a grow 4
        pause grow-a
        coming
        advance 3m
        firings grow-a
        resume grow-a
        advance 1m
        firings grow-a
        drop grow-a
        coming
        firings grow-a
        pause grow-a
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            schedule grow-a a grow 4
                Declared { revision: 1, new: true }
            pause grow-a
                Nothing
            coming
                nothing
            advance 3m
            firings grow-a
                next none, raised 0, passed 0, paused
            resume grow-a
                Nothing
            advance 1m
                * pool/a attempt 1 token t1 runs plan in planning
            firings grow-a
                due 240000 looked at 240000: accepted (execution 1)
                next 300000, raised 1, passed 0
            drop grow-a
                Nothing
            coming
                in 30000 ms: the idle-deadline of the attempt
                in 900000 ms: the deadline of the visit or the execution
            firings grow-a
                no schedule
            pause grow-a
                REFUSED not_found: expected a declared schedule, got none with this name
        "#]],
    );
}
