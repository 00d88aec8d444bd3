//! Rows in a story: what is there before it, what clients do with them, what must stand in them.

use super::Answer;
use super::judge::{Broken, broken};
use crate::TableRows;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{RowKey, TableName};
use interlock_kernel::record::Row;
use interlock_kernel::rows::{ClientRows, RowAsk, RowOp};
use interlock_kernel::value::{Comparison, Filter, Roots, Value, Verdict};
use std::fmt;
use std::ops::RangeInclusive;

/// Rows that are there before anything happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// In this table.
    pub table: TableName,
    /// Each with its value, in the order of their insertion.
    pub rows: Vec<(RowKey, Doc)>,
    /// Its line in the file.
    pub line: usize,
}

/// What a client asks of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// For what, and as whom.
    pub ask: ClientRows,
    /// The answer it must get; if none is named, any but a refusal.
    pub answer: Option<Answer>,
}

impl fmt::Display for Asking {
    /// As people ask for it: `claim jobs and update jobs/a, as rival`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ops: Vec<String> = self.ask.ask.ops.iter().map(of_op).collect();
        write!(f, "{}, as {}", ops.join(" and "), self.ask.label)?;
        self.ask.id.as_ref().map_or(Ok(()), |id| write!(f, " ({id})"))
    }
}

/// An operation in a few words: `update jobs/a`.
fn of_op(RowOp { table, what, .. }: &RowOp) -> String {
    let (word, key) = match what {
        RowAsk::Get { key } => ("get", Some(key)),
        RowAsk::Put { key, .. } => ("put", Some(key)),
        RowAsk::Update { key, .. } => ("update", Some(key)),
        RowAsk::Upsert { key, .. } => ("upsert", Some(key)),
        RowAsk::Claim { .. } => ("claim", None),
        RowAsk::Delete { key, .. } => ("delete", Some(key)),
    };
    match key {
        Some(Value::Json(key)) => {
            let text = key.value().as_str().map_or_else(|| key.to_string(), str::to_owned);
            format!("{word} {table}/{text}")
        }
        Some(Value::From(source)) => format!("{word} {table}/{{{source}}}"),
        None => format!("{word} {table}"),
    }
}

/// What a row must be like.
#[derive(Clone, Debug, PartialEq)]
pub struct Stands {
    /// In this table.
    pub table: TableName,
    /// The row.
    pub key: RowKey,
    /// Fields of its value, at any depth; none is no such row.
    pub fields: Option<Doc>,
}

impl Stands {
    /// Whether it is.
    pub(super) fn judge(&self, tables: &[TableRows]) -> Result<(), Broken> {
        let found = rows_of(&self.table, tables).iter().find(|(key, _)| *key == self.key).map(|(_, row)| row);
        match (&self.fields, found) {
            (None, None) => Ok(()),
            (Some(wanted), Some(row)) if super::check::within(wanted.value(), row.value.value()) => Ok(()),
            (Some(wanted), Some(row)) => broken(wanted.to_string(), row.value.to_string()),
            (Some(wanted), None) => broken(wanted.to_string(), "no such row"),
            (None, Some(row)) => broken("no such row", row.value.to_string()),
        }
    }
}

impl fmt::Display for Stands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the row {}/{}", self.table, self.key)
    }
}

/// How many rows of a table there must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The table.
    pub table: TableName,
    /// Rows of which this holds.
    pub filter: Filter,
    /// So many.
    pub rows: RangeInclusive<u64>,
}

impl Counted {
    /// Whether there are.
    ///
    /// # Errors
    /// [`Broken`] with the rows that were counted.
    pub fn judge(&self, tables: &[TableRows]) -> Result<(), Broken> {
        let all = rows_of(&self.table, tables);
        let counted: Vec<String> = all.iter().filter(|(_, row)| self.is_one(row)).map(shown).collect();
        if self.rows.contains(&(counted.len() as u64)) {
            return Ok(());
        }
        let got = if counted.is_empty() { "none".to_owned() } else { counted.join(" | ") };
        broken(self.to_string(), got)
    }

    fn is_one(&self, row: &Row) -> bool {
        let roots = Roots { row: Some(row.value.value()), ..Roots::default() };
        self.filter.any.is_empty() || self.filter.judge(&roots, &mut 0) == Verdict::Holds
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (*self.rows.start(), *self.rows.end());
        match (least, most) {
            _ if least == most => write!(f, "{least}")?,
            (_, u64::MAX) => write!(f, "at least {least}")?,
            (0, _) => write!(f, "at most {most}")?,
            _ => write!(f, "{least} to {most}")?,
        }
        write!(f, " rows of {}", self.table)?;
        if self.filter.any.is_empty() { Ok(()) } else { write!(f, " where {}", of_filter(&self.filter)) }
    }
}

fn of_filter(filter: &Filter) -> String {
    let all = |all: &Vec<Comparison>| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    filter.any.iter().map(all).collect::<Vec<_>>().join(" or ")
}

/// A row as it is told: `a {"status":"pending"}`.
fn shown((key, row): &(RowKey, Row)) -> String {
    format!("{key} {}", row.value)
}

fn rows_of<'t>(table: &TableName, tables: &'t [TableRows]) -> &'t [(RowKey, Row)] {
    tables.iter().find(|found| found.name == *table).map_or(&[], |found| found.rows.as_slice())
}
