//! Timers that are far away: they cost a record and an index entry, and nothing reads them until they are due.

use super::run;
use super::world::{Hands, accepted, command, deploy, entity, parse, rest};
use crate::{Coordinator, Options};
use interlock_kernel::command::{Create, OnExisting, Verb};
use interlock_kernel::doc::Doc;
use interlock_kernel::record::Expect;
use interlock_kernel::view::Event;
use interlock_store::{Clock as _, ManualClock, Mem};
use std::collections::BTreeMap;
use std::sync::Arc;

const HOLDING: &str = r#"
machine = "pool"
owner   = "tests <tests@example.com>"
initial = "idle"
desired.schema = false
outputs.schema = false
data.schema = {}
events.hold.schema = { required = ["until"], properties.until = { type = "integer" } }

[states.idle]
kind = "rest"
on.hold = { to = "held" }

[states.held]
after = { at = "event.until", name = "wake", to = "idle" }
"#;

/// More than a page of the scheduler's, and enough that a scan of all would be seen.
const PENDING: i64 = 2_000;

#[test]
fn a_due_timer_is_found_without_reading_those_that_are_not() {
    run(async {
        let clock = ManualClock::new();
        let store = Arc::new(Mem::new(Arc::new(clock.clone())));
        let options = Options { reconcile: false, ..Options::default() };
        let opened = Coordinator::open(store, Arc::new(Hands::default()), options).await;
        let Ok(host) = opened else { panic!("{opened:?}") };
        accepted(host.submit(deploy(HOLDING, "none")).await);
        let now = clock.wall_ms();
        for nth in 0..PENDING {
            // The first three are due in a second, the others from a day on.
            let until = if nth < 3 { now + 1_000 } else { now + 86_400_000 + nth };
            let event = Event {
                id: parse("h1"),
                name: parse("hold"),
                payload: Doc::parse(&format!("{{\"until\":{until}}}")).ok(),
                expect: Expect::default(),
                checked: None,
            };
            accepted(
                host.submit(command(Verb::Create(Box::new(Create {
                    entity: entity(&format!("a{nth}")),
                    desired: None,
                    labels: BTreeMap::new(),
                    on_existing: OnExisting::Fail,
                    event: Some(event),
                }))))
                .await,
            );
        }
        rest().await;
        let before = host.stats();
        assert_eq!(before.timers, 0);
        clock.advance(std::time::Duration::from_secs(1));
        rest().await;
        let after = host.stats();
        assert_eq!(after.timers, 3, "each that was due fired once");
        let read = after.scanned - before.scanned;
        assert!(read <= 3 + 1 + 1, "the three, and twice the first that is not due: read {read}");
        for (key, state) in [("a0", "idle"), ("a2", "idle"), ("a3", "held")] {
            let Ok(Some(view)) = host.entity(&entity(key)).await else { panic!("{key}") };
            assert_eq!(view.head.state.as_str(), state, "{key}");
        }
    });
}
