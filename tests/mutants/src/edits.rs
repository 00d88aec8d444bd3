//! Text edits of one source file, nested ones included: what is rewritten inside an expression stays
//! rewritten when the expression around it is.

use std::ops::Range;

/// A source file being rewritten.
pub(crate) struct Edits<'a> {
    source: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    pub(crate) fn of(source: &'a str) -> Self {
        Self { source, edits: Vec::new() }
    }

    /// The text as it was written.
    pub(crate) fn written(&self, range: Range<usize>) -> &'a str {
        self.source.get(range).unwrap_or_default()
    }

    /// The text as it stands now; its edits are the caller's to put back, inside a larger one.
    pub(crate) fn take(&mut self, range: Range<usize>) -> String {
        let inside = |edit: &Range<usize>| range.start <= edit.start && edit.end <= range.end;
        let (mut taken, kept): (Vec<_>, Vec<_>) = self.edits.drain(..).partition(|(edit, _)| inside(edit));
        self.edits = kept;
        // What is inserted before a place comes before what replaces the place; both in the order they were made.
        taken.sort_by_key(|(edit, _)| (edit.start, !edit.is_empty()));
        let mut text = String::new();
        let mut at = range.start;
        for (edit, new) in taken {
            text.push_str(self.written(at..edit.start));
            text.push_str(&new);
            at = edit.end;
        }
        text.push_str(self.written(at..range.end));
        text
    }

    /// Replaces a range whose inner edits were taken.
    pub(crate) fn put(&mut self, range: Range<usize>, text: String) {
        self.edits.push((range, text));
    }

    /// Adds text in front of a place.
    pub(crate) fn before(&mut self, place: usize, text: String) {
        self.edits.push((place..place, text));
    }

    /// The whole file, rewritten.
    pub(crate) fn finish(mut self) -> String {
        self.take(0..self.source.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Edits;

    #[test]
    fn inner_edits_survive_an_outer_one() {
        let mut edits = Edits::of("if a < b { c }");
        edits.put(3..4, "A".to_owned());
        let inner = edits.take(3..8);
        edits.put(3..8, format!("f({inner})"));
        edits.before(0, "x; ".to_owned());
        edits.before(0, "y; ".to_owned());
        assert_eq!(edits.finish(), "x; y; if f(A < b) { c }");
    }
}
