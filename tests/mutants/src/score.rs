//! Every mutant against the tests that reach it.

use crate::copy::Copy;
use crate::find::Mutant;
use crate::suite::{End, Test, in_parallel, with_mutant};
use anyhow::Result;
use std::collections::BTreeMap;

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A test noticed it.
    Noticed {
        /// The test.
        by: String,
        /// How it ended.
        how: End,
    },
    /// All tests that reach the check passed: so many. None may reach it at all.
    Survived(usize),
}

/// Which tests a mutant has to get past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// All of them.
    Every,
    /// The one that noticed it the last time, and those that take no time.
    Short,
}

/// Runs the tests that reach each mutant until one notices: first the one that noticed it last time
/// (`known`, by mutant), then those that reach least.
///
/// # Errors
/// When a test cannot be started.
pub fn score(
    copy: &Copy,
    mutants: &[Mutant],
    tests: &[Test],
    known: &BTreeMap<u32, String>,
    against: Against,
) -> Result<Vec<Fate>> {
    in_parallel(mutants, |_, mutant| {
        let reaching: Vec<&Test> = tests.iter().filter(|test| test.reaches.contains(&mutant.site)).collect();
        let last = known.get(&mutant.id);
        let first = reaching.iter().filter(|test| Some(&test.name) == last);
        let asked = |test: &Test| against == Against::Every || !test.is_long();
        let then = reaching.iter().filter(|test| Some(&test.name) != last && asked(test));
        for test in first.chain(then) {
            let how = with_mutant(copy, test, mutant.id)?;
            if how != End::Passed {
                return Ok(Fate::Noticed { by: test.name.clone(), how });
            }
        }
        Ok(Fate::Survived(reaching.len()))
    })
}
