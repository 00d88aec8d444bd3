//! What happened, told to people: what clients asked and heard, what is on record, what steps were refused,
//! what befell the host. The same words wherever a host is played: scenarios, searches, tests.
//!
//! A story is made of lines with the virtual time at their left. Numbers that hang on how many jobs ran
//! before (tokens, incarnations, sessions) are told by the order of their appearance, so that the same story
//! is the same text in the next release too.

use crate::hand::{Asked, Held, Seen, Told};
use crate::lab::{Fault, Lab};
use crate::receiver::{Arrival, Request};
use crate::scenario::{self, Asking, Deed};
use interlock_coordinator::SubmitError;
use interlock_kernel::command::{Change, LeaseAsk, Outcome};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, LeaseName, RowKey};
use interlock_kernel::record::{self, Changed, Entry, LeaseWhat};
use interlock_kernel::rejection::Rejection;
use interlock_kernel::rows::{RowAnswer, RowAsk, RowOp, RowShown, RowsAsk, Unmatched};
use interlock_kernel::time::Span;
use interlock_store::StoreError;
use serde_json::Value;
use std::collections::BTreeMap;

/// Numbers that hang on how many jobs ran before, by what stands before them, and the letter that stands for
/// their kind.
const MINTED: [(&str, char); 4] = [("token ", 't'), ("@", 'i'), ("SessionId(", 's'), ("seed ", 'r')];

/// A document's change in a line, in characters; what is longer is cut, and ends with its digest.
const CHANGE_CHARS_MAX: usize = 160;

/// Blanks between the columns, and before what belongs to the line above.
const GAP: &str = "  ";

/// Lines in the order in which things happened.
#[derive(Clone, Debug, Default)]
pub struct Story {
    lines: Vec<Line>,
    told: BTreeMap<EntityId, Reader>,
    names: BTreeMap<(char, String), usize>,
    /// How far each lease is told.
    leases: BTreeMap<LeaseName, u64>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, in ms since the story's beginning.
    pub at_ms: u64,
    /// Who or what it is about: an entity's key, `client`, `host`.
    pub who: String,
    /// What happened.
    pub what: String,
    /// More of it, a line each.
    pub more: Vec<String>,
}

/// An entry of an entity's history, with what was known before it.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Whose.
    pub entity: EntityId,
    /// The entry.
    pub entry: Entry,
    /// `desired` before it, as far as it is on record.
    pub desired: Option<Doc>,
    /// `data` before it.
    pub data: Option<Doc>,
    /// `outputs` before it.
    pub outputs: Option<Doc>,
}

/// What happened since somebody looked last.
#[derive(Clone, Debug)]
pub struct News {
    /// What was seen of attempts.
    pub seen: Vec<Seen>,
    /// What is on record of entities.
    pub recorded: Vec<Recorded>,
}

/// How far an entity's history is told, and its documents there.
#[derive(Clone, Debug, Default)]
struct Reader {
    incarnation: Option<u64>,
    number: u64,
    desired: Option<Doc>,
    data: Option<Doc>,
    outputs: Option<Doc>,
}

impl Story {
    /// One in which nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line; minted numbers in it are told by their order.
    pub fn line(&mut self, at_ms: u64, who: &str, what: &str, more: Vec<String>) {
        let what = self.plain(what);
        let more = more.iter().map(|line| self.plain(line)).collect();
        self.lines.push(Line { at_ms, who: who.to_owned(), what, more });
    }

    /// What a client asked, and what it heard.
    pub fn asked(
        &mut self,
        at_ms: u64,
        entity: &EntityId,
        request: &scenario::Request,
        heard: &Result<Outcome, SubmitError>,
    ) {
        let id = match request {
            scenario::Request::Send { id, .. } => format!(" ({id})"),
            _ => String::new(),
        };
        let (heard, more) = of_answer(heard);
        self.line(at_ms, "client", &format!("{}: {request}{id}   {heard}", entity.key), more);
    }

    /// What a client did with a lease, and what it heard.
    pub fn leased(&mut self, at_ms: u64, deed: &Deed, heard: &Result<Outcome, SubmitError>) {
        let (heard, more) = of_answer(heard);
        self.line(at_ms, "client", &format!("{deed}   {heard}"), more);
    }

