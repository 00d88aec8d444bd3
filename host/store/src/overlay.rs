//! What a job wrote, over what its batch wrote, over what is durable.
//!
//! A job writes only here, so a refusal or a panic is undone by dropping a map. Knows no engine:
//! the bottom is any [`Base`].

use std::any::Any;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::StoreError;
use crate::limits::{KEY_BYTES, SCAN_ENTRIES, TXN_BYTES, TXN_WRITES, VALUE_BYTES};
use crate::store::{Bytes, Each, Halt, Job, Order, Query, Read, Span, Stamp, Txn, USER_KEYS_FROM};

/// Writes by key; `None` is a removal.
pub(crate) type Layer = BTreeMap<Vec<u8>, Option<Bytes>>;

/// A lower and an upper end.
pub(crate) type Ends<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// A consistent durable state, the store's own keys included.
pub(crate) trait Base {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;
    fn walk(&self, ends: Ends<'_>, order: Order, each: Each<'_>) -> Result<(), StoreError>;
}

/// How the run of a job ended.
pub(crate) enum Ran {
    Wrote(Writes),
    Nothing,
    Refused,
    Failed(StoreError),
}

/// What a successful job leaves behind.
pub(crate) struct Writes {
    pub(crate) layer: Layer,
    pub(crate) notes: Vec<Bytes>,
    pub(crate) bytes: u64,
}

/// Runs `job` over `batch` over `base`. A panic ends this job only.
pub(crate) fn run_job(job: &mut dyn Job, base: &dyn Base, batch: &Layer, stamp: Stamp) -> Ran {
    let mut txn = JobTxn {
        base,
        batch,
        stamp,
        writes: Writes { layer: Layer::new(), notes: Vec::new(), bytes: 0 },
        count: 0,
        failed: None,
    };
    let result = catch_unwind(AssertUnwindSafe(|| job.run(&mut txn)));
    match (result, txn.failed) {
        (Err(panic), _) => Ran::Failed(StoreError::Panicked { message: panic_message(&*panic) }),
        // A failed call fails the job whatever the job made of it.
        (Ok(_), Some(error)) | (Ok(Err(Halt::Failed(error))), None) => Ran::Failed(error),
        (Ok(Err(Halt::Abort)), None) => Ran::Refused,
        (Ok(Ok(())), None) if txn.count == 0 => Ran::Nothing,
        (Ok(Ok(())), None) => Ran::Wrote(txn.writes),
    }
}

/// Runs `query` on `base`. A panic ends this query only.
pub(crate) fn run_query(query: &mut dyn Query, base: &dyn Base, stamp: Stamp) -> Result<(), StoreError> {
    let mut view = View { base, stamp, failed: None };
    let result = catch_unwind(AssertUnwindSafe(|| query.run(&mut view)));
    match (result, view.failed) {
        (Err(panic), _) => Err(StoreError::Panicked { message: panic_message(&*panic) }),
        (Ok(_), Some(error)) | (Ok(Err(Halt::Failed(error))), None) => Err(error),
        (Ok(Ok(()) | Err(Halt::Abort)), None) => Ok(()),
    }
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_string()
    }
}

fn check_key(key: &[u8]) -> Result<(), StoreError> {
    match key.first() {
        Some(&first) if first >= USER_KEYS_FROM => KEY_BYTES.check(key.len() as u64),
        _ => Err(StoreError::ReservedKey { key: key.to_vec() }),
    }
}

struct JobTxn<'a> {
    base: &'a dyn Base,
    batch: &'a Layer,
    stamp: Stamp,
    writes: Writes,
    count: u64,
    failed: Option<StoreError>,
}

impl JobTxn<'_> {
    fn keep<T>(&mut self, result: Result<T, StoreError>) -> Result<T, Halt> {
        result.map_err(|error| {
            self.failed.get_or_insert_with(|| error.clone());
            Halt::Failed(error)
        })
    }

    fn charge(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        VALUE_BYTES.check(value.len() as u64)?;
        TXN_WRITES.check(self.count + 1)?;
        let bytes = self.writes.bytes + key.len() as u64 + value.len() as u64;
        TXN_BYTES.check(bytes)?;
        self.count += 1;
        self.writes.bytes = bytes;
        Ok(())
    }

    fn look_up(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        check_key(key)?;
        if let Some(own) = self.writes.layer.get(key) {
            return Ok(own.clone());
        }
        if let Some(batch) = self.batch.get(key) {
            return Ok(batch.clone());
        }
        self.base.get(key)
    }
}

impl Read for JobTxn<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, Halt> {
        let found = self.look_up(key);
        self.keep(found)
    }

    fn scan(&mut self, span: Span<'_>, limit: usize, each: Each<'_>) -> Result<(), Halt> {
        let layers = [&self.writes.layer, self.batch];
        let result = scan_layers(layers, self.base, &span, limit, each);
        self.keep(result)
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }
}

