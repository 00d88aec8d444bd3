//! The steps of a deployment: ask for a rollout, and publish what the cluster says it runs.

use interlock::{Done, Entity, Failure, steps, to};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize)]
struct Desired {
    cluster: String,
    image: String,
}

#[derive(Serialize, Deserialize)]
struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<String>,
}

/// The cluster's lease is held by now. The request carries its token, not this attempt's: whoever owns the cluster
/// later has a higher one.
fn roll(deployment: &Entity) -> Result<Done, Failure> {
    let Desired { cluster, image } = desired(deployment)?;
    let name = cluster.trim_start_matches("cluster/");
    deployment.effect("rollouts").param("cluster", name).body(&json!({ "image": image })).request()?;
    Ok(deployment.transition(to("settling").data(&Data { running: None }))?)
}

fn confirm(deployment: &Entity) -> Result<Done, Failure> {
    let (wanted, data): (Desired, Data) = (desired(deployment)?, deployment.data()?);
    if data.running.as_ref() != Some(&wanted.image) {
        return Err(
            Failure::permanent(format!("expected {}, got {:?}", wanted.image, data.running)).code("other-image")
        );
    }
    Ok(deployment.transition(to("steady").outputs(&json!({ "image": wanted.image })))?)
}

fn desired(deployment: &Entity) -> Result<Desired, Failure> {
    deployment.desired()?.ok_or_else(|| Failure::permanent("nothing is wanted").code("no-desired"))
}

steps!(roll, confirm);
