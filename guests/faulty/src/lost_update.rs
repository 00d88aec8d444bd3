//! Bills what was used. Usage may be reported meanwhile; the step then meets a conflict, reads again, and
//! writes what it knew before.

use interlock::{Done, Entity, Failure, Rejection, RejectionKind, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    used: u32,
    billed: u32,
}

pub(crate) fn bill(meter: &Entity) -> Result<Done, Failure> {
    let data = billed(meter)?;
    loop {
        match meter.transition(to("open").data(&data)) {
            Err(no) if is_conflict(&no) => meter.reload()?,
            answer => return Ok(answer?),
        }
    }
}

pub(crate) fn bill_mended(meter: &Entity) -> Result<Done, Failure> {
    loop {
        let data = billed(meter)?;
        match meter.transition(to("open").data(&data)) {
            Err(no) if is_conflict(&no) => meter.reload()?,
            answer => return Ok(answer?),
        }
    }
}

fn billed(meter: &Entity) -> Result<Data, Failure> {
    let data: Data = meter.data()?;
    Ok(Data { billed: data.used, ..data })
}

fn is_conflict(no: &Rejection) -> bool {
    no.kind == RejectionKind::Conflict
}
