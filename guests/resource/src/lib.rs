//! Resize a pool: plan, wait for the provider, verify. The host keeps others out meanwhile.

mod placement; // a plain search, tested without a host
mod provider; // where the nodes come from; here it only pretends

use interlock::{Done, Entity, Failure, log, steps, to};
use provider::Health;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Default)]
struct Desired {
    image: String,
}

#[derive(Serialize, Deserialize)]
struct Data {
    size: u32,
    target: u32,
    nodes: Vec<String>,
}

#[derive(Serialize)]
struct Outputs {
    size: u32,
    endpoint: String,
}

fn plan(pool: &Entity) -> Result<Done, Failure> {
    let mut data: Data = pool.data()?;
    let want: Desired = pool.desired()?.unwrap_or_default(); // none before the first apply
    let no_room = || Failure::permanent(format!("no room for {} of {:?}", data.target, want.image)).code("no-room");
    data.nodes = placement::search(data.target, &want.image).ok_or_else(no_room)?;
    log::info!(nodes = data.nodes.join(" "), "found a place for {}", data.target);
    Ok(pool.transition(to("provisioning").data(&data))?)
}

fn verify(pool: &Entity) -> Result<Done, Failure> {
    let mut data: Data = pool.data()?;
    let want: Desired = pool.desired()?.unwrap_or_default();
    if data.nodes.len() != data.target as usize {
        return Err(Failure::permanent("nodes are missing from the plan").code("plan-broken"));
    }
    match provider::health(&want.image, pool.attempt()) {
        Health::Up => {}
        Health::Starting => {
            return Err(Failure::retry("the nodes are still starting").code("starting"));
        }
        Health::Withdrawn => {
            return Err(Failure::permanent("the provider took the nodes back").code("withdrawn"));
        }
    }
    data.size = data.target;
    let outputs = Outputs { size: data.size, endpoint: format!("{}.pool.example", pool.key()) };
    Ok(pool.transition(to("ready").data(&data).outputs(&outputs))?)
}

steps!(plan, verify);
