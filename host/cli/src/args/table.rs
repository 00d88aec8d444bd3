//! `table`.

use clap::{Args, Subcommand};
use interlock_kernel::ids::TableName;
use std::path::PathBuf;

/// `table`.
#[derive(Debug, Subcommand)]
pub(crate) enum Table {
    /// Declares tables, or declares them anew: their indexes are built while they are used.
    Create(Declare),
    /// Tables by name.
    List(TableList),
    /// One table: what it holds, its indexes and how far they are, who may do what, what became of its rows.
    Show {
        /// Its name.
        table: TableName,
        /// Prints the declaration in force only.
        #[arg(long)]
        manifest: bool,
    },
    /// Drops a table with its rows: nothing can be asked of it from then on.
    Drop {
        /// Its name.
        table: TableName,
    },
    /// Tells what becomes of a table's claims and expired rows, as it happens.
    Watch {
        /// Its name.
        table: TableName,
        /// What happened behind this position, instead of from now on.
        #[arg(long, value_name = "POSITION")]
        after: Option<String>,
    },
}

/// `table create`.
#[derive(Debug, Args)]
pub(crate) struct Declare {
    /// Manifests of tables (NAME.table.toml), or folders with some.
    #[arg(required = true, value_name = "FOLDER|FILE")]
    pub(crate) paths: Vec<PathBuf>,
    /// Asks the daemon whether it would take them, and changes nothing.
    #[arg(long)]
    pub(crate) check_only: bool,
}

/// `table list`.
#[derive(Debug, Args)]
pub(crate) struct TableList {
    /// At most this many.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
    /// Those behind this one.
    #[arg(long, value_name = "NAME")]
    pub(crate) after: Option<String>,
}
