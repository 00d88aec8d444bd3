//! Answers as JSON.

use crate::calendar::rfc3339;
use interlock_kernel::rows::{QueryAnswer, RowAnswer, RowShown, Unmatched};
use serde_json::{Value as Json, json};

/// The answer to one operation.
///
/// | operation | fields |
/// |---|---|
/// | get | `found`, and the row's if there is one |
/// | put, upsert | `inserted`, `key`, `value`, `version` |
/// | update | `updated`, `key`, `value`, `version`, `unmatched` |
/// | claim | `claimed` (rows), `count`, `more`, `lost` (keys) |
/// | delete | `deleted`, `key`, `unmatched` |
///
/// `unmatched` is null, or says why nothing was done: `absent`, or `guard`, and then `guard` is the comparison that did
/// not hold. `value` and `version` are null then.
#[must_use]
pub fn answer(answer: &RowAnswer) -> Json {
    match answer {
        RowAnswer::Got { key, row: None } => json!({"found": false, "key": key.as_str(), "value": null}),
        RowAnswer::Got { row: Some(shown), .. } => with(row(shown), "found", true),
        RowAnswer::Put { inserted, row } | RowAnswer::Upserted { inserted, row } => {
            with(written(row), "inserted", *inserted)
        }
        RowAnswer::Updated { row: Some(row), unmatched, .. } => {
            unmatched_as(with(written(row), "updated", true), unmatched.as_ref())
        }
        RowAnswer::Updated { key, row: None, unmatched } => {
            let none = json!({"updated": false, "key": key.as_str(), "value": null, "version": null});
            unmatched_as(none, unmatched.as_ref())
        }
        RowAnswer::Claimed { rows, more, lost } => json!({
            "claimed": rows.iter().map(row).collect::<Vec<_>>(),
            "count": rows.len(),
            "more": more,
            "lost": lost.iter().map(|key| key.as_str()).collect::<Vec<_>>(),
        }),
        RowAnswer::Deleted { key, deleted, unmatched } => {
            unmatched_as(json!({"deleted": deleted, "key": key.as_str()}), unmatched.as_ref())
        }
    }
}

/// The rows of a query: `rows`, `count`, and `next` to go on from, or null.
#[must_use]
pub fn found(answer: &QueryAnswer) -> Json {
    let rows: Vec<Json> = answer.rows.iter().map(row).collect();
    json!({"rows": rows, "count": answer.rows.len(), "next": answer.next})
}

/// A row: `key`, `value`, `version`, `created`, `updated`, `claims`, `claimed_by`.
#[must_use]
pub fn row(row: &RowShown) -> Json {
    json!({
        "key": row.key.as_str(),
        "value": row.value.value(),
        "version": row.version,
        "created": rfc3339(row.created),
        "updated": rfc3339(row.updated),
        "claims": row.claims,
        "claimed_by": row.claimed_by,
    })
}

fn written(row: &RowShown) -> Json {
    json!({"key": row.key.as_str(), "value": row.value.value(), "version": row.version})
}

fn with(mut json: Json, name: &str, truth: bool) -> Json {
    json[name] = truth.into();
    json
}

fn unmatched_as(mut json: Json, unmatched: Option<&Unmatched>) -> Json {
    match unmatched {
        None => json["unmatched"] = Json::Null,
        Some(Unmatched::Absent) => json["unmatched"] = "absent".into(),
        Some(Unmatched::Guard(guard)) => {
            json["unmatched"] = "guard".into();
            json["guard"] = guard.as_str().into();
        }
    }
    json
}
