//! Lines that a step logs, as whoever looks after the host sees them.

use super::{Language, scenarios, stage};
use anyhow::{Context as _, Result, ensure};
use interlock_lab::scenario::play;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Each line with its level; of guests alone.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(Level, String)>>>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "interlock::guest" {
            let mut text = Text(String::new());
            event.record(&mut text);
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push((*event.metadata().level(), text.0));
        }
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to text does not fail.
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

/// The lines of the behaviour `log`, and what one that asks twice says it heard.
pub(super) fn reach_the_log(language: Language) -> Result<()> {
    let Some(component) = super::component(language, "behaviour")? else { return Ok(()) };
    let stage = stage("behaviour", &component)?;
    let all = scenarios("behaviour/scenarios", &stage)?;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    tracing::subscriber::with_default(subscriber, || -> Result<()> {
        for name in ["log", "second-transition"] {
            let file = format!("/{name}.scenario.toml");
            let scenario = all.iter().find(|one| one.file.ends_with(&file)).context("its scenario")?;
            let misses = play(scenario, &stage)?.misses;
            ensure!(misses.is_empty(), "{name}: {misses:?}");
        }
        Ok(())
    })?;
    let lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut rest = lines.iter();
    for (level, parts) in [
        (Level::TRACE, &["this is trace"][..]),
        (Level::DEBUG, &["this is debug"]),
        (Level::INFO, &["this is info"]),
        (Level::WARN, &["this is warn"]),
        (Level::ERROR, &["this is error"]),
        (Level::INFO, &["with fields", "n=9007199254740993", "text=Grüße"]),
        (Level::INFO, &["heard spent"]),
    ] {
        let is_it = |line: &&(Level, String)| line.0 == level && parts.iter().all(|part| line.1.contains(part));
        ensure!(rest.any(|line| is_it(&line)), "expected {level} {parts:?}, in this order, got {lines:#?}");
    }
    Ok(())
}
