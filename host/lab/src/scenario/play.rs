//! Playing a scenario: on a whole host of its own, from an empty store, under time that moves by hand.
//!
//! After each thing that happens everything happens that can without time passing; then the promises are
//! looked at, and the next thing happens. What is not as it should be is noted and the story goes on: the
//! author sees all of it at once. In another [`Weather`] than calm, more happens than is written.

mod weather;

pub use weather::{End, Weather};

use super::check::{self, Heard};
use super::coverage::{Cover, Point};
use super::{
    Act, Advance, Answer, AnswerKind, Ask, Asking, Call, CallKind, Clients, Deed, Filled, Planted, Promise, Request,
    Scenario, Then, idle,
};
use crate::story::{Story, of_fault};
use crate::{Fault, Held, Lab, LabError, Turn};
use interlock_coordinator::{EntityView, Executor, LeaseView};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, EventId, Principal, RowKey, TableName};
use interlock_kernel::table::Table;
use interlock_kernel::time::Span;
use interlock_kernel::value::Value;
use interlock_manifest::Manifest;
use interlock_store::Fault as StoreFault;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Calls granted without time passing: a step that never stops asking is stopped by its own limits long before.
const TURNS_MAX: u32 = 100_000;
/// Things that time brings before a story counts as one that never comes to rest.
const TICKS_MAX: u32 = 2_000;

/// What scenarios are played with.
#[derive(Clone)]
pub struct Stage {
    /// The machine.
    pub manifest: Manifest,
    /// Its component's digest, if it has one.
    pub component: Option<Digest>,
    /// Tables that are declared before anything happens.
    pub tables: Vec<Declared>,
    /// Runs its steps: on the runtime it is called in, or on threads of its own.
    pub executor: Arc<dyn Executor>,
}

/// A table as an operator declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// The table.
    pub table: Table,
    /// The text that says so.
    pub source: String,
}

impl Stage {
    /// A host with the machine deployed and nothing else.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn lab(&self) -> Result<Lab, LabError> {
        self.filled(&[])
    }

    /// The same with rows in its tables.
    ///
    /// # Errors
    /// [`LabError`]: also if there is no such table, or its schema refuses a row.
    pub(crate) fn filled(&self, filled: &[Filled]) -> Result<Lab, LabError> {
        let mut lab = Lab::new(self.executor.clone())?;
        for Declared { table, source } in &self.tables {
            let of_it = filled.iter().filter(|filled| filled.table == table.name).flat_map(|filled| &filled.rows);
            let key = |key: &RowKey| Value::Json(Doc::new(key.as_str().into()));
            let rows = of_it.map(|(row, value)| (key(row), value.clone())).collect();
            let declared = lab.declare_filled(table, source, rows);
            declared.map_err(|why| LabError::Boot(format!("the table {} was not declared: {why}", table.name)))?;
        }
        let is_declared = |filled: &&Filled| self.tables.iter().any(|declared| declared.table.name == filled.table);
        if let Some(Filled { table, .. }) = filled.iter().find(|filled| !is_declared(filled)) {
            let why = format!("expected a file {table}.table.toml beside the machine, got none: rows of it are given");
            return Err(LabError::Boot(why));
        }
        let deployed = lab.deploy(&self.manifest, &self.manifest.source, self.component);
        deployed.map_err(|why| LabError::Boot(format!("the machine was not deployed: {why}")))?;
        Ok(lab)
    }
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("machine", &self.manifest.machine.name).finish_non_exhaustive()
    }
}

/// A scenario that was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// What happened, as expected or not.
    pub story: Story,
    /// What was not as it should be, in the order in which it showed.
    pub misses: Vec<Miss>,
    /// Where each entity stands in the end, and what it waits for.
    pub stands: Vec<(EntityId, String)>,
    /// Virtual time that passed, in ms.
    pub passed_ms: u64,
    /// What is left of each entity in the end.
    pub ends: BTreeMap<EntityId, End>,
    /// What of the machine it reached.
    pub reached: BTreeSet<Point>,
    /// Lines of the story until the end of the scenario; those behind are of what came after it by itself.
    lines: usize,
}

impl Played {
    /// The story as it is kept beside the scenario and compared.
    #[must_use]
    pub fn transcript(&self, scenario: &Scenario) -> String {
        format!("{}\n\n{}", scenario.name, self.story.text(0..self.lines, ""))
    }

    /// The whole story.
    #[must_use]
    pub fn told(&self, indent: &str) -> String {
        self.story.text(0..self.story.lines().len(), indent)
    }
}

