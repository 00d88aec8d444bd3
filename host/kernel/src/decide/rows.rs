//! Rows: what clients, steps and commits ask of tables, and what store time and the end of executions do to rows.
//!
//! A request is decided in the transaction that touches its rows. What one execution has claimed no other has: a
//! claim is a change of the row, and the next one looks at the row as it is then.

mod apply;
mod declare;
mod draft;
mod order;
mod query;
mod values;
mod walk;

pub(super) use declare::{declare, drop_table, tend};
pub(super) use draft::Tables;
pub(super) use query::query;

use super::attempt::{fenced, gone, zombie};
use super::draft::{Draft, Given, Scope};
use crate::command::{Outcome, Stage};
use crate::doc::Digest;
use crate::ids::{EntityId, ExecutionId, MachineName, RowKey, TableName};
use crate::limits::{ANSWER_MS, MEMO_BYTES_MAX, MEMOS_MAX, REQUIRES_MAX, ROW_OPS_MAX, ROW_WRITES_MAX, TEND_MAX};
use crate::record::{ClaimMemo, Claimant, Expires, Key, Memo, Part, Record, Row, RowWhat};
use crate::rejection::{Code, Rejection};
use crate::rows::{ClientRows, MemoName, Require, RowAnswer, RowAsk, RowsAsk, StepRows};
use crate::table::{Right, Table};
use crate::time::Now;
use crate::value::{Roots, Verdict};
use crate::view::{Claim, Decision, Span, Stop, Wake};
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
            if self.writes() > ROW_WRITES_MAX.saturating_add(64) {
                let expected = format!("at most {ROW_WRITES_MAX} writes of one request (row_writes_max)");
                return Ok(Err(Rejection::new(Code::Limit, "rows", expected, "more: ask for less at a time")));
            }
        }
        Ok(Ok((answers, claims)))
    }

    /// Why a condition does not hold.
    fn unmet(&mut self, asker: &Asker<'_>, require: &Require, mismatches: &mut u32) -> Result<Option<Rejection>, Stop> {
        match require {
            Require::Row { table, key, present, filter } => {
                if let Some(refused) = self.allowed(asker, table, Right::Get)? {
                    return Ok(Some(refused));
                }
                let key = match values::key(key, &asker.roots(self.given.now), table) {
                    Ok(key) => key,
                    Err(refused) => return Ok(Some(refused)),
                };
                let found = self.table(table)?.row(&key)?.cloned();
                let subject = format!("{table}/{key}");
                let Some(row) = found.filter(|_| *present) else {
                    let there = self.table(table)?.row(&key)?.is_some();
                    let word = |there| if there { "a row" } else { "no row" };
                    let refused = || Rejection::new(Code::Require, subject, word(*present), word(there));
                    return Ok((there != *present).then(refused));
                };
                let roots = Roots { row: Some(row.value.value()), ..asker.roots(self.given.now) };
                Ok(match filter.judge(&roots, mismatches) {
                    Verdict::Holds => None,
                    Verdict::Fails { expected, got } => Some(Rejection::new(Code::Require, subject, expected, got)),
                })
            }
            Require::Entity { entity, states, filter } => self.unmet_entity(asker, entity, states, filter, mismatches),
        }
    }

    fn unmet_entity(
        &self,
        asker: &Asker<'_>,
        entity: &EntityId,
        states: &[crate::ids::Name],
        filter: &crate::value::Filter,
        mismatches: &mut u32,
    ) -> Result<Option<Rejection>, Stop> {
        if let Asker::Step { execution, peers, .. } = asker
            && execution.entity.machine != entity.machine
            && !peers.contains(&entity.machine)
        {
            let expected = format!("a machine that the manifest of {} names in peers", execution.entity.machine);
            return Ok(Some(Rejection::new(Code::Denied, entity, expected, &entity.machine)));
        }
        let Some(mut draft) = Draft::of(self.given, entity)? else {
            return Ok(Some(Rejection::new(Code::Require, entity, "an entity", "none with this key")));
        };
        let state = draft.head.state.clone();
        if !states.is_empty() && !states.contains(&state) {
            let names: Vec<&str> = states.iter().map(crate::ids::Name::as_str).collect();
            return Ok(Some(Rejection::new(Code::Require, entity, names.join(" or "), state)));
        }
        let scope = draft.scope(None)?;
        let own = asker.roots(self.given.now);
        let theirs = scope.roots(self.given.now);
        let roots = Roots { desired: theirs.desired, data: theirs.data, outputs: theirs.outputs, ..own };
        Ok(match filter.judge(&roots, mismatches) {
            Verdict::Holds => None,
            Verdict::Fails { expected, got } => Some(Rejection::new(Code::Require, entity, expected, got)),
        })
    }

    /// The answers that are remembered, with rows as they are now where a claim is asked for again.
    fn recall(&mut self, memo: &Memo, ask: &RowsAsk) -> Result<Vec<RowAnswer>, Stop> {
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

fn digest(ask: &RowsAsk) -> Result<Digest, Stop> {
    let bytes = postcard::to_stdvec(ask).map_err(|why| Stop::Corrupt(format!("a request on rows: {why}")))?;
    Ok(Digest::of(&[&bytes]))
}

/// What to remember of a request; claims are read again.
fn remember(
    request: Digest,
    (answers, claims): &Answered,
    until: Option<crate::time::StoreTime>,
) -> Result<Memo, Rejection> {
    let mut answers = answers.clone();
    let mut bytes = 0_usize;
    let mut deleted = claims.iter();
    for answer in &mut answers {
        match answer {
            RowAnswer::Claimed { rows, .. } => {
                let _ = deleted.next();
                bytes = rows.iter().map(|row| row.value.text().len()).fold(bytes, usize::saturating_add);
            }
            RowAnswer::Put { row, .. } | RowAnswer::Upserted { row, .. } => {
                bytes = bytes.saturating_add(row.value.text().len());
            }
            RowAnswer::Got { row, .. } | RowAnswer::Updated { row, .. } => {
                bytes = bytes.saturating_add(row.as_ref().map_or(0, |row| row.value.text().len()));
            }
            RowAnswer::Deleted { .. } => {}
        }
    }
    if answers.len() > 1 && bytes > MEMO_BYTES_MAX {
        let expected = format!("answers of at most {MEMO_BYTES_MAX} bytes (memo_bytes_max)");
        return Err(Rejection::new(Code::Limit, "rows", expected, format!("{bytes} bytes: ask for fewer fields")));
    }
    Ok(Memo { request, answers, claims: claims.clone(), until })
}

/// Claims that mark their rows are remembered without them.
fn without_claimed(memo: &mut Memo, ask: &RowsAsk) {
    for (answer, op) in memo.answers.iter_mut().zip(&ask.ops) {
        if let (RowAnswer::Claimed { rows, .. }, RowAsk::Claim { delete: false, .. }) = (answer, &op.what) {
            rows.clear();
        }
    }
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
        let mut memo = match remember(request, &answered, Some(until)) {
            Ok(memo) => memo,
            Err(refused) => return Ok(Decision::refused(refused)),
        };
        without_claimed(&mut memo, &ask.ask);
        writes.push((key, Some(Record::Memo(Box::new(memo)))));
        writes.push((Key::Expiry(until, given.now.seq, 0), Some(Record::Expires(Expires::Answer(id.clone())))));
    }
    let outcome = Outcome::Rows { answers: answered.0, replayed: false };
    let mut decision = Decision { writes, mismatches, ..Decision::plain(outcome) };
    tables.finish(&mut decision);
    Ok(decision)
}

