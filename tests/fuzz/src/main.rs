//! The long run: `cargo run --release -p interlock-fuzz -- --target manifest --seconds 60 --seed 1`.
//!
//! Without `--target` every target has its turn. An input that breaks a property is written to `--failures`
//! (`target/fuzz-failures` if nothing is said) and the line that replays it is printed; `--pool FOLDER` keeps the fewest
//! inputs that show everything that was seen, from which the corpus is grown.

use anyhow::{Context as _, Result, bail};
use interlock_fuzz::{Target, Until, distilled, guarded, keep, replay_line, search, target, targets};
use std::path::PathBuf;
use std::time::Instant;

struct Asked {
    targets: Vec<&'static dyn Target>,
    seed: u64,
    until: Until,
    failures: PathBuf,
    pool: Option<PathBuf>,
    replay: Option<PathBuf>,
}

fn main() -> Result<()> {
    let asked = asked(std::env::args().skip(1))?;
    if let Some(path) = &asked.replay {
        let input = std::fs::read(path).with_context(|| path.display().to_string())?;
        for target in &asked.targets {
            match guarded(*target, &input) {
                Ok(_) => println!("{}: everything holds", target.name()),
                Err(why) => bail!("{}: {}", target.name(), why.0),
            }
        }
        return Ok(());
    }
    let mut failed = 0;
    for target in &asked.targets {
        failed += usize::from(!run(*target, &asked)?);
    }
    if failed > 0 {
        bail!("{failed} of {} targets failed", asked.targets.len());
    }
    Ok(())
}

/// Whether everything held.
fn run(target: &dyn Target, asked: &Asked) -> Result<bool> {
    let began = Instant::now();
    let report = search(target, asked.seed, asked.until, &asked.failures)?;
    let (name, took) = (target.name(), began.elapsed());
    let rate = report.inputs as f64 / took.as_secs_f64();
    println!(
        "{name}: {} inputs in {took:.1?} ({rate:.0}/s), seed {}, {} showed something new, {} things said",
        report.inputs,
        asked.seed,
        report.pool.len(),
        report.seen
    );
    if let Some(folder) = &asked.pool {
        for input in distilled(target, report.pool) {
            keep(&folder.join(name), target, &input)?;
        }
    }
    let Some(failure) = &report.failure else { return Ok(true) };
    println!("  BROKEN: {}", failure.why.0);
    println!("  input ({} bytes): {:?}", failure.input.len(), String::from_utf8_lossy(&failure.input));
    println!("  again: {}", replay_line(target, &failure.path));
    Ok(false)
}

fn asked(mut words: impl Iterator<Item = String>) -> Result<Asked> {
    let mut asked = Asked {
        targets: targets().to_vec(),
        seed: 1,
        until: Until::Seconds(30),
        failures: PathBuf::from("target/fuzz-failures"),
        pool: None,
        replay: None,
    };
    while let Some(word) = words.next() {
        let next = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--target" => {
                let names = || targets().map(|target| target.name()).join(", ");
                asked.targets =
                    vec![target(&next).with_context(|| format!("expected one of {}, got {next}", names()))?];
            }
            "--seed" => asked.seed = next.parse().context("--seed takes a number")?,
            "--seconds" => asked.until = Until::Seconds(next.parse().context("--seconds takes a number")?),
            "--inputs" => asked.until = Until::Inputs(next.parse().context("--inputs takes a number")?),
            "--failures" => asked.failures = next.into(),
            "--pool" => asked.pool = Some(next.into()),
            "--replay" => asked.replay = Some(next.into()),
            _ => bail!("expected --target, --seed, --seconds, --inputs, --failures, --pool or --replay, got {word}"),
        }
    }
    Ok(asked)
}
