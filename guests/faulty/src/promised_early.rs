//! Resizes a pool. The first step tells clients of the new size, long before there is one; a cancel in
//! between leaves the promise behind.

use interlock::{Done, Entity, Failure, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    size: u32,
    target: u32,
}

#[derive(Serialize)]
struct Outputs {
    size: u32,
}

pub(crate) fn plan(pool: &Entity) -> Result<Done, Failure> {
    let data: Data = pool.data()?;
    Ok(pool.transition(to("provisioning").outputs(&Outputs { size: data.target }))?)
}

pub(crate) fn verify(pool: &Entity) -> Result<Done, Failure> {
    let mut data: Data = pool.data()?;
    data.size = data.target;
    Ok(pool.transition(to("ready").data(&data))?)
}

pub(crate) fn plan_mended(pool: &Entity) -> Result<Done, Failure> {
    Ok(pool.transition(to("provisioning"))?)
}

pub(crate) fn verify_mended(pool: &Entity) -> Result<Done, Failure> {
    let mut data: Data = pool.data()?;
    data.size = data.target;
    Ok(pool.transition(to("ready").data(&data).outputs(&Outputs { size: data.size }))?)
}
