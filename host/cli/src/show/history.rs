//! What is on record.

use super::{clock, table};
use interlock_daemon::api::{EntryView, HistoryPage, WatchEntry};

/// Whether a table says when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Shown,
    Left,
}

/// A page of history, oldest first.
pub(crate) fn history(page: &HistoryPage, when: When) -> String {
    let mut head = vec!["no", "when", "version", "what", "attempt", "token", "by"];
    let mut rows: Vec<Vec<String>> = page.entries.iter().rev().map(row).collect();
    if when == When::Left {
        head.remove(1);
        rows.iter_mut().for_each(|row| {
            row.remove(1);
        });
    }
    table(&head, &rows)
}

fn row(entry: &EntryView) -> Vec<String> {
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    vec![
        format!("{:>2}", entry.number),
        clock(&entry.at),
        format!("{:^7}", entry.version),
        entry.what.clone(),
        format!("{:^7}", number(entry.attempt.map(u64::from))),
        format!("{:>5}", number(entry.token)),
        by(entry),
    ]
}

/// Who, as short as it is clear: an execution without its entity, an event by the end of its id.
fn by(entry: &EntryView) -> String {
    let who = match entry.by.rsplit_once('@') {
        Some((_, execution)) => format!("@{execution}"),
        None => entry.by.clone(),
    };
    match &entry.event {
        Some(id) => format!("{who}, event {}", tail(id)),
        None => who,
    }
}

/// The end of a long id: ids that begin with a time differ there.
fn tail(id: &str) -> &str {
    match id.char_indices().rev().nth(3) {
        Some((at, _)) if id.len() > 12 => id.get(at..).unwrap_or(id),
        _ => id,
    }
}

/// One entry as it happens, and below it why an attempt failed.
pub(crate) fn watched(watched: &WatchEntry) -> String {
    let WatchEntry { entity, entry, .. } = watched;
    let mut text = format!(
        "{}  {entity:<24}  version {:<4}  {:<40}  {}\n",
        clock(&entry.at),
        entry.version,
        entry.what,
        by(entry)
    );
    if let Some(failure) = &entry.failure {
        for line in failure.reason.lines() {
            text.push_str(&format!("{:10}{line}\n", ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn entry(number: u64, version: u64, what: &str, attempt: Option<u32>, by: &str, event: Option<&str>) -> EntryView {
        EntryView {
            number,
            version,
            kind: "event".to_owned(),
            what: what.to_owned(),
            name: None,
            from: "ready".to_owned(),
            to: "planning".to_owned(),
            execution: None,
            attempt,
            token: attempt.map(|attempt| u64::from(attempt) * 4),
            by: by.to_owned(),
            revision: 1,
            event: event.map(str::to_owned),
            at: "2026-03-01T10:15:03.250Z".to_owned(),
            failure: None,
            desired: None,
            data: None,
            outputs: None,
            previous: String::new(),
        }
    }

    #[test]
    fn history_reads_from_top_to_bottom() {
        let entries = vec![
            entry(4, 3, "plan -> provisioning", Some(2), "resource/gpu-7@3.1", None),
            entry(3, 2, "attempt 1 lost with its host, begun again", Some(2), "host", None),
            entry(2, 2, "resize -> planning", Some(1), "local", Some("0197-aaaa-bbbb-7c1e")),
            entry(1, 1, "created, ready", None, "local", None),
        ];
        let page = HistoryPage { entity: "resource/gpu-7".to_owned(), incarnation: 3, entries, next: None };
        expect![[r#"
            no  version  what                                       attempt  token  by
             1     1     created, ready                                             local
             2     2     resize -> planning                            1         4  local, event 7c1e
             3     2     attempt 1 lost with its host, begun again     2         8  host
             4     3     plan -> provisioning                          2         8  @3.1
        "#]]
        .assert_eq(&history(&page, When::Left));
    }
}
