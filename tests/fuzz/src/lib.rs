//! Inputs nobody would write, against what must always hold.
//!
//! A [`Target`] takes bytes and says what it saw, or which property does not hold. [`search`] starts from the
//! target's corpus (`corpus/NAME/`, small files, checked in), changes and crosses inputs with words of the target's
//! grammar ([`mutate`]), and keeps an input that makes the target say something new: another problem, another
//! refusal, another outcome. That needs no instrumented build: in a system whose every refusal is named, what it
//! says tells its paths apart. The same seed runs the same inputs.
//!
//! An input that breaks a property is made smaller ([`shrink`]), written to a folder and named by the one line that
//! replays it; when the fault is mended the file moves into the corpus, which every run replays first.
//!
//! ```
//! let target = interlock_fuzz::target("json").expect("there is one");
//! assert!(target.run(br#"{"a": 1}"#).is_ok());
//! ```
//!
//! Read next: `target.rs`, `search.rs`, one of `targets/`.

mod kept;
mod mutate;
mod search;
mod shrink;
mod target;
mod targets;

pub use kept::{corpus, keep, replay_line};
pub use mutate::mutate;
pub use search::{Failure, Report, Until, distilled, search};
pub use shrink::shrink;
pub use target::{Broken, Seen, Target, guarded, target, targets};
