//! Which run: a seed, how many steps, which of them are left out, and which fault is planted.

use crate::plant::Plant;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// See the module. The same plan is the same run, byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The seed of everything.
    pub seed: u64,
    /// Steps of the scheduler before the world calms down.
    pub steps: u64,
    /// Steps that are left out.
    pub skip: Steps,
    /// A fault of the store that must be found.
    pub plant: Plant,
    /// Whether the whole transcript is kept, or only its end.
    pub transcript: bool,
}

impl Plan {
    pub(crate) fn skips(&self, step: u64) -> bool {
        self.skip.0.contains(&step)
    }

    /// The command that runs it again.
    #[must_use]
    pub fn replay(&self) -> String {
        let mut line = format!("cargo run -p interlock-sim -- --seed {} --steps {}", self.seed, self.steps);
        if !self.skip.0.is_empty() {
            line += &format!(" --skip {}", self.skip);
        }
        if self.plant != Plant::Nothing {
            line += &format!(" --plant {}", self.plant);
        }
        line
    }
}

/// Steps by number; prints and parses as `3,5-9`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(BTreeSet<u64>);

impl Steps {
    /// All of these.
    #[must_use]
    pub fn of(steps: impl IntoIterator<Item = u64>) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
        for step in &self.0 {
            match runs.last_mut() {
                Some(run) if run.end() + 1 == *step => *run = *run.start()..=*step,
                _ => runs.push(*step..=*step),
            }
        }
        let runs = runs.iter().map(|run| match run.end() - run.start() {
            0 => run.start().to_string(),
            _ => format!("{}-{}", run.start(), run.end()),
        });
        f.write_str(&runs.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Steps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("expected steps like 3,5-9, got {text:?}"));
        let mut steps = BTreeSet::new();
        for run in text.split(',').filter(|run| !run.is_empty()) {
            let (from, to) = run.split_once('-').unwrap_or((run, run));
            steps.extend(number(from)?..=number(to)?);
        }
        Ok(Self(steps))
    }
}
