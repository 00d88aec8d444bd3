//! Planted faults, one file each: a step with its mistake, and the same step mended where the mistake is the
//! step's. Where it is the manifest's, the two manifests tell them apart.
//!
//! `README.md` lists them; `interlock explore FOLDER` finds each.

mod asked_again;
mod check_then_act;
mod desired_unseen;
mod double_claim;
mod event_twice;
mod first_try;
mod forgotten_path;
mod late_payment;
mod lease_outlasted;
mod lease_remembered;
mod lost_count;
mod lost_update;
mod memory;
mod promised_early;
mod resent;
mod save_then_retry;

use interlock::steps;

steps!(
    asked_again::ask,
    asked_again::ask_mended,
    memory::load,
    memory::load_mended,
    check_then_act::check,
    check_then_act::buy,
    check_then_act::buy_mended,
    forgotten_path::issue,
    save_then_retry::mail,
    save_then_retry::mail_mended,
    event_twice::book,
    resent::pack,
    resent::pack_mended,
    promised_early::plan,
    promised_early::plan_mended,
    promised_early::verify,
    promised_early::verify_mended,
    late_payment::release,
    late_payment::ship,
    desired_unseen::roll,
    lost_update::bill,
    lost_update::bill_mended,
    first_try::boot,
    first_try::boot_mended,
    lease_remembered::empty,
    lease_remembered::empty_mended,
    lease_outlasted::draft,
    lease_outlasted::send,
    double_claim::take,
    double_claim::take_mended,
    lost_count::count,
    lost_count::count_mended,
);
