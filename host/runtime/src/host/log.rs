//! `log`: one line for whoever looks after the machine.

use crate::bindings::interlock::step::log as wit;
use crate::guest::Guest;
use interlock_coordinator::contract::Level;

impl wit::Host for Guest {
    fn write(&mut self, level: wit::Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.pass()?;
        let level = match level {
            wit::Level::Trace => Level::Trace,
            wit::Level::Debug => Level::Debug,
            wit::Level::Info => Level::Info,
            wit::Level::Warn => Level::Warn,
            wit::Level::Error => Level::Error,
        };
        self.logs.write(level, &message, &fields);
        Ok(())
    }
}