    /// What a client asked of rows, and what it heard.
    pub fn rowed(&mut self, at_ms: u64, asking: &Asking, heard: &Result<Outcome, SubmitError>) {
        let (words, mut more) = of_answer(heard);
        if let Ok(Outcome::Rows { answers, .. }) = heard {
            more.extend(answers.iter().map(of_row_answer));
        }
        self.line(at_ms, "client", &format!("{asking}   {words}"), more);
    }

    /// Something that befell the host, or that somebody planted.
    pub fn host(&mut self, at_ms: u64, what: &str) {
        self.line(at_ms, "host", what, Vec::new());
    }

    /// Takes down what a lab has seen and recorded since the last call, and hands it on.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub fn follow(&mut self, lab: &mut Lab, entities: &[EntityId]) -> Result<News, StoreError> {
        let at_ms = lab.passed_ms();
        let seen = lab.take_seen();
        for one in &seen {
            if let Some((who, what, more)) = of_seen(one) {
                self.line(at_ms, &who, &what, more);
            }
        }
        let mut recorded = Vec::new();
        let mut arrivals = lab.take_arrivals();
        for entity in entities {
            while let Some(new) = self.new_entries(lab, entity)? {
                for entry in new {
                    // A request stands before what came of it.
                    if let record::What::Effect(_, _, number, _) = &entry.what {
                        let (here, rest) = arrivals
                            .into_iter()
                            .partition(|one| one.request.entity == *entity && one.request.number == *number);
                        arrivals = rest;
                        self.arrived(at_ms, here);
                    }
                    let one = self.record(entity, entry);
                    let (what, more) = of_entry(&one);
                    self.line(at_ms, entity.key.as_str(), &what, more);
                    recorded.push(one);
                }
            }
        }
        self.arrived(at_ms, arrivals);
        self.leases(lab)?;
        Ok(News { seen, recorded })
    }

    /// Leases that time has taken. What else becomes of them stands in what clients and entities did.
    fn leases(&mut self, lab: &Lab) -> Result<(), StoreError> {
        let at_ms = lab.passed_ms();
        for one in lab.leases()? {
            let told = self.leases.insert(one.name.clone(), one.lease.last).unwrap_or(0);
            if told == one.lease.last {
                continue;
            }
            let name = &one.name;
            let view = lab.read(|host| async move { host.lease(name).await })?;
            let entries = view.map(|view| view.entries).unwrap_or_default();
            for over in entries.iter().rev().filter(|entry| entry.number > told && entry.what == LeaseWhat::Expired) {
                self.line(at_ms, "host", &format!("the lease {name} of {} is over", over.owner), Vec::new());
            }
        }
        Ok(())
    }

    fn arrived(&mut self, at_ms: u64, arrivals: Vec<Arrival>) {
        for Arrival { request, what } in arrivals {
            let again = if request.tries > 1 { format!("try {}: ", request.tries) } else { String::new() };
            let Request { method, url, target, .. } = &request;
            let more = request.body.iter().map(ToString::to_string).collect();
            self.line(at_ms, target.as_str(), &format!("{again}{method} {url}   {what}"), more);
        }
    }

    /// Entries behind those that were told, oldest first: the rest of the incarnation that is told, then the
    /// next. None if there are none.
    fn new_entries(&mut self, lab: &Lab, entity: &EntityId) -> Result<Option<Vec<Entry>>, StoreError> {
        let known = self.told.get(entity).and_then(|reader| reader.incarnation.map(|which| (which, reader.number)));
        if let Some((which, number)) = known {
            let rest = entries(lab, entity, Some(which), number)?.map(|(_, rest)| rest).unwrap_or_default();
            if !rest.is_empty() {
                return Ok(Some(rest));
            }
        }
        let Some((newest, all)) = entries(lab, entity, None, 0)? else { return Ok(None) };
        if known.is_some_and(|(which, _)| which >= newest) {
            return Ok(None);
        }
        self.told.insert(entity.clone(), Reader { incarnation: Some(newest), ..Reader::default() });
        Ok(Some(all))
    }

    fn record(&mut self, entity: &EntityId, entry: Entry) -> Recorded {
        let reader = self.told.entry(entity.clone()).or_default();
        reader.number = entry.number;
        let turn = |slot: &mut Option<Doc>, change: &Option<Changed>| {
            let before = slot.clone();
            if let Some(change) = change {
                *slot = change.inline.as_deref().and_then(|text| Doc::parse(text).ok());
            }
            before
        };
        let desired = turn(&mut reader.desired, &entry.desired);
        let data = turn(&mut reader.data, &entry.data);
        let outputs = turn(&mut reader.outputs, &entry.outputs);
        Recorded { entity: entity.clone(), entry, desired, data, outputs }
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The text of the lines from one on, the oldest first, each with `indent` before it.
    #[must_use]
    pub fn text(&self, lines: std::ops::Range<usize>, indent: &str) -> String {
        let lines = self.lines.get(lines).unwrap_or_default();
        let width = |of: &dyn Fn(&Line) -> usize| lines.iter().map(of).max().unwrap_or_default();
        let when = width(&|line| clock(line.at_ms).len()).max(4);
        let who = width(&|line| line.who.chars().count()).max(6);
        let mut text = String::new();
        let mut last = None;
        for line in lines {
            // The same moment is said once.
            let at = if last == Some(line.at_ms) { String::new() } else { clock(line.at_ms) };
            last = Some(line.at_ms);
            text.push_str(&format!("{indent}{at:>when$}{GAP}{:who$}{GAP}{}\n", line.who, line.what));
            for more in &line.more {
                text.push_str(&format!("{indent}{:when$}{GAP}{:who$}{GAP}{GAP}{more}\n", "", ""));
            }
        }
        text
    }

    /// A text whose minted numbers are told by the order of their appearance.
    pub fn plain(&mut self, text: &str) -> String {
        MINTED.iter().fold(text.to_owned(), |text, (before, letter)| {
            let mut out = String::new();
            let mut rest = text.as_str();
            while let Some(at) = rest.find(before) {
                let (head, tail) = rest.split_at(at + before.len());
                let is_digit = |c: char| if *letter == 'r' { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
                let digits = tail.find(|c: char| !is_digit(c)).unwrap_or(tail.len());
                let (number, tail) = tail.split_at(digits);
                out.push_str(head);
                if !number.is_empty() {
                    let next = self.names.keys().filter(|(kind, _)| kind == letter).count() + 1;
                    let nth = self.names.entry((*letter, number.to_owned())).or_insert(next);
                    out.push_str(&format!("{letter}{nth}"));
                }
                rest = tail;
            }
            out + rest
        })
    }
}

/// An incarnation's entries behind a number, oldest first; none if there is no such entity on record.
fn entries(
    lab: &Lab,
    entity: &EntityId,
    incarnation: Option<u64>,
    behind: u64,
) -> Result<Option<(u64, Vec<Entry>)>, StoreError> {
    let mut found: Vec<Entry> = Vec::new();
    let mut before = None;
    loop {
        let page = lab.read(|host| async move {
            host.history(entity, incarnation, before, interlock_coordinator::PAGE_MAX).await
        })?;
        let Some(page) = page else { return Ok(None) };
        let is_new = |entry: &Entry| entry.number > behind;
        let reached = page.entries.iter().any(|entry| !is_new(entry));
        found.extend(page.entries.into_iter().filter(is_new));
        match page.before {
            Some(number) if !reached => before = Some(number),
            _ => {
                found.reverse();
                return Ok(Some((page.incarnation, found)));
            }
        }
    }
}

/// Virtual time: `1:30`, `2:00:00`, with milliseconds if they are not zero.
#[must_use]
pub fn clock(ms: u64) -> String {
    let (hours, minutes, seconds, rest) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
    match hours {
        0 => format!("{minutes}:{seconds:02}{fraction}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}{fraction}"),
    }
}

/// An entry of history, and what changed with it.
#[must_use]
pub fn of_entry(recorded: &Recorded) -> (String, Vec<String>) {
    let entry = &recorded.entry;
    let attempt = match (entry.attempt, entry.token) {
        (Some(_), Some(token)) if matches!(entry.what, record::What::Begun(_)) => format!("   token {token}"),
        (Some(attempt), Some(token)) if begins(entry) => format!("   attempt {attempt}, token {token}"),
        _ => String::new(),
    };
    let parts = [
        ("desired", &recorded.desired, &entry.desired),
        ("data", &recorded.data, &entry.data),
        ("outputs", &recorded.outputs, &entry.outputs),
    ];
    let mut more: Vec<String> = Vec::new();
    if let Some(reason) = reason(entry) {
        more.push(reason);
    }
    let changes = parts.into_iter().filter_map(|(name, before, change)| Some((name, before, change.as_ref()?)));
    more.extend(changes.flat_map(|(name, before, change)| of_change(name, before.as_ref(), change)));
    (format!("v{}  {}{attempt}", entry.version, entry.sentence()), more)
}

/// Whether an entry begins an attempt; others name the one that wrote them.
fn begins(entry: &Entry) -> bool {
    use record::What;
    match entry.what {
        What::Event(_) | What::DesiredChanged | What::Timer(_) => true,
        What::Created
        | What::Queued(_)
        | What::Refused(..)
        | What::Applied(_)
        | What::Transition(_)
        | What::Saved(_)
        | What::Begun(_)
        | What::Ended(..)
        | What::FailurePath(_)
        | What::Parked(..)
        | What::Unparked
        | What::Killed(_)
        | What::Deleted
        | What::Leased(_)
        | What::Returned(_)
        | What::LeaseLost(_)
        | What::Awaits(_)
        | What::Effect(..)
        | What::Unlocked(..)
        | What::Fact(..) => false,
    }
}

/// Why, where the sentence only has a code.
fn reason(entry: &Entry) -> Option<String> {
    use record::What;
    match &entry.what {
        What::Ended(failure, _) | What::FailurePath(failure) => {
            Some(failure.reason.lines().next()?.to_owned()).filter(|reason| *reason != failure.short())
        }
        What::Parked(_, reason) => Some(reason.lines().next()?.to_owned()),
        What::Refused(_, rejection) => Some(expected_and_got(rejection)),
        _ => None,
    }
}

/// The fields that changed, at the top of the document.
fn of_change(name: &str, before: Option<&Doc>, change: &Changed) -> Vec<String> {
    let Some(digest) = change.digest else { return vec![format!("{name} is gone")] };
    let after = change.inline.as_deref().and_then(|text| Doc::parse(text).ok());
    let Some(after) = after else {
        let digest: String = digest.to_string().chars().take(8).collect();
        return vec![format!("{name} is longer than the record keeps, digest {digest}")];
    };
    let (Some(Value::Object(old)), Value::Object(new)) = (before.map(Doc::value), after.value()) else {
        return vec![cut(&format!("{name} {after}"))];
    };
    let mut lines: Vec<String> = new
        .iter()
        .filter(|(field, value)| old.get(*field) != Some(value))
        .map(|(field, value)| cut(&format!("{name}.{field} = {}", Doc::new(value.clone()))))
        .collect();
    lines.extend(old.keys().filter(|field| !new.contains_key(*field)).map(|field| format!("{name}.{field} is gone")));
    lines
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CHANGE_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => {
            let digest: String =
                Doc::new(Value::String(text.to_owned())).digest().to_string().chars().take(8).collect();
            format!("{}... (digest {digest})", text.get(..end).unwrap_or_default())
        }
    }
}

