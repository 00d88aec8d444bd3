//! One backup at a time: copy, let it settle, verify.

use interlock::{Done, Entity, Failure, log, steps, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    runs: u32,
    label: String,
}

#[derive(Serialize)]
struct Outputs {
    location: String,
}

fn copy(entity: &Entity) -> Result<Done, Failure> {
    let data: Data = entity.data()?;
    log::info!("copying {}", data.label);
    if data.label == "full" {
        return Err(Failure::permanent("there is no room left").code("disk-full"));
    }
    Ok(entity.transition(to("settling"))?)
}

fn verify(entity: &Entity) -> Result<Done, Failure> {
    let mut data: Data = entity.data()?;
    data.runs += 1;
    let outputs = Outputs { location: format!("backups/{}/{}", entity.key(), data.label) };
    Ok(entity.transition(to("idle").data(&data).outputs(&outputs))?)
}

steps!(copy, verify);
