//! One entity's life through SEMANTICS' flagship: resize, a crash in the middle, a timer over a crash, a
//! deadline, a zombie, and `desired` that came meanwhile.

use super::check;
use expect_test::expect;

#[test]
fn a_resize_survives_crashes_and_never_lets_two_in() {
    check(
        r#"
        deploy one
        create a
        send a resize {"size":4} id=e1
        wait a e1 1h
        send a resize {"size":8} id=e2
        kill-9
        boot
        send a resize {"size":4} id=e1
        show a
        step a to provisioning data={"size":1,"target":4,"nodes":["n1","n2","n3","n4"]}
        wait a e1 1h
        send a resize {"size":8} id=e3
        kill-9
        advance 40s
        boot
        wait a e1 1h
        apply a {"image":"x"} generation=0
        show a
        advance 50s
        # the next attempt of verify stops making progress
        advance 30m
        show a
        step a to ready
        send a resize {"size":8} id=e4
        advance 1s
        step a to ready data={"size":4,"target":4,"nodes":["n1","n2","n3","n4"]} outputs={"size":4}
        step a#2 returns
        show a
        history a
        reconcile
        "#,
        expect![[r#"
            deploy one
                revision 1
            create a
                created @i1 v1
            send a resize {"size":4} id=e1
                accepted @i1.1 v2 planning
                * pool/a attempt 1 token t1 runs plan in planning
            wait a e1 1h
            send a resize {"size":8} id=e2
                REFUSED busy: expected unlocked, got locked by pool/a@i1.1 for 0 ms, planning, attempt 1 (started by resize); retry in 1000 ms
            kill-9
                e1: the wait ended with the host: true
            boot
                * pool/a attempt 2 token t2 runs plan in planning
            send a resize {"size":4} id=e1
                accepted @i1.1 v2 planning (replayed)
            show a
                planning v2 visit 2 generation 0 observed 0 locked by .1 attempt 2 token t2 Running failed 0 lost 1
                data {"nodes":[],"size":1,"target":4}
            step a to provisioning data={"size":1,"target":4,"nodes":["n1","n2","n3","n4"]}
                committed v3
            wait a e1 1h
            send a resize {"size":8} id=e3
                REFUSED busy: expected unlocked, got locked by pool/a@i1.1 for 0 ms, provisioning, waiting for a timer (started by resize); retry in 90000 ms
            kill-9
                e1: the wait ended with the host: true
            advance 40s
            boot
            wait a e1 1h
            apply a {"image":"x"} generation=0
                generation 1
            show a
                provisioning v3 visit 3 generation 1 observed 0 locked by .1 timer after at 90000
                desired {"image":"x"} data {"nodes":["n1","n2","n3","n4"],"size":1,"target":4}
            advance 50s
                * pool/a attempt 1 token t3 runs verify in verifying
            # the next attempt of verify stops making progress
            advance 30m
                * pool/a attempt 1 token t3 is stopped: idle-deadline: verify was without progress for 30 min
            show a
                verifying v4 visit 4 generation 1 observed 0 locked by .1 next attempt at 1851000 failed 1 lost 0
                desired {"image":"x"} data {"nodes":["n1","n2","n3","n4"],"size":1,"target":4}
            step a to ready
                REFUSED fenced: expected no open attempt, got attempt 1, token t3
            send a resize {"size":8} id=e4
                REFUSED busy: expected unlocked, got locked by pool/a@i1.1 for 31.5 min, verifying, back-off, next attempt in 1 s (started by resize); retry in 2000 ms
            advance 1s
                * pool/a attempt 2 token t4 runs verify in verifying
            step a to ready data={"size":4,"target":4,"nodes":["n1","n2","n3","n4"]} outputs={"size":4}
                committed v5
                * pool/a attempt 1 token t5 runs plan in planning
                * e1: succeeded in ready v5 execution Some(1) outputs Some({"size":4})
            step a#2 returns
            show a
                planning v6 visit 6 generation 1 observed 0 locked by .2 attempt 1 token t5 Running
                desired {"image":"x"} data {"nodes":["n1","n2","n3","n4"],"size":4,"target":4} outputs {"size":4}
            history a
                h1 v1 ready | created | by local
                h2 v2 ready -> planning | event resize | .1 attempt 1 token t1 by local
                h3 v2 planning | begun again: LostWithHost | .1 attempt 2 token t2 by host
                h4 v3 planning -> provisioning | plan | .1 attempt 2 token t2 by pool/a@i1.1
                h5 v3 provisioning | applied generation 1 | .1 by local
                h6 v4 provisioning -> verifying | timer after | .1 attempt 1 token t3 by host
                h7 v4 verifying | failed: idle-deadline (verify was without progress for 30 min), next in Some(1000) ms | .1 attempt 1 token t3 by host
                h8 v4 verifying | fact Fenced: fenced: pool/a@i1.1: expected no open attempt, got attempt 1, token t3 | .1 attempt 1 token t3 by pool/a@i1.1
                h9 v4 verifying | begun again: Retry | .1 attempt 2 token t4 by host
                h10 v5 verifying -> ready | verify | .1 attempt 2 token t4 by pool/a@i1.1
                h11 v6 ready -> planning | desired-changed | .2 attempt 1 token t5 by host
            reconcile
                Ok([])
        "#]],
    );
}
