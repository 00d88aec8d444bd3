//! What people read. Every function here is text from an answer; the same answer is JSON with `--json`.

mod diff;
mod effect;
mod entity;
mod explore;
mod findings;
mod history;
mod lease;
mod machine;
mod made;
mod paint;
mod refusal;
mod row;
mod scenario;
mod schedule;
mod table;
mod time;
mod why;

pub(crate) use diff::diff;
pub(crate) use effect::{effect, effects};
pub(crate) use entity::{answer, entities, entity};
pub(crate) use explore::{Searched, searched};
pub(crate) use findings::{Sound, finding, report};
pub(crate) use history::{When, history, watched};
pub(crate) use lease::{held, lease, leases, watched_lease};
pub(crate) use machine::{built, bytes, deployed, inspection, machine, machines};
pub(crate) use made::made;
pub(crate) use paint::Paint;
pub(crate) use refusal::{particulars, refusal};
pub(crate) use row::{
    claimed, count, declared, declared_table, deleted, row, rows, tables, transacted, updated, watched_rows, written,
};
pub(crate) use scenario::{coverage, machine_tested, scenario, tested};
pub(crate) use schedule::{schedule, scheduled, schedules};
pub(crate) use table::{fields, table};
pub(crate) use time::{ago, clock, span};
pub(crate) use why::why;

/// Names, one after another.
pub(crate) fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
