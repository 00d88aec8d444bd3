//! Packs orders. A client that got no answer sends its order again, as a new event; the last order is
//! remembered to recognise that, and it need not be the last.

use interlock::{Done, Entity, Failure, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    parcels: u32,
    packed: Vec<String>,
}

#[derive(Deserialize)]
struct Order {
    order: String,
}

pub(crate) fn pack(shop: &Entity) -> Result<Done, Failure> {
    let (mut data, order) = read(shop)?;
    if data.packed.last() != Some(&order) {
        data.parcels += 1;
        data.packed = vec![order];
    }
    Ok(shop.transition(to("open").data(&data))?)
}

pub(crate) fn pack_mended(shop: &Entity) -> Result<Done, Failure> {
    let (mut data, order) = read(shop)?;
    if !data.packed.contains(&order) {
        data.parcels += 1;
        data.packed.push(order);
    }
    Ok(shop.transition(to("open").data(&data))?)
}

fn read(shop: &Entity) -> Result<(Data, String), Failure> {
    let order: Order = shop.event().payload()?.ok_or_else(|| Failure::permanent("no order came with the event"))?;
    Ok((shop.data()?, order.order))
}