/// What was answered under this name and is still remembered.
fn recalled(given: &Given<'_>, key: &Key) -> Result<Option<Memo>, Stop> {
    match given.view.get(key)? {
        None => Ok(None),
        Some(Record::Memo(memo)) => {
            Ok(Some(*memo).filter(|memo| memo.until.is_none_or(|until| until > given.now.store)))
        }
        Some(_) => Err(super::corrupt(key, "not a remembered answer")),
    }
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
    let mut memo = match remember(request, &answered, None) {
        Ok(memo) => memo,
        Err(refused) => return draft.refuse(refused),
    };
    // Nothing refuses below this line.
    without_claimed(&mut memo, &ask.ask);
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
        let payload = if self.head.cause.payload { self.doc(Part::Cause)? } else { None };
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

/// Store time has come to what the index says of a row: it is over, or its claim is stale.
pub(super) fn due(given: &Given<'_>, name: &TableName, key: &RowKey) -> Result<Decision, Stop> {
    let mut tables = Tables::of(given);
    if tables.open(name)?.is_err() {
        return Ok(Decision::plain(Outcome::Nothing));
    }
    let place = tables.place();
    let now = given.now.store;
    let table = tables.table(name)?;
    let there = table.row(key)?.is_some();
    let Some(row) = table.looked_at(key).cloned() else {
        return Ok(Decision::plain(Outcome::Nothing));
    };
    if !there {
        table.put(key, None);
        table.enter(RowWhat::Expired, std::slice::from_ref(key), row.claim.as_ref().map(|claim| &claim.by), "");
    } else if let Some(claim) = &row.claim
        && let Some(reaper) = table.spec.clone().table.claim.reaper.as_ref()
        && claim.at.plus(reaper.after_ms) <= now
    {
        let dead = reaper.attempts.is_some_and(|attempts| row.claims >= attempts);
        let what = if dead { RowWhat::Dead } else { RowWhat::Reaped };
        tables.give_back(name, key, row, what, place)?;
    } else {
        table.put(key, Some(row)); // its declaration says otherwise by now
    }
    let mut decision = Decision::plain(Outcome::Tended { done: 1, more: false });
    tables.finish(&mut decision);
    Ok(decision)
}

impl Tables<'_> {
    /// Ends a claim that its claimant did not settle.
    fn give_back(
        &mut self,
        name: &TableName,
        key: &RowKey,
        row: Row,
        what: RowWhat,
        place: crate::record::Place,
    ) -> Result<(), Stop> {
        let table = self.table(name)?;
        let spec = table.spec.clone();
        let claimant = row.claim.as_ref().map(|claim| claim.by.clone());
        let set = match (what, &spec.table.claim.reaper) {
            (RowWhat::Dead, Some(reaper)) => &reaper.dead,
            _ => &spec.table.claim.release,
        };
        let label = claimant.as_ref().map(Claimant::to_string).unwrap_or_default();
        let asker = Asker::Client(&label);
        let changed = values::mutate(&row.value, set, &asker.roots(table.given.now), name, key);
        let changed = changed.and_then(|value| match table.judge(key, &value) {
            Some(refused) => Err(refused),
            None => Ok(value),
        });
        let (value, note) = match changed {
            Ok(value) => (value, String::new()),
            Err(refused) => (row.value.clone(), format!("left as it is: {refused}")),
        };
        let now = table.given.now;
        let row = Row {
            version: if value == row.value { row.version } else { place.seq },
            value,
            updated: place,
            updated_at: now.wall,
            claim: None,
            ..row
        };
        table.put(key, Some(row));
        table.enter(what, std::slice::from_ref(key), claimant.as_ref(), &note);
        Ok(())
    }
}

