//! A value in a request, and where it stands.

use super::Misread;
use crate::log::excerpt;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{BadName, nearest};
use serde_json::{Map, Value as Json};
use std::str::FromStr;

pub(super) struct At<'j> {
    pub(super) json: &'j Json,
    /// JSON Pointer.
    path: String,
}

impl<'j> At<'j> {
    pub(super) fn root(json: &'j Json) -> Self {
        Self { json, path: String::new() }
    }

    fn below(&self, part: &str, json: &'j Json) -> Self {
        Self { json, path: format!("{}/{}", self.path, part.replace('~', "~0").replace('/', "~1")) }
    }

    /// What stands here is not what is expected.
    pub(super) fn misread(&self, expected: impl Into<String>) -> Misread {
        Misread { at: self.path.clone(), expected: expected.into(), got: excerpt(Doc::new(self.json.clone()).text()) }
    }

    /// The same, and what is wrong with it is something else than the value itself.
    pub(super) fn misread_as(&self, expected: impl Into<String>, got: impl Into<String>) -> Misread {
        Misread { at: self.path.clone(), expected: expected.into(), got: got.into() }
    }

    pub(super) fn text(&self, expected: &str) -> Result<&'j str, Misread> {
        self.json.as_str().ok_or_else(|| self.misread(expected))
    }

    pub(super) fn boolean(&self) -> Result<bool, Misread> {
        self.json.as_bool().ok_or_else(|| self.misread("true or false"))
    }

    pub(super) fn list(&self, expected: &str) -> Result<Vec<At<'j>>, Misread> {
        let items = self.json.as_array().ok_or_else(|| self.misread(expected))?;
        Ok(items.iter().enumerate().map(|(index, item)| self.below(&index.to_string(), item)).collect())
    }

    /// Each element of a list, read.
    pub(super) fn each<T>(
        &self,
        expected: &str,
        read: impl FnMut(At<'j>) -> Result<T, Misread>,
    ) -> Result<Vec<T>, Misread> {
        self.list(expected)?.into_iter().map(read).collect()
    }

    pub(super) fn map(&self, expected: &str) -> Result<&'j Map<String, Json>, Misread> {
        self.json.as_object().ok_or_else(|| self.misread(expected))
    }

    /// The entries of an object, by name: which order they were written in is not told by every reader of JSON.
    pub(super) fn entries(&self, expected: &str) -> Result<Vec<(&'j str, At<'j>)>, Misread> {
        let mut found: Vec<_> =
            self.map(expected)?.iter().map(|(name, json)| (name.as_str(), self.below(name, json))).collect();
        found.sort_unstable_by_key(|(name, _)| *name);
        Ok(found)
    }

    /// What stands at a field; nothing too if this is no object.
    pub(super) fn get(&self, name: &str) -> Option<At<'j>> {
        Some(self.below(name, self.json.get(name)?))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.json.get(name).is_some()
    }

    pub(super) fn need(&self, name: &str, expected: &str) -> Result<At<'j>, Misread> {
        self.get(name).ok_or_else(|| Misread {
            at: format!("{}/{name}", self.path),
            expected: expected.to_owned(),
            got: "nothing".to_owned(),
        })
    }

    /// An object has no other fields than these.
    pub(super) fn only(&self, expected: &str, known: &[&str]) -> Result<(), Misread> {
        let other = self.entries(expected)?.into_iter().find(|(name, _)| !known.contains(name));
        other.map_or(Ok(()), |(name, at)| Err(at.unknown(name, known)))
    }

    /// A field of this name is not one of those that are known.
    pub(super) fn unknown(&self, name: &str, known: &[&str]) -> Misread {
        self.misread_as(one_of(name, known), format!("{:?}", excerpt(name)))
    }

    /// A name of the kernel's.
    pub(super) fn name<T: FromStr<Err = BadName>>(&self, expected: &str) -> Result<T, Misread> {
        self.text(expected)?
            .parse()
            .map_err(|bad: BadName| self.misread_as(format!("{expected} ({})", bad.expected), format!("{:?}", bad.got)))
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Misread> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let text = self.text(&format!("one of {}", names.join(", ")))?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.ok_or_else(|| self.misread(one_of(text, &names)))
    }
}

/// `one of a, b, c`, and which of them may have been meant.
fn one_of(got: &str, known: &[&str]) -> String {
    let near = nearest(got, known.iter().copied()).map(|near| format!(" (did you mean {near}?)"));
    let one_of = if known.len() == 1 { "only " } else { "one of " };
    format!("{one_of}{}{}", known.join(", "), near.unwrap_or_default())
}
