//! Loads a table in batches. What it has loaded is kept in memory and saved nowhere: whoever goes on from a
//! save begins with an empty memory.

use interlock::{Done, Entity, Failure, checkpoint, to};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};

const BATCH: u32 = 2;

static LOADED: AtomicU32 = AtomicU32::new(0);

#[derive(Serialize, Deserialize)]
struct Data {
    rows: u32,
    next: u32,
    loaded: u32,
}

#[derive(Serialize)]
struct Outputs {
    loaded: u32,
}

pub(crate) fn load(table: &Entity) -> Result<Done, Failure> {
    let mut data: Data = table.data()?;
    while data.next < data.rows {
        LOADED.fetch_add(BATCH.min(data.rows - data.next), Ordering::Relaxed);
        data.next += BATCH;
        table.save(checkpoint().data(&data))?;
    }
    let outputs = Outputs { loaded: LOADED.load(Ordering::Relaxed) };
    Ok(table.transition(to("loaded").outputs(&outputs))?)
}

pub(crate) fn load_mended(table: &Entity) -> Result<Done, Failure> {
    let mut data: Data = table.data()?;
    while data.next < data.rows {
        data.loaded += BATCH.min(data.rows - data.next);
        data.next += BATCH;
        table.save(checkpoint().data(&data))?;
    }
    let outputs = Outputs { loaded: data.loaded };
    Ok(table.transition(to("loaded").outputs(&outputs))?)
}
