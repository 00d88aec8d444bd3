//! Idle and total deadlines of running attempts, in store time from the moment they got their slot.
//!
//! One task looks at the table of slots; nothing is set up per attempt. Late, never early.

use crate::core::Core;
use crate::gate::Closed;
use interlock_kernel::record::Failure;
use interlock_kernel::time::Span;
use std::sync::Arc;

/// Stops attempts whose deadline is over, and has the kernel end them.
pub(crate) async fn watch(core: Arc<Core>) {
    loop {
        let now = core.store().now().store_ms;
        let (next, over) = core.dispatch().deadlines(now);
        for (run, why) in over {
            let (limit, what) = match why {
                Closed::IDLE_DEADLINE => (run.start().idle_ms, "without progress for"),
                _ => (run.start().total_ms, "not done within"),
            };
            let reason = format!("{} was {what} {}", run.start().step, Span(limit));
            let failure =
                Failure { permanent: false, code: why.to_owned(), reason: reason.clone(), retry_after_ms: None };
            if core.end(&run, failure) {
                run.gate().close(why, reason);
                core.counters().deadlines.add(1);
            }
        }
        let sooner = core.dispatch().sooner.notified();
        match next {
            Some(next) => tokio::select! {
                biased;
                () = core.store().sleep_until_store(next) => {}
                () = sooner => {}
            },
            None => sooner.await,
        }
    }
}
