//! Opens a ticket elsewhere, then goes on. The request is committed by a save, and whoever begins anew behind that
//! save asks once more: under another key, so that nobody can tell.

use interlock::{Done, Entity, Failure, checkpoint, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    asked: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
}

pub(crate) fn ask(desk: &Entity) -> Result<Done, Failure> {
    request(desk, desk.data()?)?;
    Ok(desk.transition(to("idle"))?)
}

pub(crate) fn ask_mended(desk: &Entity) -> Result<Done, Failure> {
    let data: Data = desk.data()?;
    if data.asked == 0 {
        request(desk, data)?;
    }
    Ok(desk.transition(to("idle"))?)
}

fn request(desk: &Entity, mut data: Data) -> Result<(), Failure> {
    data.asked += 1;
    desk.effect("tickets").body(&desk.key()).request()?;
    Ok(desk.save(checkpoint().data(&data))?)
}
