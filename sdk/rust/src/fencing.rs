//! The fencing token of an attempt, to carry outside.
//!
//! A receiver that remembers the highest token it has seen and refuses lower ones cannot be
//! written by a late owner. The host checks its own writes itself.

use crate::Entity;

/// The token of this attempt: higher than that of any attempt before, below 2^53.
#[must_use]
pub fn token(entity: &Entity) -> u64 {
    entity.token()
}

/// Whether this attempt is still the open one. True is the answer of one moment: send the token
/// along with whatever you do next.
#[must_use]
pub fn still_holds(entity: &Entity) -> bool {
    entity.still_holds()
}
