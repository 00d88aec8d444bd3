//! Makes a failing run small: fewer steps first, then fewer of those that are left.

use crate::plan::{Plan, Steps};
use crate::run::{Outcome, run};
use std::collections::BTreeSet;

/// Runs that shrinking may take.
const RUNS: usize = 400;

/// The smallest failing run found, with the same theorem not holding; its transcript is whole.
#[must_use]
pub fn shrink(failed: &Outcome) -> Outcome {
    let Some((finding, step)) = &failed.finding else { return failed.clone() };
    let mut search = Search { theorem: finding.theorem, left: RUNS, plan: failed.plan.clone() };
    search.cut((*step).min(failed.plan.steps));
    search.thin_out();
    let whole = run(&Plan { transcript: true, ..search.plan.clone() });
    Outcome { plan: Plan { transcript: failed.plan.transcript, ..whole.plan.clone() }, ..whole }
}

struct Search {
    theorem: &'static str,
    left: usize,
    plan: Plan,
}

impl Search {
    fn fails(&mut self, plan: &Plan) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        run(plan).finding.is_some_and(|(finding, _)| finding.theorem == self.theorem)
    }

    /// The end first: at the step where it was found, then halfway, and so on.
    fn cut(&mut self, found_before: u64) {
        let cut = Plan { steps: found_before, ..self.plan.clone() };
        if cut.steps < self.plan.steps && self.fails(&cut) {
            self.plan = cut;
        }
        let mut by = self.plan.steps / 2;
        while by > 0 {
            let cut = Plan { steps: self.plan.steps.saturating_sub(by), ..self.plan.clone() };
            if self.fails(&cut) {
                self.plan = cut;
                by = by.min(self.plan.steps);
            } else {
                by /= 2;
            }
        }
    }

    /// Leaves out runs of steps, long ones first (Zeller and Hildebrandt 2002, by complements).
    fn thin_out(&mut self) {
        let mut kept: Vec<u64> = (0..self.plan.steps).filter(|step| !self.plan.skips(*step)).collect();
        let mut size = kept.len().div_ceil(2);
        while size > 0 && self.left > 0 {
            let mut at = 0;
            let mut thinner = false;
            while at < kept.len() && self.left > 0 {
                let mut fewer = kept.clone();
                fewer.drain(at..(at + size).min(kept.len()));
                let plan = Plan { skip: all_but(self.plan.steps, &fewer), ..self.plan.clone() };
                if self.fails(&plan) {
                    self.plan = plan;
                    kept = fewer;
                    thinner = true;
                } else {
                    at += size;
                }
            }
            if size == 1 && !thinner {
                break;
            }
            size = if size == 1 { 1 } else { size.div_ceil(2) };
        }
    }
}

fn all_but(steps: u64, kept: &[u64]) -> Steps {
    let kept: BTreeSet<u64> = kept.iter().copied().collect();
    Steps::of((0..steps).filter(|step| !kept.contains(step)))
}
