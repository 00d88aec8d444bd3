//! A scenario being played on a store that may die, and played on from what is left of it.

use super::scenarios::{Act, Remedy, Scenario, Tenancy};
use crate::boot::{Boot, runtime};
use crate::finding::{Finding, Held, ensure};
use crate::gated::Gated;
use crate::guests::Crew;
use crate::log::Log;
use crate::model::{Raw, read_all};
use crate::moods::{Mood, Moods};
use crate::plant::Plant;
use crate::receiver::{Manners, Whim};
use crate::tenants::last_told;
use crate::wire::Turn;
use crate::world::{Death, Exit, Fates, World};
use interlock_conformance::{SimDisk, redb_options};
use interlock_coordinator::Options;
use interlock_kernel::command::{Command, Verb};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::{Condition, Expires, Key, Part, Record};
use interlock_store::{ManualClock, Mem, MemImage, Redb, Store, StoreError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Attempts that run at a time.
const SLOTS: usize = 4;
/// Boots in which a scenario must come to its end.
const BOOTS: usize = 8;

/// Where a store lives.
#[derive(Clone)]
pub(crate) enum Place {
    /// The embedded engine on a simulated disk.
    Disk(SimDisk),
    /// The engine in memory.
    Image(MemImage),
}

/// An open engine.
enum Engine {
    Redb(Arc<Redb>),
    Mem(Mem),
}

impl Place {
    fn open(&self, clock: &ManualClock) -> Result<Engine, StoreError> {
        Ok(match self {
            Self::Disk(disk) => Engine::Redb(Arc::new(Redb::open_backend(disk.clone(), redb_options(clock))?)),
            Self::Image(image) => Engine::Mem(Mem::open(image.clone(), Arc::new(clock.clone()))?),
        })
    }
}

impl Engine {
    fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Redb(redb) => redb.clone(),
            Self::Mem(mem) => Arc::new(mem.clone()),
        }
    }

    /// Begins the end: whatever it has in its hands is let go of.
    fn end(&self) {
        match self {
            // It closes at once; nobody waits for what it says about that.
            Self::Redb(redb) => drop(redb.close(Duration::ZERO)),
            Self::Mem(mem) => mem.crash(),
        }
    }
}

/// Tells the store of the boot that runs that its disk is dead.
#[derive(Clone, Default)]
pub(crate) struct Knell {
    rung: Arc<AtomicBool>,
    gated: Arc<Mutex<Weak<Gated>>>,
}

impl Knell {
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        let gated = self.gated.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(gated) = gated {
            gated.die();
        }
    }

    pub(crate) fn has_rung(&self) -> bool {
        self.rung.load(Ordering::Acquire)
    }

    fn is_for(&self, gated: &Arc<Gated>) {
        *self.gated.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(gated);
    }
}

/// What the script says that steps are up to, by state.
type Script = Arc<Mutex<BTreeMap<String, Mood>>>;

/// What the script says that becomes of requests, by entity and target.
type FateOf = BTreeMap<(EntityId, String), Vec<Turn>>;

/// See the module.
pub(crate) struct Stage {
    pub(crate) world: World,
    acts: Arc<Vec<Act>>,
    at: usize,
    /// The request that the present act has made.
    asked: Option<usize>,
    /// Store time that the script has passed, in ms: a crash may take some of it back, and then it passes again.
    reached: u64,
    moods: Script,
    fates: Arc<Mutex<FateOf>>,
    /// Whether what a dead host has sent and nobody has heard of is lost, or arrives after its death.
    pub(crate) loses: bool,
    pub(crate) knell: Knell,
}

