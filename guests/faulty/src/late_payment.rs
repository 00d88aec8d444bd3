//! Holds a seat until it is paid or 15 minutes are over. Which payments come too late, the manifest says.

use interlock::{Done, Entity, Failure, checkpoint, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    held: bool,
}

/// Gives the seat back, so that others can have it, and ends the order.
pub(crate) fn release(order: &Entity) -> Result<Done, Failure> {
    order.save(checkpoint().data(&Data { held: false }))?;
    Ok(order.transition(to("expired"))?)
}

pub(crate) fn ship(order: &Entity) -> Result<Done, Failure> {
    Ok(order.transition(to("shipped"))?)
}
