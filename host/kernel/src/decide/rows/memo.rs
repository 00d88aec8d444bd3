//! What is remembered of a request on rows, so that it is answered the same when it is asked again.

use super::super::{corrupt, draft::Given};
use super::Answered;
use super::draft::Tables;
use crate::doc::Digest;
use crate::limits::MEMO_BYTES_MAX;
use crate::record::{Key, Memo, Record, Row};
use crate::rejection::{Code, Rejection};
use crate::rows::{RowAnswer, RowAsk, RowsAsk};
use crate::time::StoreTime;
use crate::view::Stop;

impl Tables<'_> {
    /// The answers that are remembered, with rows as they are now where a claim is asked for again.
    pub(super) fn recall(&mut self, memo: &Memo, ask: &RowsAsk) -> Result<Vec<RowAnswer>, Stop> {
        let mut claims = memo.claims.iter();
        let mut answers = memo.answers.clone();
        for (answer, op) in answers.iter_mut().zip(&ask.ops) {
            let RowAnswer::Claimed { rows, lost, .. } = answer else { continue };
            let Some(claim) = claims.next() else { continue };
            if matches!(op.what, RowAsk::Claim { delete: true, .. }) {
                continue; // gone with the claim: what it was is remembered
            }
            rows.clear();
            lost.clear();
            if self.open(&op.table)?.is_err() {
                lost.extend(claim.rows.iter().map(|(key, _)| key.clone()));
                continue;
            }
            for (key, version) in &claim.rows {
                let table = self.table(&op.table)?;
                let has = |row: &Row| match &row.claim {
                    Some(now) => now.number == claim.number,
                    None => row.version == *version,
                };
                if table.row(key)?.is_some_and(has) {
                    rows.extend(table.shown(key, &op.fields));
                } else {
                    lost.push(key.clone());
                }
            }
        }
        Ok(answers)
    }
}

pub(super) fn digest(ask: &RowsAsk) -> Result<Digest, Stop> {
    let bytes = postcard::to_stdvec(ask).map_err(|why| Stop::Corrupt(format!("a request on rows: {why}")))?;
    Ok(Digest::of(&[&bytes]))
}

/// What to remember of a request: it stands in one record. Claims that mark their rows are read again.
pub(super) fn remember(
    request: Digest,
    (answers, claims): &Answered,
    ask: &RowsAsk,
    until: Option<StoreTime>,
) -> Result<Memo, Rejection> {
    let mut memo = Memo { request, answers: answers.clone(), claims: claims.clone(), until };
    without_claimed(&mut memo, ask);
    // One answer alone has its own bounds.
    let bytes = match answers.len() {
        1 => 0,
        _ => postcard::to_stdvec(&memo).map_or(usize::MAX, |bytes| bytes.len()),
    };
    if bytes > MEMO_BYTES_MAX {
        let expected = format!("answers of at most {MEMO_BYTES_MAX} bytes (memo_bytes_max)");
        return Err(Rejection::new(Code::Limit, "rows", expected, format!("{bytes} bytes: ask for fewer fields")));
    }
    Ok(memo)
}

/// Claims that mark their rows are remembered without them.
fn without_claimed(memo: &mut Memo, ask: &RowsAsk) {
    for (answer, op) in memo.answers.iter_mut().zip(&ask.ops) {
        if let (RowAnswer::Claimed { rows, .. }, RowAsk::Claim { delete: false, .. }) = (answer, &op.what) {
            rows.clear();
        }
    }
}

/// What was answered under this name and is still remembered.
pub(super) fn recalled(given: &Given<'_>, key: &Key) -> Result<Option<Memo>, Stop> {
    match given.view.get(key)? {
        None => Ok(None),
        Some(Record::Memo(memo)) => {
            Ok(Some(*memo).filter(|memo| memo.until.is_none_or(|until| until > given.now.store)))
        }
        Some(_) => Err(corrupt(key, "not a remembered answer")),
    }
}