/// Something that is not as the scenario says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Where the scenario says so.
    pub line: usize,
    /// What it is about.
    pub what: String,
    /// What should be.
    pub expected: String,
    /// What is.
    pub got: String,
}

/// Plays a scenario from an empty store.
///
/// # Errors
/// [`LabError`] if there is no host to play it on. What goes wrong later is a [`Miss`].
pub fn play(scenario: &Scenario, stage: &Stage) -> Result<Played, LabError> {
    play_in(scenario, stage, Weather::Calm)
}

/// Plays a scenario in some weather. What it expects is expected all the same, but for the number of attempts
/// where attempts are lost.
///
/// # Errors
/// As [`play`].
pub fn play_in(scenario: &Scenario, stage: &Stage, weather: Weather) -> Result<Played, LabError> {
    let lab = stage.filled(&scenario.filled)?;
    let mut player = Player {
        lab,
        scenario,
        weather,
        struck: BTreeSet::new(),
        story: Story::new(),
        entities: entities(scenario),
        planted: Vec::new(),
        misses: Vec::new(),
        broken: BTreeSet::new(),
        broken_of_rows: BTreeSet::new(),
        heard: BTreeMap::new(),
        clients: Clients::default(),
        cover: Cover::new(&stage.manifest.machine, scenario),
        calls: BTreeMap::new(),
    };
    let mut lines = None;
    if let Err((line, error)) = player.all(&mut lines) {
        player.miss(line, "the host", "one that goes on", error.to_string());
    }
    let stands = player.stands();
    Ok(Played {
        ends: player.ends()?,
        lines: lines.unwrap_or(player.story.lines().len()),
        story: player.story,
        misses: player.misses,
        stands,
        passed_ms: player.lab.passed_ms(),
        reached: player.cover.reached,
    })
}

/// Every entity of a scenario, in the order of the file.
fn entities(scenario: &Scenario) -> Vec<EntityId> {
    let mut all: Vec<EntityId> = scenario.given.iter().map(|given| given.entity.clone()).collect();
    for when in &scenario.when {
        if let Act::Ask(Ask { entity, .. }) = &when.act
            && !all.contains(entity)
        {
            all.push(entity.clone());
        }
    }
    all
}

type Stopped = (usize, LabError);

struct Player<'s> {
    lab: Lab,
    scenario: &'s Scenario,
    weather: Weather,
    /// Visits that the weather has struck, each once.
    struck: BTreeSet<(EntityId, u64)>,
    story: Story,
    entities: Vec<EntityId>,
    planted: Vec<Trap<'s>>,
    misses: Vec<Miss>,
    /// Promises that were broken, by line, and whose.
    broken: BTreeSet<(usize, EntityId)>,
    /// The same of promises that are about rows.
    broken_of_rows: BTreeSet<(usize, TableName)>,
    heard: BTreeMap<EventId, Heard>,
    clients: Clients,
    cover: Cover<'s>,
    /// The kinds of calls that attempts have made, by boot and place.
    calls: BTreeMap<(u32, usize), Vec<CallKind>>,
}

/// A fault that lies in wait, and how many times it has yet to come.
struct Trap<'s> {
    line: usize,
    planted: &'s Planted,
    left: u32,
}

impl<'s> Player<'s> {
    fn all(&mut self, lines: &mut Option<usize>) -> Result<(), Stopped> {
        let scenario = self.scenario;
        for replies in &scenario.replies {
            self.lab.reply(replies.target.as_str(), replies.reply.clone(), replies.times);
        }
        for given in &scenario.given {
            let at = |error| (given.line, error);
            let made = self.lab.submit(Principal::local(), given.verb());
            if let Err(error) = &made {
                let (word, more) = crate::story::of_error(error);
                let got = format!("{word}: {}", more.join(", "));
                self.miss(given.line, &format!("{} is given", given.entity.key), "an entity at rest", got);
            }
            self.settle().map_err(at)?;
        }
        for (line, deed) in &scenario.held {
            let given = self.clients.act(&mut self.lab, deed);
            if let Err(error) = &given {
                let (word, more) = crate::story::of_error(error);
                let what = format!("the lease {} is given", deed.lease);
                self.miss(*line, &what, format!("held by {}", deed.by), format!("{word}: {}", more.join(", ")));
            }
            self.settle().map_err(|error| (*line, error))?;
        }
        for when in &scenario.when {
            self.act(when.line, &when.act).map_err(|error| (when.line, error))?;
        }
        for then in &scenario.then {
            self.expect(then).map_err(|error| (then.line, error))?;
        }
        *lines = Some(self.story.lines().len());
        self.deliver_all_again().map_err(|error| (0, error))?;
        for trap in std::mem::take(&mut self.planted) {
            if trap.left > 0 {
                self.never_came(&trap);
            }
        }
        self.eventually()
    }

