//! Answers and refusals in one line each.

use crate::{ClaimedRow, ClaimedRows, SubmitError};
use interlock_kernel::doc::Doc;
use interlock_kernel::rows::{QueryAnswer, RowAnswer, RowShown, Unmatched};

/// Rows that are written out.
const SHOWN: usize = 5;

pub(super) fn answers(answers: &[RowAnswer]) -> Vec<String> {
    match answers {
        [.., last] if answers.len() > SHOWN => vec![format!("{} answers, the last: {}", answers.len(), answer(last))],
        few => few.iter().map(answer).collect(),
    }
}

fn answer(answer: &RowAnswer) -> String {
    match answer {
        RowAnswer::Got { key, row: None } => format!("{key}: none"),
        RowAnswer::Got { row: Some(found), .. } => shown(found),
        RowAnswer::Put { inserted, row } | RowAnswer::Upserted { inserted, row } => {
            format!("{}{}", if *inserted { "new " } else { "" }, shown(row))
        }
        RowAnswer::Updated { key, row, unmatched } => match (row, unmatched) {
            (Some(changed), None) => shown(changed),
            (_, unmatched) => format!("{key}: {}", why(unmatched.as_ref())),
        },
        RowAnswer::Claimed { rows, more, lost } => {
            assert!(lost.is_empty(), "only what is asked again has lost something: {lost:?}");
            format!("claimed {}{}", list(rows), if *more { ", and there is more" } else { "" })
        }
        RowAnswer::Deleted { key, deleted: true, .. } => format!("{key}: deleted"),
        RowAnswer::Deleted { key, unmatched, .. } => format!("{key}: {}", why(unmatched.as_ref())),
    }
}

pub(super) fn page(page: &QueryAnswer) -> Vec<String> {
    vec![format!("found {}{}", list(&page.rows), if page.next.is_some() { ", and there is more" } else { "" })]
}

pub(super) fn claims(claimed: &ClaimedRows) -> String {
    let row = |row: &ClaimedRow| format!("{}/{} since {}", row.table, row.key, row.since.0);
    match claimed.rows.as_slice() {
        [] => "has nothing".to_owned(),
        [first, .., last] if claimed.rows.len() > SHOWN => {
            format!("has {} rows, {} to {}, and {} more", claimed.rows.len(), row(first), row(last), claimed.more)
        }
        few => format!("has {}", few.iter().map(row).collect::<Vec<_>>().join("; ")),
    }
}

pub(super) fn row(key: &str, value: &Doc) -> String {
    format!("{key} = {}", cut(value.text()))
}

pub(super) fn refusal(error: &SubmitError) -> String {
    let SubmitError::Rejected(refused) = error else { panic!("{error}") };
    let detail = refused.detail.as_ref().map(|detail| format!(" {}", detail.text())).unwrap_or_default();
    cut(&without_version(format!("refused as {refused}{detail}")))
}

/// The number of a version differs by engine.
fn without_version(text: String) -> String {
    match text.split_once("got version ") {
        Some((before, rest)) => {
            format!("{before}got another version{}", rest.trim_start_matches(|letter: char| letter.is_ascii_digit()))
        }
        None => text,
    }
}

/// What is long is cut, and its bytes are counted.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(300) {
        None => text.to_owned(),
        Some(_) => format!("{}... ({} bytes)", text.chars().take(40).collect::<String>(), text.len()),
    }
}

fn shown(shown: &RowShown) -> String {
    row(shown.key.as_str(), &shown.value)
}

fn list(rows: &[RowShown]) -> String {
    match rows {
        [] => "nothing".to_owned(),
        [first, .., last] if rows.len() > SHOWN => format!("{} rows, {} to {}", rows.len(), first.key, last.key),
        few => few.iter().map(shown).collect::<Vec<_>>().join("; "),
    }
}

fn why(unmatched: Option<&Unmatched>) -> String {
    match unmatched {
        Some(Unmatched::Absent) => "unmatched, absent".to_owned(),
        Some(Unmatched::Guard(guard)) => format!("unmatched, not {guard}"),
        None => panic!("neither done nor unmatched"),
    }
}
