//! What the demo prints, and what it expected: aligned columns, and a list of what was not as it should be.

use crate::client::line;
use crate::out::Out;
use crate::show::{self, Paint};
use interlock_daemon::Problem;
use serde::Serialize;
use std::time::Duration;

const LABEL: usize = 29;
const WORD: usize = 13;
const DETAIL: usize = 34;

/// One row, as `--json` prints it.
#[derive(Serialize)]
struct Row<'a> {
    what: &'a str,
    got: &'a str,
    more: &'a str,
}

/// The last line, as `--json` prints it.
#[derive(Serialize)]
struct Verdict<'a> {
    as_it_should_be: bool,
    wrong: &'a [String],
    left_out: &'a [String],
    refused: u32,
    stopped: u32,
    kills: u32,
    took_ms: u128,
}

/// The printed side of the demo.
pub(crate) struct Board {
    out: Out,
    wrong: Vec<String>,
    left_out: Vec<String>,
    refused: u32,
    stopped: u32,
    kills: u32,
}

impl Board {
    pub(crate) fn new(out: Out) -> Self {
        Self { out, wrong: Vec::new(), left_out: Vec::new(), refused: 0, stopped: 0, kills: 0 }
    }

    /// A line of text.
    pub(crate) fn line(&self, text: &str) {
        if !self.out.json {
            self.out.text(&format!("{text}\n"));
        }
    }

    /// A scene's title.
    pub(crate) fn scene(&self, number: u32, title: &str) {
        self.line(&format!("\n{number}  {}", self.out.paint.bold(title)));
    }

    /// What was done, what came of it in one word, and more.
    pub(crate) fn row(&mut self, what: &str, got: &str, more: &str) {
        match got {
            "REFUSED" => self.refused += 1,
            "STOPPED" => self.stopped += 1,
            _ => {}
        }
        if self.out.json {
            return self.out.text(&format!("{}\n", line(&Row { what, got, more })));
        }
        let paint = self.out.paint;
        let colour = match got {
            "REFUSED" | "STOPPED" => Paint::red,
            "accepted" | "committed" => Paint::green,
            _ => |_: Paint, text: &str| text.to_owned(),
        };
        // Padded before it is coloured: colours have no width.
        let got = format!("{got:<WORD$}");
        self.line(format!("   {what:<LABEL$}{}{more}", colour(paint, &got)).trim_end());
    }

    /// A line below a row.
    pub(crate) fn detail(&self, name: &str, value: &str) {
        if !value.is_empty() {
            self.line(&format!("{:DETAIL$}{name:<11}{value}", ""));
        }
    }

    /// A refusal: its sentence, or its code alone the second time, and its particulars.
    pub(crate) fn refusal(&mut self, what: &str, problem: &Problem) {
        let sentence = match problem.code.as_str() {
            "busy" if self.refused == 0 => format!("{}: {}", problem.code, problem.detail),
            code => code.to_owned(),
        };
        let first = self.refused == 0;
        self.row(what, "REFUSED", &sentence);
        for (name, value) in show::particulars(problem) {
            let shown = match name {
                "expected" | "got" | "retry" => true,
                // Who answers is said once; the event ids are the demo's own.
                "owner" => first,
                _ => false,
            };
            if shown {
                self.detail(name, &value);
            }
        }
    }

    /// A daemon was killed.
    pub(crate) fn killed(&mut self) {
        self.kills += 1;
    }

    /// Checks something; what was not so is told at the end.
    pub(crate) fn expect(&mut self, what: &str, holds: bool) {
        if !holds {
            self.wrong.push(what.to_owned());
        }
    }

    /// Something that could not be shown here, and why.
    pub(crate) fn leave_out(&mut self, what: &str, why: &str) {
        self.row(what, "left out", why);
        self.left_out.push(format!("{what}: {why}"));
    }

    /// Whether everything was as expected.
    pub(crate) fn is_as_it_should_be(&self) -> bool {
        self.wrong.is_empty()
    }

    /// The last line.
    pub(crate) fn verdict(&self, took: Duration, left: &str) {
        let Self { wrong, left_out, refused, stopped, kills, out } = self;
        if out.json {
            let (as_it_should_be, took_ms) = (wrong.is_empty(), took.as_millis());
            let (refused, stopped, kills) = (*refused, *stopped, *kills);
            return out.text(&format!(
                "{}\n",
                line(&Verdict { as_it_should_be, wrong, left_out, refused, stopped, kills, took_ms })
            ));
        }
        let seconds = took.as_secs_f64();
        if wrong.is_empty() {
            let done = out.paint.green("As it should be:");
            let kill = if *kills == 1 { "1 kill".to_owned() } else { format!("{kills} kills") };
            let out_of = if left_out.is_empty() { String::new() } else { format!(", {} left out", left_out.len()) };
            self.line(&format!(
                "\n{done} {refused} refused, {stopped} stopped, {kill}, nothing lost, nothing done twice{out_of}. \
                 {seconds:.1} s, {left}."
            ));
        } else {
            self.line(&format!("\n{} ({seconds:.1} s, {left})", out.paint.red("Not as it should be:")));
            for what in wrong {
                self.line(&format!("   {what}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_so_is_remembered() {
        let global = crate::args::Global { url: String::new(), json: true, quiet: true };
        let mut board = Board::new(Out::new(&global));
        board.expect("water is wet", true);
        assert!(board.is_as_it_should_be());
        board.expect("pigs fly", false);
        assert!(!board.is_as_it_should_be());
        assert_eq!(board.wrong, ["pigs fly"]);
    }
}
