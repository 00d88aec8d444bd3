//! One build of one folder, whatever language it is in.

use crate::detect::{Language, Source, detect};
use crate::place::Place;
use crate::script::Made;
use crate::{BuildError, c, cache, js, lift, python, rust};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A component on disk.
#[derive(Clone, Debug)]
pub struct Built {
    /// The package it was built from.
    pub name: String,
    /// What it is written in.
    pub language: Language,
    /// What made it: name and release.
    pub tool: String,
    /// Where it is.
    pub path: PathBuf,
    /// How large it is.
    pub bytes: u64,
    /// BLAKE3 of its bytes, as hexadecimal text.
    pub digest: String,
    /// Whether it was there already, and nothing had to be built.
    pub cached: bool,
    /// How long the build that it was part of took.
    pub took: Duration,
}

/// How to build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What is printed on the way.
    pub progress: Progress,
    /// What is done if nothing has changed.
    pub again: Again,
}

/// What tools may print to standard error while they build; what keeps a component from being built is told in any
/// case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// What they are at, and warnings.
    #[default]
    Shown,
    /// Nothing.
    Silent,
}

/// When something is built that has been built before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Again {
    /// If its source, SDK or tools have changed.
    #[default]
    IfChanged,
    /// In any case.
    Always,
}

/// Builds the one step in this folder, into `.interlock/build/NAME.wasm` below it.
///
/// The folder also gets the SDK of its language and the contract, below `.interlock/`, where editors find them. Two
/// processes that build the same folder take turns.
///
/// # Errors
/// [`BuildError`] says which part failed and what to do.
pub fn build(folder: &Path, options: Options) -> Result<Built, BuildError> {
    let start = Instant::now();
    let source = detect(folder)?;
    let recipe = recipe(&source)?;
    let place = Place::take(&source)?;
    let built = match recipe {
        Some(recipe) => follow(&*recipe, &source, &place, options)?,
        None => rust::build(&source, &place, options)?,
    };
    // Shown as the caller named the folder.
    let path = folder.join(".interlock/build").join(format!("{}.wasm", built.name));
    Ok(Built { path, took: start.elapsed(), ..built })
}

/// How a component is made of a source, with all tools found.
pub(crate) trait Recipe {
    /// The tools' releases: with others, the component is another.
    fn versions(&self) -> &[String];

    /// Makes it.
    fn make(&self, source: &Source, place: &Place, options: Options) -> Result<Made, BuildError>;
}

/// The recipe of each language but Rust, where cargo knows what is to be done.
fn recipe(source: &Source) -> Result<Option<Box<dyn Recipe>>, BuildError> {
    Ok(match source.language {
        Language::Rust => None,
        Language::JavaScript | Language::TypeScript => Some(Box::new(js::Tools::find(source)?)),
        Language::Python => Some(Box::new(python::Tools::find(source)?)),
        Language::C => Some(Box::new(c::Tools::find()?)),
    })
}

fn follow(recipe: &dyn Recipe, source: &Source, place: &Place, options: Options) -> Result<Built, BuildError> {
    let key = cache::key(source, recipe.versions())?;
    if options.again == Again::IfChanged
        && let Some(kept) = cache::kept(source, place, &key)
    {
        return Ok(Built::new(&source.name, source.language, kept.tool, &kept.component, true));
    }
    let made = recipe.make(source, place, options)?;
    let component = lift(&made.module)?;
    cache::keep(source, place, &key, &made, &component)?;
    Ok(Built::new(&source.name, source.language, made.tool, &component, false))
}

impl Built {
    /// One whose place and time are still to be said.
    pub(crate) fn new(name: &str, language: Language, tool: String, component: &[u8], cached: bool) -> Self {
        Self {
            name: name.to_owned(),
            language,
            tool,
            path: PathBuf::new(),
            bytes: component.len() as u64,
            digest: blake3::hash(component).to_hex().to_string(),
            cached,
            took: Duration::ZERO,
        }
    }
}
