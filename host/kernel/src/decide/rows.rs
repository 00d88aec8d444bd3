//! Rows: what clients, steps and commits ask of tables, and what store time and the end of executions do to rows.
//!
//! A request is decided in the transaction that touches its rows. What one execution has claimed no other has: a
//! claim is a change of the row, and the next one looks at the row as it is then.

mod apply;
mod back;
mod declare;
mod draft;
mod memo;
mod order;
mod query;
mod require;
mod values;
mod walk;

pub(super) use back::{due, take_back};
pub(super) use declare::{declare, drop_table, tend};
pub(super) use draft::Tables;
pub(super) use query::query;

use memo::{digest, recalled, remember};

use super::attempt::{fenced, gone, zombie};
use super::draft::{Draft, Given, Scope};
use crate::command::{Outcome, Stage};
use crate::doc::Digest;
use crate::ids::{ExecutionId, MachineName, TableName};
use crate::limits::{ANSWER_MS, MEMOS_MAX, REQUIRES_MAX, ROW_OPS_MAX, ROW_WRITES_MAX, ROW_WRITTEN_BYTES_MAX};
use crate::record::{ClaimMemo, Claimant, Expires, Key, Record};
use crate::rejection::{Code, Rejection};
use crate::rows::{ClientRows, MemoName, RowAnswer, RowAsk, RowsAsk, StepRows};
use crate::table::{Right, Table};
use crate::time::Now;
use crate::value::Roots;
use crate::view::{Claim, Decision, Span, Stop};
use std::collections::BTreeSet;

/// Who asks something of rows.
pub(super) enum Asker<'a> {
    /// A client, by what it calls itself.
    Client(&'a str),
    /// A step, with what its values are read from.
    Step {
        execution: &'a ExecutionId,
        tables: &'a BTreeSet<TableName>,
        peers: &'a BTreeSet<MachineName>,
        scope: &'a Scope,
    },
}

impl<'a> Asker<'a> {
    fn roots(&self, now: Now) -> Roots<'_> {
        match self {
            Self::Client(label) => Roots { execution: Some(label), now: Some(now.wall), ..Roots::default() },
            Self::Step { scope, .. } => scope.roots(now),
        }
    }

    fn claimant(&self) -> Claimant {
        match self {
            Self::Client(label) => Claimant::Client((*label).to_owned()),
            Self::Step { execution, .. } => Claimant::Execution((*execution).clone()),
        }
    }

    /// Why it may not.
    fn denied(&self, table: &Table, right: Right) -> Option<Rejection> {
        let subject = format!("table {}", table.name);
        let missing = match self {
            Self::Client(_) if table.access.clients.contains(&right) => return None,
            Self::Client(_) => format!("{right} among access.clients of the table's declaration"),
            Self::Step { execution, tables, .. } => {
                let machine = &execution.entity.machine;
                let granted = table.access.machines.get(machine).is_some_and(|rights| rights.contains(&right));
                match (tables.contains(&table.name), granted) {
                    (true, true) => return None,
                    (false, _) => format!("a machine whose manifest names it in tables, as that of {machine} does not"),
                    (true, false) => format!("{right} among access.machines.{machine} of the table's declaration"),
                }
            }
        };
        Some(Rejection::new(Code::Denied, subject, missing, format!("{right}, which is not granted")))
    }
}

/// The answers to a request, and what its claims are remembered by.
type Answered = (Vec<RowAnswer>, Vec<ClaimMemo>);

