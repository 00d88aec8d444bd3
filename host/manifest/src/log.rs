//! Problems as they are found, put in the order of the file.

use crate::problem::{Kind, Problem, Severity};
use interlock_kernel::ids::nearest;
use std::ops::Range;

/// Where something stands, in bytes of the text.
pub type Span = Range<usize>;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Spot<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub at: Span,
}

/// Problems kept of one manifest: more are noise, and each is rendered with its lines.
const PROBLEMS_MAX: usize = 200;

/// The problems of one text.
#[derive(Debug)]
pub struct Log<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    problems: Vec<Problem>,
}

impl<'a> Log<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, line_starts, problems: Vec::new() }
    }

    /// Adds a problem; the caller may say more about it.
    pub fn add(
        &mut self,
        kind: impl Into<Kind>,
        at: &Span,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Entry<'_> {
        let kind = kind.into();
        let span = self.clamp(at);
        let line = self.line(span.start);
        let line_start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let column = self.text.get(line_start..span.start).unwrap_or_default().chars().count() + 1;
        self.problems.push(Problem {
            severity: kind.severity,
            code: kind.code,
            message: message.into(),
            expected: None,
            got: None,
            span,
            line,
            column,
            remedy: remedy.into(),
        });
        Entry(self.problems.last_mut())
    }

    /// The line of a byte, from 1.
    #[must_use]
    pub fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at).max(1)
    }

    fn clamp(&self, at: &Span) -> Span {
        let mut start = at.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = at.end.clamp(start, self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        start..end
    }

    /// Keeps what `keep` wants.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Problem) -> bool) {
        self.problems.retain(keep);
    }

    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All of them in the order of the file, and how many were left out.
    pub(crate) fn finish(mut self) -> (Vec<Problem>, usize) {
        self.problems.sort_by_key(|problem| (problem.span.start, problem.severity, problem.span.end));
        self.problems.dedup();
        if self.problems.len() <= PROBLEMS_MAX {
            return (self.problems, 0);
        }
        // Errors are what keeps the manifest from being deployed: none may hide behind warnings.
        let left_out = self.problems.len() - PROBLEMS_MAX;
        self.problems.sort_by_key(|problem| problem.severity);
        self.problems.truncate(PROBLEMS_MAX);
        self.problems.sort_by_key(|problem| problem.span.start);
        (self.problems, left_out)
    }
}

/// A problem that was just added.
#[derive(Debug)]
pub struct Entry<'a>(Option<&'a mut Problem>);

impl Entry<'_> {
    /// What should have stood there.
    pub fn expected(mut self, text: impl Into<String>) -> Self {
        if let Some(problem) = &mut self.0 {
            problem.expected = Some(text.into());
        }
        self
    }

    /// What stood there.
    pub fn got(mut self, text: impl Into<String>) -> Self {
        if let Some(problem) = &mut self.0 {
            problem.got = Some(text.into());
        }
        self
    }
}

/// "did you mean `x`?", or all that are valid, or `otherwise` if nothing is.
#[must_use]
pub fn suggest<'a>(got: &str, valid: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    let valid: Vec<&str> = valid.into_iter().collect();
    let near = nearest(got, valid.iter().copied());
    match (near, valid.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => otherwise.to_owned(),
        (None, [only]) => format!("use `{only}`"),
        (None, names) => format!("use one of {}", list(names)),
    }
}

/// `a`, `b` and 3 more.
#[must_use]
pub fn list(names: &[&str]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A text short enough to stand in a message.
#[must_use]
pub fn excerpt(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}... ({} bytes)", text.get(..end).unwrap_or_default(), text.len()),
    }
}
