//! What was measured, as a table for people and as JSON for machines. Every number shown was measured
//! in this run; a target whose figures were left out says so.

use crate::hardware::Hardware;
use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// One line of a measurement: figures by name, the unit being the end of the name.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) figures: Vec<(&'static str, f64)>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, figures: &[(&'static str, f64)]) -> Self {
        Self { name: name.into(), figures: figures.to_vec() }
    }
}

/// One measurement.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) note: String,
    pub(crate) rows: Vec<Row>,
}

impl Group {
    /// A figure of a row.
    pub(crate) fn figure(&self, row: &str, name: &str) -> Option<f64> {
        let row = self.rows.iter().find(|known| known.name == row)?;
        let figure = row.figures.iter().find(|(known, _)| *known == name)?;
        Some(figure.1)
    }
}

/// Which side of its bound a figure has to be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    AtLeast,
    AtMost,
}

/// A target of the design, and what this run says about it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) what: &'static str,
    pub(crate) side: Side,
    pub(crate) bound: f64,
    pub(crate) measured: Option<f64>,
}

impl Target {
    fn verdict(&self) -> &'static str {
        match (self.measured, self.side) {
            (None, _) => "not measured",
            (Some(got), Side::AtLeast) if got >= self.bound => "reached",
            (Some(got), Side::AtMost) if got <= self.bound => "reached",
            (Some(_), _) => "not reached",
        }
    }

    /// What was measured as a part of the bound.
    fn ratio(&self) -> Option<f64> {
        self.measured.map(|got| got / self.bound).filter(|ratio| ratio.is_finite())
    }
}

/// One run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) hardware: Hardware,
    pub(crate) quick: bool,
    pub(crate) groups: Vec<Group>,
    pub(crate) targets: Vec<Target>,
}

impl Report {
    /// Everything that was measured, with what it was measured on.
    pub(crate) fn write_json(&self, path: &Path) -> Result<()> {
        let groups = self.groups.iter().map(|group| {
            let rows = group.rows.iter().map(|row| {
                let figures = row.figures.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
                json!({ "name": row.name, "figures": Map::from_iter(figures) })
            });
            json!({ "title": group.title, "note": group.note, "rows": rows.collect::<Vec<_>>() })
        });
        let targets = self.targets.iter().map(|target| {
            json!({
                "what": target.what,
                "bound": target.bound,
                "side": if target.side == Side::AtLeast { "at-least" } else { "at-most" },
                "measured": target.measured,
                "verdict": target.verdict(),
            })
        });
        let all = json!({
            "machine": serde_json::to_value(&self.hardware)?,
            "quick": self.quick,
            "groups": groups.collect::<Value>(),
            "targets": targets.collect::<Value>(),
        });
        let text = serde_json::to_string_pretty(&all)?;
        std::fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))
    }

    /// The verdicts.
    pub(crate) fn targets_table(&self) -> String {
        let mut out = format!("\n{:<52} {:>11} {:>14} {:>7}\n", "targets", "measured", "target", "ratio");
        for target in &self.targets {
            let sign = if target.side == Side::AtLeast { ">=" } else { "<=" };
            let measured = target.measured.map_or_else(|| "-".to_owned(), pretty);
            let ratio = target.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let bound = format!("{sign} {}", pretty(target.bound));
            // Writing into a String cannot fail.
            let _ = writeln!(out, "  {:<50} {measured:>11} {bound:>14} {ratio:>7}  {}", target.what, target.verdict());
        }
        out
    }
}

/// One measurement as a table; a row with other figures than the one above gets a heading of its own.
pub(crate) fn table(group: &Group) -> String {
    let mut out = format!("\n{}\n", group.title);
    if !group.note.is_empty() {
        let _ = writeln!(out, "  {}", group.note);
    }
    let measured = group.rows.iter().filter(|row| !row.figures.is_empty());
    let width = measured.map(|row| row.name.len()).max().unwrap_or(0).max(24);
    let mut heading = Vec::new();
    for row in &group.rows {
        let names: Vec<_> = row.figures.iter().map(|(name, _)| *name).collect();
        if names != heading && !names.is_empty() {
            let _ = write!(out, "  {:<width$}", "");
            for name in &names {
                let name = name.replace('_', " ");
                let _ = write!(out, " {name:>16}");
            }
            out.push('\n');
            heading = names;
        }
        let _ = write!(out, "  {:<width$}", row.name);
        for (_, value) in &row.figures {
            let _ = write!(out, " {:>16}", pretty(*value));
        }
        out.push('\n');
    }
    out
}

/// Three or more significant digits, thousands apart.
fn pretty(value: f64) -> String {
    if value.abs() < 10.0 && value.fract() != 0.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0.0 { format!("-{out}") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_keep_three_digits() {
        let cases =
            [(12_600.0, "12,600"), (999.6, "1,000"), (0.7, "0.70"), (24.96, "25.0"), (3.0, "3"), (-1234.0, "-1,234")];
        for (value, text) in cases {
            assert_eq!(pretty(value), text);
        }
    }

    #[test]
    fn a_target_is_judged_by_its_side() {
        let target = |side, measured| Target { what: "", side, bound: 2.0, measured };
        assert_eq!(target(Side::AtLeast, Some(2.0)).verdict(), "reached");
        assert_eq!(target(Side::AtMost, Some(2.1)).verdict(), "not reached");
        assert_eq!(target(Side::AtMost, None).verdict(), "not measured");
    }
}