impl Tables<'_> {
    /// All of a request, or nothing of it.
    pub(super) fn run(
        &mut self,
        asker: &Asker<'_>,
        ask: &RowsAsk,
        mismatches: &mut u32,
    ) -> Result<Result<Answered, Rejection>, Stop> {
        if let Some(refused) = oversized(ask) {
            return Ok(Err(refused));
        }
        for (nth, require) in ask.require.iter().enumerate() {
            if let Some(refused) = self.unmet(asker, require, mismatches)? {
                return Ok(Err(placed(refused, "require", nth)));
            }
        }
        let (mut answers, mut claims) = (Vec::new(), Vec::new());
        for (nth, op) in ask.ops.iter().enumerate() {
            match self.apply(asker, op, &mut claims, mismatches)? {
                Ok(answer) => answers.push(answer),
                Err(refused) => return Ok(Err(placed(refused, "ops", nth))),
            }
            if let Some(refused) = self.overwritten() {
                return Ok(Err(refused));
            }
        }
        Ok(Ok((answers, claims)))
    }

    /// More than one transaction takes. A claim ends before that.
    fn overwritten(&self) -> Option<Rejection> {
        let over = |got: usize, max: usize, what: &str| {
            let expected = || format!("at most {max} {what}");
            (got > max)
                .then(|| Rejection::new(Code::Limit, "rows", expected(), format!("{got}: ask for less at a time")))
        };
        over(self.writes(), ROW_WRITES_MAX.saturating_add(64), "writes of one request (row_writes_max)")
            .or_else(|| over(self.bytes(), ROW_WRITTEN_BYTES_MAX, "bytes of one request (row_written_bytes_max)"))
    }
}

/// A refusal that says which part of the request it is about.
fn placed(refused: Rejection, list: &str, nth: usize) -> Rejection {
    refused.with_detail(serde_json::json!({ list: nth }))
}

fn oversized(ask: &RowsAsk) -> Option<Rejection> {
    let over = |what: &str, got: usize, max: usize, name: &str| {
        (got > max).then(|| Rejection::new(Code::Limit, "rows", format!("at most {max} {what} ({name})"), got))
    };
    over("operations of one request", ask.ops.len(), ROW_OPS_MAX, "row_ops_max")
        .or_else(|| over("conditions of one request", ask.require.len(), REQUIRES_MAX, "requires_max"))
}

/// Whether a request changes anything.
fn changes_something(ask: &RowsAsk) -> bool {
    ask.ops.iter().any(|op| !matches!(op.what, RowAsk::Get { .. }))
}

/// What a client asks of rows.
pub(super) fn client(given: &Given<'_>, ask: &ClientRows) -> Result<Decision, Stop> {
    let request = digest(&ask.ask)?;
    let key = ask.id.clone().map(Key::Answered);
    let mut tables = Tables::of(given);
    if let Some(key) = &key
        && let Some(memo) = recalled(given, key)?
    {
        if memo.request != request {
            let got = "another request under the same id";
            return Ok(Decision::refused(Rejection::new(Code::IdReused, "rows", "the request it was used for", got)));
        }
        let answers = tables.recall(&memo, &ask.ask)?;
        return Ok(Decision::plain(Outcome::Rows { answers, replayed: true }));
    }
    let mut mismatches = 0;
    let answered = match tables.run(&Asker::Client(&ask.label), &ask.ask, &mut mismatches)? {
        Ok(answered) => answered,
        Err(refused) => return Ok(Decision { mismatches, ..Decision::refused(refused) }),
    };
    let until = given.now.store.plus(ANSWER_MS);
    let mut writes = Vec::new();
    if let (Some(key), Some(id)) = (key, &ask.id)
        && changes_something(&ask.ask)
    {
        let memo = match remember(request, &answered, &ask.ask, Some(until)) {
            Ok(memo) => memo,
            Err(refused) => return Ok(Decision::refused(refused)),
        };
        writes.push((key, Some(Record::Memo(Box::new(memo)))));
        writes.push((Key::Expiry(until, given.now.seq, 0), Some(Record::Expires(Expires::Answer(id.clone())))));
    }
    let outcome = Outcome::Rows { answers: answered.0, replayed: false };
    let mut decision = Decision { writes, mismatches, ..Decision::plain(outcome) };
    tables.finish(&mut decision);
    Ok(decision)
}

