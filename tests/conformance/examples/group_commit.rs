//! What the redb engine costs over redb itself: the same keys, durable, 64 jobs at a time.
//!
//! `cargo run --release -p interlock-conformance --example group_commit`
//!
//! An item rewrites one of 100,000 records and appends three entries; the raw side commits 64
//! items per transaction on one thread, without queues, overlays, numbers or answers.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interlock_conformance::Random;
use interlock_store::{Bytes, Lane, Options, Redb, Store, Txn, transact};
use redb::{Database, Durability, TableDefinition};

const RECORDS: u64 = 100_000;
const COMPANY: usize = 64;
const RECORD: [u8; 256] = [7; 256];
const ENTRY: [u8; 120] = [9; 120];
const FOR: Duration = Duration::from_secs(4);

fn record_key(n: u64) -> [u8; 9] {
    let mut key = [b'E'; 9];
    key[1..].copy_from_slice(&n.to_be_bytes());
    key
}

fn entry_key(family: u8, n: u64) -> [u8; 9] {
    let mut key = [family; 9];
    key[1..].copy_from_slice(&n.to_be_bytes());
    key
}

fn raw(dir: &std::path::Path) -> Result<f64, Box<dyn Error>> {
    let table: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("kv");
    let db = Database::builder().set_cache_size(128 * 1024 * 1024).create(dir.join("raw.redb"))?;
    let txn = db.begin_write()?;
    {
        let mut table = txn.open_table(table)?;
        for n in 0..RECORDS {
            table.insert(record_key(n).as_slice(), RECORD.as_slice())?;
        }
    }
    txn.commit()?;
    let mut random = Random::new(1);
    let mut items = 0;
    let began = Instant::now();
    while began.elapsed() < FOR {
        let mut txn = db.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        {
            let mut table = txn.open_table(table)?;
            let mut entries: Vec<([u8; 9], &[u8])> = Vec::new();
            for _ in 0..COMPANY {
                entries.push((record_key(random.below(RECORDS)), &RECORD));
                for family in [b'H', b'L', b'T'] {
                    entries.push((entry_key(family, items), &ENTRY));
                }
                items += 1;
            }
            entries.sort();
            for (key, value) in entries {
                table.insert(key.as_slice(), value)?;
            }
        }
        txn.commit()?;
    }
    Ok(items as f64 / began.elapsed().as_secs_f64())
}

async fn fill(store: &dyn Store) {
    for from in (0..RECORDS).step_by(5_000) {
        let done = transact::<(), ()>(store, Lane::Admission, move |txn: &mut dyn Txn| {
            for n in from..from + 5_000 {
                txn.put(&record_key(n), Bytes::from(RECORD))?;
            }
            Ok(())
        });
        if let Err(error) = done.await {
            panic!("{error:?}");
        }
    }
}

async fn client(store: Arc<Redb>, id: u64, until: Instant) -> u64 {
    let mut random = Random::new(id);
    let mut items = 0;
    while Instant::now() < until {
        let record = random.below(RECORDS);
        let done = transact::<(), ()>(&*store, Lane::Completion, move |txn: &mut dyn Txn| {
            let key = record_key(record);
            let seq = txn.stamp().seq;
            let found = txn.get(&key)?;
            txn.put(&key, found.unwrap_or_else(|| Bytes::from(RECORD)))?;
            txn.put(&entry_key(b'H', seq), Bytes::from(ENTRY))?;
            txn.put(&entry_key(b'T', seq), Bytes::from(ENTRY))?;
            txn.note(Bytes::from(ENTRY))?;
            Ok(())
        });
        if let Err(error) = done.await {
            panic!("{error:?}");
        }
        items += 1;
    }
    items
}

fn engine(dir: &std::path::Path, company: usize) -> Result<f64, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
    runtime.block_on(async {
        let store = Arc::new(Redb::open(Options::new(dir))?);
        if store.now().seq == 0 {
            fill(&*store).await;
        }
        store.expect_company(company);
        let before = store.stats();
        let began = Instant::now();
        let clients: Vec<_> =
            (0..company).map(|id| tokio::spawn(client(store.clone(), id as u64, began + FOR))).collect();
        let mut items = 0;
        for client in clients {
            items += client.await?;
        }
        let took = began.elapsed();
        let stats = store.stats();
        println!(
            "    {:.1} jobs a batch, {:.0} us a sync, {:.0} bytes of file an item",
            items as f64 / (stats.batches - before.batches) as f64,
            (stats.sync_time - before.sync_time).as_micros() as f64 / (stats.syncs - before.syncs) as f64,
            (stats.file_bytes - before.file_bytes) as f64 / items as f64,
        );
        store.close(Duration::from_secs(5)).await?;
        Ok(items as f64 / took.as_secs_f64())
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    for round in 1..=3 {
        let raw = raw(dir.path())?;
        std::fs::remove_file(dir.path().join("raw.redb"))?;
        println!("round {round}: redb itself, 64 items a commit: {raw:.0} items/s");
        let place = dir.path().join(format!("engine-{round}"));
        for company in [1, COMPANY] {
            let rate = engine(&place, company)?;
            let part = 100.0 * rate / raw;
            println!("  engine, {company} concurrent: {rate:.0} items/s ({part:.0} %)");
        }
    }
    Ok(())
}
