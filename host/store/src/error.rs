//! What can go wrong with a store, as callers must tell it apart.
//!
//! A refusal decided by a job is not an error and is not here: see [`crate::Abort`].
//! Every message says what was expected and what was got.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why the store could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// A named limit was passed; only the job, query or call that passed it fails.
    Limit {
        /// The limit's name, as in [`crate::LIMITS`].
        name: &'static str,
        /// The largest allowed value.
        max: u64,
        /// What was asked for.
        got: u64,
    },
    /// The key is empty or lies in the range the store keeps for itself.
    ReservedKey {
        /// The refused key.
        key: Vec<u8>,
    },
    /// The job panicked; none of its writes were kept, other jobs were not touched.
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// Nothing was written and the same request may succeed later.
    Unavailable {
        /// What stands in the way.
        why: String,
    },
    /// The write may or may not be durable; read before deciding again.
    Indeterminate {
        /// Why its fate is not known.
        why: String,
    },
    /// Stored bytes are not what this store writes.
    Corrupt {
        /// What should have been there.
        expected: String,
        /// What was found.
        got: String,
    },
    /// The store is closed or closing.
    Closed,
    /// The data was written by a later release.
    NewerFormat {
        /// The version found in the data.
        found: u32,
        /// The latest version this release can read.
        supported: u32,
    },
    /// Another handle, here or in another process, has this store open.
    AlreadyOpen {
        /// The data directory, or the name of the image.
        path: PathBuf,
        /// The process that holds it, if it could be read.
        pid: Option<u32>,
    },
    /// The file system refused while opening or closing.
    Io {
        /// What was being done.
        doing: String,
        /// The kind of refusal.
        kind: io::ErrorKind,
        /// The system's message.
        message: String,
    },
}

impl StoreError {
    /// True if nothing was written and asking again later is sensible.
    pub fn is_retryable(&self) -> bool {
        match self {
            StoreError::Unavailable { .. } => true,
            StoreError::Limit { name, .. } => name.starts_with("queue."),
            StoreError::ReservedKey { .. }
            | StoreError::Panicked { .. }
            | StoreError::Indeterminate { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Closed
            | StoreError::NewerFormat { .. }
            | StoreError::AlreadyOpen { .. }
            | StoreError::Io { .. } => false,
        }
    }

    /// Wraps what the file system said while `doing` something.
    pub fn io(doing: impl Into<String>, error: &io::Error) -> StoreError {
        StoreError::Io { doing: doing.into(), kind: error.kind(), message: error.to_string() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Limit { name, max, got } => {
                write!(f, "limit {name}: expected at most {max}, got {got}")
            }
            StoreError::ReservedKey { key } => write!(
                f,
                "reserved key: expected a first byte of at least 0x02, got {}",
                key.first().map_or("an empty key".to_string(), |byte| format!("0x{byte:02x}"))
            ),
            StoreError::Panicked { message } => {
                write!(f, "expected the job to return, got a panic: {message}")
            }
            StoreError::Unavailable { why } => {
                write!(f, "expected a store that accepts this, got: {why}")
            }
            StoreError::Indeterminate { why } => {
                write!(f, "expected a durable answer, got an unknown fate: {why}")
            }
            StoreError::Corrupt { expected, got } => {
                write!(f, "corrupt store: expected {expected}, got {got}")
            }
            StoreError::Closed => write!(f, "expected an open store, got a closed one"),
            StoreError::NewerFormat { found, supported } => {
                write!(f, "expected store format {supported} or older, got {found}: use a newer release")
            }
            StoreError::AlreadyOpen { path, pid } => {
                write!(f, "expected {} to be free, got it open", path.display())?;
                match pid {
                    Some(pid) => write!(f, " in process {pid}"),
                    None => write!(f, " elsewhere"),
                }
            }
            StoreError::Io { doing, message, .. } => {
                write!(f, "expected to {doing}, got: {message}")
            }
        }
    }
}

impl std::error::Error for StoreError {}