/// What a step asks of rows, at once: kept whatever becomes of its attempt, and answered the same to the next one.
pub(super) fn step(given: &Given<'_>, claim: &Claim, ask: &StepRows) -> Result<Decision, Stop> {
    let Some(mut draft) = Draft::of(given, &claim.execution.entity)? else {
        return Ok(Decision::refused(gone(claim)));
    };
    if let Some(refused) = fenced(&draft, claim) {
        return zombie(draft, claim, refused);
    }
    if let Some(refused) = draft.lost_lease(claim)? {
        return zombie(draft, claim, refused);
    }
    let request = digest(&ask.ask)?;
    let name = match &ask.memo {
        MemoName::Asked(nth) => Digest::of(&[&request.0, &nth.to_be_bytes()]),
        MemoName::Named(name) => Digest::of(&[b"op", name.as_bytes()]),
    };
    let key = Key::Memo(draft.id.clone(), name);
    let mut tables = Tables::of(given);
    if let Some(memo) = recalled(given, &key)? {
        if memo.request != request {
            let got = "another request under the same name";
            return draft.refuse(Rejection::new(Code::IdReused, "op", "the request it was used for", got));
        }
        let answers = tables.recall(&memo, &ask.ask)?;
        draft.progressed()?;
        return draft.finish(Outcome::Rows { answers, replayed: true });
    }
    let kept = changes_something(&ask.ask);
    if kept && draft.head.memos >= MEMOS_MAX {
        let expected = format!("at most {MEMOS_MAX} requests on rows since the visit began or was saved (memos_max)");
        return draft.refuse(Rejection::new(Code::Limit, &claim.execution, expected, "one more"));
    }
    let answered = match draft.on_rows(&mut tables, claim, &ask.ask, None)? {
        Ok(answered) => answered,
        Err(refused) => return draft.refuse(refused),
    };
    let memo = match remember(request, &answered, &ask.ask, None) {
        Ok(memo) => memo,
        Err(refused) => return draft.refuse(refused),
    };
    // Nothing refuses below this line.
    if kept {
        draft.head.memos = draft.head.memos.saturating_add(1);
        draft.writes.push((key, Some(Record::Memo(Box::new(memo)))));
    }
    draft.progressed()?;
    let mut decision = draft.finish(Outcome::Rows { answers: answered.0, replayed: false })?;
    tables.finish(&mut decision);
    Ok(decision)
}

impl<'a> Draft<'a> {
    /// What a step asks of rows, at once or with its commit. `documents` are those the commit proposes.
    pub(super) fn on_rows(
        &mut self,
        tables: &mut Tables<'_>,
        claim: &Claim,
        ask: &RowsAsk,
        documents: Option<&crate::view::Documents>,
    ) -> Result<Result<Answered, Rejection>, Stop> {
        let payload = self.payload()?;
        let mut scope = self.scope(payload)?;
        if let Some(documents) = documents {
            scope.documents = documents.clone();
        }
        let machine = self.machine();
        let asker =
            Asker::Step { execution: &claim.execution, tables: &machine.tables, peers: &machine.peers, scope: &scope };
        let answered = tables.run(&asker, ask, &mut self.mismatches)?;
        if let Ok((_, claims)) = &answered
            && claims.iter().any(|claim| !claim.rows.is_empty())
        {
            self.head.holds = true;
        }
        Ok(answered)
    }

    /// What a commit carries for tables, and the answers to it.
    pub(super) fn stage_rows(
        &mut self,
        claim: &Claim,
        stage: &Stage,
        documents: &crate::view::Documents,
    ) -> Result<Result<(Tables<'a>, Vec<RowAnswer>), Rejection>, Stop> {
        let mut tables = Tables::of(self.given);
        if stage.rows == RowsAsk::default() {
            return Ok(Ok((tables, Vec::new())));
        }
        let answered = self.on_rows(&mut tables, claim, &stage.rows, Some(documents))?;
        Ok(answered.map(|(answers, _)| (tables, answers)))
    }

    /// Answers are remembered for the part of a visit that a retry begins with.
    pub(super) fn forget_memos(&mut self) -> Result<(), Stop> {
        if self.head.memos == 0 {
            return Ok(());
        }
        self.head.memos = 0;
        let known = self.given.view.scan(&Span::Memos(self.id.clone()), usize::MAX)?;
        self.writes.extend(known.into_iter().map(|(key, _)| (key, None)));
        Ok(())
    }
}
