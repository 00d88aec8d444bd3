//! Tables in a test: declared from what an operator writes, filled, and read as they stand.

use crate::answer::Answer;
use crate::command::parsed;
use crate::host::{MockHost, went};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{RowKey, TableName};
use interlock_kernel::record::Row;
use interlock_kernel::rows::{ClientRows, RowsAsk};
use interlock_kernel::table::Table;
use interlock_kernel::value::Value as Given;
use interlock_lab::LabError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// A row as it stood when it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RowView {
    key: String,
    value: Value,
    claimed_by: Option<String>,
    claims: u32,
}

impl RowView {
    fn new(key: &RowKey, row: &Row) -> Self {
        Self {
            key: key.to_string(),
            value: row.value.value().clone(),
            claimed_by: row.claim.as_ref().map(|claim| claim.by.to_string()),
            claims: row.claims,
        }
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The same as a type of yours.
    ///
    /// # Panics
    /// If it is no such thing.
    #[track_caller]
    #[must_use]
    pub fn value_as<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_value(self.value.clone()) {
            Ok(value) => value,
            Err(why) => panic!("expected a row of another shape ({why}), got {self}"),
        }
    }

    /// Who has claimed it and is not done with it: an execution's id, or a client's name.
    #[must_use]
    pub fn claimed_by(&self) -> Option<&str> {
        self.claimed_by.as_deref()
    }

    /// How often it was claimed.
    #[must_use]
    pub fn claims(&self) -> u32 {
        self.claims
    }
}

impl fmt::Display for RowView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.value)?;
        self.claimed_by.as_ref().map_or(Ok(()), |by| write!(f, ", claimed by {by}"))
    }
}

/// Tables. What steps and clients may do with them is what their declarations grant.
impl MockHost {
    /// Declares a table from the text of a `*.table.toml`. Again with another text, it changes the declaration.
    ///
    /// # Panics
    /// If there is something wrong with the text, with all of that.
    #[track_caller]
    pub fn table(&mut self, manifest: &str) -> Answer {
        self.filled(manifest, Vec::<(&str, Value)>::new())
    }

    /// The same with rows in it, which nobody has to be allowed to write:
    /// `host.filled(JOBS, [("a", json!({ "status": "pending" }))])`.
    ///
    /// # Panics
    /// As [`MockHost::table`].
    #[track_caller]
    pub fn filled<'a>(&mut self, manifest: &str, rows: impl IntoIterator<Item = (&'a str, Value)>) -> Answer {
        let table = match interlock_manifest::parse_table("table.toml", manifest) {
            Ok((table, _)) => table,
            Err(report) => panic!("expected a sound table, got\n{}", interlock_manifest::render(&report, false)),
        };
        let rows: Vec<(Given, Doc)> =
            rows.into_iter().map(|(key, value)| (Given::Json(Doc::new(key.into())), Doc::new(value))).collect();
        self.declare(&table, manifest, rows)
    }

    fn declare(&mut self, table: &Table, source: &str, rows: Vec<(Given, Doc)>) -> Answer {
        let words = format!("declare {} with {} rows", table.name, rows.len());
        let answer = Answer::new(self.lab.declare_filled(table, source, rows));
        self.note(format_args!("{words}: {answer}"));
        answer
    }

    /// What a client asks of rows, under a name for what it claims.
    pub fn ask_rows(&mut self, by: &str, ask: RowsAsk) -> Answer {
        let words = format!("{by} asks {} operations on rows", ask.ops.len());
        let answer = Answer::new(self.lab.rows(ClientRows { ask, label: by.to_owned(), id: None }));
        self.note(format_args!("{words}: {answer}"));
        answer
    }

    /// The rows of a table as they stand, by key.
    ///
    /// # Panics
    /// If there is no such table, or no host to ask.
    #[track_caller]
    #[must_use]
    pub fn rows(&self, table: &str) -> Vec<RowView> {
        let name: TableName = parsed("a table", table);
        let found = went(self.lab.tables()).into_iter().find(|found| found.name == name);
        let Some(found) = found else { panic!("expected a table {table}, got none: declare it") };
        found.rows.iter().map(|(key, row)| RowView::new(key, row)).collect()
    }

    /// One row as it stands, if it is there.
    ///
    /// # Panics
    /// If there is no host to ask.
    #[track_caller]
    #[must_use]
    pub fn row(&self, table: &str, key: &str) -> Option<RowView> {
        let (table, key): (TableName, RowKey) = (parsed("a table", table), parsed("a row's key", key));
        let row = went(self.lab.row(&table, &key).map_err(LabError::Store));
        row.map(|row| RowView::new(&key, &row))
    }
}
