//! `rows`, its types: between the words of `wit/` and those of the contract and the kernel.

use super::types::{edit, given, strange};
use crate::bindings::interlock::step::rows as wit;
use crate::bindings::interlock::step::types as words;
use crate::guest::Refusal;
use interlock_coordinator::contract::{
    Action, Expected, Operation, Order, OrderBy, Question, Requirement, Test, Tests, etag,
};
use interlock_kernel::ids::RowKey;
use interlock_kernel::rows::{QueryAnswer, RowAnswer, RowShown, Unmatched};
use interlock_kernel::time::WallTime;
use interlock_kernel::value::Operator;

pub(super) fn operation(operation: wit::Operation) -> Operation {
    let wit::Operation { table, what } = operation;
    match what {
        wit::Action::Get(asked) => getting(table, asked),
        wit::Action::Put(asked) => putting(table, asked),
        wit::Action::Update(asked) => updating(table, asked),
        wit::Action::Upsert(asked) => upserting(table, asked),
        wit::Action::Claim(asked) => claiming(table, asked),
        wit::Action::Delete(asked) => deleting(table, asked),
    }
}

pub(super) fn getting(table: String, wit::Getting { key, fields }: wit::Getting) -> Operation {
    Operation { table, action: Action::Get { key: given(key) }, fields, must: false }
}

pub(super) fn putting(table: String, asked: wit::Putting) -> Operation {
    let wit::Putting { key, value, fill, expect, fields } = asked;
    let expect = expect.map(|expect| match expect {
        wit::Expected::Absent => Expected::Absent,
        wit::Expected::Etag(text) => Expected::Etag(text),
    });
    let fill = fill.into_iter().map(edit).collect();
    Operation { table, action: Action::Put { key: given(key), value, fill, expect }, fields, must: false }
}

pub(super) fn updating(table: String, asked: wit::Updating) -> Operation {
    let wit::Updating { key, where_, set, fields, must } = asked;
    let set = set.into_iter().map(edit).collect();
    Operation { table, action: Action::Update { key: given(key), filter: tests(where_), set }, fields, must }
}

pub(super) fn upserting(table: String, asked: wit::Upserting) -> Operation {
    let wit::Upserting { key, insert, fill, set, fields } = asked;
    let (fill, set) = (fill.into_iter().map(edit).collect(), set.into_iter().map(edit).collect());
    Operation { table, action: Action::Upsert { key: given(key), insert, fill, set }, fields, must: false }
}

pub(super) fn claiming(table: String, asked: wit::Claiming) -> Operation {
    let wit::Claiming { where_, set, order: by, limit, delete, fields, must } = asked;
    let set = set.map(|set| set.into_iter().map(edit).collect());
    let action = Action::Claim { filter: where_.map(tests), set, order: order(by), limit, delete };
    Operation { table, action, fields, must }
}

pub(super) fn deleting(table: String, wit::Deleting { key, where_, must }: wit::Deleting) -> Operation {
    let action = Action::Delete { key: given(key), filter: tests(where_) };
    Operation { table, action, fields: Vec::new(), must }
}

pub(super) fn querying(table: String, asked: wit::Querying) -> Question {
    let wit::Querying { where_, order: by, limit, after, fields } = asked;
    Question { table, filter: tests(where_), order: order(by), limit, after, fields }
}

pub(super) fn requirement(requirement: wit::Requirement) -> Requirement {
    match requirement {
        wit::Requirement::Row(required) => row_requirement(required),
        wit::Requirement::Entity(required) => entity_requirement(required),
    }
}

pub(super) fn row_requirement(required: wit::RowRequirement) -> Requirement {
    let wit::RowRequirement { table, key, present, where_ } = required;
    Requirement::Row { table, key: given(key), present, filter: tests(where_) }
}

pub(super) fn entity_requirement(required: wit::EntityRequirement) -> Requirement {
    let wit::EntityRequirement { entity, states, where_ } = required;
    Requirement::Entity { entity, states, filter: tests(where_) }
}

fn order(order: Option<wit::Order>) -> Order {
    let Some(wit::Order { by, descending }) = order else { return Order::default() };
    let by = match by {
        wit::OrderBy::Created => OrderBy::Created,
        wit::OrderBy::Updated => OrderBy::Updated,
        wit::OrderBy::Index(name) => OrderBy::Index(name),
    };
    Order { by, descending }
}