    fn act(&mut self, line: usize, act: &'s Act) -> Result<(), LabError> {
        let at_ms = self.lab.passed_ms();
        match act {
            Act::Ask(ask) => return self.ask(line, ask),
            Act::Lease(deed) => return self.lease(line, deed),
            Act::Rows(asking) => return self.rows(line, asking),
            Act::Expect(then) => return self.expect(then),
            Act::Fault(planted) => self.planted.push(Trap { line, planted, left: planted.times }),
            Act::Advance(Advance::By(ms)) => return self.advance(*ms),
            Act::Advance(Advance::UntilIdle) => {
                if let Some(coming) = self.until_idle()? {
                    self.miss(line, "advance until-idle", "time that brings nothing more", coming);
                }
            }
            Act::Crash => {
                self.story.host(at_ms, "killed; boots again");
                self.lab.kill();
                self.lab.boot()?;
            }
            Act::Down(ms) => {
                self.story.host(at_ms, "killed");
                self.lab.kill();
                self.lab.advance(*ms, &mut |_| Turn::Wait)?;
                self.story.host(self.lab.passed_ms(), "boots again");
                self.lab.boot()?;
            }
            Act::Wall(ms) => {
                let way = if *ms < 0 { "back" } else { "on" };
                self.story.host(at_ms, &format!("the wall clock jumps {way} by {}", Span(ms.unsigned_abs())));
                self.lab.set_wall(self.lab.wall_ms().saturating_add(*ms))?;
            }
        }
        self.settle()
    }

    fn ask(&mut self, line: usize, ask: &'s Ask) -> Result<(), LabError> {
        let before = self.view(&ask.entity)?;
        let generation = before.as_ref().map_or(0, |view| view.head.generation);
        match ask.fault {
            Some(Fault::Unavailable) => self.lab.fail_next(StoreFault::Unavailable),
            Some(Fault::Unknown { kept }) => self.lab.fail_next(StoreFault::Indeterminate { kept }),
            Some(Fault::Conflict | Fault::Fenced | Fault::LeaseLost | Fault::Crash | Fault::CrashBehind) | None => {}
        }
        let at_ms = self.lab.passed_ms();
        let answer = self.lab.submit(Principal::local(), ask.request.verb(&ask.entity, generation));
        self.story.asked(at_ms, &ask.entity, &ask.request, &answer);
        self.cover.asked(ask, before.as_ref(), &answer);
        let heard = Heard::of(&answer, generation);
        self.compare(line, &check::name(&ask.request), ask.answer.as_ref(), &heard);
        self.ask_again(line, ask, generation, &heard)?;
        if let Request::Send { id, .. } = &ask.request {
            self.heard.insert(id.clone(), heard);
        }
        self.settle()
    }

    fn lease(&mut self, line: usize, deed: &'s Deed) -> Result<(), LabError> {
        let at_ms = self.lab.passed_ms();
        let answer = self.clients.act(&mut self.lab, deed);
        self.story.leased(at_ms, deed, &answer);
        self.compare(line, &deed.to_string(), deed.answer.as_ref(), &Heard::of(&answer, 0));
        self.settle()
    }

    fn rows(&mut self, line: usize, asking: &'s Asking) -> Result<(), LabError> {
        let at_ms = self.lab.passed_ms();
        let answer = self.lab.rows(asking.ask.clone());
        self.story.rowed(at_ms, asking, &answer);
        self.compare(line, &asking.to_string(), asking.answer.as_ref(), &Heard::of(&answer, 0));
        self.settle()
    }

    fn compare(&mut self, line: usize, what: &str, expected: Option<&Answer>, heard: &Heard) {
        let what = format!("the answer to {what}");
        match expected {
            Some(expected) if !heard.is(expected) => {
                self.miss(line, &what, expected.to_string(), heard.to_string());
            }
            None if !matches!(heard.answer.kind, AnswerKind::Accepted | AnswerKind::Queued) => {
                self.miss(line, &what, "accepted or queued", heard.to_string());
            }
            Some(_) | None => {}
        }
    }

