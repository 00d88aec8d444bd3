//! The run over the kernel: copy, tests, score, and the two files that are checked in.

use crate::copy::{Subject, build};
use crate::find::Mutant;
use crate::publish::{self, Figures};
use crate::reasons::{self, Reason};
use crate::score::{Against, Fate, score};
use crate::suite::tests;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a run found.
pub struct Run {
    /// The mutants that were run.
    pub mutants: Vec<Mutant>,
    /// What became of each.
    pub fates: Vec<Fate>,
    /// Whether these are all there are.
    pub whole: bool,
    reasons: Vec<Reason>,
    tests: usize,
    times: [Duration; 3],
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The kernel and its tests.
#[must_use]
pub fn subject() -> Subject {
    Subject {
        workspace: here().ancestors().nth(2).unwrap_or(here()).to_owned(),
        folder: "host/kernel".to_owned(),
        package: "interlock-kernel".to_owned(),
        test: "it".to_owned(),
    }
}

fn target() -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    set.unwrap_or_else(|| subject().workspace.join("target"))
}

/// Runs every mutant whose line in the table contains `only`; `fresh` forgets which test noticed it.
///
/// # Errors
/// When the copy does not build, or a test fails without a mutant.
pub fn run(only: Option<&str>, fresh: bool, against: Against) -> Result<Run> {
    let started = Instant::now();
    let copy = build(&subject(), &target().join("mutants"), &target())?;
    let built = started.elapsed();
    let tests = tests(&copy)?;
    let reached = started.elapsed() - built;
    let list = std::fs::read_to_string(here().join("guards.md")).unwrap_or_default();
    let known = if fresh { std::collections::BTreeMap::new() } else { publish::known(&list, &copy.mutants) };
    let asked = |mutant: &&Mutant| only.is_none_or(|only| publish::line(mutant, &Fate::Survived(0)).contains(only));
    let mutants: Vec<Mutant> = copy.mutants.iter().filter(asked).cloned().collect();
    let fates = score(&copy, &mutants, &tests, &known, against)?;
    let whole = mutants.len() == copy.mutants.len();
    let mut reasons = reasons::read(&here().join("reasons.toml"))?;
    reasons.extend(reasons::owed(&here().join("owed.toml"))?);
    let times = [built, reached, started.elapsed() - built - reached];
    Ok(Run { mutants, fates, whole, reasons, tests: tests.len(), times })
}

impl Run {
    /// Counted.
    #[must_use]
    pub fn figures(&self) -> Figures {
        publish::figures(&self.mutants, &self.fates, &self.reasons)
    }

    /// One paragraph.
    #[must_use]
    pub fn summary(&self) -> String {
        let Figures { checks, mutants, noticed, crashed, endless, reasoned, owed, unexplained } = self.figures();
        let [built, reached, ran] = self.times.map(|time| format!("{:.1} s", time.as_secs_f64()));
        format!(
            "{checks} checks, {mutants} mutants, {} tests: {noticed} noticed ({crashed} by a crash, {endless} by a test \
             that did not end), {reasoned} survive with a reason, {owed} are owed a test, {unexplained} have neither\n\
             built in {built}, reach of the tests in {reached}, mutants in {ran}",
            self.tests
        )
    }

    /// Everything that must not be: survivors without a reason, reasons without a survivor, another list
    /// than the one that is checked in. `UPDATE_EXPECT=1` rewrites that.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn wrong(&self) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let survivors: Vec<_> =
            self.mutants.iter().zip(&self.fates).filter(|(_, fate)| matches!(fate, Fate::Survived(_))).collect();
        for (mutant, fate) in &survivors {
            if !self.reasons.iter().any(|reason| reason.is_for(mutant)) {
                wrong.push(format!("no test notices, and no reason is given: {}", publish::line(mutant, fate)));
            }
        }
        if !self.whole {
            return Ok(wrong);
        }
        for reason in &self.reasons {
            for change in &reason.changes {
                let one = Reason { changes: vec![change.clone()], ..reason.clone() };
                if !survivors.iter().any(|(mutant, _)| one.is_for(mutant)) {
                    let Reason { file, function, check, .. } = &one;
                    let what = if one.owed { "owed, and noticed" } else { "a reason without a survivor" };
                    wrong.push(format!("{what}: {file} {function} `{check}` {change}"));
                }
            }
        }
        let path = here().join("guards.md");
        let list = publish::list(&self.mutants, &self.fates, &self.reasons);
        if std::fs::read_to_string(&path).unwrap_or_default() != list {
            if std::env::var_os("UPDATE_EXPECT").is_some_and(|set| set == "1") {
                std::fs::write(&path, list).with_context(|| format!("cannot write {}", path.display()))?;
            } else {
                wrong.push("guards.md is another list: UPDATE_EXPECT=1 cargo run -p interlock-mutants".to_owned());
            }
        }
        Ok(wrong)
    }
}