/// What is worth a line of what was seen: what became of a call that left nothing on record, and what it did to
/// rows. Who, what, and more of it.
#[must_use]
pub fn of_seen(seen: &Seen) -> Option<(String, String, Vec<String>)> {
    let Seen::Told { held, told } = seen else { return None };
    let (what, more) = match told {
        Told::Refused(error) => {
            let (word, more) = of_error(error);
            (format!("{}: {word}", of_call(held)), more)
        }
        Told::Rows(answers, replayed) => {
            let again = if *replayed { ": again" } else { "" };
            (format!("{}{again}", of_call(held)), answers.iter().map(of_row_answer).collect())
        }
        Told::Found(found) => {
            let rows = found.rows.iter().map(|row| format!("found {}", of_row(row)));
            let more = if found.rows.is_empty() { vec!["found nothing".to_owned()] } else { rows.collect() };
            (of_call(held), more)
        }
        Told::Written(done) if !done.rows.is_empty() => {
            (format!("{}: rows", of_call(held)), done.rows.iter().map(of_row_answer).collect())
        }
        Told::Written(_) | Told::Read(_) | Told::Holds(_) | Told::Leased(..) | Told::Released => return None,
    };
    Some((held.entity.key.to_string(), what, more))
}

/// A call of a step: `call 2 of plan, attempt 3 (transition to provisioning)`.
#[must_use]
pub fn of_call(held: &Held) -> String {
    let what = match &held.asked {
        Asked::Save(change) => format!("save{}", parts(change)),
        Asked::Transition(to, _) => format!("transition to {to}"),
        Asked::Reload => "reload".to_owned(),
        Asked::LookAgain => {
            return format!("{} attempt {} reads what call {} saved", held.step, held.attempt, held.nth);
        }
        Asked::StillHolds => "still-holds".to_owned(),
        Asked::Lease(LeaseAsk::Acquire(lease, _)) => format!("acquire {lease}"),
        Asked::Lease(LeaseAsk::Extend(held, _)) => format!("extend {}", held.lease),
        Asked::Lease(LeaseAsk::Release(held)) => format!("release {}", held.lease),
        Asked::StillHoldsLease(held) => format!("still-holds {}", held.lease),
        Asked::Rows(ask) => of_rows(&ask.ask),
        Asked::Query(ask) => format!("query {}", ask.table),
    };
    let attempt = if held.attempt > 1 { format!(", attempt {}", held.attempt) } else { String::new() };
    format!("call {} of {}{attempt} ({what})", held.nth, held.step)
}

