//! Puts a message on a channel that one sender may use at a time: takes the lease of it, lets a draft rest, then
//! sends. If it is to rest once more, that is longer than anybody may have the lease. It is mended in the manifest:
//! the state that sends needs the lease, whatever was before it.

use interlock::{Done, Entity, Failure, to};

pub(crate) fn draft(message: &Entity) -> Result<Done, Failure> {
    let _lease = message.lease("channel")?;
    Ok(message.transition(to("resting"))?)
}

pub(crate) fn send(message: &Entity) -> Result<Done, Failure> {
    Ok(message.transition(to("sent"))?)
}
