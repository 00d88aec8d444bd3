//! What is fuzzed: bytes in, what was seen or what broke out.

use crate::targets::{change, decide, guard, json, manifest, names, records, rows, schedule, table};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A part of the system that takes input from outside.
pub trait Target: Sync {
    /// Its name; its corpus is the folder of that name.
    fn name(&self) -> &'static str;

    /// Words of its grammar, which are put into inputs, with `¦` between them.
    fn words(&self) -> &'static str;

    /// Inputs beside those of the corpus folder, made by running something.
    fn seeds(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Runs one input.
    ///
    /// # Errors
    /// The property that does not hold.
    fn run(&self, input: &[u8]) -> Result<Seen, Broken>;
}

/// A property that does not hold, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl<T: Into<String>> From<T> for Broken {
    fn from(why: T) -> Self {
        Self(why.into())
    }
}

/// Words of a thing said that tell it from others.
const WORDS_SAID: usize = 3;

/// What an input made the target say. Two inputs that make it say the same are taken to run the same code.
#[derive(Debug, Default)]
pub struct Seen(BTreeSet<u64>);

impl Seen {
    /// Notes a thing that was said by its first words, without what stands in quotes and without digits: those
    /// differ from input to input.
    pub fn say(&mut self, said: &str) {
        let (mut quoted, mut escaped) = (None, false);
        let plain = |c: &char| {
            match (quoted, c) {
                (None, '"' | '`') => quoted = Some(*c),
                (Some(mark), c) if mark == *c && !escaped => quoted = None,
                _ => {}
            }
            escaped = *c == '\\' && !escaped;
            quoted.is_none() && (c.is_ascii_lowercase() || *c == ' ')
        };
        let shape: String = said.chars().filter(plain).collect();
        self.note(&shape.split_whitespace().take(WORDS_SAID).collect::<Vec<_>>());
    }

    /// Notes a thing as it is.
    pub fn note(&mut self, thing: &(impl Hash + ?Sized)) {
        let mut hasher = DefaultHasher::new();
        thing.hash(&mut hasher);
        self.0.insert(hasher.finish());
    }

    /// Notes how large something is, by its power of two.
    pub fn size(&mut self, what: &str, number: usize) {
        self.note(&(what, number.checked_ilog2()));
    }

    /// Every note.
    pub fn notes(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }
}

/// Every target.
#[must_use]
pub fn targets() -> [&'static dyn Target; 10] {
    [
        &manifest::Manifest,
        &table::Tables,
        &schedule::Schedules,
        &rows::Rows,
        &json::Json,
        &names::Names,
        &guard::Guard,
        &change::Changes,
        &records::Records,
        &decide::Decide,
    ]
}

/// The target of a name.
#[must_use]
pub fn target(name: &str) -> Option<&'static dyn Target> {
    targets().into_iter().find(|target| target.name() == name)
}

thread_local! {
    /// Where the panic that is being caught came from; none while panics are not caught.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs one input; a panic is a property that does not hold.
///
/// # Errors
/// The property, or the panic and its place.
pub fn guarded(target: &dyn Target, input: &[u8]) -> Result<Seen, Broken> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let caught = CAUGHT.with(|caught| match &mut *caught.borrow_mut() {
                None => false,
                Some(text) => {
                    *text = info.to_string();
                    true
                }
            });
            if !caught {
                before(info);
            }
        }));
    });
    CAUGHT.set(Some(String::new()));
    let ran = catch_unwind(AssertUnwindSafe(|| target.run(input)));
    let said = CAUGHT.take().unwrap_or_default();
    ran.unwrap_or(Err(Broken(said)))
}
