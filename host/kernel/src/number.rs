//! Numbers that only the kernel mints.
//!
//! A [`Version`] and a [`FencingToken`] can be read by anyone and made by nobody: there is no
//! constructor outside this crate and no `Deserialize`, so a single number never becomes one. A whole
//! stored record decodes, through the private functions at the end of this file.
//!
//! ```compile_fail
//! let forged = interlock_kernel::Version(7);
//! ```
//! ```compile_fail
//! let forged: interlock_kernel::FencingToken = serde_json::from_str("7").unwrap();
//! ```

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

macro_rules! minted {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(u64);

        impl $name {
            /// The number, to be read.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            pub(crate) const fn mint(number: u64) -> Self {
                Self(number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

minted! {
    /// Counts the accepted changes of an entity's state, data or outputs; grows by one each.
    Version
}
minted! {
    /// A number that only grows, minted at every attempt and checked in the transaction of the write.
    /// Comparable between any two grants of one store; below 2^53.
    FencingToken
}
minted! {
    /// Tells an entity from a deleted one with the same key.
    Incarnation
}
minted! {
    /// One boot of one host on a store.
    SessionId
}

impl Version {
    /// A created entity's version.
    pub(crate) const FIRST: Self = Self(1);

    pub(crate) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

macro_rules! decoders {
    ($($function:ident -> $name:ident),*) => {$(
        pub(crate) fn $function<'de, D: Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
            stored(&from)?;
            u64::deserialize(from).map($name::mint)
        }
    )*};
}
decoders!(version -> Version, token -> FencingToken, incarnation -> Incarnation, session -> SessionId);

pub(crate) fn optional_token<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FencingToken>, D::Error> {
    stored(&from)?;
    Ok(Option::<u64>::deserialize(from)?.map(FencingToken::mint))
}

pub(crate) fn optional_session<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SessionId>, D::Error> {
    stored(&from)?;
    Ok(Option::<u64>::deserialize(from)?.map(SessionId::mint))
}

/// Numbers come back from stored records only, and those are not text: nothing that arrives as JSON
/// becomes a record with a number of its own making.
fn stored<'de, D: Deserializer<'de>>(from: &D) -> Result<(), D::Error> {
    match from.is_human_readable() {
        true => Err(serde::de::Error::custom("expected a stored record, got text")),
        false => Ok(()),
    }
}

impl SessionId {
    /// As it stands in a stored key. A session is not a right: it only tells boots apart.
    #[must_use]
    pub const fn stored(number: u64) -> Self {
        Self(number)
    }
}

impl Incarnation {
    /// As it stands in a stored key. An incarnation is not a right: it only tells entities apart.
    #[must_use]
    pub const fn stored(number: u64) -> Self {
        Self(number)
    }
}
