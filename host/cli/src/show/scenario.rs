//! Scenarios that were played: a line for each, all of it where something is not as it should be, coverage,
//! and what it comes to.

use super::Paint;
use crate::commands::test::{MissView, OfScenario, Stands, Tested, Transcript};
use interlock_lab::scenario::Row;
use interlock_lab::story::clock;

/// The head above the lines of a machine's scenarios.
pub(crate) fn machine_tested(machine: &str, folder: &str, count: usize, paint: Paint) -> String {
    let noun = if count == 1 { "scenario" } else { "scenarios" };
    format!("{}   {count} {noun} in {folder}\n", paint.bold(machine))
}

/// The widest column of sentences: with the times behind it, a line of most terminals.
const SENTENCE_CHARS_MAX: usize = 76;

/// One scenario, under others whose longest sentence has so many characters.
pub(crate) fn scenario(one: &OfScenario, width: usize, paint: Paint) -> String {
    let word = if one.ok { paint.green("ok    ") } else { paint.red("FAILED") };
    let written = if one.transcript == Some(Transcript::Written) { "   transcript written" } else { "" };
    let time = format!("{} in {}", clock(one.virtual_ms), seconds(one.took_ms));
    let width = width.min(SENTENCE_CHARS_MAX);
    let mut text = format!("  {word}  {:width$}   {}{written}\n", one.name, paint.dim(&time));
    if one.ok {
        return text;
    }
    text.push('\n');
    for miss in &one.misses {
        text.push_str(&self::miss(&one.file, miss, paint));
    }
    if let Some(Transcript::Differs { file, how }) = &one.transcript {
        text.push_str(&format!("    {}   the story is another now; --update writes it anew\n", paint.bold(file)));
        text.push_str(&below(how, &|line| colored(line, paint)));
    }
    if !one.stands.is_empty() {
        text.push_str("    in the end\n");
        let width = one.stands.iter().map(|stands| stands.entity.chars().count()).max().unwrap_or_default();
        for Stands { entity, stands } in &one.stands {
            text.push_str(&format!("      {entity:width$}   {stands}\n"));
        }
        text.push('\n');
    }
    if let Some(story) = &one.story {
        text.push_str("    what happened\n");
        text.push_str(&below(story, &str::to_owned));
    }
    text
}

/// Lines below a head, and a blank one.
fn below(text: &str, show: &dyn Fn(&str) -> String) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("      {}\n", show(line)) };
    text.lines().map(line).chain(["\n".to_owned()]).collect()
}

fn miss(file: &str, miss: &MissView, paint: Paint) -> String {
    let MissView { line, what, expected, got } = miss;
    let place = paint.bold(&format!("{file}:{line}"));
    format!("    {place}   {what}\n      expected   {expected}\n      got        {got}\n\n")
}

fn colored(line: &str, paint: Paint) -> String {
    match line.chars().next() {
        Some('+') => paint.green(line),
        Some('-') => paint.red(line),
        _ => line.to_owned(),
    }
}

/// What a machine's scenarios reach, and what they do not.
pub(crate) fn coverage(machine: &str, rows: &[Row], paint: Paint) -> String {
    let mut text = format!("\n  covered of {machine}\n");
    for Row { what, covered, of, missing } in rows {
        let count = format!("{covered:>3} of {of}");
        let count = if covered == of { paint.green(&count) } else { paint.yellow(&count) };
        text.push_str(&format!("    {what:<9}{count}\n"));
        text.push_str(&missing.iter().map(|one| format!("{:>8}not reached   {one}\n", "")).collect::<String>());
    }
    text.push('\n');
    text
}

/// What it comes to.
pub(crate) fn tested(tested: &Tested, paint: Paint) -> String {
    let Tested { ok, failed, unreadable, written, virtual_ms, took_ms, .. } = tested;
    let mut parts = vec![format!("{ok} ok")];
    if *failed > 0 {
        parts.push(paint.red(&format!("{failed} failed")));
    }
    if *unreadable > 0 {
        parts.push(paint.red(&format!("{unreadable} unreadable")));
    }
    if *written > 0 {
        parts.push(format!("{written} transcripts written"));
    }
    let gap = if tested.machines.iter().any(|of| of.coverage.is_none()) { "\n" } else { "" };
    format!("{gap}{}   {} of virtual time in {}\n", parts.join(", "), clock(*virtual_ms), seconds(*took_ms))
}

fn seconds(ms: u64) -> String {
    format!("{}.{:02} s", ms / 1_000, ms % 1_000 / 10)
}
