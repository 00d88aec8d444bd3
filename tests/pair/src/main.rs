//! The pair: `cargo run -p interlock-pair -- 5`, a number of rounds. The same binary is the daemon that grants the
//! leases (`serve`).

use anyhow::{Context as _, Result, ensure};
use interlock_pair::{Fence, run};
use interlock_support::host::{Program, serve};

fn main() -> Result<()> {
    let mut words = std::env::args_os().skip(1);
    if std::env::args_os().nth(1).is_some_and(|word| word == "serve") {
        words.next();
        return serve(words);
    }
    let rounds = match words.next() {
        None => 5,
        Some(word) => {
            let word = word.to_string_lossy().into_owned();
            word.parse().with_context(|| format!("expected a number of rounds, got {word:?}"))?
        }
    };
    let program = Program { path: std::env::current_exe()?, tmp: "target/pair".into() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!("Two workers under one lease; one pauses for longer than it lasts, between reading and writing.");
    let without = runtime.block_on(run(program.clone(), rounds, Fence::Absent))?;
    println!("without the fence   {without}");
    let with = runtime.block_on(run(program, rounds, Fence::Present))?;
    println!("with the fence      {with}");
    ensure!(without.lost > 0, "expected an addition to be lost without the fence, got none: this shows nothing");
    ensure!(with.lost == 0, "expected nothing to be lost behind the fence, got {}", with.lost);
    Ok(())
}
