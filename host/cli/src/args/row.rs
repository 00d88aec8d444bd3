//! `row`.

use clap::{Args, Subcommand};
use interlock_kernel::ids::{RowKey, TableName};

const WORDS: &str = "\
Conditions (--where):
  status=pending      !=  <  <=  >  >=          'claimed_at<now-5m'
  a value is JSON where it can be read as such, else text; now, now-5m and
  execution (what --as says) are read by the host; '\"now\"' is the text.
  '{\"field\": \"tags\", \"operator\": \"contains\", \"value\": \"a\"}' and groups
  '{\"any\": [...]}' as over HTTP; several --where must all hold.
Changes (--set), in order:
  status=done   count+=1   count-=1   at=now
  '{\"field\": \"next\", \"operation\": \"max\", \"value\": {\"from\": \"now+1m\"}}'
  with set, increment, remove, append (and max), max or min.";

/// `row`.
#[derive(Debug, Subcommand)]
pub(crate) enum Row {
    /// One row: its value, its version, who has it since when.
    Get {
        /// Its table.
        table: TableName,
        /// Its key.
        key: RowKey,
    },
    /// Rows by filter.
    #[command(after_help = WORDS)]
    Query(Query),
    /// Writes a whole row.
    Put(Put),
    /// Changes a row if it is there and as it must be.
    #[command(after_help = WORDS)]
    Update(UpdateRow),
    /// Takes rows that nobody else takes.
    #[command(after_help = WORDS)]
    Claim(Claim),
    /// Inserts a row if it is absent, changes it otherwise.
    #[command(after_help = WORDS)]
    Upsert(Upsert),
    /// Removes a row, if it is as it must be.
    #[command(after_help = WORDS)]
    Delete(Delete),
    /// Several operations in one transaction: all of them, or nothing (docs/rows.md).
    Transact(Transact),
}

/// Who asks, and under which id.
#[derive(Debug, Args)]
pub(crate) struct Caller {
    /// What you call yourself: `claimed_by` of what you claim, `execution` in values.
    #[arg(long = "as", value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// The request's id: asked again under it within a day, it is answered the same and done once. Minted if there is none.
    #[arg(long)]
    pub(crate) id: Option<String>,
}

/// Which rows, in which order, how many.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// A condition; may stand more than once.
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) filter: Vec<String>,
    /// `created`, `updated` or an index; a `-` before it turns it round.
    #[arg(long, value_name = "ORDER", allow_hyphen_values = true)]
    pub(crate) order: Option<String>,
    /// At most this many, up to 1,000.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Only this field of the values; may stand more than once.
    #[arg(long = "return", value_name = "FIELD")]
    pub(crate) fields: Vec<String>,
}

/// `row query`.
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The table.
    pub(crate) table: TableName,
    /// Which rows.
    #[command(flatten)]
    pub(crate) which: Which,
    /// What comes behind an earlier answer: its `next`.
    #[arg(long, value_name = "NEXT")]
    pub(crate) after: Option<String>,
    /// What you call yourself: `execution` in values.
    #[arg(long = "as", value_name = "LABEL")]
    pub(crate) label: Option<String>,
}

/// `row put`.
#[derive(Debug, Args)]
pub(crate) struct Put {
    /// The table.
    pub(crate) table: TableName,
    /// The row's key.
    pub(crate) key: RowKey,
    /// Its value: JSON, @FILE, or - for standard input.
    pub(crate) value: String,
    /// Only over this version.
    #[arg(long, value_name = "N")]
    pub(crate) if_version: Option<u64>,
    /// Only if there is none.
    #[arg(long, conflicts_with = "if_version")]
    pub(crate) if_absent: bool,
    /// Who asks.
    #[command(flatten)]
    pub(crate) caller: Caller,
}

/// `row update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateRow {
    /// The table.
    pub(crate) table: TableName,
    /// The row's key.
    pub(crate) key: RowKey,
    /// What must hold of it; may stand more than once.
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) filter: Vec<String>,
    /// A change; may stand more than once.
    #[arg(long, required = true, value_name = "CHANGE")]
    pub(crate) set: Vec<String>,
    /// Only this field of the value; may stand more than once.
    #[arg(long = "return", value_name = "FIELD")]
    pub(crate) fields: Vec<String>,
    /// Refused if it changes nothing.
    #[arg(long)]
    pub(crate) must: bool,
    /// Who asks.
    #[command(flatten)]
    pub(crate) caller: Caller,
}

/// `row claim`.
#[derive(Debug, Args)]
pub(crate) struct Claim {
    /// The table.
    pub(crate) table: TableName,
    /// Which rows; those that the table's declaration says, if there is no condition.
    #[command(flatten)]
    pub(crate) which: Which,
    /// How they are marked; may stand more than once. As the table's declaration says, if there is none.
    #[arg(long, value_name = "CHANGE", conflicts_with = "delete")]
    pub(crate) set: Vec<String>,
    /// Removes what it takes.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Refused if it takes nothing.
    #[arg(long)]
    pub(crate) must: bool,
    /// Who asks.
    #[command(flatten)]
    pub(crate) caller: Caller,
}

/// `row upsert`.
#[derive(Debug, Args)]
pub(crate) struct Upsert {
    /// The table.
    pub(crate) table: TableName,
    /// The row's key.
    pub(crate) key: RowKey,
    /// Its value if it is absent: JSON, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON")]
    pub(crate) insert: String,
    /// A change of that value: for what only the host knows, such as at=now; may stand more than once.
    #[arg(long, value_name = "CHANGE")]
    pub(crate) fill: Vec<String>,
    /// A change if it is there; may stand more than once. None leaves it alone.
    #[arg(long, value_name = "CHANGE")]
    pub(crate) set: Vec<String>,
    /// Only this field of the value; may stand more than once.
    #[arg(long = "return", value_name = "FIELD")]
    pub(crate) fields: Vec<String>,
    /// Who asks.
    #[command(flatten)]
    pub(crate) caller: Caller,
}

/// `row delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The table.
    pub(crate) table: TableName,
    /// The row's key.
    pub(crate) key: RowKey,
    /// What must hold of it; may stand more than once.
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) filter: Vec<String>,
    /// Refused if it removes nothing.
    #[arg(long)]
    pub(crate) must: bool,
    /// Who asks.
    #[command(flatten)]
    pub(crate) caller: Caller,
}

/// `row transact`.
#[derive(Debug, Args)]
pub(crate) struct Transact {
    /// `{"require": [...], "ops": [...]}`: JSON, @FILE, or - for standard input.
    #[arg(value_name = "JSON")]
    pub(crate) request: String,
    /// Who asks.
    #[command(flatten)]
    pub(crate) caller: Caller,
}
