//! What happened in a test, in order: commands and answers, attempts with their calls, faults, time.

use crate::ran::{End, Ran};
use interlock_kernel::time::Span;
use std::fmt::{self, Write as _};

/// How many lines of a long story are shown: the last ones say what went wrong.
const SHOWN_LINES_MAX: usize = 250;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Story {
    lines: Vec<(u64, String)>,
    told: Vec<Cursor>,
    /// Attempts before this one are told to their end.
    from: usize,
    /// The attempt that the last line was of.
    speaking: Option<usize>,
}

/// How far an attempt is told.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    deeds: usize,
    over: bool,
}

impl Story {
    /// Something that somebody did to the host.
    pub(crate) fn note(&mut self, at_ms: u64, line: impl fmt::Display) {
        self.lines.push((at_ms, line.to_string()));
        self.speaking = None;
    }

    /// What attempts did since the last call.
    pub(crate) fn follow(&mut self, at_ms: u64, ran: &[Ran]) {
        for (place, ran) in ran.iter().enumerate().skip(self.from) {
            if place >= self.told.len() {
                self.told.push(Cursor::default());
                self.lines.push((at_ms, format!("{} begins", ran.name())));
                self.speaking = Some(place);
            }
            self.deeds(at_ms, place, ran);
        }
        self.from += self.told.iter().skip(self.from).take_while(|cursor| cursor.over).count();
    }

    fn deeds(&mut self, at_ms: u64, place: usize, ran: &Ran) {
        let Some(mut cursor) = self.told.get(place).copied().filter(|cursor| !cursor.over) else { return };
        let over = ran.end != End::Running;
        let mut lines = Vec::new();
        while let Some(deed) = ran.deeds.get(cursor.deeds).filter(|deed| over || deed.is_done()) {
            lines.push(deed.to_string());
            cursor.deeds += 1;
        }
        if over {
            if let Some(failure) = &ran.afterwards {
                lines.push(format!("failed after its accepted transition, which changes nothing: {failure}"));
            }
            lines.push(ran.end.to_string());
            cursor.over = true;
        }
        if !lines.is_empty() && self.speaking != Some(place) {
            self.lines.push((at_ms, format!("{} goes on", ran.name())));
            self.speaking = Some(place);
        }
        self.lines.extend(lines.into_iter().map(|line| (at_ms, format!("  {line}"))));
        if let Some(told) = self.told.get_mut(place) {
            *told = cursor;
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.lines.len().saturating_sub(SHOWN_LINES_MAX);
        if hidden > 0 {
            writeln!(f, "{:>9}  {hidden} earlier lines", "...")?;
        }
        let mut last = None;
        for (at_ms, line) in self.lines.iter().skip(hidden) {
            let mut time = String::new();
            if last != Some(*at_ms) {
                write!(time, "{}", Span(*at_ms))?;
                last = Some(*at_ms);
            }
            writeln!(f, "{time:>9}  {line}")?;
        }
        Ok(())
    }
}
