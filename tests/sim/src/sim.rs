//! One run: boots of a host, one after another, driven step by step by a seed.
//!
//! Each step draws from a sequence of its own, so that a run of fewer steps is the beginning of a longer one,
//! and a run without some of its steps is still a run. Between two steps every task runs until it waits.

use crate::boot::{Boot, runtime};
use crate::clients::{Clients, Next};
use crate::finding::{Finding, Held};
use crate::gated::{Gated, How};
use crate::guests::Crew;
use crate::ledger::{Request, Told};
use crate::log::Log;
use crate::model::read_all;
use crate::plan::Plan;
use crate::receiver::Whim;
use crate::weather::Weather;
use crate::wire::Turn;
use crate::world::{Exit, World};
use interlock_conformance::Random;
use interlock_coordinator::Options;
use interlock_store::{Clock, Mem, MemImage, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Requests that are on their way at a time.
const WAITING_MAX: usize = 48;
/// Store time after which the clock is only moved in small steps: events are forgotten after a day.
const LONG_MS: u64 = 20 * 3_600_000;

/// What the scheduler may do next.
#[derive(Clone, Copy, Debug)]
enum Act {
    Batch,
    Tell,
    Ask,
    Carry,
    Hear,
    Client,
    GiveUp,
    Clock,
    Jump,
    Stall,
    Fill,
    Die,
    Stop,
}

/// See the module.
pub(crate) struct Sim {
    pub(crate) plan: Plan,
    weather: Weather,
    pub(crate) world: World,
    image: MemImage,
    clients: Clients,
    stalled_until: u64,
    stopping: bool,
}

/// One boot: the host, and the engine below it.
pub(crate) struct Life {
    pub(crate) boot: Boot,
    pub(crate) mem: Mem,
}

impl Sim {
    pub(crate) fn new(plan: Plan) -> Self {
        let weather = Weather::of(plan.seed);
        let log = Log::new(plan.transcript);
        log.say(format!("{weather:?}"));
        Self {
            world: World::new(log, plan.seed, weather.moods(), plan.plant.manners()),
            plan,
            weather,
            image: MemImage::new(),
            clients: Clients::default(),
            stalled_until: 0,
            stopping: false,
        }
    }

    /// A runtime, and an engine with a host that begins to open on it.
    pub(crate) fn begin(&mut self) -> Result<(Runtime, Life), Finding> {
        let runtime = runtime().map_err(|error| Finding::new("the_simulator_runs", "a runtime", error))?;
        let opened = Mem::open(self.image.clone(), Arc::new(self.world.clock.clone()));
        let mem = opened.map_err(|error| Finding::new("a_store_opens_again", "the image", error))?;
        self.world.figures.boots += 1;
        self.stopping = false;
        self.stalled_until = 0;
        self.world.log.say(format!("boot {}", self.world.figures.boots));
        let raw = read_all(&mem).map_err(|error| Finding::new("a_store_opens_again", "the image", error))?;
        self.world.model.is_what_is_stored(&raw)?;
        self.world.model.holds()?;
        let gated = Gated::new(Arc::new(mem.clone()), self.plan.plant);
        gated.hold_queries(self.weather.slow_queries);
        let crew = Crew::new(self.world.diary.clone(), Arc::new(self.world.clock.clone()));
        let options = Options {
            executions_max: self.weather.slots,
            reconcile: self.weather.reconcile,
            courier: Some(self.world.wire.courier(&self.world.clock)),
            ..Options::default()
        };
        let _inside = runtime.enter();
        let boot = Boot::begin(gated, crew, options);
        Ok((runtime, Life { boot, mem }))
    }

    /// The end of a boot, as a process ends.
    pub(crate) fn end(&mut self, runtime: Runtime, life: Life) {
        let Life { boot, mem } = life;
        self.world.count(&boot);
        mem.crash();
        boot.end(runtime);
        self.world.hears_nothing();
    }

    /// Lives through steps until the boot ends.
    pub(crate) async fn live(&mut self, life: &mut Life) -> Result<Exit, Finding> {
        loop {
            if let Some(exit) = self.world.listen(&mut life.boot).await? {
                return Ok(exit);
            }
            if self.world.step >= self.plan.steps {
                return Ok(Exit::Enough);
            }
            let step = self.world.step;
            self.world.step += 1;
            self.world.figures.steps += 1;
            if self.plan.skips(step) {
                continue;
            }
            let mut random = Random::new(self.plan.seed.wrapping_mul(0x0100_0003).wrapping_add(step) ^ 0x5bd1_e995);
            random.number();
            if let Some(exit) = self.act(life, &mut random)? {
                return Ok(exit);
            }
        }
    }

    /// One step of the scheduler.
    fn act(&mut self, life: &mut Life, random: &mut Random) -> Result<Option<Exit>, Finding> {
        let Some(act) = self.choose(life, random) else { return Ok(None) };
        let gated = life.boot.gated.clone();
        match act {
            Act::Batch => return self.batch(&gated, random),
            Act::Tell => {
                let all = random.below(3) > 0;
                while gated.tell() && all {}
            }
            Act::Ask => {
                let nth = random.below(gated.queries() as u64);
                let fails = random.below(1_000) < self.weather.store_fails;
                if fails {
                    self.world.figures.fault("a read was refused");
                }
                gated.ask(usize::try_from(nth).unwrap_or(0), fails);
            }
            Act::Carry => self.carry(random)?,
            Act::Hear => {
                let nth = random.below(self.world.wire.answers() as u64);
                self.world.wire.answer(usize::try_from(nth).unwrap_or(0));
            }
            Act::Client => self.client(life, random),
            Act::GiveUp => self.give_up(random),
            Act::Clock => self.pass(random),
            Act::Jump => self.jump(random),
            Act::Stall => {
                self.world.figures.fault("the store stalled");
                self.stalled_until = self.world.step + 1 + random.below(12);
                self.world.log.say(format!("{} the store stalls until {}", self.world.step, self.stalled_until));
            }
            Act::Fill => {
                self.world.figures.fault("the queue was full");
                self.world.log.say(format!("{} the queue is full", self.world.step));
                gated.fill();
            }
            Act::Die => {
                self.world.figures.fault("the host died");
                self.world.log.say(format!("{} the host dies", self.world.step));
                return Ok(Some(Exit::Died));
            }
            Act::Stop => {
                self.stopping = true;
                self.world.figures.fault("the host was stopped");
                self.world.log.say(format!("{} the host is told to stop", self.world.step));
                drop(life.boot.stop(Duration::from_millis(random.below(4_000))));
            }
        }
        Ok(None)
    }

    fn choose(&self, life: &Life, random: &mut Random) -> Option<Act> {
        let (gated, weather) = (&life.boot.gated, &self.weather);
        let open = life.boot.host.is_some() && !self.stopping;
        let untold = gated.untold() > 0;
        let stalled = self.world.step <= self.stalled_until;
        let when = |possible: bool, weight: u64| if possible { weight } else { 0 };
        // Nothing passes between a commit and its answers: one thread does both.
        let weights = [
            (Act::Batch, when(gated.jobs() > 0 && !untold && !stalled, 50)),
            (Act::Tell, when(untold, 60)),
            (Act::Ask, when(gated.queries() > 0, 50)),
            (Act::Carry, when(!self.world.wire.quick().is_empty(), 20) + when(self.world.wire.packets() > 0, 1)),
            (Act::Hear, when(self.world.wire.answers() > 0, 20)),
            (Act::Client, when(open && self.world.on_their_way.len() < WAITING_MAX, weather.clients)),
            (Act::GiveUp, when(!self.world.on_their_way.is_empty(), 1)),
            (Act::Clock, when(!untold, weather.clock + if gated.jobs() == 0 { 10 } else { 0 })),
            (Act::Jump, when(!untold, weather.jumps)),
            (Act::Stall, when(!stalled, weather.stalls / 5)),
            (Act::Fill, when(open, weather.store_fails / 20)),
            (Act::Die, weather.crashes),
            (Act::Stop, when(open, weather.stops)),
        ];
        let all = weights.iter().map(|(_, weight)| weight).sum();
        let mut drawn = random.below(all);
        for (act, weight) in weights {
            if drawn < weight {
                return Some(act);
            }
            drawn -= weight;
        }
        None
    }

    /// Some of the waiting jobs share a fate, as they share a commit.
    fn batch(&mut self, gated: &Gated, random: &mut Random) -> Result<Option<Exit>, Finding> {
        let size = 1 + random.below(self.weather.batch_max);
        let fails = random.below(1_000) < self.weather.store_fails;
        let dies = random.below(1_000) < self.weather.dies;
        let place = random.below(3);
        if dies && place == 0 {
            self.world.figures.fault("the host died before a commit");
            self.world.log.say(format!("{} the host dies before a commit", self.world.step));
            return Ok(Some(Exit::Died));
        }
        let how = match (fails, random.below(3)) {
            (false, _) => How::Plain,
            (true, 0) => How::Unavailable,
            (true, 1) => How::Unknown { kept: true },
            (true, _) => How::Unknown { kept: false },
        };
        match how {
            How::Unavailable => self.world.figures.fault("a commit failed"),
            How::Unknown { kept: true } => self.world.figures.fault("an answer was lost, the commit kept"),
            How::Unknown { kept: false } => self.world.figures.fault("an answer was lost, the commit too"),
            How::Plain | How::Again => {}
        }
        for _ in 0..size {
            let waiting = gated.jobs();
            let nth = usize::try_from(random.below(waiting as u64)).unwrap_or(0);
            let again = how == How::Plain && random.below(150) == 0;
            if again {
                self.world.figures.fault("a job ran twice");
            }
            let Some(ran) = gated.run(nth, if again { How::Again } else { how }) else { break };
            self.world.ran(&ran, if again { How::Again } else { how })?;
        }
        if dies && place == 1 {
            self.world.figures.fault("the host died after a commit, before its answer");
            self.world.log.say(format!("{} the host dies before its answers", self.world.step));
            return Ok(Some(Exit::Died));
        }
        if dies {
            gated.tell();
            self.world.figures.fault("the host died between two answers");
            self.world.log.say(format!("{} the host dies between its answers", self.world.step));
            return Ok(Some(Exit::Died));
        }
        if random.below(1_000) >= self.weather.late_answers {
            while gated.tell() {}
        }
        Ok(None)
    }

    /// Something becomes of a request that is on its way, of a dead host's too.
    fn carry(&mut self, random: &mut Random) -> Held {
        let quick = self.world.wire.quick();
        let drawn = usize::try_from(random.number()).unwrap_or(0);
        let nth = match quick.get(drawn % quick.len().max(1)) {
            Some(nth) if random.below(20) > 0 => *nth,
            _ => drawn % self.world.wire.packets().max(1),
        };
        let turn = match self.weather.turn(random) {
            // It has been.
            Turn::Slow if !quick.contains(&nth) => Turn::Arrives(Whim::Does),
            turn => turn,
        };
        match turn {
            Turn::Arrives(_) => {}
            Turn::Unheard(_) => self.world.figures.fault("a receiver's answer was lost"),
            Turn::Unreached => self.world.figures.fault("a receiver was not reached"),
            Turn::Denied => self.world.figures.fault("an operator did not allow a request"),
            Turn::Lost => self.world.figures.fault("a request was lost on its way"),
            Turn::Doubled => self.world.figures.fault("a request was doubled on its way"),
            Turn::Slow => self.world.figures.fault("a request was on its way for long"),
        }
        self.world.turn(nth, turn)
    }

    fn client(&mut self, life: &Life, random: &mut Random) {
        let now_ms = life.boot.gated.now().store_ms;
        let (entities, leases) = (&self.weather.entities, self.weather.leases);
        let next = self.clients.next(entities, leases, &self.world.model, &self.world.ledger, now_ms, random);
        match next {
            None => {}
            Some(Next::Ask(commands)) => {
                for command in commands {
                    self.world.request(&life.boot, command, now_ms);
                }
            }
            Some(Next::Again(request)) => {
                let known = self.world.ledger.requests.get(request).is_some_and(Request::is_known);
                self.world.figures.fault(if known {
                    "an event was sent twice"
                } else {
                    "a lost answer was asked for again"
                });
                self.world.try_again(&life.boot, request);
            }
            Some(Next::Look(id)) => {
                let floor = self.world.model.head(&id).map(|head| (head.incarnation.get(), head.version.get()));
                life.boot.look(id, floor);
            }
            Some(Next::Wait(id, answer)) => {
                life.boot.wait(id, answer, Duration::from_millis(1 + random.below(60_000)));
            }
        }
    }

    /// A client waits no longer: what it asked for may still happen.
    fn give_up(&mut self, random: &mut Random) {
        let nth = usize::try_from(random.below(self.world.on_their_way.len() as u64)).unwrap_or(0);
        if nth >= self.world.on_their_way.len() {
            return;
        }
        let (request, try_number, task) = self.world.on_their_way.remove(nth);
        task.abort();
        self.world.figures.fault("a client gave up");
        self.world.log.say(format!("{} request {request}.{try_number} is given up", self.world.step));
        if let Some(told) = self.world.ledger.requests.get_mut(request).and_then(|one| one.tries.get_mut(try_number)) {
            *told = Told::Unknown;
        }
    }

    /// Time passes: mostly to the next thing that waits for it.
    fn pass(&mut self, random: &mut Random) {
        let now = self.world.clock.monotonic();
        // Who sleeps for ever sleeps until a time that is never reached.
        let next = self.world.clock.next_sleeper().map_or(Duration::ZERO, |next| next.saturating_sub(now));
        let next = next.min(Duration::from_secs(60));
        let by = match random.below(12) {
            0..6 => next,
            6..9 => Duration::from_millis(1 + random.below(900)),
            9..11 => Duration::from_millis(random.below(20_000)),
            _ if now.as_millis() < u128::from(LONG_MS) => Duration::from_millis(random.below(400_000)),
            _ => Duration::from_millis(1),
        };
        self.world.log.say(format!("{} {} ms pass", self.world.step, by.as_millis()));
        self.world.clock.advance(by);
    }

    /// The wall clock is set.
    fn jump(&mut self, random: &mut Random) {
        let far = [1_500, 60_000, 3_600_000, 90_000_000];
        let far = far[usize::try_from(random.below(4)).unwrap_or(0)];
        let by = i64::try_from(random.below(far)).unwrap_or(0);
        let (kind, by) = match random.below(2) {
            0 => ("the wall clock jumped forward", by),
            _ => ("the wall clock jumped back", -by),
        };
        self.world.figures.fault(kind);
        self.world.log.say(format!("{} the wall clock jumps by {by} ms", self.world.step));
        self.world.clock.set_wall(self.world.clock.wall_ms().saturating_add(by));
    }
}
