//! The figures of a long run, as the README shows them.

use crate::figures::Figures;
use crate::points::Covered;
use std::fmt;
use std::time::Duration;

/// What was run, and what it met.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The day, as `2026-11-30`.
    pub date: String,
    /// Cores of the machine.
    pub cores: usize,
    /// Of the seeds.
    pub figures: Figures,
    /// Steps of the scheduler in each.
    pub steps: u64,
    /// How long the seeds took.
    pub seeds_took: Duration,
    /// Of the points on the embedded engine.
    pub redb: Vec<Covered>,
    /// Of the points on the engine in memory.
    pub mem: Vec<Covered>,
    /// How long the points took.
    pub points_took: Duration,
}

/// One engine's points, in all.
#[derive(Default)]
struct Sum {
    scenarios: usize,
    points: u64,
    met: usize,
    endings: u64,
    twice: u64,
}

impl Sum {
    fn of(covered: &[Covered]) -> Self {
        covered.iter().fold(Self::default(), |sum, one| Self {
            scenarios: sum.scenarios + 1,
            points: sum.points + one.points,
            met: sum.met + one.met.len(),
            endings: sum.endings + one.endings,
            twice: sum.twice + one.twice,
        })
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, cores, figures, steps, .. } = self;
        writeln!(f, "| what | how much ({date}, {cores} cores) |\n|---|---|")?;
        writeln!(
            f,
            "| seeds, each of {steps} steps of the scheduler | {}, none failed, in {:.0?} |",
            grouped(figures.runs),
            self.seeds_took
        )?;
        writeln!(f, "| commands decided | {} |", grouped(figures.decided))?;
        writeln!(f, "| commits, each checked as it was made | {} |", grouped(figures.commits))?;
        writeln!(f, "| boots of a host | {} |", grouped(figures.boots))?;
        writeln!(f, "| faults, of {} kinds | {} |", figures.faults.len(), grouped(figures.faults_in_all()))?;
        writeln!(f, "| refusals met | {} codes |", figures.rejections.len())?;
        for (engine, covered) in [("redb", &self.redb), ("mem", &self.mem)] {
            let sum = Sum::of(covered);
            writeln!(
                f,
                "| points of death on {engine}, in {} scenarios | {}, {} met; {} endings as without a death, {} of them \
                 after a second one |",
                sum.scenarios,
                grouped(sum.points),
                grouped(sum.met as u64),
                grouped(sum.endings),
                grouped(sum.twice),
            )?;
        }
        write!(f, "| all points took | {:.0?} |", self.points_took)
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1_000, 1_234_567].map(grouped)[..]);
    }
}
