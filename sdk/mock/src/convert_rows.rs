//! The same for rows: between the words of the step author's crate and those of the host's contract.

use crate::convert::{edit, given};
use interlock::rows::{
    Action, Answer, Claimed, Deleted, Expected, Got, Miss, Operation, Order, OrderBy, Page, Querying, Requirement, Row,
    Updated, Written,
};
use interlock::{Filter, Mutation, Operator};
use interlock_coordinator::contract::{self, Edit, Test, Tests};
use interlock_kernel::ids::RowKey;
use interlock_kernel::rows::{QueryAnswer, RowAnswer, RowShown, Unmatched};
use interlock_kernel::time::WallTime;
use interlock_kernel::value;

pub(crate) fn operation(Operation { table, what }: Operation) -> contract::Operation {
    let edits = |set: Vec<Mutation>| -> Vec<Edit> { set.into_iter().map(edit).collect() };
    let (action, fields, must) = match what {
        Action::Get(one) => (contract::Action::Get { key: given(one.key) }, one.fields, false),
        Action::Put(one) => {
            let expect = one.expect.map(|expect| match expect {
                Expected::Absent => contract::Expected::Absent,
                Expected::Etag(etag) => contract::Expected::Etag(etag),
            });
            let (key, fill) = (given(one.key), edits(one.fill));
            (contract::Action::Put { key, value: one.value, fill, expect }, one.fields, false)
        }
        Action::Update(one) => {
            let (key, filter, set) = (given(one.key), tests(one.filter), edits(one.set));
            (contract::Action::Update { key, filter, set }, one.fields, one.must)
        }
        Action::Upsert(one) => {
            let (key, fill, set) = (given(one.key), edits(one.fill), edits(one.set));
            (contract::Action::Upsert { key, insert: one.insert, fill, set }, one.fields, false)
        }
        Action::Claim(one) => {
            let (filter, set, order) = (one.filter.map(tests), one.set.map(edits), order(one.order));
            let (limit, delete) = (one.limit, one.delete);
            (contract::Action::Claim { filter, set, order, limit, delete }, one.fields, one.must)
        }
        Action::Delete(one) => {
            (contract::Action::Delete { key: given(one.key), filter: tests(one.filter) }, Vec::new(), one.must)
        }
    };
    contract::Operation { table, action, fields, must }
}

pub(crate) fn requirement(requirement: Requirement) -> contract::Requirement {
    match requirement {
        Requirement::Row(one) => {
            let (key, filter) = (given(one.key), tests(one.filter));
            contract::Requirement::Row { table: one.table, key, present: one.present, filter }
        }
        Requirement::Entity(one) => {
            contract::Requirement::Entity { entity: one.entity, states: one.states, filter: tests(one.filter) }
        }
    }
}

pub(crate) fn question(table: String, querying: Querying) -> contract::Question {
    let Querying { filter, order: by, limit, after, fields } = querying;
    contract::Question { table, filter: tests(filter), order: order(by), limit, after, fields }
}

fn order(order: Option<Order>) -> contract::Order {
    let Some(Order { by, descending }) = order else { return contract::Order::default() };
    let by = match by {
        OrderBy::Created => contract::OrderBy::Created,
        OrderBy::Updated => contract::OrderBy::Updated,
        OrderBy::Index(name) => contract::OrderBy::Index(name),
    };
    contract::Order { by, descending }
}

fn tests(filter: Filter) -> Tests {
    let test = |one: interlock::Comparison| {
        let operator = match one.operator {
            Operator::Eq => value::Operator::Eq,
            Operator::Ne => value::Operator::Ne,
            Operator::Lt => value::Operator::Lt,
            Operator::Le => value::Operator::Le,
            Operator::Gt => value::Operator::Gt,
            Operator::Ge => value::Operator::Ge,
            Operator::In => value::Operator::In,
            Operator::NotIn => value::Operator::NotIn,
            Operator::Exists => value::Operator::Exists,
            Operator::Contains => value::Operator::Contains,
            Operator::StartsWith => value::Operator::StartsWith,
        };
        Test { field: one.field, operator, value: given(one.value) }
    };
    filter.0.into_iter().map(|all| all.into_iter().map(test).collect()).collect()
}

pub(crate) fn answers(answers: Vec<RowAnswer>) -> Vec<Answer> {
    answers.into_iter().map(answer).collect()
}

fn answer(answer: RowAnswer) -> Answer {
    let miss = |key: RowKey, unmatched: Option<Unmatched>| {
        let guard = match unmatched {
            Some(Unmatched::Guard(guard)) => Some(guard),
            Some(Unmatched::Absent) | None => None,
        };
        Miss { key: key.to_string(), guard }
    };
    match answer {
        RowAnswer::Got { key, row: found } => Answer::Got(Got { key: key.to_string(), row: found.map(row) }),
        RowAnswer::Put { inserted, row: there } => Answer::Put(Written { inserted, row: row(there) }),
        RowAnswer::Upserted { inserted, row: there } => Answer::Upserted(Written { inserted, row: row(there) }),
        RowAnswer::Updated { row: Some(changed), .. } => Answer::Updated(Updated::Changed(row(changed))),
        RowAnswer::Updated { key, row: None, unmatched } => Answer::Updated(Updated::Unmatched(miss(key, unmatched))),
        RowAnswer::Claimed { rows, more, lost } => {
            let (rows, lost) = (rows.into_iter().map(row).collect(), lost.iter().map(ToString::to_string).collect());
            Answer::Claimed(Claimed { rows, more, lost })
        }
        RowAnswer::Deleted { key, deleted: true, .. } => Answer::Deleted(Deleted::Gone(key.to_string())),
        RowAnswer::Deleted { key, deleted: false, unmatched } => {
            Answer::Deleted(Deleted::Unmatched(miss(key, unmatched)))
        }
    }
}

pub(crate) fn row(row: RowShown) -> Row {
    let ms = |time: WallTime| u64::try_from(time.0).unwrap_or(0);
    let RowShown { key, value, version, created, updated, claims, claimed_by } = row;
    Row {
        key: key.to_string(),
        value: value.text().to_owned(),
        etag: contract::etag(version),
        created_ms: ms(created),
        updated_ms: ms(updated),
        claims,
        claimed_by,
    }
}

pub(crate) fn page(QueryAnswer { rows, next }: QueryAnswer) -> Page {
    Page { rows: rows.into_iter().map(row).collect(), next }
}
