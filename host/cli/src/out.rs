//! Where results, refusals, progress and hints go.

use crate::args::Global;
use crate::client::line;
use crate::failed::{Code, Failed};
use crate::show::{self, Paint};
use interlock_build::Progress;
use interlock_daemon::{Problem, Reason};
use serde::Serialize;
use std::io::{Write, stderr, stdout};

/// How this run prints.
#[derive(Clone, Copy)]
pub(crate) struct Out {
    /// Whether results are JSON.
    pub(crate) json: bool,
    quiet: bool,
    /// Colour of standard output.
    pub(crate) paint: Paint,
    paint_err: Paint,
}

impl Out {
    pub(crate) fn new(global: &Global) -> Self {
        Self { json: global.json, quiet: global.quiet, paint: Paint::of(&stdout()), paint_err: Paint::of(&stderr()) }
    }

    /// For a command line that could not be read, with `--json` somewhere in it.
    pub(crate) fn json() -> Self {
        Self { json: true, quiet: false, paint: Paint::Off, paint_err: Paint::Off }
    }

    /// A result: JSON, or the text that people read.
    pub(crate) fn result<T: Serialize>(&self, body: &T, text: impl FnOnce(Paint) -> String) {
        if self.json { self.text(&format!("{}\n", line(body))) } else { self.text(&text(self.paint)) }
    }

    /// Text as it is.
    pub(crate) fn text(&self, text: &str) {
        let mut to = stdout().lock();
        if to.write_all(text.as_bytes()).and_then(|()| to.flush()).is_err() {
            // Whoever read it has gone (`| head`): nobody is left to tell.
            std::process::exit(0);
        }
    }

    /// Something for people while or after the work; not with `--quiet`.
    pub(crate) fn hint(&self, text: &str) {
        if !self.quiet {
            self.complain(&self.paint_err.dim(text));
        }
    }

    /// What cargo may print while it builds a step.
    pub(crate) fn progress(&self) -> Progress {
        if self.quiet { Progress::Silent } else { Progress::Shown }
    }

    /// Something that went wrong and does not end this process by itself.
    pub(crate) fn alarm(&self, text: &str) {
        self.complain(&format!("{} {text}", self.paint_err.red("error:")));
    }

    /// Warnings and problems of a manifest, if there are any.
    pub(crate) fn findings_of(&self, report: &interlock_manifest::Report) {
        match (report.problems.is_empty(), self.json) {
            (true, _) => {}
            (false, true) if report.count(interlock_manifest::Severity::Error) > 0 => {
                self.text(&format!("{}\n", line(report)))
            }
            (false, _) => self.complain(show::report(report, None, self.paint_err).trim_end()),
        }
    }

    /// What a daemon warns of; with `--json` its answer has it.
    pub(crate) fn warnings<'a>(&self, findings: impl Iterator<Item = &'a interlock_daemon::api::Finding>) {
        if !self.json {
            findings.for_each(|finding| self.complain(show::finding(finding, self.paint_err).trim_end()));
        }
    }

    /// What went wrong, last.
    pub(crate) fn failed(&self, failed: &Failed) {
        if self.json {
            if let Some(problem) = as_problem(failed) {
                self.text(&format!("{}\n", line(&problem)));
            }
            return;
        }
        match failed {
            Failed::Problem(problem) => {
                for finding in &problem.findings {
                    self.complain(show::finding(finding, self.paint_err).trim_end());
                }
                self.complain(show::refusal(problem, self.paint_err).trim_end());
            }
            Failed::Shown(_) | Failed::Ended(_) => {}
            Failed::Lost { .. } | Failed::Unreachable { .. } | Failed::Input(_) | Failed::Fault(_) => {
                self.complain(&format!("{} {failed}", self.paint_err.red("error:")));
            }
        }
    }

    fn complain(&self, text: &str) {
        // Where standard error is closed nobody listens.
        let _ = writeln!(stderr().lock(), "{text}");
    }
}

/// Every failure in the shape of the API's.
fn as_problem(failed: &Failed) -> Option<Problem> {
    let own = |code: &str, reason: Reason| Problem {
        kind: format!("urn:interlock:{code}"),
        code: code.to_owned(),
        detail: failed.to_string(),
        ..Problem::new(reason, "interlock", "", "")
    };
    match failed {
        Failed::Problem(problem) => Some((**problem).clone()),
        Failed::Shown(_) | Failed::Ended(_) => None,
        Failed::Lost { .. } => Some(own("lease_lost", Reason::Decided(interlock_kernel::rejection::Code::Fenced))),
        Failed::Unreachable { .. } => Some(Problem { retryable: true, ..own("unreachable", Reason::Internal) }),
        Failed::Input(_) => Some(own("invalid", Reason::Decided(interlock_kernel::rejection::Code::Invalid))),
        Failed::Fault(_) => Some(own("internal", Reason::Internal)),
    }
}

impl Out {
    /// Ends with this code; what there was to say is said.
    pub(crate) fn over(code: Code) -> Result<(), Failed> {
        Err(Failed::Shown(code))
    }
}
