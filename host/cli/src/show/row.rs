//! Tables and rows.

use super::{Paint, ago, clock, fields, span, table};
use interlock_daemon::api::{
    AccessView, Declared, Document, IndexView, RowDeleted, RowEntryView, RowUpdated, RowView, RowWritten, RowsClaimed,
    StageView, TablePage, TableView, Transacted, UnmatchedView, WatchRows,
};
use serde_json::Value;

/// How much of a value a line of a list shows.
const LINE_CHARS: usize = 100;

/// `1 row`, `2 rows`.
pub(crate) fn count(number: u64, name: &str) -> String {
    if number == 1 { format!("1 {name}") } else { format!("{number} {name}s") }
}

/// A declaration is in force, or would be.
pub(crate) fn declared(declared: &Declared, paint: Paint) -> String {
    let table = paint.bold(&declared.table);
    match (declared.revision, declared.new) {
        (Some(revision), true) => format!("{table}   declaration {revision} {}\n", paint.green("in force")),
        (Some(revision), false) => format!("{table}   declaration {revision} is in force\n"),
        (None, _) => format!("{table}   would be taken\n"),
    }
}

/// A page of tables.
pub(crate) fn tables(page: &TablePage) -> String {
    let rows = page.tables.iter().map(|one| {
        vec![
            one.table.clone(),
            one.rows.to_string(),
            one.claimed.to_string(),
            one.revision.to_string(),
            clock(&one.declared),
            one.owner.clone(),
            if one.dropping { "being dropped".to_owned() } else { String::new() },
        ]
    });
    table(&["table", "rows", "claimed", "declaration", "declared", "owner", ""], &rows.collect::<Vec<_>>())
}

/// One table.
pub(crate) fn declared_table(view: &TableView, paint: Paint) -> String {
    let one = &view.summary;
    let (rows, claimed) = (count(one.rows, "row"), one.claimed);
    let dropping = if one.dropping { format!("   {}", paint.red("being dropped")) } else { String::new() };
    let mut text = format!("{}   {rows}, {claimed} claimed{dropping}\n", paint.bold(&one.table));
    let mut pairs = vec![
        ("owner", one.owner.clone()),
        ("declared", format!("{}, declaration {}", clock(&one.declared), one.revision)),
        ("claim", claim(view)),
        ("ttl", view.ttl.as_ref().map(|ttl| format!("{} from {}", span(ttl.after_ms), ttl.from)).unwrap_or_default()),
    ];
    if view.catching_up {
        pairs.push(("state", "rows are looked at anew, for what was declared differently".to_owned()));
    }
    pairs.extend(view.indexes.iter().map(|index| ("index", self::index(index, one.rows))));
    pairs.extend(access(&view.access).into_iter().map(|who| ("may", who)));
    text.push_str(&fields("", &pairs));
    if !view.entries.is_empty() {
        let rows: Vec<_> = view.entries.iter().rev().map(entry).collect();
        text.push('\n');
        text.push_str(&table(&["no", "when", "what", "rows", "keys", "claimed by", "more", "by"], &rows));
    }
    text
}

fn claim(view: &TableView) -> String {
    let claim = &view.claim;
    let reaper = claim.reaper.as_ref().map(|reaper| {
        let attempts = reaper.attempts.map(|attempts| format!(", given up after {attempts}")).unwrap_or_default();
        format!(", taken back after {}{attempts}", span(reaper.after_ms))
    });
    let on_end = if claim.on_end == "release" { ", and when its execution ends" } else { "" };
    format!("{} = {}{}{on_end}", claim.status, claim.held.0, reaper.unwrap_or_default())
}

fn index(index: &IndexView, rows: u64) -> String {
    let stage = match (index.stage, index.done) {
        (StageView::Ready, _) => String::new(),
        (StageView::Building, done) => format!("   being built: {} of {rows}", done.unwrap_or_default()),
        (StageView::Dropping, _) => "   being removed".to_owned(),
    };
    format!("{}   {}, then {}{stage}", index.name, index.fields.join(", "), index.tie)
}

fn access(access: &AccessView) -> Vec<String> {
    let clients = (!access.clients.is_empty()).then(|| format!("clients: {}", access.clients.join(", ")));
    let machines = access.machines.iter().map(|(machine, rights)| format!("{machine}: {}", rights.join(", ")));
    clients.into_iter().chain(machines).collect()
}

fn entry(entry: &RowEntryView) -> Vec<String> {
    let RowEntryView { number, what, keys, count, claimant, note, by, at } = entry;
    let (keys, claimant) = (shown_keys(keys, *count), claimant.clone().unwrap_or_default());
    vec![format!("{number:>2}"), clock(at), what.clone(), count.to_string(), keys, claimant, note.clone(), by.clone()]
}

