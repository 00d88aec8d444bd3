//! Reading: the kernel's view over a durable snapshot. Nothing here reads what is not durable yet.

use crate::core::Core;
use crate::txn::{self, Seen, TxnView};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::{Head, Key, Record};
use interlock_kernel::view::{Start, Stop, View};
use interlock_store::{Halt, Query, Read, Seq, Stamp, StoreError, query};
use std::sync::Arc;

/// Reads with the kernel's view.
pub(crate) async fn look<T: Send + 'static>(
    core: &Arc<Core>,
    mut body: impl FnMut(&TxnView<'_>, Stamp) -> Result<T, Stop> + Send + 'static,
) -> Result<T, StoreError> {
    let shared = core.clone();
    let (value, seen) = query(core.store(), move |at| {
        let stamp = at.stamp();
        let view = TxnView::new(at, shared.revisions(), shared.book());
        let value = body(&view, stamp);
        let mut seen = view.into_seen();
        match value {
            Ok(value) => Ok((value, seen)),
            Err(stop) => Err(seen.halt(stop)),
        }
    })
    .await?;
    core.revisions().learn(seen);
    Ok(value)
}

/// An entity's head.
pub(crate) async fn head(core: &Arc<Core>, entity: EntityId) -> Result<Option<Head>, StoreError> {
    look(core, move |view, _| head_in(view, &entity)).await
}

/// An entity's head in a view.
pub(crate) fn head_in(view: &TxnView<'_>, entity: &EntityId) -> Result<Option<Head>, Stop> {
    match view.get(&Key::Head(entity.clone()))? {
        Some(Record::Head(head)) => Ok(Some(*head)),
        _ => Ok(None),
    }
}

/// What a host needs to run an entity's open attempt, read again.
pub(crate) async fn start(core: &Arc<Core>, entity: EntityId) -> Result<Option<Start>, StoreError> {
    let shared = core.clone();
    look(core, move |view, stamp| {
        let now = txn::now(stamp, shared.session());
        interlock_kernel::start(view, shared.book(), now, &entity)
    })
    .await
}

type Then = Box<dyn FnOnce(Option<Box<Start>>) + Send>;

/// The same without waiting: what reads goes on with it. None if it cannot be read now.
pub(crate) fn start_then(core: &Arc<Core>, entity: EntityId, then: impl FnOnce(Option<Box<Start>>) + Send + 'static) {
    let ask = StartAgain { core: core.clone(), entity, last: None, then: Box::new(then) };
    core.store().query(Box::new(ask));
}

struct StartAgain {
    core: Arc<Core>,
    entity: EntityId,
    last: Option<(Option<Box<Start>>, Seen)>,
    then: Then,
}

impl Query for StartAgain {
    fn run(&mut self, at: &mut dyn Read) -> Result<(), Halt> {
        self.last = None;
        let now = txn::now(at.stamp(), self.core.session());
        let view = TxnView::new(at, self.core.revisions(), self.core.book());
        let start = interlock_kernel::start(&view, self.core.book(), now, &self.entity);
        let mut seen = view.into_seen();
        match start {
            Ok(start) => {
                self.last = Some((start.map(Box::new), seen));
                Ok(())
            }
            Err(stop) => Err(seen.halt(stop)),
        }
    }

    fn settle(self: Box<Self>, result: Result<Seq, StoreError>) {
        let Self { core, last, then, .. } = *self;
        let start = match (result, last) {
            (Ok(_), Some((start, seen))) => {
                core.revisions().learn(seen);
                start
            }
            _ => None,
        };
        then(start);
    }
}