    fn expect(&mut self, then: &Then) -> Result<(), LabError> {
        let view = self.view(&then.entity)?;
        let mut answers = BTreeMap::new();
        for id in then.answers.keys() {
            answers.extend(self.answered(&then.entity, id)?.map(|heard| (id.clone(), heard)));
        }
        let leases = self.leases(then)?;
        let history = self.cover.sentences(&then.entity);
        // The story goes on behind it if something is promised in the end.
        let at = crate::story::clock(self.lab.passed_ms());
        let tables = if then.rows.is_empty() && then.counts.is_empty() { Vec::new() } else { self.lab.tables()? };
        let requests = self.lab.requests();
        let expected = self.weather.expected(then);
        for (what, broken) in check::all(&expected, view.as_ref(), history, &answers, &leases, &tables, &requests) {
            self.miss(then.line, &format!("{what}, at {at}"), broken.expected, broken.got);
        }
        Ok(())
    }

    /// The leases that a check is about, each with what became of it.
    fn leases(&self, then: &Then) -> Result<Vec<LeaseView>, LabError> {
        let mut found = Vec::new();
        for name in then.leases.keys() {
            found.extend(self.lab.read(|host| async move { host.lease(name).await })?);
        }
        Ok(found)
    }

    /// What an event was answered last: what is remembered of it, or what its sender heard.
    fn answered(&self, entity: &EntityId, id: &EventId) -> Result<Option<Heard>, LabError> {
        let heard = self.heard.get(id);
        let kept = self.lab.read(|host| async move { host.answer(entity, id).await })?;
        let again = heard.is_some_and(|heard| heard.answer.again);
        Ok(kept.map(|kept| Heard::kept(&kept.answer, again)).or_else(|| heard.cloned()))
    }

    /// Has everything happen that can without time passing.
    fn settle(&mut self) -> Result<(), LabError> {
        for _ in 0..TURNS_MAX {
            self.look()?;
            let Some(held) = self.lab.held().into_iter().next() else { return Ok(()) };
            let struck = self.strike(&held)?;
            match self.trap(&held).or(struck) {
                Some(fault) => {
                    self.story.host(self.lab.passed_ms(), &of_fault(fault, &held));
                    self.lab.befall(held.place, fault)?;
                    self.look()?;
                    if !fault.is_crash() {
                        self.lab.let_go(held.place)?;
                    }
                    if struck.is_some() {
                        self.wait_for_another(&held.entity)?;
                    }
                }
                None => self.lab.let_go(held.place)?,
            }
        }
        Err(LabError::Restless(format!("{TURNS_MAX} calls of steps")))
    }

    /// The fault that lies in wait for a call that is about to go on.
    fn trap(&mut self, held: &Held) -> Option<Fault> {
        let kind = CallKind::of(&held.asked);
        let made = self.calls.entry((self.lab.boots(), held.place)).or_default();
        made.push(kind);
        let nth_of_kind = made.iter().filter(|made| **made == kind).count();
        let call = (kind, u32::try_from(nth_of_kind).unwrap_or(u32::MAX));
        let trap = self.planted.iter_mut().find(|trap| trap.left > 0 && trap.is_for(held, call))?;
        trap.left -= 1;
        Some(trap.planted.what)
    }

    /// Takes down what happened, and looks whether what was promised holds.
    fn look(&mut self) -> Result<(), LabError> {
        let news = self.story.follow(&mut self.lab, &self.entities)?;
        self.cover.seen(&news);
        let always = &self.scenario.always;
        if !always.is_empty() && self.lab.is_up() {
            self.promises(always, "always")?;
        }
        Ok(())
    }

    fn promises(&mut self, promises: &[Promise], word: &str) -> Result<(), LabError> {
        let about_leases = promises.iter().any(Promise::is_about_leases);
        let leases = if about_leases { self.lab.leases()? } else { Vec::new() };
        self.promises_of_rows(promises, word)?;
        let requests = self.lab.requests();
        for entity in self.entities.clone() {
            let Some(view) = self.view(&entity)? else { continue };
            for promise in promises {
                if let Err(broken) = promise.judge(&view, &leases, &requests)
                    && self.broken.insert((promise.line, entity.clone()))
                {
                    let at = crate::story::clock(self.lab.passed_ms());
                    let what = format!("{word} \"{}\": {}, at {at}", promise.name, entity.key);
                    self.miss(promise.line, &what, broken.expected, broken.got);
                }
            }
        }
        Ok(())
    }

