//! `cargo run -p interlock-mutants`: the whole run, against `guards.md` and `reasons.toml`.

use anyhow::{Result, bail};
use clap::Parser;
use interlock_mutants::score::Against;
use interlock_mutants::{copy, kernel, publish};

/// Changes every check of the kernel, one at a time, and runs the kernel's tests against each.
#[derive(Parser)]
struct Arguments {
    /// Only the mutants whose line in the table contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Does not begin with the test that noticed a mutant the last time.
    #[arg(long)]
    fresh: bool,
    /// Lists the checks and changes, and runs nothing.
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.list {
        let (mutants, _) = copy::scan(&kernel::subject())?;
        for mutant in &mutants {
            println!("{}:{} {} `{}` {}", mutant.file, mutant.line, mutant.function, mutant.check, mutant.change);
        }
        println!("{} mutants", mutants.len());
        return Ok(());
    }
    let run = kernel::run(arguments.only.as_deref(), arguments.fresh, Against::Every)?;
    for (mutant, fate) in run.mutants.iter().zip(&run.fates) {
        println!("{}", publish::line(mutant, fate));
    }
    println!("{}", run.summary());
    let wrong = run.wrong()?;
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}
