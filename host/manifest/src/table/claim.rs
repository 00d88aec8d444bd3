//! A claim marks its rows so that they count as claimed, what takes them back unmarks them, and no schema stands in
//! the way of either.

use super::{Changes, Draft, Left, overlap};
use crate::check::field::{change, compare, types_of, types_of_json};
use crate::draft::{ComparisonDraft, SetDraft};
use crate::log::{Log, Span};
use crate::problem::{Code, Kind, Severity};
use crate::schema::Compiled;
use crate::shape::{self, Field, Types};
use interlock_kernel::limits::ROWS_SCANNED_MAX;
use interlock_kernel::table::{OnEnd, Right};
use interlock_kernel::value::{Operation, Operator, Path, Segment, Source, Value};
use serde_json::Value as Json;

/// A machine is only warned of a change that is never made, since another way may lead on; a claim has none.
const NEVER: Kind = Kind { code: Code::TypeMismatch.text(), severity: Severity::Error };

pub(super) fn check(draft: &Draft<'_>, log: &mut Log<'_>) {
    let claim = &draft.claim;
    let granted = draft.access.all().find(|right| right.value == Right::Claim);
    // The standard says nothing of a table whose rows nobody claims.
    if claim.half_read || (!claim.written && granted.is_none()) {
        return;
    }
    types_of(draft.row(), &claim.status.value, &claim.status.at, log);
    comparisons(draft, log);
    held(draft, log);
    taken_back(draft, log);
    if claim.set.written {
        written(draft, &claim.set, log);
    } else if let Some(granted) = granted {
        unwritten(draft, &granted.at, log);
    }
    if claim.release.written {
        written(draft, &claim.release, log);
    }
    if let Some(reaper) = &claim.reaper {
        written(draft, &reaper.dead, log);
    }
    if granted.is_some() {
        served(draft, log);
        again(draft, log);
    }
}

fn comparisons(draft: &Draft<'_>, log: &mut Log<'_>) {
    for one in draft.claim.filter.value.iter().flatten() {
        let field = types_of(draft.row(), &one.comparison.field, &one.field_at, log);
        let value = value(draft.row(), &one.comparison.value, &one.value_at, log);
        if let (Some(field), Some(value)) = (field, value) {
            compare(one, &field, &value, Code::TypeMismatch, log);
        }
    }
}

fn value(schema: Option<&Json>, value: &Value, at: &Span, log: &mut Log<'_>) -> Option<Types> {
    match value {
        Value::Json(doc) => Some(types_of_json(doc)),
        Value::From(Source::Now(_)) => Some(Types::only("number")),
        Value::From(Source::Execution) => Some(Types::only("string")),
        Value::From(Source::Field(path)) => types_of(schema, path, at, log),
    }
}

/// What a claim sets is what counts as claimed.
fn held(draft: &Draft<'_>, log: &mut Log<'_>) {
    let claim = &draft.claim;
    let (status, held) = (&claim.status.value, &claim.held.value);
    let got = match claim.set.leave(status) {
        Left::As(doc) if doc == held => return,
        Left::As(doc) => format!("`{status}` = {doc}"),
        Left::Open => format!("a change of `{status}` whose result is not written here"),
        Left::Alone => format!("nothing that writes `{status}`"),
    };
    let message = format!("a row with `{status}` = {held} counts as claimed, and a claim does not write that");
    let remedy = "let `set` write `held` into the field that `status` names, or name what it writes";
    log.add(Code::ClaimNotHeld, &claim.set.at, message, remedy).expected(format!("`{status}` = {held}")).got(got);
}

