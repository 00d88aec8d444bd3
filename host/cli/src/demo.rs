//! `interlock demo`: the whole of it against a real daemon, a real file, real components and a real `kill -9`.
//!
//! Each scene asks through the HTTP API like anybody else, prints what it got, and checks it. Nothing here is
//! made up: a figure that is printed was measured or answered.

mod board;
mod crash;
mod hostile;
mod lock;
mod record;
mod stage;

use crate::args::Demo;
use crate::failed::{Code, Failed};
use crate::out::Out;
use board::Board;
use interlock_store::{Clock, SystemClock};
use stage::{Checkout, Stage};
use tokio::signal::unix::{SignalKind, signal};

/// The entity that the scenes are about.
const ENTITY: &str = "resource/gpu-7";

/// Runs it.
pub(crate) async fn run(args: Demo, out: Out) -> Result<(), Failed> {
    let clock = SystemClock::new();
    let checkout = Checkout::find()?;
    let built = checkout.build(out).await?;
    let began = clock.monotonic();
    let mut board = Board::new(out);
    let end = if args.keep { "" } else { " All of it goes away afterwards (--keep keeps it)." };
    board.line(&format!("A real daemon, a real file, a real Wasm component.{end}"));

    let mut stage = Stage::start(&clock).await?;
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let played = tokio::select! {
        played = play(&mut stage, &built, &mut board) => played,
        _ = term.recv() => Err(Failed::Fault(anyhow::anyhow!("interrupted; nothing left behind"))),
        _ = int.recv() => Err(Failed::Fault(anyhow::anyhow!("interrupted; nothing left behind"))),
    };
    if let Err(failed) = played {
        if !matches!(failed, Failed::Fault(_)) {
            out.hint(&stage.log_tail());
        }
        stage.end().await?;
        return Err(failed);
    }
    let took = clock.monotonic().saturating_sub(began);
    let left = if args.keep { "everything is kept" } else { "nothing left behind" };
    if args.keep {
        board.verdict(took, left);
        stage.keep(&board);
    } else {
        stage.end().await?;
        board.verdict(took, left);
        board.line("Next: interlock demo --keep, or make your own: README, \"Your first machine\".");
    }
    if board.is_as_it_should_be() { Ok(()) } else { Out::over(Code::Fault) }
}

async fn play(stage: &mut Stage<'_>, built: &stage::Built, board: &mut Board) -> Result<(), Failed> {
    let sent = lock::play(stage, built, board).await?;
    crash::play(stage, &sent, board).await?;
    hostile::play(stage, built, board).await?;
    record::play(stage, board).await
}
