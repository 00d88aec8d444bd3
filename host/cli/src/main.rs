//! The `interlock` command. It talks HTTP to a daemon, or is one with `serve`; it opens no store that a
//! daemon has open.
//!
//! Read next: `args.rs` for what can be asked, `commands/` for what is done, `show/` for what is printed.

mod args;
mod client;
mod commands;
mod demo;
mod failed;
mod out;
mod own;
mod show;

use args::{Cli, Command};
use clap::Parser;
use failed::Failed;
use out::Out;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(why) => {
            // Help and version are no errors; clap knows where each goes.
            let code = if why.use_stderr() { failed::Code::Input.into() } else { ExitCode::SUCCESS };
            if why.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
                Out::json().failed(&Failed::Input(args::said(&why)));
                return code;
            }
            return why.print().map_or(failed::Code::Fault.into(), |()| code);
        }
    };
    let out = Out::new(&cli.global);
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failed::from)
        .and_then(|runtime| runtime.block_on(run(cli, out)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            out.failed(&failed);
            failed.exit()
        }
    }
}

async fn run(cli: Cli, out: Out) -> Result<(), Failed> {
    let global = cli.global;
    match cli.command {
        Command::Serve(args) => commands::serve::run(args, out).await,
        Command::Demo(args) => demo::run(args, out).await,
        Command::Build(args) => commands::build::run(args, out).await,
        Command::Check(args) => commands::check::run(&args, out),
        Command::Inspect(args) => commands::inspect::run(&args, out).await,
        Command::Test(args) => commands::test::run(args, out).await,
        Command::Explore(args) => commands::explore::run(args, out).await,
        Command::New(args) => commands::new::run(&args, out),
        Command::Dev(args) => commands::dev::run(args, &client(&global)?, out).await,
        Command::Deploy(args) => commands::deploy::run(args, &client(&global)?, out).await,
        Command::Machine(args) => commands::machine::run(args, &client(&global)?, out).await,
        Command::Entity(args) => commands::entity::run(args, &client(&global)?, out).await,
        Command::Why(args) => commands::why::run(args, &client(&global)?, out).await,
        Command::Lease(args) => commands::lease::run(args, &client(&global)?, out).await,
        Command::Table(args) => commands::table::run(args, &client(&global)?, out).await,
        Command::Row(args) => commands::row::run(args, &client(&global)?, out).await,
        Command::Schedule(args) => commands::schedule::run(args, &client(&global)?, out).await,
        Command::Effect(args) => commands::effect::run(args, &client(&global)?, out).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut <Cli as clap::CommandFactory>::command(), "interlock", &mut script);
            out.text(&String::from_utf8_lossy(&script));
            Ok(())
        }
    }
}

fn client(global: &args::Global) -> Result<client::Client, Failed> {
    client::Client::new(&global.url)
}