/// What takes rows back says how, and leaves none as claimed.
fn taken_back(draft: &Draft<'_>, log: &mut Log<'_>) {
    let claim = &draft.claim;
    let by_end = claim.on_end.as_ref().filter(|on_end| on_end.value == OnEnd::Release).map(|on_end| on_end.at.clone());
    if let Some(at) = by_end.or(claim.reaper.as_ref().map(|reaper| reaper.at.clone()))
        && !claim.release.written
    {
        let remedy = "say what a row gets: release = { status = \"pending\" }";
        log.add(
            Code::NoRelease,
            &at,
            "claimed rows are taken back here, and nothing says what becomes of them",
            remedy,
        );
    }
    if claim.release.written {
        lets_go(draft, &claim.release, "release", log);
    }
    let Some(reaper) = &claim.reaper else { return };
    match (reaper.attempts, reaper.dead.written) {
        (Some(_), false) => {
            let message = "a row is given up after so many claims, and nothing says what it gets";
            let remedy = "say so: dead = { status = \"dead\" }, or leave `attempts` out";
            log.add(Code::MissingKey, &reaper.at, message, remedy);
        }
        (None, true) => {
            let message = "`dead` has no effect: a row may be claimed for ever";
            log.add(
                Code::UnusedKey,
                &reaper.dead.at,
                message,
                "say after how many claims: attempts = 5, or take it out",
            );
        }
        (Some(_), true) => lets_go(draft, &reaper.dead, "dead", log),
        (None, false) => {}
    }
}

fn lets_go(draft: &Draft<'_>, changes: &Changes, what: &str, log: &mut Log<'_>) {
    let (status, held) = (&draft.claim.status.value, &draft.claim.held.value);
    let got = match changes.leave(status) {
        Left::As(doc) if doc == held => format!("`{status}` = {doc}"),
        Left::Alone => format!("nothing that writes `{status}`"),
        Left::As(_) | Left::Open => return,
    };
    let message = format!("`{what}` leaves a row with `{status}` = {held}, and so as claimed");
    let remedy = format!("write another value there: {what} = {{ {} = \"pending\" }}", short(status));
    log.add(Code::StillHeld, &changes.at, message, remedy).got(got);
}

/// A path as people write it in a table.
fn short(path: &Path) -> String {
    let text = path.to_string();
    text.strip_prefix("row.").unwrap_or(&text).to_owned()
}

/// Changes that are written, against the schema.
fn written(draft: &Draft<'_>, changes: &Changes, log: &mut Log<'_>) {
    let Some(schema) = draft.row() else { return };
    for (place, one) in changes.set.iter().enumerate() {
        let field = types_of(Some(schema), &one.mutation.field, &one.field_at, log);
        let value = match one.mutation.operation {
            Operation::Remove => Some(Types::any()),
            _ => value(Some(schema), &one.mutation.value, &one.value_at, log),
        };
        let (Some(field), Some(value)) = (field, value) else { continue };
        let rest = changes.set.get(place + 1..).unwrap_or_default();
        if rest.iter().any(|later| overlap(&later.mutation.field, &one.mutation.field)) {
            continue;
        }
        match refused(schema, one) {
            Some(Refused { expected, got }) => {
                let message = format!("the table's schema always refuses this change of `{}`", one.mutation.field);
                let remedy = "write what the schema takes, or correct the schema";
                log.add(Code::RefusedChange, &one.value_at, message, remedy).expected(expected).got(got);
            }
            None => change(one, &field, &value, NEVER, log),
        }
    }
}

/// Changes of a claim that says nothing of its own: whoever wrote the schema has never seen them.
fn unwritten(draft: &Draft<'_>, granted: &Span, log: &mut Log<'_>) {
    let Some(schema) = draft.row() else { return };
    for one in &draft.claim.set.set {
        let field = &one.mutation.field;
        let out = matches!(shape::find(schema, &field.segments), Field::RuledOut { .. });
        let types = match shape::find(schema, &field.segments) {
            Field::Known(found) => shape::types(found),
            Field::Open | Field::RuledOut { .. } => Types::any(),
        };
        let brought = match &one.mutation.value {
            Value::Json(doc) => types_of_json(doc),
            Value::From(Source::Now(_)) => Types::only("number"),
            Value::From(Source::Execution | Source::Field(_)) => Types::only("string"),
        };
        if out || refused(schema, one).is_some() || !types.meets(&brought) {
            let message = format!(
                "a claim writes `{field}` = {} unless the table says otherwise, which its schema always refuses",
                one.mutation.value
            );
            let remedy = "say what a claim writes, [claim] set = { ... }, or let the schema take it";
            log.add(Code::RefusedChange, granted, message, remedy);
        }
    }
}

struct Refused {
    expected: String,
    got: String,
}

