//! Lines of the `log` crate, from any library in the step, on their way to the host's log.

use crate::log::{Level, write};
use log::{LevelFilter, Log, Metadata, Record};

/// From now on; a step that has set a logger of its own before keeps it.
pub(crate) fn set() {
    if log::set_logger(&Facade).is_ok() {
        log::set_max_level(LevelFilter::Trace);
    }
}

struct Facade;

impl Log for Facade {
    /// Which levels are of interest is the host's to say.
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let level = match record.level() {
            log::Level::Trace => Level::Trace,
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        write(level, &record.args().to_string(), &[("target".to_owned(), record.target().to_owned())]);
    }

    fn flush(&self) {}
}
