//! The long run: `cargo run --release -p interlock-linear -- --rounds 10 --seed 1`. The same binary is the daemon that
//! it kills (`serve`).

use anyhow::{Context as _, Result, bail};
use interlock_linear::checker::check;
use interlock_linear::rounds::{Run, explain, run};
use interlock_support::host::{Program, serve};
use std::path::PathBuf;

fn main() -> Result<()> {
    let mut words = std::env::args_os().skip(1);
    if std::env::args_os().nth(1).is_some_and(|word| word == "serve") {
        words.next();
        return serve(words);
    }
    let program = Program { path: std::env::current_exe()?, tmp: "target/linear".into() };
    let mut asked =
        Run { program, rounds: 5, kills: 100, lives_ms: 150, seed: 1, folder: PathBuf::from("target/linear") };
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        let next = words.next().with_context(|| format!("{word} needs a value"))?;
        let number = || next.parse::<u64>().with_context(|| format!("{word} takes a number"));
        match word.as_str() {
            "--rounds" => asked.rounds = number()?,
            "--kills" => asked.kills = number()?,
            "--lives-ms" => asked.lives_ms = number()?,
            "--seed" => asked.seed = number()?,
            "--check" => return judge(&next),
            _ => bail!("expected --rounds, --kills, --lives-ms, --seed or --check, got {word}"),
        }
    }
    interlock_support::guest("noop")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let report = runtime.block_on(run(&asked))?;
    println!("seed {}, {} rounds: {report}", asked.seed, asked.rounds);
    for (name, (all, lost)) in &report.operations {
        println!("  {name:<7} {all:>7}, {lost} lost");
    }
    Ok(())
}

/// Judges a history that was written down.
fn judge(path: &str) -> Result<()> {
    let history: Vec<_> = serde_json::from_slice(&std::fs::read(path).with_context(|| path.to_owned())?)?;
    match check(&history) {
        Ok(order) => println!("it has an order: {:?}", order.operations),
        Err(stuck) => bail!("no order\n{}", explain(&history, &stuck)),
    }
    Ok(())
}
