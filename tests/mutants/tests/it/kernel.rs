//! The kernel. The whole run, every test against what survives, is `cargo run -p interlock-mutants`.

use interlock_mutants::kernel::run;
use interlock_mutants::score::Against;

#[test]
fn every_check_of_the_kernel_is_noticed_or_has_its_reason() {
    let run = run(None, false, Against::Short).unwrap();
    let wrong = run.wrong().unwrap();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), run.summary());
    assert!(run.figures().mutants > 1_000, "{}", run.summary());
}