    fn promises_of_rows(&mut self, promises: &[Promise], word: &str) -> Result<(), LabError> {
        if !promises.iter().any(Promise::is_about_rows) {
            return Ok(());
        }
        let tables = self.lab.tables()?;
        for promise in promises {
            if let Err((table, broken)) = promise.judge_rows(&tables)
                && self.broken_of_rows.insert((promise.line, table.clone()))
            {
                let at = crate::story::clock(self.lab.passed_ms());
                let what = format!("{word} \"{}\": table {table}, at {at}", promise.name);
                self.miss(promise.line, &what, broken.expected, broken.got);
            }
        }
        Ok(())
    }

    fn advance(&mut self, ms: u64) -> Result<(), LabError> {
        let mut left_ms = ms;
        while left_ms > 0 {
            let next_ms = self.lab.coming()?.first().map_or(left_ms, |next| next.in_ms.max(1));
            let step_ms = next_ms.min(left_ms);
            if next_ms > left_ms || !self.late(step_ms)? {
                self.lab.advance(step_ms, &mut |_| Turn::Wait)?;
            }
            self.settle()?;
            left_ms = left_ms.saturating_sub(step_ms);
        }
        Ok(())
    }

    /// Moves time until it brings nothing more; answers what it brings without end, if it does.
    fn until_idle(&mut self) -> Result<Option<String>, LabError> {
        for _ in 0..TICKS_MAX {
            let Some(next) = self.lab.coming()?.into_iter().next() else { return Ok(None) };
            if !self.late(next.in_ms.max(1))? {
                self.lab.tick()?;
            }
            self.settle()?;
        }
        let coming = self.lab.coming()?.first().map(|next| match &next.entity {
            Some(entity) => format!("{}: {}", entity.key, idle::of_coming(next)),
            None => idle::of_coming(next),
        });
        let at = crate::story::clock(self.lab.passed_ms());
        Ok(coming.map(|coming| format!("still {coming}, after {TICKS_MAX} such things, at {at}")))
    }

    fn eventually(&mut self) -> Result<(), Stopped> {
        let promises = &self.scenario.eventually;
        let Some(first) = promises.first() else { return Ok(()) };
        let at = |error| (first.line, error);
        if let Some(coming) = self.until_idle().map_err(at)? {
            let what = format!("eventually \"{}\"", first.name);
            self.miss(first.line, &what, "time that brings nothing more", coming);
        }
        self.promises(promises, "eventually").map_err(at)
    }

    fn never_came(&mut self, trap: &Trap<'_>) {
        let planted = trap.planted;
        let step = planted.step.as_ref().map_or("any step".to_owned(), ToString::to_string);
        let attempt = planted.attempt.map(|attempt| format!(" attempt {attempt}")).unwrap_or_default();
        let times = if planted.times == 1 { String::new() } else { format!(" {} times", planted.times) };
        let expected = format!("{step}{attempt} to make {}{times} after this", planted.call);
        let came = planted.times - trap.left;
        self.miss(
            trap.line,
            "the fault never came",
            expected,
            match came {
                0 => "no such call".to_owned(),
                came => format!("{came} such calls"),
            },
        );
    }

    fn view(&self, entity: &EntityId) -> Result<Option<EntityView>, LabError> {
        Ok(self.lab.read(|host| async move { host.entity(entity).await })?)
    }

    fn stands(&self) -> Vec<(EntityId, String)> {
        let Ok(coming) = self.lab.coming() else { return Vec::new() };
        let hung = self.lab.hung();
        let of = |entity: &EntityId| {
            let view = self.view(entity).ok()?;
            Some((entity.clone(), view.map_or("is not there".to_owned(), |view| idle::stands(&view, &coming, &hung))))
        };
        self.entities.iter().filter_map(of).collect()
    }

    fn miss(&mut self, line: usize, what: &str, expected: impl Into<String>, got: impl Into<String>) {
        let [expected, got] = [expected.into(), got.into()].map(|text| self.story.plain(&text));
        self.misses.push(Miss { line, what: what.to_owned(), expected, got });
    }
}

impl Trap<'_> {
    fn is_for(&self, held: &Held, (kind, nth_of_kind): (CallKind, u32)) -> bool {
        let Planted { entity, step, attempt, call, .. } = self.planted;
        let is_call = match *call {
            Call::Nth(nth) => nth == held.nth,
            Call::Of(wanted, nth) => (wanted, nth) == (kind, nth_of_kind),
        };
        entity.as_ref().is_none_or(|entity| *entity == held.entity)
            && step.as_ref().is_none_or(|step| *step == held.step)
            && attempt.is_none_or(|attempt| attempt == held.attempt)
            && is_call
    }
}
