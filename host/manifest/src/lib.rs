//! A machine's or a table's TOML and JSON Schemas, checked and turned into the kernel's [`Machine`] and
//! [`Table`](interlock_kernel::table::Table).
//!
//! [`parse`] reads a manifest and reports everything that is wrong with it at once, each with line,
//! column and remedy; [`render`] shows that to people. [`RuleBook`] holds the compiled schemas of
//! revisions, knows the calendar, and answers the kernel's [`Rules`](interlock_kernel::view::Rules).
//!
//! [`parse_table`] does the same for a table.
//!
//! This crate knows no file system, clock, network or store: a caller hands in text. How a manifest
//! is written is in `keys.rs`, `machine.schema.json` and `table.schema.json`; what is checked beyond single values
//! is in `check/` and `table/`; jsonschema is named in `schema.rs` alone, jiff in `calendar.rs`.
//!
//! ```
//! let report = interlock_manifest::parse("machine.toml", r#"
//!     machine = "door"
//!     owner   = "facilities <door@example.com>"
//!     initial = "shut"
//!     desired.schema = false
//!     data.schema    = false
//!     outputs.schema = false
//!     events.push.schema = { type = "object" }
//!     states.shut = { kind = "rest", on.push = { to = "open" } }
//!     states.open = { kind = "rest", on.push = { to = "shutt" } }
//! "#);
//! assert!(report.manifest.is_none());
//! let problem = &report.problems[0];
//! assert_eq!((problem.code, problem.line), ("unknown-state", 10));
//! assert_eq!(problem.remedy, "did you mean `shut`?");
//! ```
//!
//! [`Machine`]: interlock_kernel::machine::Machine

mod book;
mod calendar;
mod check;
mod cron;
mod draft;
mod effort;
mod fences;
mod filter;
mod keys;
mod log;
mod node;
mod parse;
mod path;
mod problem;
mod read;
mod render;
pub mod rows;
mod schedule;
mod schema;
mod shape;
mod shelf;
mod table;

pub use book::{CompiledMachine, CompiledTable, RuleBook, Uncompiled};
pub use calendar::time_zones;
pub use fences::unshared_fences;
pub use node::parse_bytes;
pub use parse::{Manifest, Report, parse, parse_as_of};
pub use problem::{CODES, Problem, Severity};
pub use render::render;
pub use schedule::{parse_schedule, times};
pub use table::parse_table;

/// How a manifest is read, for the other texts of this project: each value where it stands, every problem
/// at once, the nearest valid name in every remedy.
pub mod reading {
    pub use crate::filter::{Schemas, fields, filter};
    pub use crate::keys::Keys;
    pub use crate::log::{Entry, Log, Span, Spot, excerpt, list, suggest};
    pub use crate::node::{DURATION_MS_MAX, Node, Table};
    pub use crate::parse::read;
    pub use crate::problem::{Code, Kind};
}

/// JSON Schema (Draft 2020-12) of the manifest, for editors: `#:schema machine.schema.json`.
pub const MANIFEST_SCHEMA: &str = include_str!("../machine.schema.json");
/// The same of a table's manifest: `#:schema table.schema.json`.
pub const TABLE_SCHEMA: &str = include_str!("../table.schema.json");
/// The same of a schedule's manifest: `#:schema schedule.schema.json`.
pub const SCHEDULE_SCHEMA: &str = include_str!("../schedule.schema.json");
