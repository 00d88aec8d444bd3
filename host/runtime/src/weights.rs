//! What a run of each component takes of this machine's memory.
//!
//! A component weighs what it declares; after each run, the most that a run of it took. That is kept beside its
//! machine code, so that the first run after a restart is weighed as the last one before. It is linear memory and
//! tables, as if all of it were touched: a bound of what is resident, not a measure of it.

use crate::files;
use crate::limits::{LIGHT_BYTES, UNKNOWN_BYTES};
use interlock_kernel::doc::Digest;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Weights are whole MiB: a component whose need varies by less is written down once.
const STEP_BYTES: u64 = 1 << 20;
/// A reference in a table, in bytes.
const ELEMENT_BYTES: u64 = 8;

/// What a number of table elements takes, in bytes.
pub(crate) const fn table_bytes(elements: u64) -> u64 {
    elements.saturating_mul(ELEMENT_BYTES)
}

/// The weights of the components of one data folder.
pub(crate) struct Weights {
    folder: PathBuf,
    known: RwLock<HashMap<Digest, u64>>,
}

impl Weights {
    /// Reads what was kept in a folder. A file that says nothing is passed: its component is weighed anew.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let mut known = HashMap::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let named = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(SUFFIX));
            let Some(digest) = named.and_then(|name| name.parse::<Digest>().ok()) else { continue };
            if let Some(bytes) = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()) {
                known.insert(digest, bytes);
            }
        }
        Ok(Self { folder: folder.to_owned(), known: RwLock::new(known) })
    }

    /// What a run of it is expected to take; 0 if that is too little to be weighed.
    pub(crate) fn of(&self, digest: Digest) -> u64 {
        match self.known.read().unwrap_or_else(PoisonError::into_inner).get(&digest) {
            Some(bytes) if *bytes <= LIGHT_BYTES => 0,
            Some(bytes) => *bytes,
            None => UNKNOWN_BYTES,
        }
    }

    /// A run of it takes at least this much. True if that is news, and worth [keeping](Self::keep).
    pub(crate) fn at_least(&self, digest: Digest, bytes: u64) -> bool {
        let bytes = bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES);
        let is_known = |known: &HashMap<Digest, u64>| known.get(&digest).is_some_and(|known| *known >= bytes);
        if is_known(&self.known.read().unwrap_or_else(PoisonError::into_inner)) {
            return false;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if is_known(&known) {
            return false;
        }
        known.insert(digest, bytes);
        true
    }

    /// Writes down what a run of it takes. Failing to is no failure of anything else.
    pub(crate) fn keep(&self, digest: Digest) {
        let bytes = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&digest).copied();
        let Some(bytes) = bytes else { return };
        if let Err(why) = files::place(&self.folder, &format!("{digest}{SUFFIX}"), bytes.to_string().as_bytes()) {
            tracing::warn!(component = %digest, "what it takes is not kept, the next boot learns it again: {why}");
        }
    }
}

/// How the name of a file ends that says what a component takes, in bytes.
const SUFFIX: &str = ".weight";

#[cfg(test)]
mod tests {
    use super::Weights;
    use crate::limits::UNKNOWN_BYTES;
    use interlock_kernel::doc::Digest;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_component_weighs_the_most_that_a_run_of_it_took_also_after_a_restart() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let weights = Weights::open(folder.path())?;
        let (heavy, light) = (Digest([1; 32]), Digest([2; 32]));
        assert_eq!(weights.of(heavy), UNKNOWN_BYTES);
        assert!(weights.at_least(heavy, 20 * MIB + 1));
        assert_eq!(weights.of(heavy), 21 * MIB);
        assert!(!weights.at_least(heavy, 10 * MIB) && !weights.at_least(heavy, 21 * MIB));
        assert_eq!(weights.of(heavy), 21 * MIB);
        assert!(weights.at_least(light, 4 * MIB));
        assert_eq!(weights.of(light), 0);
        weights.keep(heavy);
        std::fs::write(folder.path().join(format!("{light}.weight")), "a lot")?;

        let weights = Weights::open(folder.path())?;
        assert_eq!(weights.of(heavy), 21 * MIB);
        assert_eq!(weights.of(light), UNKNOWN_BYTES, "a file that says nothing");
        Ok(())
    }
}
