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
//! lines go to standard error, or to the host that runs the step.
//!
//! Lines of the [`log`](https://docs.rs/log) crate, whose macros other libraries use, reach the host's log as well, at
//! their level and with where they come from in the field `target` (the feature `log`, on by default).

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
    native::write(level, message, fields);
}

#[cfg(not(target_arch = "wasm32"))]
pub use native::captured;

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::Level;
    use std::cell::RefCell;
    use std::rc::Rc;

    type Sink = Rc<dyn Fn(Level, &str, &[(String, String)])>;

    thread_local! {
        static SINK: RefCell<Option<Sink>> = const { RefCell::new(None) };
    }

    /// For hosts: lines that are written on this thread while `run` runs go to `sink`.
    pub fn captured<T>(sink: impl Fn(Level, &str, &[(String, String)]) + 'static, run: impl FnOnce() -> T) -> T {
        let before = SINK.replace(Some(Rc::new(sink)));
        let _restored = Restored(before);
        run()
    }

    pub(super) fn write(level: Level, message: &str, fields: &[(String, String)]) {
        // Nothing is borrowed while the sink works: it may write a line itself, or end the step.
        let sink = SINK.with_borrow(Clone::clone);
        match sink {
            Some(sink) => sink(level, message, fields),
            None => {
                let fields: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
                eprintln!("{level:?} {message}{fields}");
            }
        }
    }

    struct Restored(Option<Sink>);

    impl Drop for Restored {
        fn drop(&mut self) {
            SINK.set(self.0.take());
        }
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
