//! A whole run: the steps of its plan, then calm, then the last look at everything.

use crate::figures::Figures;
use crate::finding::{Finding, Held, ensure};
use crate::model::read_all;
use crate::plan::Plan;
use crate::sim::{Life, Sim};
use crate::world::Exit;
use interlock_kernel::command::{Command, Verb};
use interlock_kernel::doc::Digest;
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::rejection::Code;
use interlock_store::{Clock, Store};
use std::fmt;
use std::time::Duration;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The plan.
    pub plan: Plan,
    /// What it met.
    pub figures: Figures,
    /// What does not hold, and the step before which it was found.
    pub finding: Option<(Finding, u64)>,
    /// The transcript, or its end.
    pub lines: Vec<String>,
    /// Over the whole transcript.
    pub digest: Digest,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((finding, step)) = &self.finding else {
            return write!(f, "seed {}: every check holds", self.plan.seed);
        };
        for line in &self.lines {
            writeln!(f, "    {line}")?;
        }
        writeln!(f, "seed {}, step {step}: {finding}", self.plan.seed)?;
        write!(f, "again: {}", self.plan.replay())
    }
}

/// Runs a plan.
#[must_use]
pub fn run(plan: &Plan) -> Outcome {
    let mut sim = Sim::new(plan.clone());
    let held = sim.run();
    let mut figures = std::mem::take(&mut sim.world.figures);
    figures.moods(sim.world.diary.met());
    // The one refusal that never reaches the kernel.
    let spent = sim.world.diary.written().iter().filter(|written| written.told == Some(Err(Code::Spent))).count();
    figures.refusals(Code::Spent, spent as u64);
    figures.store_ms = u64::try_from(sim.world.clock.monotonic().as_millis()).unwrap_or(u64::MAX);
    if let Err(finding) = &held {
        sim.world.log.say(format!("FOUND {finding}"));
    }
    Outcome {
        plan: plan.clone(),
        figures,
        finding: held.err().map(|finding| (finding, sim.world.step)),
        lines: sim.world.log.lines(),
        digest: sim.world.log.digest(),
    }
}

impl Sim {
    fn run(&mut self) -> Held {
        loop {
            let (runtime, mut life) = self.begin()?;
            let lived = runtime.block_on(async {
                match self.live(&mut life).await? {
                    Exit::Enough => self.come_to_rest(&mut life).await,
                    exit => Ok(exit),
                }
            });
            self.end(runtime, life);
            if lived? == Exit::Enough {
                break;
            }
        }
        self.last_boot()
    }

    /// No more faults and no more new requests: everything must come to rest by itself, and what was parked
    /// once an operator says so.
    async fn come_to_rest(&mut self, life: &mut Life) -> Result<Exit, Finding> {
        let (world, boot) = (&mut self.world, &mut life.boot);
        world.log.say("calm");
        world.diary.calm_down();
        boot.gated.hold_queries(false);
        // At once: an event may be sent again for as long as it is remembered.
        if let Some(exit) = world.serve(boot).await? {
            return Ok(exit);
        }
        world.ask_again_what_nobody_answered(boot);
        if let Some(exit) = world.settle(boot).await? {
            return Ok(exit);
        }
        let dead = world.model.given_up();
        for (id, number) in dead {
            world.request(boot, Command { by: Principal::local(), verb: Verb::Retry(id, number) }, 0);
        }
        if let Some(exit) = world.settle(boot).await? {
            return Ok(exit);
        }
        let parked: Vec<EntityId> =
            world.model.heads().filter(|(_, head)| head.park.is_some()).map(|(id, _)| id.clone()).collect();
        for id in parked {
            world.request(boot, Command { by: Principal::local(), verb: Verb::Unpark(id) }, 0);
        }
        if let Some(exit) = world.settle(boot).await? {
            return Ok(exit);
        }
        world.ledger.agrees(&world.model, &world.diary.written())?;
        world.answers_have_turned()?;
        world.model.effects_are_over(&world.wire)?;
        world.the_host_agrees(boot).await?;
        world.watched.has_seen_all(&world.model)?;
        Ok(Exit::Enough)
    }

    /// Once more from what is stored: nothing is left to be done.
    fn last_boot(&mut self) -> Held {
        let (runtime, mut life) = self.begin()?;
        let (world, boot) = (&mut self.world, &mut life.boot);
        let before = world.model.log.len();
        boot.gated.hold_queries(false);
        let lived = runtime.block_on(async {
            for _ in 0..8 {
                world.settle(boot).await?;
                world.clock.advance(Duration::from_secs(2));
            }
            world.the_host_agrees(boot).await?;
            world.watched.has_seen_all(&world.model)
        });
        let recovered = boot.host.as_ref().map_or(0, |host| host.stats().recovered);
        let raw = read_all(&life.mem as &dyn Store);
        self.end(runtime, life);
        lived?;
        let more = self.world.model.log.len() - before;
        ensure(recovered == 0 && more == 0, "a_boot_at_rest_changes_nothing", "the world", || {
            format!("{recovered} recovered, {more} entries more")
        })?;
        let raw = raw.map_err(|error| Finding::new("a_store_opens_again", "the image", error))?;
        self.world.model.is_what_is_stored(&raw)?;
        self.world.model.holds()
    }
}