/// An execution has ended: what it has claimed is taken back, a bounded number at a time.
pub(super) fn take_back(given: &Given<'_>, execution: &ExecutionId) -> Result<Decision, Stop> {
    let entity = &execution.entity;
    if let Some(Record::Head(head)) = given.view.get(&Key::Head(entity.clone()))?
        && head.locked_by(entity).as_ref() == Some(execution)
    {
        return Ok(Decision::plain(Outcome::Nothing)); // it goes on
    }
    let span = Span::RowsHeld(entity.clone(), execution.incarnation, execution.ordinal);
    let found = given.view.scan(&span, TEND_MAX)?;
    let (done, more) = (found.len(), found.len() >= TEND_MAX);
    let mut tables = Tables::of(given);
    let mut astray = Vec::new();
    for (at, _) in found {
        let Key::RowHeld(.., name, key) = &at else { continue };
        let place = tables.place();
        if tables.open(name)?.is_err() {
            astray.push((at, None));
            continue;
        }
        let row = tables.table(name)?.row(key)?.cloned();
        let mine =
            |row: &Row| row.claim.as_ref().is_some_and(|claim| claim.by == Claimant::Execution(execution.clone()));
        match row.filter(mine) {
            Some(row) => tables.give_back(name, key, row, RowWhat::Released, place)?,
            None => astray.push((at, None)),
        }
    }
    let mut decision = Decision { writes: astray, ..Decision::plain(Outcome::Tended { done, more }) };
    tables.finish(&mut decision);
    if more {
        decision.wake.push(Wake::TakeBack(execution.clone()));
    }
    Ok(decision)
}