/// What is asked of rows, in a few words.
fn of_rows(ask: &RowsAsk) -> String {
    let one = |op: &RowOp| {
        let word = match op.what {
            RowAsk::Get { .. } => "get",
            RowAsk::Put { .. } => "put",
            RowAsk::Update { .. } => "update",
            RowAsk::Upsert { .. } => "upsert",
            RowAsk::Claim { .. } => "claim",
            RowAsk::Delete { .. } => "delete",
        };
        format!("{word} {}", op.table)
    };
    ask.ops.iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn of_row(row: &RowShown) -> String {
    cut(&format!("{} {}", row.key, row.value))
}

/// What came of an operation on rows: `claimed a {"status":"in_flight"}`.
fn of_row_answer(answer: &RowAnswer) -> String {
    let row = of_row;
    let missed = |key: &RowKey, why: &Option<Unmatched>| match why {
        Some(Unmatched::Guard(guard)) => format!("{key} is not so: {guard}"),
        Some(Unmatched::Absent) | None => format!("{key} is not there"),
    };
    match answer {
        RowAnswer::Got { row: Some(found), .. } => format!("got {}", row(found)),
        RowAnswer::Got { key, row: None } => missed(key, &None),
        RowAnswer::Put { inserted: true, row: done } | RowAnswer::Upserted { inserted: true, row: done } => {
            format!("inserted {}", row(done))
        }
        RowAnswer::Put { row: done, .. } => format!("replaced {}", row(done)),
        RowAnswer::Updated { row: Some(done), .. } | RowAnswer::Upserted { row: done, .. } => {
            format!("updated {}", row(done))
        }
        RowAnswer::Updated { key, row: None, unmatched } => missed(key, unmatched),
        RowAnswer::Claimed { rows, lost, .. } => {
            let taken = match rows.as_slice() {
                [] => "claimed nothing".to_owned(),
                rows => format!("claimed {}", rows.iter().map(row).collect::<Vec<_>>().join(" | ")),
            };
            let lost: String = lost.iter().map(|key| format!(", lost {key}")).collect();
            format!("{taken}{lost}")
        }
        RowAnswer::Deleted { key, deleted: true, .. } => format!("deleted {key}"),
        RowAnswer::Deleted { key, unmatched, .. } => missed(key, unmatched),
    }
}

fn parts(change: &Change) -> String {
    let named = [
        ("data", change.data.is_some()),
        ("outputs", change.outputs.is_some()),
        ("conditions", !change.conditions.is_empty()),
    ];
    let there: Vec<&str> = named.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect();
    if there.is_empty() { String::new() } else { format!(" of {}", there.join(" and ")) }
}

/// A fault that comes before a call.
#[must_use]
pub fn of_fault(fault: Fault, held: &Held) -> String {
    let call = of_call(held);
    match fault {
        Fault::Conflict => format!("another write gets in before {call}"),
        Fault::Fenced => format!("the attempt is ended, as by a deadline, before {call}"),
        Fault::Unavailable => format!("the store does not take {call}"),
        Fault::Unknown { kept: true } => format!("the store takes {call}, and its answer is lost"),
        Fault::Unknown { kept: false } => format!("the store loses {call}, and nobody learns it"),
        Fault::LeaseLost => format!("the host stalls until a lease of the execution is over, before {call}"),
        Fault::Crash => format!("killed before {call}; boots again"),
        Fault::CrashBehind => format!("killed right after {call} is done, before the step hears of it; boots again"),
    }
}

/// An answer in a few words, and more of it.
#[must_use]
pub fn of_answer(answer: &Result<Outcome, SubmitError>) -> (String, Vec<String>) {
    let again = |again: bool| if again { ", again" } else { "" };
    let words = match answer {
        Err(error) => return of_error(error),
        Ok(Outcome::Answered { answer, replayed }) => {
            let kind = format!("{:?}", answer.kind).to_lowercase();
            let more = answer.rejection.iter().map(|no| format!("{}: {}", no.code, expected_and_got(no))).collect();
            return (format!("{kind}{}", again(*replayed)), more);
        }
        Ok(Outcome::Created { new, .. }) => format!("accepted{}", again(!new)),
        Ok(Outcome::Applied { generation }) => format!("accepted, generation {generation}"),
        Ok(Outcome::Now { changed, .. }) => format!("accepted{}", again(!changed)),
        Ok(Outcome::Deployed { revision, new }) => format!("revision {revision}{}", again(!new)),
        Ok(Outcome::Written { version, .. }) => format!("version {version}"),
        Ok(Outcome::Leased { claim, new, ttl_ms, .. }) => {
            format!("held for {}, token {}{}", Span(*ttl_ms), claim.token, again(!new))
        }
        Ok(Outcome::InLine { before }) => format!("in line, {before} before it"),
        Ok(Outcome::Released) => "released".to_owned(),
        Ok(Outcome::Declared { revision, new }) => format!("declaration {revision}{}", again(!new)),
        Ok(Outcome::Rows { answers, replayed }) => format!("{} done{}", answers.len(), again(*replayed)),
        Ok(Outcome::Fired(None)) => "not due".to_owned(),
        Ok(Outcome::Fired(Some(firing))) => firing.fired.to_string(),
        Ok(Outcome::Tended { done, .. }) => format!("{done} looked at"),
        Ok(Outcome::Sending(sending)) => format!("effect {} on {}", sending.number, sending.effect.target),
        Ok(other @ (Outcome::Nothing | Outcome::Session(..) | Outcome::Swept { .. } | Outcome::Repaired(_))) => {
            format!("{other:?}").to_lowercase()
        }
    };
    (words, Vec::new())
}

/// A refusal, or what the store could not do, in a few words, and more of it.
#[must_use]
pub fn of_error(error: &SubmitError) -> (String, Vec<String>) {
    match error {
        SubmitError::Rejected(no) => {
            let mut more = vec![expected_and_got(no)];
            match (no.retryable, no.retry_after_ms) {
                (true, Some(0)) => more.push("retry at once".to_owned()),
                (true, Some(ms)) => more.push(format!("retry in {}", Span(ms))),
                (true, None) => more.push("retry later".to_owned()),
                (false, _) => {}
            }
            (format!("REFUSED {}", no.code), more)
        }
        SubmitError::Contended { .. } => ("FAILED, the queue is full".to_owned(), Vec::new()),
        SubmitError::Store(StoreError::Indeterminate { .. }) => {
            ("FAILED, nobody knows whether it was done".to_owned(), Vec::new())
        }
        SubmitError::Store(error) => ("FAILED, the store took nothing".to_owned(), vec![error.to_string()]),
    }
}

fn expected_and_got(no: &Rejection) -> String {
    format!("expected {}, got {}", no.expected, no.got)
}
