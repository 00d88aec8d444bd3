//! Packs the next order of a table that other packers take from too: looks which one is pending, then marks it.
//! Between the two somebody else may have looked.

use interlock::{Done, Entity, Failure, field, to};

pub(crate) fn take(packer: &Entity) -> Result<Done, Failure> {
    let orders = packer.rows("orders");
    let pending = orders.query().matching(field("status").eq("pending")).limit(1).now()?;
    for order in pending.rows {
        orders.update(&*order.key).set("status", "in_flight").now()?;
        orders.update(&*order.key).set("status", "packed").increment("times", 1).stage()?;
    }
    Ok(packer.transition(to("idle"))?)
}

/// Looks and marks in one transaction; an attempt behind a lost one is given the same order again.
pub(crate) fn take_mended(packer: &Entity) -> Result<Done, Failure> {
    let orders = packer.rows("orders");
    for order in orders.claim().limit(1).now()?.rows {
        orders.update(&*order.key).set("status", "packed").increment("times", 1).stage()?;
    }
    Ok(packer.transition(to("idle"))?)
}