impl Txn for JobTxn<'_> {
    fn put(&mut self, key: &[u8], value: Bytes) -> Result<(), Halt> {
        let result = check_key(key).and_then(|()| self.charge(key, &value));
        self.keep(result)?;
        self.writes.layer.insert(key.to_vec(), Some(value));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Halt> {
        let result = check_key(key).and_then(|()| self.charge(key, &[]));
        self.keep(result)?;
        self.writes.layer.insert(key.to_vec(), None);
        Ok(())
    }

    fn note(&mut self, payload: Bytes) -> Result<(), Halt> {
        let result = self.charge(&[], &payload);
        self.keep(result)?;
        self.writes.notes.push(payload);
        Ok(())
    }
}

struct View<'a> {
    base: &'a dyn Base,
    stamp: Stamp,
    failed: Option<StoreError>,
}

impl View<'_> {
    fn keep<T>(&mut self, result: Result<T, StoreError>) -> Result<T, Halt> {
        result.map_err(|error| {
            self.failed.get_or_insert_with(|| error.clone());
            Halt::Failed(error)
        })
    }
}

impl Read for View<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, Halt> {
        let found = check_key(key).and_then(|()| self.base.get(key));
        self.keep(found)
    }

    fn scan(&mut self, span: Span<'_>, limit: usize, each: Each<'_>) -> Result<(), Halt> {
        let empty = Layer::new();
        let result = scan_layers([&empty, &empty], self.base, &span, limit, each);
        self.keep(result)
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }
}

/// Walks the newest entry of each key of `span`, in its order; `layers` newest first.
fn scan_layers(
    layers: [&Layer; 2],
    base: &dyn Base,
    span: &Span<'_>,
    limit: usize,
    each: Each<'_>,
) -> Result<(), StoreError> {
    SCAN_ENTRIES.check(limit as u64)?;
    let Some(ends) = user_range(span) else {
        return Ok(());
    };
    if limit == 0 {
        return Ok(());
    }
    let mut left = limit;
    let mut emit = |key: &[u8], value: &[u8]| {
        left -= 1;
        match each(key, value) {
            ControlFlow::Continue(()) if left > 0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    };
    let order = span.order();
    let [top, below] = layers.map(|layer| order.walk(layer.range::<[u8], _>(ends)).peekable());
    let mut over = Merge { order, top, below };
    let mut stopped = false;
    base.walk(ends, order, &mut |key, value| {
        let mut step = || {
            while over.peek().is_some_and(|next| order.meets_first(next, key)) {
                if let Some((key, Some(value))) = over.next() {
                    emit(key, value)?;
                }
            }
            if over.peek() != Some(key) {
                return emit(key, value);
            }
            match over.next() {
                Some((key, Some(value))) => emit(key, value),
                _ => ControlFlow::Continue(()),
            }
        };
        let flow = step();
        stopped = flow.is_break();
        flow
    })?;
    while !stopped {
        match over.next() {
            Some((key, Some(value))) => stopped = emit(key, value).is_break(),
            Some((_, None)) => {}
            None => break,
        }
    }
    Ok(())
}

/// The part of `span` that callers may see, `None` if nothing can lie in it.
fn user_range<'s>(span: &'s Span<'_>) -> Option<Ends<'s>> {
    const LOWEST: &[u8] = &[USER_KEYS_FROM];
    let from = match span.from {
        Bound::Included(key) | Bound::Excluded(key) if key >= LOWEST => span.from,
        _ => Bound::Included(LOWEST),
    };
    let to = match &span.to {
        Bound::Included(key) => Bound::Included(&**key),
        Bound::Excluded(key) => Bound::Excluded(&**key),
        Bound::Unbounded => Bound::Unbounded,
    };
    // A map's range panics on inverted bounds; here they are an empty answer.
    let some = match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from <= to,
        (Bound::Excluded(from), Bound::Included(to))
        | (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to)) => from < to,
        (_, Bound::Unbounded) | (Bound::Unbounded, _) => true,
    };
    some.then_some((from, to))
}

/// Two layers walked in one order as if they were one.
struct Merge<I: Iterator> {
    order: Order,
    top: Peekable<I>,
    below: Peekable<I>,
}

impl<'a, I: Iterator<Item = (&'a Vec<u8>, &'a Option<Bytes>)>> Merge<I> {
    fn peek(&mut self) -> Option<&'a [u8]> {
        match (self.top.peek(), self.below.peek()) {
            (Some((top, _)), Some((below, _))) if self.order.meets_first(below, top) => Some(below),
            (Some((key, _)), _) | (None, Some((key, _))) => Some(key),
            (None, None) => None,
        }
    }

    fn next(&mut self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let from_top = match (self.top.peek(), self.below.peek()) {
            (Some((top, _)), Some((below, _))) => {
                if top == below {
                    self.below.next();
                    true
                } else {
                    self.order.meets_first(top, below)
                }
            }
            (top, _) => top.is_some(),
        };
        let (key, value) = if from_top { self.top.next()? } else { self.below.next()? };
        Some((key, value.as_deref()))
    }
}
