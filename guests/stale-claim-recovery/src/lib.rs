//! The steps of a worker: take a job, and finish it if it is still ours.

use interlock::rows::Updated;
use interlock::{Done, Entity, Failure, field, from, steps, to};
use serde::{Deserialize, Serialize};

/// A job is given up when it was claimed more often than this.
const ATTEMPTS: u32 = 2;

#[derive(Serialize, Deserialize)]
struct Data {
    table: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    finished: u32,
    lost: u32,
}

/// Which jobs can be had is declared with each table; how often one was had stands with it.
fn take(worker: &Entity) -> Result<Done, Failure> {
    let data: Data = worker.data()?;
    let jobs = worker.rows(&data.table);
    let claimed = jobs.claim().limit(1).now()?;
    let Some(job) = claimed.rows.first() else {
        return Ok(worker.transition(to("idle"))?);
    };
    if job.claims > ATTEMPTS {
        let mine = field("claimed_by").eq(from("execution"));
        jobs.update(&*job.key).only_if(mine).set("status", "dead").stage()?;
        return Ok(worker.transition(to("idle"))?);
    }
    Ok(worker.transition(to("working").data(&Data { job: Some(job.key.clone()), ..data }))?)
}

/// Whoever was slower than the recovery has lost the job to somebody else, and learns it here.
fn finish(worker: &Entity) -> Result<Done, Failure> {
    let mut data: Data = worker.data()?;
    let job = data.job.take().ok_or_else(|| Failure::permanent("there is no job to finish").code("no-job"))?;
    let mine = field("claimed_by").eq(from("execution"));
    match worker.rows(&data.table).update(job).only_if(mine).set("status", "done").now()? {
        Updated::Changed(_) => data.finished += 1,
        Updated::Unmatched(_) => data.lost += 1,
    }
    Ok(worker.transition(to("idle").data(&data))?)
}

steps!(take, finish);