impl Stage {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let moods = Script::default();
        let said = moods.clone();
        let by_state: Moods = Arc::new(move |start, _| {
            let said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.get(start.state.as_str()).copied().unwrap_or(Mood::Good)
        });
        let mut world = World::new(Log::new(false), 0, by_state, Manners::GOOD);
        world.watches = false;
        let fates = Arc::new(Mutex::new(FateOf::new()));
        world.fates = by_target(&fates);
        let acts = Arc::new(scenario.acts());
        let knell = Knell::default();
        Self { world, acts, at: 0, asked: None, reached: 0, moods, fates, loses: false, knell }
    }

    /// The same scenario, to be played on from here in another way. What steps are up to is shared: it is set
    /// anew by whoever plays on.
    pub(crate) fn fork(&self) -> Self {
        Self {
            world: self.world.fork(),
            acts: self.acts.clone(),
            at: self.at,
            asked: self.asked,
            reached: self.reached,
            moods: self.moods.clone(),
            fates: self.fates.clone(),
            loses: self.loses,
            knell: Knell::default(),
        }
    }

    /// Plays to the end, or until the store dies.
    pub(crate) fn play(&mut self, place: &Place) -> Result<Exit, Finding> {
        self.set_moods();
        for _ in 0..BOOTS {
            match self.boot(place)? {
                Exit::Enough => return Ok(Exit::Enough),
                Exit::Died if self.knell.has_rung() || self.world.death.is_some() => return Ok(Exit::Died),
                Exit::Died | Exit::Stopped => {}
            }
        }
        let left = format!("line {} of {} after {BOOTS} boots", self.at, self.acts.len());
        Err(Finding::new("a_scenario_comes_to_its_end", "the script", left))
    }

    /// What steps are up to at this line.
    fn set_moods(&self) {
        let mut moods = self.moods.lock().unwrap_or_else(PoisonError::into_inner);
        moods.clear();
        let mut fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
        fates.clear();
        for act in self.acts.iter().take(self.at) {
            match act {
                Act::Mood(state, mood) => drop(moods.insert(state.clone(), *mood)),
                Act::Fate(id, target, turns) => drop(fates.insert((id.clone(), target.clone()), turns.clone())),
                _ => {}
            }
        }
    }

    fn boot(&mut self, place: &Place) -> Result<Exit, Finding> {
        let theorem = "a_store_opens_again";
        let engine = match place.open(&self.world.clock) {
            Ok(engine) => engine,
            Err(_) if self.knell.has_rung() => return Ok(Exit::Died),
            Err(error) => return Err(Finding::new(theorem, "the store", error)),
        };
        let raw = read_all(&*engine.store()).map_err(|error| Finding::new(theorem, "the store", error))?;
        self.takes_up(&raw)?;
        let runtime = runtime().map_err(|error| Finding::new("the_simulator_runs", "a runtime", error))?;
        let gated = Gated::new(engine.store(), Plant::Nothing);
        gated.hold_queries(true);
        self.knell.is_for(&gated);
        let crew = Crew::new(self.world.diary.clone(), Arc::new(self.world.clock.clone()));
        let courier = Some(self.world.wire.courier(&self.world.clock));
        let options = Options { executions_max: SLOTS, courier, ..Options::default() };
        let mut boot = {
            let _inside = runtime.enter();
            Boot::begin(gated, crew, options)
        };
        let lived = runtime.block_on(self.live(&mut boot));
        self.world.count(&boot);
        engine.end();
        boot.end(runtime);
        self.world.hears_nothing();
        if self.loses {
            self.world.wire.loses_strays();
        }
        lived
    }

    /// The store holds what was committed, and the job that it died over whole or not at all.
    fn takes_up(&mut self, raw: &Raw) -> Held {
        let in_flight = self.world.in_flight.take();
        let model = &mut self.world.model;
        if let Err(finding) = model.is_what_is_stored(raw) {
            let Some((ran, stamp)) = in_flight.and_then(|ran| ran.stamp.map(|stamp| (ran, stamp))) else {
                return Err(finding);
            };
            model.commit(stamp, &ran.writes)?;
            model.is_what_is_stored(raw)?;
        }
        model.holds()
    }

    async fn live(&mut self, boot: &mut Boot) -> Result<Exit, Finding> {
        if let Some(exit) = self.world.serve(boot).await? {
            return Ok(exit);
        }
        let behind = self.reached.saturating_sub(boot.gated.now().store_ms);
        self.world.clock.advance(Duration::from_millis(behind));
        while let Some(act) = self.acts.clone().get(self.at) {
            self.reached = self.reached.max(boot.gated.now().store_ms);
            if let Some(exit) = self.act(act, boot).await? {
                if exit == Exit::Stopped {
                    self.at += 1;
                }
                return Ok(exit);
            }
            self.at += 1;
        }
        // A stop in good order ends every scenario, so that the host may die in that, too.
        match self.stop(boot).await? {
            Exit::Stopped => Ok(Exit::Enough),
            exit => Ok(exit),
        }
    }

    async fn act(&mut self, act: &Act, boot: &mut Boot) -> Result<Option<Exit>, Finding> {
        match act {
            Act::Ask(command) => return self.ask(command, boot).await,
            Act::Mood(state, mood) => {
                self.moods.lock().unwrap_or_else(PoisonError::into_inner).insert(state.clone(), *mood);
            }
            Act::Fate(id, target, turns) => {
                let mut fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
                fates.insert((id.clone(), target.clone()), turns.clone());
            }
            Act::Hold(id) => self.world.wire.hold(id),
            Act::Go => self.world.wire.go(),
            Act::Tenant(lease, grant, tenancy) => {
                let token = last_told(&self.world.ledger, lease, grant).unwrap_or_default();
                let (lease, grant) = (lease.clone(), grant.clone());
                let verb = match tenancy {
                    Tenancy::Extend => Verb::Extend { lease, grant, token, ttl_ms: None },
                    Tenancy::Release => Verb::Release { lease, grant, token },
                };
                return self.ask(&Command { by: Principal::local(), verb }, boot).await;
            }
            Act::GivenUp(id, remedy) => {
                // Asked for before its host died: once more.
                let asked = self.asked.and_then(|request| self.world.ledger.requests.get(request));
                if let Some(command) = asked.map(|request| request.command.clone()) {
                    return self.ask(&command, boot).await;
                }
                let dead = self.world.model.given_up().into_iter().find(|(of, _)| of == id);
                let Some((entity, number)) = dead else { return Ok(None) };
                let verb = match remedy {
                    Remedy::Retry => Verb::Retry(entity, number),
                    Remedy::Drop => Verb::Drop { entity, number, reason: "the script says so".to_owned() },
                };
                return self.ask(&Command { by: Principal::local(), verb }, boot).await;
            }
            Act::Pass(ms) => {
                self.world.clock.advance(Duration::from_millis(*ms));
                return self.world.serve(boot).await;
            }
            Act::Rest => return self.world.settle(boot).await,
            Act::Boot => return self.stop(boot).await.map(Some),
        }
        Ok(None)
    }

    /// Asks until it is answered: over as many boots as it takes.
    async fn ask(&mut self, command: &Command, boot: &mut Boot) -> Result<Option<Exit>, Finding> {
        let request = match self.asked {
            Some(request) => {
                self.world.try_again(boot, request);
                request
            }
            None => {
                self.world.request(boot, command.clone(), 0);
                let request = self.world.ledger.requests.len() - 1;
                self.asked = Some(request);
                request
            }
        };
        if let Some(exit) = self.world.serve(boot).await? {
            return Ok(Some(exit));
        }
        let known = self.world.ledger.requests.get(request).is_some_and(|request| request.is_known());
        ensure(known, "every_request_is_answered", request, || format!("{:?}", command.verb))?;
        self.asked = None;
        Ok(None)
    }

    async fn stop(&mut self, boot: &mut Boot) -> Result<Exit, Finding> {
        let Some(stopping) = boot.stop(Duration::ZERO) else { return Ok(Exit::Died) };
        if let Some(exit) = self.world.serve(boot).await? {
            return Ok(exit);
        }
        // Closing is done on the engine's own thread.
        let _ = stopping.await;
        Ok(self.world.listen(boot).await?.unwrap_or(Exit::Died))
    }

    /// What must hold once the script is over, whatever happened on the way.
    pub(crate) fn ends_well(&mut self, place: &Place) -> Held {
        let theorem = "a_store_opens_again";
        let engine = place.open(&self.world.clock).map_err(|error| Finding::new(theorem, "the store", error))?;
        let raw = read_all(&*engine.store()).map_err(|error| Finding::new(theorem, "the store", error));
        engine.end();
        drop(engine);
        self.takes_up(&raw?)?;
        self.world.ledger.agrees(&self.world.model, &self.world.diary.written())?;
        self.world.model.effects_are_over(&self.world.wire)?;
        self.world.answers_have_turned()
    }

    /// Where everything stands, in what does not depend on how often the host died: versions, documents and
    /// answers, but no token, time, incarnation or mark.
    pub(crate) fn ending(&self) -> Vec<String> {
        let model = &self.world.model;
        let mut lines = Vec::new();
        let (mut expire, mut old) = (BTreeSet::new(), BTreeSet::new());
        for (key, record) in &model.records {
            match (key, record) {
                (Key::Head(id), Record::Head(head)) => {
                    let last = head.last.as_ref().map(|last| (last.ordinal, last.succeeded, &last.state, last.version));
                    let park = head.park.as_ref().map(|park| &park.code);
                    lines.push(format!(
                        "{id} {} v{} visit {} revision {} generation {} observed {} executions {} inbox {} park {park:?} \
                         last {last:?}",
                        head.state,
                        head.version,
                        head.visit,
                        head.revision,
                        head.generation,
                        head.observed,
                        head.executions,
                        head.inbox.length,
                    ));
                }
                (Key::Part(id, part), Record::Doc(doc)) if *part != Part::Cause => {
                    let mut value = doc.value().clone();
                    if let Some(fields) = value.as_object_mut() {
                        fields.insert("mark".to_owned(), Value::Null);
                    }
                    lines.push(format!("{id} {part:?} {value}"));
                }
                (Key::Part(id, _), Record::Conditions(conditions)) => {
                    let shown = |one: &Condition| format!("{} {} {}", one.kind, one.status, one.reason);
                    lines.push(format!("{id} {:?}", conditions.iter().map(shown).collect::<Vec<_>>()));
                }
                (Key::Dedup(id, event), Record::Dedup(dedup)) => {
                    let answer = &dedup.answer;
                    lines.push(format!(
                        "{id} {event}: {:?} execution {:?} v{} {}",
                        answer.kind, answer.execution, answer.version, answer.state
                    ));
                }
                (Key::Expiry(..), Record::Expires(Expires::Dedup(id, event))) => {
                    expire.insert(format!("{id} {event}"));
                }
                (Key::Expiry(..), Record::Expires(Expires::History(id, ..))) => {
                    expire.insert(id.to_string());
                }
                (Key::History(id, incarnation, _), _)
                    if model.head(id).is_none_or(|head| head.incarnation != *incarnation) =>
                {
                    old.insert(id.to_string());
                }
                (Key::Machine(name), Record::Machine(machine)) => lines.push(format!("{name} {machine:?}")),
                _ => {}
            }
        }
        for life in model.lives.values() {
            let (entity, number, target, fate) = (&life.entity, life.number, &life.first.target, life.fate);
            lines.push(format!("{entity} effect {number} on {target}: {fate:?}"));
        }
        // How many records of each there are depends on how many attempts were lost, and on who waited for them.
        lines.push(format!("to expire {expire:?}, old entries of {old:?}"));
        lines
    }

    /// The host dies at a job run in calm.
    pub(crate) fn dies_at(&mut self, death: Death) {
        self.world.death = Some(death);
    }
}

/// What becomes of requests, by what the script says of their entity and target, try by try.
fn by_target(fates: &Arc<Mutex<FateOf>>) -> Fates {
    let fates = fates.clone();
    Arc::new(move |sending| {
        let fates = fates.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = fates.get(&(sending.entity.clone(), sending.effect.target.to_string()));
        let nth = sending.effect.tries.saturating_sub(1) as usize;
        let turn = turns.and_then(|turns| turns.get(nth).or(turns.last()));
        turn.copied().unwrap_or(Turn::Arrives(Whim::Does))
    })
}