fn shown_keys(keys: &[String], count: u64) -> String {
    let shown: Vec<&str> = keys.iter().take(3).map(String::as_str).collect();
    let more = if count > shown.len() as u64 { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// What became of rows, as it happens.
pub(crate) fn watched_rows(watched: &WatchRows) -> String {
    let WatchRows { table, entry, .. } = watched;
    let (keys, claimant) = (shown_keys(&entry.keys, entry.count), entry.claimant.as_deref().unwrap_or("nobody"));
    let (at, rows) = (clock(&entry.at), count(entry.count, "row"));
    let note = if entry.note.is_empty() { String::new() } else { format!(", {}", entry.note) };
    format!("{at}  {table:<24}  {:<10}  {rows}: {keys}  {claimant}{note}\n", entry.what)
}

/// One row, whole.
pub(crate) fn row(in_table: &str, row: &RowView, paint: Paint) -> String {
    let name = format!("{in_table}/{}", row.key);
    let held = match (&row.claimed_by, &row.claimed_since) {
        (Some(by), Some(since)) => format!("   claimed by {by} for {}", ago(since)),
        (Some(by), None) => format!("   claimed by {by}"),
        (None, _) => String::new(),
    };
    let mut text = format!("{}   version {}{held}\n", paint.bold(&name), row.version);
    let claims = if row.claims == 0 { String::new() } else { row.claims.to_string() };
    let pairs = [
        ("since", row.claimed_since.as_deref().map(clock).unwrap_or_default()),
        ("claims", claims),
        ("created", clock(&row.created)),
        ("updated", clock(&row.updated)),
    ];
    text.push_str(&fields("", &pairs));
    text.push_str(&serde_json::to_string_pretty(row.value.0.value()).unwrap_or_default());
    text.push('\n');
    text
}

/// Rows of a list.
pub(crate) fn rows(rows: &[RowView]) -> String {
    let lines = rows.iter().map(|row| {
        let by = row.claimed_by.clone().unwrap_or_default();
        vec![row.key.clone(), row.version.to_string(), clock(&row.updated), by, line(&row.value)]
    });
    table(&["key", "version", "updated", "claimed by", "value"], &lines.collect::<Vec<_>>())
}

fn line(value: &Document) -> String {
    let text = value.0.text();
    match text.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// What a claim took.
pub(crate) fn claimed(claimed: &RowsClaimed) -> String {
    let mut text = match claimed.count {
        0 => "nothing to claim\n".to_owned(),
        _ => rows(&claimed.claimed),
    };
    if !claimed.lost.is_empty() {
        text.push_str(&format!("lost since it was claimed: {}\n", claimed.lost.join(", ")));
    }
    text
}

/// A put or an upsert.
pub(crate) fn written(in_table: &str, written: &RowWritten, paint: Paint) -> String {
    let word = if written.inserted { "inserted" } else { "written" };
    changed(&format!("{in_table}/{}", written.key), (word, Some(written.version)), Some(&written.value), paint)
}

/// An update.
pub(crate) fn updated(in_table: &str, updated: &RowUpdated, paint: Paint) -> String {
    let name = format!("{in_table}/{}", updated.key);
    if updated.updated {
        return changed(&name, ("updated", updated.version), updated.value.as_ref(), paint);
    }
    unchanged(&name, updated.unmatched, updated.guard.as_deref(), paint)
}

/// A delete.
pub(crate) fn deleted(in_table: &str, deleted: &RowDeleted, paint: Paint) -> String {
    let name = format!("{in_table}/{}", deleted.key);
    if deleted.deleted {
        return changed(&name, ("deleted", None), None, paint);
    }
    unchanged(&name, deleted.unmatched, deleted.guard.as_deref(), paint)
}

fn changed(name: &str, (word, version): (&str, Option<u64>), value: Option<&Document>, paint: Paint) -> String {
    let version = version.map(|version| format!("   version {version}")).unwrap_or_default();
    let value = value.map(|value| format!("   {}", line(value))).unwrap_or_default();
    format!("{}   {}{version}{value}\n", paint.bold(name), paint.green(word))
}

fn unchanged(name: &str, why: Option<UnmatchedView>, guard: Option<&str>, paint: Paint) -> String {
    let why = match (why, guard) {
        (Some(UnmatchedView::Absent), _) => "there is no such row".to_owned(),
        (_, Some(guard)) => format!("{guard} does not hold"),
        (Some(UnmatchedView::Guard) | None, None) => "it is not as it must be".to_owned(),
    };
    format!("{}   {}: {why}\n", paint.bold(name), paint.yellow("unchanged"))
}

/// The answers to several operations, each of which has its kind and its table.
pub(crate) fn transacted(ops: &[(String, String)], done: &Transacted, paint: Paint) -> String {
    ops.iter().zip(&done.answers).map(|((kind, table), answer)| answered(kind, table, answer, paint)).collect()
}

fn answered(kind: &str, in_table: &str, answer: &Value, paint: Paint) -> String {
    let known = match kind {
        "put" | "upsert" => serde_json::from_value(answer.clone()).map(|one| written(in_table, &one, paint)),
        "update" => serde_json::from_value(answer.clone()).map(|one| updated(in_table, &one, paint)),
        "delete" => serde_json::from_value(answer.clone()).map(|one| deleted(in_table, &one, paint)),
        "claim" => serde_json::from_value(answer.clone()).map(|one| claimed(&one)),
        _ if answer["found"] == false => {
            let name = format!("{in_table}/{}", answer["key"].as_str().unwrap_or_default());
            return format!("{}   {}\n", paint.bold(&name), paint.yellow("not there"));
        }
        _ => serde_json::from_value(answer.clone()).map(|one| row(in_table, &one, paint)),
    };
    known.unwrap_or_else(|_| format!("{answer}\n"))
}
