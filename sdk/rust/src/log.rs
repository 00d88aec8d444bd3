//! One line for whoever looks after the machine.
//!
//! ```
//! use interlock_sdk::log; // `interlock` under the name that guests give it
//!
//! let nodes = 4;
//! log::info!("found {nodes} nodes");
//! log::warn!(nodes = nodes, zone = "b", "the search took longer than usual");
//! ```
//!
//! The host adds machine, entity, execution, step, attempt and time. Outside a component the
//! lines go to standard error.

pub use crate::{__debug as debug, __error as error, __info as info, __trace as trace, __warn as warn};

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever follows every move.
    Trace,
    /// For whoever looks for a fault.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Wrong.
    Error,
}

/// Writes one line; the macros are shorter.
pub fn write(level: Level, message: &str, fields: &[(String, String)]) {
    #[cfg(target_arch = "wasm32")]
    crate::wasm::write(level, message, fields);
    #[cfg(not(target_arch = "wasm32"))]
    {
        let fields: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        eprintln!("{level:?} {message}{fields}");
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __line {
    ($level:ident [$($field:expr,)*] $name:ident = $value:expr, $($rest:tt)+) => {
        $crate::__line!($level [$($field,)* (stringify!($name).to_owned(), $value.to_string()),] $($rest)+)
    };
    ($level:ident [$($field:expr,)*] $($message:tt)+) => {
        $crate::log::write($crate::log::Level::$level, &format!($($message)+), &[$($field,)*])
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __trace { ($($line:tt)+) => { $crate::__line!(Trace [] $($line)+) }; }

#[doc(hidden)]
#[macro_export]
macro_rules! __debug { ($($line:tt)+) => { $crate::__line!(Debug [] $($line)+) }; }

#[doc(hidden)]
#[macro_export]
macro_rules! __info { ($($line:tt)+) => { $crate::__line!(Info [] $($line)+) }; }

#[doc(hidden)]
#[macro_export]
macro_rules! __warn { ($($line:tt)+) => { $crate::__line!(Warn [] $($line)+) }; }

#[doc(hidden)]
#[macro_export]
macro_rules! __error { ($($line:tt)+) => { $crate::__line!(Error [] $($line)+) }; }
