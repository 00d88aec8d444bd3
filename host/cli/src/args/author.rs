//! What step authors ask for: a new folder, and its machine deployed on every change.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use interlock_build::Language;
use interlock_kernel::ids::{EntityKey, MachineName};
use std::path::PathBuf;

/// `new`.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// The machine's name, and the folder's.
    pub(crate) name: MachineName,
    /// The language of its steps.
    #[arg(long, value_name = "LANGUAGE", value_parser = language())]
    pub(crate) lang: Language,
    /// The folder; it must not be there, or be empty.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// The Rust SDK; without it, that of the checkout which this program was built from.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) sdk: Option<PathBuf>,
}

/// `dev`.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// A folder with a machine.toml. What effects of its own daemon may do is INTERLOCK_CONFIG's to say, as for `serve`.
    #[arg(default_value = ".", value_name = "FOLDER")]
    pub(crate) path: PathBuf,
    /// Tells of this entity only, from its beginning; made if it is not there.
    #[arg(long, value_name = "KEY")]
    pub(crate) entity: Option<EntityKey>,
}

fn language() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(Language::ALL.map(Language::name))
        .try_map(|name| Language::ALL.into_iter().find(|language| language.name() == name).ok_or("no such language"))
}
