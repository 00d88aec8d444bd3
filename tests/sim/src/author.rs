//! What the authors of the machines promise themselves: every execution is counted once where it begins and
//! once where it ends, and a part that was saved is never done again.

use crate::finding::{Held, ensure};
use interlock_kernel::ids::EntityId;
use interlock_kernel::machine::StateKind;
use interlock_kernel::record::Head;
use serde_json::Value;

/// Whether an entity's data keeps what its machine's author promises; so many of its executions an operator has
/// ended by unlocking it, which counts nothing.
pub(crate) fn holds(id: &EntityId, head: &Head, kind: StateKind, data: Option<&Value>, unlocked: i64) -> Held {
    let Some(data) = data else { return Ok(()) };
    let number = |field: &str| data.get(field).and_then(Value::as_i64).unwrap_or(i64::MIN);
    let rest = i64::from(kind == StateKind::Rest);
    // An execution that runs has begun and not ended; one that was killed never ends.
    let sums = |begun: i64, ended: i64| {
        let begun = begun - unlocked;
        if rest == 1 { begun == ended } else { begun - ended == 1 || begun == ended }
    };
    let holds = match id.machine.as_str() {
        "chain" => {
            let (s1, s2, s3) = (number("s1"), number("s2"), number("s3"));
            let begun = number("taken");
            s1 >= s2 && s2 >= s3 && begun >= s1 && sums(begun, s3 + number("failed"))
        }
        "desk" => sums(number("asked"), number("served") + number("stopped") + number("failed")),
        "saver" => {
            let done = number("done");
            done <= number("parts") && number("sum") == done * (done + 1) / 2
        }
        "pool" => rest == 0 || unlocked > 0 || head.last.is_none() || number("target") == number("size"),
        "crane" => {
            let open = head.lock.as_ref().is_some_and(|lock| lock.attempt.is_some());
            let ship = data.get("ship").and_then(Value::as_str).unwrap_or_default();
            let needs: &[&str] = match head.state.as_str() {
                "lifting" if open => &["dock", ship],
                "stowing" if open => &["dock"],
                _ => &[],
            };
            let has = |name: &&str| head.leases.iter().any(|lease| lease.as_str() == *name);
            let (moved, told) = (number("moved"), number("told"));
            needs.iter().all(has) && told >= moved && sums(number("asked"), moved + number("failed"))
        }
        "mail" => sums(number("asked"), number("posted") + number("failed")),
        "bell" => sums(number("asked"), number("rung") + number("stopped") + number("failed")),
        "lamp" => number("late") <= number("lit") + i64::try_from(head.executions).unwrap_or(i64::MAX),
        _ => true,
    };
    ensure(holds, "the_author_s_own_invariant", id, || format!("{} in {}", data, head.state))
}