fn tests(filter: words::Filter) -> Tests {
    let test =
        |words::Comparison { field, operator: by, value }| Test { field, operator: operator(by), value: given(value) };
    filter.into_iter().map(|all| all.into_iter().map(test).collect()).collect()
}

fn operator(operator: words::Operator) -> Operator {
    match operator {
        words::Operator::Eq => Operator::Eq,
        words::Operator::Ne => Operator::Ne,
        words::Operator::Lt => Operator::Lt,
        words::Operator::Le => Operator::Le,
        words::Operator::Gt => Operator::Gt,
        words::Operator::Ge => Operator::Ge,
        words::Operator::In => Operator::In,
        words::Operator::NotIn => Operator::NotIn,
        words::Operator::Exists => Operator::Exists,
        words::Operator::Contains => Operator::Contains,
        words::Operator::StartsWith => Operator::StartsWith,
    }
}

pub(super) fn answer(answer: RowAnswer) -> wit::Answer {
    let miss = |key: RowKey, unmatched: Option<Unmatched>| {
        let guard = match unmatched {
            Some(Unmatched::Guard(guard)) => Some(guard),
            Some(Unmatched::Absent) | None => None,
        };
        wit::Miss { key: key.to_string(), guard }
    };
    match answer {
        RowAnswer::Got { key, row } => wit::Answer::Got(wit::Got { key: key.to_string(), row: row.map(shown) }),
        RowAnswer::Put { inserted, row } => wit::Answer::Put(wit::Written { inserted, row: shown(row) }),
        RowAnswer::Upserted { inserted, row } => wit::Answer::Upserted(wit::Written { inserted, row: shown(row) }),
        RowAnswer::Updated { row: Some(row), .. } => wit::Answer::Updated(wit::Updated::Changed(shown(row))),
        RowAnswer::Updated { key, row: None, unmatched } => {
            wit::Answer::Updated(wit::Updated::Unmatched(miss(key, unmatched)))
        }
        RowAnswer::Claimed { rows, more, lost } => wit::Answer::Claimed(wit::Claimed {
            rows: rows.into_iter().map(shown).collect(),
            more,
            lost: lost.iter().map(ToString::to_string).collect(),
        }),
        RowAnswer::Deleted { key, deleted: true, .. } => wit::Answer::Deleted(wit::Deleted::Gone(key.to_string())),
        RowAnswer::Deleted { key, deleted: false, unmatched } => {
            wit::Answer::Deleted(wit::Deleted::Unmatched(miss(key, unmatched)))
        }
    }
}

fn shown(row: RowShown) -> wit::Row {
    let ms = |time: WallTime| u64::try_from(time.0).unwrap_or(0);
    let RowShown { key, value, version, created, updated, claims, claimed_by } = row;
    wit::Row {
        key: key.to_string(),
        value: value.text().to_owned(),
        etag: etag(version),
        created_ms: ms(created),
        updated_ms: ms(updated),
        claims,
        claimed_by,
    }
}

pub(super) fn page(found: QueryAnswer) -> wit::Page {
    let QueryAnswer { rows, next } = found;
    wit::Page { rows: rows.into_iter().map(shown).collect(), next }
}

/// The answer to a get.
pub(super) fn got(answer: wit::Answer) -> Result<wit::Got, Refusal> {
    match answer {
        wit::Answer::Got(got) => Ok(got),
        other => Err(strange("what a get is answered", other)),
    }
}

/// The answer to a put or an upsert.
pub(super) fn written(answer: wit::Answer) -> Result<wit::Written, Refusal> {
    match answer {
        wit::Answer::Put(written) | wit::Answer::Upserted(written) => Ok(written),
        other => Err(strange("what a put or an upsert is answered", other)),
    }
}

/// The answer to an update.
pub(super) fn updated(answer: wit::Answer) -> Result<wit::Updated, Refusal> {
    match answer {
        wit::Answer::Updated(updated) => Ok(updated),
        other => Err(strange("what an update is answered", other)),
    }
}

/// The answer to a claim.
pub(super) fn claimed(answer: wit::Answer) -> Result<wit::Claimed, Refusal> {
    match answer {
        wit::Answer::Claimed(claimed) => Ok(claimed),
        other => Err(strange("what a claim is answered", other)),
    }
}

/// The answer to a delete.
pub(super) fn deleted(answer: wit::Answer) -> Result<wit::Deleted, Refusal> {
    match answer {
        wit::Answer::Deleted(deleted) => Ok(deleted),
        other => Err(strange("what a delete is answered", other)),
    }
}
