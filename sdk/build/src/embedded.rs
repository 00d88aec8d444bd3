//! The SDKs and the contract, as they were when this was compiled. `build.rs` of this crate lists them.

/// One file.
#[derive(Debug)]
pub(crate) struct File {
    /// Where it is, below its folder.
    pub(crate) path: &'static str,
    /// What is in it.
    pub(crate) bytes: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
