//! Empties a mailbox that others empty too, one at a time: whoever has its lease. That it has the lease is noted,
//! and not asked again. A lease that was lost with an attempt is noted all the same.

use interlock::{Done, Entity, Failure, checkpoint, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    taken: bool,
}

pub(crate) fn empty(mailbox: &Entity) -> Result<Done, Failure> {
    let data: Data = mailbox.data()?;
    if !data.taken {
        let _lease = mailbox.lease("mailbox")?;
        mailbox.save(checkpoint().data(&Data { taken: true }))?;
    }
    Ok(mailbox.transition(to("emptied"))?)
}

/// Asks with every attempt: a lease that the execution still has is renewed.
pub(crate) fn empty_mended(mailbox: &Entity) -> Result<Done, Failure> {
    let _lease = mailbox.lease("mailbox")?;
    mailbox.save(checkpoint().data(&Data { taken: true }))?;
    Ok(mailbox.transition(to("emptied"))?)
}
