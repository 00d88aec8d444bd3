//! Boots of a host: opening one closes all others, and what they left open is begun again, one command
//! each. The sweep of what has expired is here too.

use super::draft::{Draft, Given, Tag};
use crate::command::Outcome;
use crate::ids::EntityId;
use crate::limits::{LOST_MAX, LOST_WAIT_MS_MAX, SWEEP_MAX};
use crate::number::SessionId;
use crate::record::{BeginReason, Closed, Expires, Failure, Key, Record, SessionRecord, What};
use crate::rejection::{Code, Rejection};
use crate::view::{Decision, Span, Stop};

/// Opens a session and closes every other; the same nonce again is the same session.
pub(super) fn open(given: &Given<'_>, nonce: &str, secret: &[u8; 32]) -> Result<Decision, Stop> {
    let id = SessionId::mint(given.now.seq);
    let mut writes = Vec::new();
    let mut closed = 0_usize;
    for (key, record) in given.view.scan(&Span::Sessions, usize::MAX)? {
        let (Key::Session(old), Record::Session(session)) = (&key, record) else {
            continue;
        };
        if session.nonce == nonce && session.closed.is_none() {
            return Ok(Decision::plain(Outcome::Session(*old, 0))); // told again after a lost answer
        }
        let empty = given.view.scan(&Span::Open(*old), 1)?.is_empty();
        if session.closed.is_none() {
            closed = closed.saturating_add(1);
        }
        let next = SessionRecord { closed: session.closed.or(Some(Closed::Lost)), ..session };
        writes.push((key, (!empty).then_some(Record::Session(next))));
    }
    let session = SessionRecord { nonce: nonce.to_owned(), opened: given.now.wall, closed: None };
    writes.push((Key::Session(id), Some(Record::Session(session))));
    if given.view.get(&Key::Secret)?.is_none() {
        writes.push((Key::Secret, Some(Record::Secret(*secret))));
    }
    let mut decision = Decision::plain(Outcome::Session(id, closed));
    decision.writes = writes;
    Ok(decision)
}

/// A stop in good order: what is open is resumed by the next boot and counted nowhere.
pub(super) fn close(given: &Given<'_>) -> Result<Decision, Stop> {
    let Some(id) = given.now.session.0 else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let key = Key::Session(id);
    let Some(Record::Session(session)) = given.view.get(&key)? else {
        return Ok(Decision::refused(Rejection::new(Code::NotFound, "session", "an open session", id)));
    };
    let mut decision = Decision::plain(Outcome::Nothing);
    if session.closed.is_none() {
        let closed = SessionRecord { closed: Some(Closed::Graceful), ..session };
        decision.writes.push((key, Some(Record::Session(closed))));
    }
    Ok(decision)
}

/// An attempt whose session is over: begun again at once, later with a wait, in the end parked.
pub(super) fn recover(given: &Given<'_>, entity: &EntityId) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, entity)? else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let open = draft.head.lock.as_ref().and_then(|lock| lock.attempt);
    let Some(open) = open.filter(|open| Some(open.session) != given.now.session.0) else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    let graceful = match given.view.get(&Key::Session(open.session))? {
        Some(Record::Session(session)) => session.closed == Some(Closed::Graceful),
        _ => false,
    };
    // Nothing refuses below this line.
    if graceful {
        take_up(&mut draft, BeginReason::HostStopped)?;
    } else {
        lose(&mut draft)?;
    }
    draft.finish(Outcome::Nothing)
}

fn take_up(draft: &mut Draft<'_>, reason: BeginReason) -> Result<(), Stop> {
    if let Some(lock) = draft.head.lock.as_mut() {
        lock.attempt = None;
    }
    draft.adopt()?;
    draft.begin_as(reason)
}

/// An attempt was lost with its host: the first resumes at once, later ones after 1 s doubling to
/// 1 min, the tenth parks.
pub(super) fn lose(draft: &mut Draft<'_>) -> Result<(), Stop> {
    let now = draft.now();
    let Some(lock) = draft.head.lock.as_mut() else {
        return Ok(());
    };
    let open = lock.attempt.take();
    let tag = Tag { attempt: open.map(|open| (open.ordinal, open.token)), ..Tag::default() };
    lock.lost = lock.lost.saturating_add(1);
    let lost = lock.lost;
    if lost >= LOST_MAX {
        draft.park("crash-loop", &format!("{lost} attempts of this visit were lost with their host"), tag);
        return Ok(());
    }
    if lost == 1 {
        return take_up(draft, BeginReason::LostWithHost);
    }
    let wait = 1_000_u64.saturating_mul(1 << lost.saturating_sub(2).min(16)).min(LOST_WAIT_MS_MAX);
    lock.retry = Some(now.store.plus(wait));
    let failure = Failure {
        permanent: false,
        code: "host-lost".to_owned(),
        reason: format!("attempt lost with its host ({lost} of {LOST_MAX})"),
        retry_after_ms: None,
    };
    draft.record(What::Ended(failure, Some(wait)), tag);
    Ok(())
}

/// Removes what has expired, a bounded number at a time.
pub(super) fn sweep(given: &Given<'_>) -> Result<Decision, Stop> {
    let due = given.view.scan(&Span::Expired(given.now.store), SWEEP_MAX)?;
    let mut decision = Decision::plain(Outcome::Nothing);
    let mut removed = 0_usize;
    let full = due.len() == SWEEP_MAX;
    let mut more = full;
    for (key, record) in due {
        let Record::Expires(expires) = record else {
            continue;
        };
        match expires {
            Expires::Dedup(entity, event) => {
                let dedup = Key::Dedup(entity, event);
                if let Some(Record::Dedup(known)) = given.view.get(&dedup)?
                    && !known.remembers(given.now.store)
                {
                    decision.writes.push((dedup, None));
                }
                decision.writes.push((key, None));
                removed = removed.saturating_add(1);
            }
            Expires::Answer(id) => {
                let answered = Key::Answered(id);
                // Used again since, it has an entry of its own.
                if let Some(Record::Memo(memo)) = given.view.get(&answered)?
                    && memo.until.is_some_and(|until| until <= given.now.store)
                {
                    decision.writes.push((answered, None));
                }
                decision.writes.push((key, None));
                removed = removed.saturating_add(1);
            }
            Expires::History(entity, incarnation, first, last) => {
                let end = last.min(first.saturating_add(SWEEP_MAX as u64).saturating_sub(1));
                for number in first..=end {
                    decision.writes.push((Key::History(entity.clone(), incarnation, number), None));
                    removed = removed.saturating_add(1);
                }
                let rest = (end < last).then(|| Expires::History(entity, incarnation, end.saturating_add(1), last));
                decision.writes.push((key, rest.map(Record::Expires)));
                if removed >= SWEEP_MAX {
                    more = true;
                    break;
                }
            }
        }
    }
    decision.outcome = Ok(Outcome::Swept { removed, more: more && removed > 0 });
    Ok(decision)
}
