//! This crate's words about rows over the generated bindings.

use crate::row::{
    Action, Answer, Claimed, Claiming, Deleted, Deleting, EntityRequirement, Expected, Getting, Got, Miss, Operation,
    Order, OrderBy, Page, Putting, Querying, Requirement, Row, RowRequirement, Updated, Updating, Upserting, Written,
};
use crate::wasm::all;
use crate::wasm::bindings::interlock::step::{rows, types};
use crate::{Comparison, Filter, Operator};

fn filter(filter: Filter) -> Vec<Vec<types::Comparison>> {
    filter.0.into_iter().map(all).collect()
}

impl From<Comparison> for types::Comparison {
    fn from(Comparison { field, operator, value }: Comparison) -> types::Comparison {
        let operator = match operator {
            Operator::Eq => types::Operator::Eq,
            Operator::Ne => types::Operator::Ne,
            Operator::Lt => types::Operator::Lt,
            Operator::Le => types::Operator::Le,
            Operator::Gt => types::Operator::Gt,
            Operator::Ge => types::Operator::Ge,
            Operator::In => types::Operator::In,
            Operator::NotIn => types::Operator::NotIn,
            Operator::Exists => types::Operator::Exists,
            Operator::Contains => types::Operator::Contains,
            Operator::StartsWith => types::Operator::StartsWith,
        };
        types::Comparison { field, operator, value: value.into() }
    }
}

impl From<Order> for rows::Order {
    fn from(Order { by, descending }: Order) -> rows::Order {
        let by = match by {
            OrderBy::Created => rows::OrderBy::Created,
            OrderBy::Updated => rows::OrderBy::Updated,
            OrderBy::Index(name) => rows::OrderBy::Index(name),
        };
        rows::Order { by, descending }
    }
}

impl From<Getting> for rows::Getting {
    fn from(Getting { key, fields }: Getting) -> rows::Getting {
        rows::Getting { key: key.into(), fields }
    }
}

impl From<Putting> for rows::Putting {
    fn from(Putting { key, value, fill, expect, fields }: Putting) -> rows::Putting {
        let expect = expect.map(|expect| match expect {
            Expected::Absent => rows::Expected::Absent,
            Expected::Etag(etag) => rows::Expected::Etag(etag),
        });
        rows::Putting { key: key.into(), value, fill: all(fill), expect, fields }
    }
}

impl From<Updating> for rows::Updating {
    fn from(Updating { key, filter: only, set, fields, must }: Updating) -> rows::Updating {
        rows::Updating { key: key.into(), where_: filter(only), set: all(set), fields, must }
    }
}

impl From<Upserting> for rows::Upserting {
    fn from(Upserting { key, insert, fill, set, fields }: Upserting) -> rows::Upserting {
        rows::Upserting { key: key.into(), insert, fill: all(fill), set: all(set), fields }
    }
}

impl From<Claiming> for rows::Claiming {
    fn from(Claiming { filter: only, set, order, limit, delete, fields, must }: Claiming) -> rows::Claiming {
        let (where_, set) = (only.map(filter), set.map(all));
        rows::Claiming { where_, set, order: order.map(Into::into), limit, delete, fields, must }
    }
}

impl From<Deleting> for rows::Deleting {
    fn from(Deleting { key, filter: only, must }: Deleting) -> rows::Deleting {
        rows::Deleting { key: key.into(), where_: filter(only), must }
    }
}

impl From<Querying> for rows::Querying {
    fn from(Querying { filter: only, order, limit, after, fields }: Querying) -> rows::Querying {
        rows::Querying { where_: filter(only), order: order.map(Into::into), limit, after, fields }
    }
}

impl From<Operation> for rows::Operation {
    fn from(Operation { table, what }: Operation) -> rows::Operation {
        let what = match what {
            Action::Get(what) => rows::Action::Get(what.into()),
            Action::Put(what) => rows::Action::Put(what.into()),
            Action::Update(what) => rows::Action::Update(what.into()),
            Action::Upsert(what) => rows::Action::Upsert(what.into()),
            Action::Claim(what) => rows::Action::Claim(what.into()),
            Action::Delete(what) => rows::Action::Delete(what.into()),
        };
        rows::Operation { table, what }
    }
}

impl From<RowRequirement> for rows::RowRequirement {
    fn from(RowRequirement { table, key, present, filter: only }: RowRequirement) -> rows::RowRequirement {
        rows::RowRequirement { table, key: key.into(), present, where_: filter(only) }
    }
}

impl From<EntityRequirement> for rows::EntityRequirement {
    fn from(EntityRequirement { entity, states, filter: only }: EntityRequirement) -> rows::EntityRequirement {
        rows::EntityRequirement { entity, states, where_: filter(only) }
    }
}

impl From<Requirement> for rows::Requirement {
    fn from(requirement: Requirement) -> rows::Requirement {
        match requirement {
            Requirement::Row(required) => rows::Requirement::Row(required.into()),
            Requirement::Entity(required) => rows::Requirement::Entity(required.into()),
        }
    }
}

impl From<rows::Row> for Row {
    fn from(row: rows::Row) -> Row {
        let rows::Row { key, value, etag, created_ms, updated_ms, claims, claimed_by } = row;
        Row { key, value, etag, created_ms, updated_ms, claims, claimed_by }
    }
}

impl From<rows::Miss> for Miss {
    fn from(rows::Miss { key, guard }: rows::Miss) -> Miss {
        Miss { key, guard }
    }
}

impl From<rows::Got> for Got {
    fn from(rows::Got { key, row }: rows::Got) -> Got {
        Got { key, row: row.map(Row::from) }
    }
}

impl From<rows::Written> for Written {
    fn from(rows::Written { inserted, row }: rows::Written) -> Written {
        Written { inserted, row: row.into() }
    }
}

impl From<rows::Updated> for Updated {
    fn from(updated: rows::Updated) -> Updated {
        match updated {
            rows::Updated::Changed(row) => Updated::Changed(row.into()),
            rows::Updated::Unmatched(miss) => Updated::Unmatched(miss.into()),
        }
    }
}

impl From<rows::Claimed> for Claimed {
    fn from(rows::Claimed { rows, more, lost }: rows::Claimed) -> Claimed {
        Claimed { rows: all(rows), more, lost }
    }
}

impl From<rows::Deleted> for Deleted {
    fn from(deleted: rows::Deleted) -> Deleted {
        match deleted {
            rows::Deleted::Gone(key) => Deleted::Gone(key),
            rows::Deleted::Unmatched(miss) => Deleted::Unmatched(miss.into()),
        }
    }
}

impl From<rows::Page> for Page {
    fn from(rows::Page { rows, next }: rows::Page) -> Page {
        Page { rows: all(rows), next }
    }
}

impl From<rows::Answer> for Answer {
    fn from(answer: rows::Answer) -> Answer {
        match answer {
            rows::Answer::Got(got) => Answer::Got(got.into()),
            rows::Answer::Put(written) => Answer::Put(written.into()),
            rows::Answer::Updated(updated) => Answer::Updated(updated.into()),
            rows::Answer::Upserted(written) => Answer::Upserted(written.into()),
            rows::Answer::Claimed(claimed) => Answer::Claimed(claimed.into()),
            rows::Answer::Deleted(deleted) => Answer::Deleted(deleted.into()),
        }
    }
}
