//! Attempts that wait for the memory that others hold.

use super::check;
use expect_test::expect;

#[test]
fn an_attempt_waits_for_memory_and_those_that_need_none_pass_it() {
    check(
        r#"
        memory 100
        kill-9
        boot
        weighs heavy 60
        deploy heavy
        create a
        create b
        send a resize {"size":2} id=e1
        send b resize {"size":2} id=e2
        deploy light
        create c
        send c resize {"size":2} id=e3
        attempts
        show b
        # b's deadlines have not begun
        advance 29s
        step a to provisioning
        step a returns
        advance 29s
        step b to provisioning
        step b returns
        "#,
        expect![[r#"
            memory 100
            kill-9
            boot
            weighs heavy 60
            deploy heavy
                revision 1
            create a
                created @i1 v1
            create b
                created @i2 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            send b resize {"size":2} id=e2
                accepted @i2.1 v2 planning
            deploy light
                revision 2
            create c
                created @i3 v1
            send c resize {"size":2} id=e3
                accepted @i3.1 v2 planning
                * pool/c attempt 1 token t2 runs plan in planning
            attempts
                pool/a token t1 Running
                pool/b token t3 WaitingForMemory
                pool/c token t2 Running
            show b
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 1 token t3 WaitingForMemory
                data {"nodes":[],"size":1,"target":2}
            # b's deadlines have not begun
            advance 29s
            step a to provisioning
                committed v3
            step a returns
                * pool/b attempt 1 token t3 runs plan in planning
            advance 29s
                * pool/c attempt 1 token t2 is stopped: idle-deadline: plan was without progress for 30 s
            step b to provisioning
                committed v3
            step b returns
        "#]],
    );
}

#[test]
fn who_came_first_is_served_first_also_by_a_lighter_one_behind() {
    check(
        r#"
        memory 100
        kill-9
        boot
        weighs half 60
        weighs tenth 10
        weighs whole 1000
        deploy half
        create a
        create b
        create c
        send a resize {"size":2} id=e1
        deploy whole
        send b resize {"size":2} id=e2
        deploy tenth
        send c resize {"size":2} id=e3
        attempts
        step a to provisioning
        step a returns
        # heavier than all there is: alone
        attempts
        step b to provisioning
        step b returns
        step c to provisioning
        step c returns
        attempts
        "#,
        expect![[r#"
            memory 100
            kill-9
            boot
            weighs half 60
            weighs tenth 10
            weighs whole 1000
            deploy half
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
            deploy whole
                revision 2
            send b resize {"size":2} id=e2
                accepted @i2.1 v2 planning
            deploy tenth
                revision 3
            send c resize {"size":2} id=e3
                accepted @i3.1 v2 planning
            attempts
                pool/a token t1 Running
                pool/b token t2 WaitingForMemory
                pool/c token t3 WaitingForMemory
            step a to provisioning
                committed v3
            step a returns
                * pool/b attempt 1 token t2 runs plan in planning
            # heavier than all there is: alone
            attempts
                pool/b token t2 Running
                pool/c token t3 WaitingForMemory
            step b to provisioning
                committed v3
            step b returns
                * pool/c attempt 1 token t3 runs plan in planning
            step c to provisioning
                committed v3
            step c returns
            attempts
        "#]],
    );
}

#[test]
fn a_fenced_attempt_keeps_nobody_waiting() {
    check(
        r#"
        memory 100
        kill-9
        boot
        weighs half 60
        weighs tenth 10
        deploy half
        create a
        create b
        create c
        send a resize {"size":2} id=e1
        send b resize {"size":2} id=e2
        deploy tenth
        send c resize {"size":2} id=e3
        attempts
        kill b enough
        attempts
        "#,
        expect![[r#"
            memory 100
            kill-9
            boot
            weighs half 60
            weighs tenth 10
            deploy half
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
            deploy tenth
                revision 2
            send c resize {"size":2} id=e3
                accepted @i3.1 v2 planning
            attempts
                pool/a token t1 Running
                pool/b token t2 WaitingForMemory
                pool/c token t3 WaitingForMemory
            kill b enough
                killed v3
                * pool/c attempt 1 token t3 runs plan in planning
            attempts
                pool/a token t1 Running
                pool/c token t3 Running
        "#]],
    );
}

#[test]
fn what_is_learned_while_an_attempt_waits_for_a_slot_counts() {
    check(
        r#"
        memory 100
        slots 2
        kill-9
        boot
        weighs grows 0
        deploy grows
        create a
        create b
        create c
        create d
        send a resize {"size":2} id=e1
        send b resize {"size":2} id=e2
        send c resize {"size":2} id=e3
        send d resize {"size":2} id=e4
        weighs grows 80
        attempts
        step a to provisioning
        step a returns
        # one slot is free
        step b to provisioning
        step b returns
        attempts
        step c to provisioning
        step c returns
        attempts
        "#,
        expect![[r#"
            memory 100
            slots 2
            kill-9
            boot
            weighs grows 0
            deploy grows
                revision 1
            create a
                created @i1 v1
            create b
                created @i2 v1
            create c
                created @i3 v1
            create d
                created @i4 v1
            send a resize {"size":2} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            send b resize {"size":2} id=e2
                accepted @i2.1 v2 planning
                * pool/b attempt 1 token t2 runs plan in planning
            send c resize {"size":2} id=e3
                accepted @i3.1 v2 planning
            send d resize {"size":2} id=e4
                accepted @i4.1 v2 planning
            weighs grows 80
            attempts
                pool/a token t1 Running
                pool/b token t2 Running
                pool/c token t3 WaitingForSlot
                pool/d token t4 WaitingForSlot
            step a to provisioning
                committed v3
            step a returns
                * pool/c attempt 1 token t3 runs plan in planning
            # one slot is free
            step b to provisioning
                committed v3
            step b returns
            attempts
                pool/c token t3 Running
                pool/d token t4 WaitingForMemory
            step c to provisioning
                committed v3
            step c returns
                * pool/d attempt 1 token t4 runs plan in planning
            attempts
                pool/d token t4 Running
        "#]],
    );
}
