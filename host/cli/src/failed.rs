//! Why a command did not do what was asked, and the exit code that says so to scripts.

use interlock_daemon::Problem;
use std::fmt;
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The daemon said no.
    Problem(Box<Problem>),
    /// No answer came.
    Unreachable {
        /// The daemon's address.
        url: String,
        /// What happened instead.
        why: Silence,
    },
    /// The input is wrong; what is wrong has one line.
    Input(String),
    /// The input is wrong, or something was not as it should be; it has been shown already.
    Shown(Code),
    /// A command that ran under a lease ended so, and has said what it had to.
    Ended(u8),
    /// A command was stopped because its lease was lost.
    Lost {
        /// The lease.
        lease: String,
        /// How it is known.
        why: String,
    },
    /// A fault.
    Fault(anyhow::Error),
}

/// How no answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Nothing listens there.
    Nobody,
    /// The connection broke; whether the request was done is not known.
    Broken(String),
}

/// An exit code; `interlock --help` explains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Fault = 1,
    Input = 2,
    Refused = 3,
    RefusedForNow = 4,
    Unavailable = 5,
    /// What timeout(1) answers for a command that it stopped.
    Lost = 124,
}

impl Failed {
    /// How the process ends.
    pub(crate) fn exit(&self) -> ExitCode {
        match self {
            Self::Ended(code) => ExitCode::from(*code),
            failed => failed.code().into(),
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::Lost { .. } => Code::Lost,
            Self::Problem(problem) => code_of(problem),
            Self::Unreachable { .. } => Code::Unavailable,
            Self::Input(_) => Code::Input,
            Self::Shown(code) => *code,
            Self::Ended(_) | Self::Fault(_) => Code::Fault,
        }
    }
}

fn code_of(problem: &Problem) -> Code {
    match problem.status {
        500 => Code::Fault,
        503 => Code::Unavailable,
        400 | 405 | 413 | 415 | 428 => Code::Input,
        _ if problem.retryable => Code::RefusedForNow,
        _ => Code::Refused,
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(problem) => problem.fmt(f),
            Self::Unreachable { url, why: Silence::Nobody } => {
                write!(f, "no daemon at {url}: start one with `interlock serve`")
            }
            Self::Unreachable { url, why: Silence::Broken(why) } => write!(f, "no answer from {url}: {why}"),
            Self::Input(what) => f.write_str(what),
            Self::Shown(_) => f.write_str("see above"),
            Self::Ended(code) => write!(f, "the command ended with {code}"),
            Self::Lost { lease, why } => write!(f, "lease {lease} was lost and the command stopped: {why}"),
            Self::Fault(error) => write!(f, "{error:#}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_daemon::Reason;
    use std::fmt::Write;

    #[test]
    fn every_reason_has_its_exit_code() {
        let mut table = String::new();
        for reason in Reason::all() {
            let plain = Problem::new(reason, "s", "e", "g");
            let (code, status, _) = reason.row();
            let line = (code_of(&plain), code_of(&plain.retry_after(1)));
            let _ = writeln!(table, "{status} {code:<22} {:?}, retryable {:?}", line.0, line.1);
        }
        expect_test::expect![[r#"
            400 invalid                Input, retryable Input
            404 not_found              Refused, retryable RefusedForNow
            403 denied                 Refused, retryable RefusedForNow
            422 id_reused              Refused, retryable RefusedForNow
            409 late                   Refused, retryable RefusedForNow
            409 final                  Refused, retryable RefusedForNow
            409 fenced                 Refused, retryable RefusedForNow
            409 spent                  Refused, retryable RefusedForNow
            409 paused                 Refused, retryable RefusedForNow
            409 busy                   Refused, retryable RefusedForNow
            412 conflict               Refused, retryable RefusedForNow
            409 not_allowed            Refused, retryable RefusedForNow
            422 require                Refused, retryable RefusedForNow
            422 guard                  Refused, retryable RefusedForNow
            429 limit                  Refused, retryable RefusedForNow
            503 unavailable            Unavailable, retryable Unavailable
            429 outbox_full            Refused, retryable RefusedForNow
            413 limit                  Input, retryable Input
            404 not_found              Refused, retryable RefusedForNow
            405 method_not_allowed     Input, retryable Input
            415 media_type             Input, retryable Input
            428 precondition_required  Input, retryable Input
            410 gone                   Refused, retryable RefusedForNow
            503 indeterminate          Unavailable, retryable Unavailable
            500 internal               Fault, retryable Fault
        "#]]
        .assert_eq(&table);
    }
}
