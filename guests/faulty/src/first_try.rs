//! Boots a server, and makes its disk on the first try: not on a later one, which is meant to find it there.
//! A first try that came to nothing made none.

use interlock::{Done, Entity, Failure, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    disks: Vec<String>,
}

pub(crate) fn boot(server: &Entity) -> Result<Done, Failure> {
    let mut data: Data = server.data()?;
    if server.attempt() == 1 {
        data.disks.push(format!("{}-disk", server.key()));
    }
    Ok(server.transition(to("running").data(&data))?)
}

pub(crate) fn boot_mended(server: &Entity) -> Result<Done, Failure> {
    let mut data: Data = server.data()?;
    if data.disks.is_empty() {
        data.disks.push(format!("{}-disk", server.key()));
    }
    Ok(server.transition(to("running").data(&data))?)
}
