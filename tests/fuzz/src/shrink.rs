//! A smaller input that breaks the same property.

use crate::target::{Broken, Target, guarded};

/// Runs a shrinking may take: a small input in a second or two.
const RUNS_MAX: usize = 4_000;

/// Leaves out as much of an input as it can while the target still breaks in the same way.
#[must_use]
pub fn shrink(target: &dyn Target, input: Vec<u8>, why: &Broken) -> Vec<u8> {
    let kind = kind(why);
    let mut left = RUNS_MAX;
    let mut breaks = |input: &[u8]| {
        left = left.saturating_sub(1);
        left > 0 && guarded(target, input).err().is_some_and(|broken| self::kind(&broken) == kind)
    };
    let mut smallest = input;
    let mut size = smallest.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < smallest.len() {
            let mut shorter = smallest.clone();
            shorter.drain(at..(at + size).min(smallest.len()));
            if breaks(&shorter) {
                smallest = shorter;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    smallest
}

/// The first words of what broke: they tell one fault from another, and numbers and names do not.
fn kind(why: &Broken) -> String {
    why.0.chars().filter(|c| !c.is_ascii_digit()).take(40).collect()
}