/// Why no row keeps to the schema after this change; none if that hangs on the row.
fn refused(schema: &Json, one: &SetDraft) -> Option<Refused> {
    let field = &one.mutation.field;
    match (one.mutation.operation, &one.mutation.value) {
        (Operation::Set, Value::Json(doc)) => {
            let Field::Known(part) = shape::find(schema, &field.segments) else { return None };
            let breach = alone(schema, part)?.check(doc).err()?;
            Some(Refused { expected: breach.expected, got: breach.got })
        }
        (Operation::Remove, _) => {
            let (Segment::Field(name), way) = field.segments.split_last()? else { return None };
            let Field::Known(parent) = shape::find(schema, way) else { return None };
            let needed = parent.get("required")?.as_array()?.iter().any(|one| one.as_str() == Some(name));
            needed.then(|| Refused { expected: format!("`{name}`: it is required"), got: "nothing".to_owned() })
        }
        _ => None,
    }
}

/// A part of a schema as a schema of its own; none if it leans on others of its parts than definitions.
fn alone(schema: &Json, part: &Json) -> Option<Compiled> {
    let mut part = part.clone();
    if let Some(fields) = part.as_object_mut() {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = schema.get(key) {
                fields.entry(key).or_insert_with(|| definitions.clone());
            }
        }
    }
    Compiled::new(&part).ok()
}

/// Some index begins with a field that each alternative fixes or bounds: the others are walked over.
fn served(draft: &Draft<'_>, log: &mut Log<'_>) {
    let bounds = |one: &&ComparisonDraft| {
        use Operator::{Eq, Ge, Gt, Le, Lt};
        matches!(one.comparison.operator, Eq | Gt | Ge | Lt | Le)
    };
    let first =
        |field: &Path| draft.indexes.iter().any(|index| index.fields.first().map(|one| &one.value) == Some(field));
    let filter = &draft.claim.filter;
    let unserved = |all: &&Vec<ComparisonDraft>| !all.iter().filter(bounds).any(|one| first(&one.comparison.field));
    let Some(all) = filter.value.iter().find(unserved) else { return };
    let help = all.iter().find(bounds).map(|one| short(&one.comparison.field));
    let message = format!(
        "no index serves the rows that a claim looks for: it walks over the others, at most {ROWS_SCANNED_MAX} of them"
    );
    let remedy = match help {
        Some(field) => format!("declare one: [indexes] by-{} = [{field:?}]", name_of(&field)),
        None => "compare a field by eq, gt, ge, lt or le, and declare an index on it".to_owned(),
    };
    log.add(Code::UnservedClaim, &filter.at, message, remedy);
}

/// A field's name as part of an index's.
fn name_of(field: &str) -> String {
    field.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// A row that was just claimed is not what the next claim looks for.
fn again(draft: &Draft<'_>, log: &mut Log<'_>) {
    let claim = &draft.claim;
    let writes = |field: &Path| claim.set.set.iter().any(|one| overlap(&one.mutation.field, field));
    let blind = |all: &Vec<ComparisonDraft>| !all.iter().any(|one| writes(&one.comparison.field));
    if claim.filter.value.iter().any(blind) {
        let message = "a claim takes rows that are claimed already: nothing it looks at is changed by `set`";
        let remedy =
            format!("look at how a row stands too: where = {{ {} = \"pending\" }}", short(&claim.status.value));
        log.add(Code::ClaimsAgain, &claim.filter.at, message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::alone;
    use interlock_kernel::doc::Doc;
    use serde_json::json;

    #[test]
    fn a_part_of_a_schema_takes_its_definitions_along() {
        let schema =
            json!({"$defs": {"s": {"enum": ["a", "b"]}}, "properties": {"x": {"items": {"$ref": "#/$defs/s"}}}});
        let part = alone(&schema, &schema["properties"]["x"]).expect("compiled");
        assert!(part.check(&Doc::new(json!(["a"]))).is_ok());
        assert!(part.check(&Doc::new(json!(["c"]))).is_err());
        let leaning = json!({"properties": {"x": {"items": {"$ref": "#/properties/y"}}, "y": {"type": "string"}}});
        assert!(alone(&leaning, &leaning["properties"]["x"]).is_none());
    }
}
