//! Rolls a service out with the image that clients want when it begins. Whether it looks again at what they
//! want, the manifest says.

use interlock::{Done, Entity, Failure, to};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
struct Image {
    image: String,
}

pub(crate) fn roll(service: &Entity) -> Result<Done, Failure> {
    let want: Image = service.desired()?.ok_or_else(|| Failure::permanent("nobody has said which image"))?;
    Ok(service.transition(to("ready").data(&want))?)
}
