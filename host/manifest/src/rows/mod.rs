//! Requests on rows and their answers as JSON: one reading for HTTP, the command line, scenarios and the mock.
//!
//! A path begins at the row: `status`, `payload.amount`, `tags[0]`, `a\.b`; `row.status` is the same as `status`.
//! What is read is judged by the kernel; what cannot be read, or could never hold, is refused here with its place.
//! `at.rs` walks the JSON, `filter.rs` reads `where`, `set.rs` changes and values, `ops.rs` the rest; `show.rs` writes
//! answers.
//!
//! ```
//! use interlock_manifest::rows::{Asks, ask};
//!
//! let request = serde_json::json!({
//!     "require": [{"absent": "stops", "key": "all"}],
//!     "ops": [
//!         {"claim": "jobs", "where": {"status": "pending"}, "order": "-created", "limit": 5},
//!         {"update": "totals", "key": "today", "set": {"taken": {"increment": 5}}},
//!     ],
//! });
//! assert_eq!(ask(&request, Asks::Client).expect("it can be read").ops.len(), 2);
//!
//! let misspelt = serde_json::json!({"ops": [{"get": "jobs", "kye": "a"}]});
//! let why = ask(&misspelt, Asks::Client).expect_err("no such field");
//! assert_eq!(why.to_string(), "/ops/0/kye: expected one of get, key, return (did you mean key?), got \"kye\"");
//! ```

mod at;
mod filter;
mod ops;
mod set;
mod show;

pub use show::{answer, found, row};

use crate::log::Log;
use crate::node::Node;
use crate::problem::Code;
use at::At;
use interlock_kernel::doc::{self, BadDoc};
use interlock_kernel::rows::{QueryAsk, RowOp, RowsAsk};
use interlock_kernel::value::{Filter, Mutation};
use serde_json::Value as Json;
use std::fmt;

/// Rows that a query shows when it does not say how many.
pub const QUERY_DEFAULT: u32 = 100;

/// Who asks: it decides what values may be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// A client: `now` and `execution`, which is what it calls itself.
    Client,
    /// A step: its event and its entity's documents too.
    Step,
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// Where in the request, as a JSON Pointer; empty is the whole.
    pub at: String,
    /// What may stand there.
    pub expected: String,
    /// What stood there.
    pub got: String,
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "the request" } else { &self.at };
        write!(f, "{at}: expected {}, got {}", self.expected, self.got)
    }
}

impl std::error::Error for Misread {}

/// The JSON of a request's text, whose integers of 64 bits are exact; longer ones are refused. How long the text may be
/// is the caller's to say.
///
/// # Errors
/// [`Misread`] of the whole.
pub fn text(text: &str) -> Result<Json, Misread> {
    let misread = |expected: &str, got: String| Misread { at: String::new(), expected: expected.to_owned(), got };
    doc::exact(text).map_err(|why| match why {
        BadDoc::Integer(digits) => misread("integers of at most 64 bits", digits),
        BadDoc::Syntax(why) => misread("JSON", why),
        BadDoc::Size(bytes) => misread("a shorter text", format!("{bytes} bytes")),
    })
}

/// A request that stands in a text of TOML, such as a scenario: what cannot be read is a problem at its own place.
pub fn in_toml<T>(node: &Node<'_>, log: &mut Log<'_>, read: impl FnOnce(&Json) -> Result<T, Misread>) -> Option<T> {
    let misread = match read(&node.json(log)?) {
        Ok(found) => return Some(found),
        Err(misread) => misread,
    };
    let message = format!("`{}` cannot be read at {:?}", node.path, misread.at);
    log.add(Code::BadValue, &node.place(&misread.at), message, format!("write {}", misread.expected))
        .expected(misread.expected)
        .got(misread.got);
    None
}

/// Several operations and their conditions: `{"require": [...], "ops": [...]}`.
///
/// # Errors
/// [`Misread`]: the first thing that cannot be read.
pub fn ask(json: &Json, asks: Asks) -> Result<RowsAsk, Misread> {
    ops::ask(&At::root(json), asks)
}

/// One operation: `{"update": TABLE, "key": ..., "where": ..., "set": ...}`, and so on for each kind.
///
/// # Errors
/// As [`ask`].
pub fn op(json: &Json, asks: Asks) -> Result<RowOp, Misread> {
    ops::op(&At::root(json), asks)
}

/// `{"query": TABLE, "where": ..., "order": ..., "limit": ..., "after": ..., "return": [...]}`.
///
/// # Errors
/// As [`ask`].
pub fn query(json: &Json, asks: Asks) -> Result<QueryAsk, Misread> {
    ops::query(&At::root(json), asks)
}

/// A `where` on its own.
///
/// # Errors
/// As [`ask`].
pub fn filter(json: &Json, asks: Asks) -> Result<Filter, Misread> {
    filter::filter(&At::root(json), &set::Scope::row(asks))
}

/// A `set` on its own. As a list it keeps its order; as an object it is sorted by path.
///
/// # Errors
/// As [`ask`].
pub fn set(json: &Json, asks: Asks) -> Result<Vec<Mutation>, Misread> {
    set::set(&At::root(json), &set::Scope::row(asks))
}
