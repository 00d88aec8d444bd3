//! Tables of a lab: declared as an operator does, filled before anything happens, read whole.

use crate::lab::{Lab, LabError};
use interlock_coordinator::SubmitError;
use interlock_kernel::command::{Outcome, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{Principal, RowKey, TableName};
use interlock_kernel::record::Row;
use interlock_kernel::rows::{ClientRows, Declare, RowAsk, RowOp, RowsAsk};
use interlock_kernel::table::{Access, Right, Table};
use interlock_kernel::value::Value;
use interlock_store::StoreError;
use std::sync::Arc;

/// Rows that are read of one table: more than any story has.
const ROWS_SHOWN_MAX: usize = 1_000;

/// Tables that are looked at.
const TABLES_SHOWN_MAX: usize = 100;

/// Who fills a table before anything happens.
const FILLER: &str = "given";

/// A table with its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRows {
    /// The table.
    pub name: TableName,
    /// Its rows, by key.
    pub rows: Vec<(RowKey, Row)>,
}

impl Lab {
    /// Makes a table's declaration the one in force, as an operator does.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn declare(&mut self, table: &Table, source: &str) -> Result<Outcome, SubmitError> {
        let digest = Digest::of(&[source.as_bytes()]);
        let declare = Declare { table: Arc::new(table.clone()), digest, source: source.to_owned() };
        self.submit(Principal::local(), Verb::Declare(Box::new(declare)))
    }

    /// The same, with rows in it that nobody had to be allowed to write.
    ///
    /// # Errors
    /// [`SubmitError`]: also if a row breaks the table's schema.
    pub fn declare_filled(
        &mut self,
        table: &Table,
        source: &str,
        rows: Vec<(Value, Doc)>,
    ) -> Result<Outcome, SubmitError> {
        if rows.is_empty() {
            return self.declare(table, source);
        }
        let access = Access { clients: [Right::Put].into(), ..Access::default() };
        self.declare(&Table { access, ..table.clone() }, &format!("# open, to be filled\n{source}"))?;
        for (key, value) in rows {
            let what = RowAsk::Put { key, value, fill: Vec::new(), expect: None };
            let op = RowOp { table: table.name.clone(), what, fields: Vec::new(), must: false };
            let ask = RowsAsk { require: Vec::new(), ops: vec![op] };
            self.rows(ClientRows { ask, label: FILLER.to_owned(), id: None })?;
        }
        self.declare(table, source)
    }

    /// A client's request on rows.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn rows(&mut self, ask: ClientRows) -> Result<Outcome, SubmitError> {
        self.submit(Principal::local(), Verb::Rows(Box::new(ask)))
    }

    /// Every table with its rows as they are stored, by name.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub fn tables(&self) -> Result<Vec<TableRows>, LabError> {
        let found = self.read(|host| async move {
            let mut found = Vec::new();
            for table in host.tables(None, TABLES_SHOWN_MAX).await? {
                let rows = host.rows_of(&table.name, None, ROWS_SHOWN_MAX).await?;
                found.push(TableRows { name: table.name, rows });
            }
            Ok(found)
        });
        Ok(found?)
    }

    /// One row as it is stored.
    ///
    /// # Errors
    /// What kept the store from reading.
    pub fn row(&self, table: &TableName, key: &RowKey) -> Result<Option<Row>, StoreError> {
        self.read(|host| async move { host.row(table, key).await })
    }
}
