//! `log`: one line for whoever looks after the machine.

use crate::bindings::interlock::step::log as wit;
use crate::guest::Guest;
use tracing::Level;

impl wit::Host for Guest {
    fn write(&mut self, level: wit::Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.pass()?;
        let level = match level {
            wit::Level::Trace => Level::TRACE,
            wit::Level::Debug => Level::DEBUG,
            wit::Level::Info => Level::INFO,
            wit::Level::Warn => Level::WARN,
            wit::Level::Error => Level::ERROR,
        };
        self.logs.write(level, &message, &fields);
        Ok(())
    }
}
