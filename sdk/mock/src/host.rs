//! The host as a test drives it: commands, time, faults, and what came of them.

use crate::answer::Answer;
use crate::command::{New, Signal, parsed};
use crate::fault::{At, fits, words};
use crate::native::{Native, Steps};
use crate::ran::{End, Log, Ran};
use crate::story::Story;
use crate::view::View;
use interlock_coordinator::{Listing, PAGE_MAX};
use interlock_kernel::command::Verb;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, LeaseName, MachineName, Principal};
use interlock_kernel::time::Span;
use interlock_lab::{Fault, Held, Lab, LabError, Turn};
use interlock_store::StoreError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Calls and waits in one go of [`MockHost::run`] or [`MockHost::until`], after which a machine is taken to go
/// round and round: its own limit on transitions without a wait is far lower.
const TURNS_MAX: u32 = 100_000;

/// How long a step may compute, in real time, before nobody waits for it: a build without optimisation, on a
/// machine that does other things too, is not to be taken for a loop without end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A whole host in memory, for one test. Dropped at the end of a test that failed, it prints what happened.
///
/// Nothing in it is scripted: the rules are the real kernel's, on the real coordinator and a store in memory.
/// Time stands still until the test moves it; a step is begun at once and held before its first call until
/// [`MockHost::run`] or one of its relatives lets it go on.
///
/// Methods panic where a test cannot go on: names that are no names, entities that are not there. A command that
/// is refused is no such thing, but an [`Answer`].
pub struct MockHost {
    pub(crate) lab: Lab,
    native: Native,
    machines: Vec<MachineName>,
    faults: Vec<(At, Fault)>,
    holds: Vec<At>,
    /// Holds that a call has come to.
    met: Vec<At>,
    /// Attempts that [`MockHost::step`] told.
    stepped: Vec<usize>,
    /// Entities whose step nobody waits for.
    hung: Vec<String>,
    story: Story,
    sent: u32,
    /// The tokens that clients were told with their leases, by lease and client.
    pub(crate) tokens: BTreeMap<(LeaseName, String), u64>,
}

/// From a manifest to a host.
impl MockHost {
    /// A host with this machine and its steps, which [`steps!`](interlock::steps) lists:
    /// `MockHost::new(include_str!("../machine.toml"), STEPS)`. A machine without steps has `&[]`.
    ///
    /// # Panics
    /// If there is something wrong with the manifest, with all of that.
    #[track_caller]
    #[must_use]
    pub fn new(manifest: &str, steps: impl Into<Steps>) -> Self {
        let mut host = Self::empty();
        host.deploy(manifest, steps).accepted();
        host
    }

    /// The same from the `machine.toml` of a folder: `env!("CARGO_MANIFEST_DIR")`.
    ///
    /// # Panics
    /// As [`MockHost::new`], and if there is no such file.
    #[track_caller]
    #[must_use]
    pub fn of_folder(folder: impl AsRef<Path>, steps: impl Into<Steps>) -> Self {
        let path = folder.as_ref().join("machine.toml");
        match std::fs::read_to_string(&path) {
            Ok(manifest) => Self::new(&manifest, steps),
            Err(why) => panic!("expected a machine at {}: {why}", path.display()),
        }
    }

    #[track_caller]
    pub(crate) fn empty() -> Self {
        let native = Native::new();
        let mut lab = went(Lab::new(Arc::new(native.clone())));
        lab.set_patience(PATIENCE);
        Self {
            lab,
            native,
            machines: Vec::new(),
            faults: Vec::new(),
            holds: Vec::new(),
            met: Vec::new(),
            stepped: Vec::new(),
            hung: Vec::new(),
            story: Story::default(),
            sent: 0,
            tokens: BTreeMap::new(),
        }
    }

    /// Deploys another revision of a machine, or another machine. What runs goes on with its revision until its
    /// attempt is over.
    ///
    /// # Panics
    /// If there is something wrong with the manifest.
    #[track_caller]
    pub fn deploy(&mut self, manifest: &str, steps: impl Into<Steps>) -> Answer {
        let report = interlock_manifest::parse("machine.toml", manifest);
        let Some(read) = &report.manifest else {
            panic!("expected a sound machine, got\n{}", interlock_manifest::render(&report, false));
        };
        self.deploy_read(read, manifest, steps.into())
    }

    pub(crate) fn deploy_read(&mut self, read: &interlock_manifest::Manifest, source: &str, steps: Steps) -> Answer {
        let name = read.machine.name.clone();
        let component = self.native.add(steps);
        let answer = Answer::new(self.lab.deploy(read, source, read.component.is_some().then_some(component)));
        if !self.machines.contains(&name) {
            self.machines.push(name.clone());
        }
        self.note(format_args!("deploy {name}: {answer}"));
        answer
    }
}

/// Commands, as clients and operators give them. Each is answered at once; an entity is named by its key, or
/// by `machine/key` if it is not of the first machine.
impl MockHost {
    /// Creates an entity: by its key alone, or by a [`New`].
    pub fn create(&mut self, new: impl Into<New>) -> Answer {
        let new = new.into();
        let words = format!("create {new}");
        let entity = self.id(&new.key);
        let create = Box::new(new.create(entity, || mint(&mut self.sent)));
        self.submit(words, Verb::Create(create))
    }

    /// Sends an event with a payload; `json!(null)` is none.
    pub fn send(&mut self, key: &str, event: &str, payload: Value) -> Answer {
        self.deliver(key, Signal::new(event).payload(payload))
    }

    /// Sends an event about which there is more to say.
    pub fn deliver(&mut self, key: &str, signal: Signal) -> Answer {
        let words = format!("send {signal} to {key}");
        let entity = self.id(key);
        let event = Box::new(signal.event(|| mint(&mut self.sent)));
        self.submit(words, Verb::Deliver { entity, event })
    }

    /// Replaces what clients want, whatever that is now.
    pub fn apply(&mut self, key: &str, desired: Value) -> Answer {
        let generation = self.view(&self.id(key)).ok().flatten().map_or(0, |view| view.generation());
        self.apply_over(key, generation, desired)
    }

    /// Replaces this generation of what clients want, and no other.
    pub fn apply_over(&mut self, key: &str, generation: u64, desired: Value) -> Answer {
        let words = format!("apply {desired} to {key}, over generation {generation}");
        let (entity, desired) = (self.id(key), Doc::new(desired));
        self.submit(words, Verb::Apply { entity, desired, expect: Some(generation), checked: None })
    }

    /// Deletes an entity at rest or at its end.
    pub fn delete(&mut self, key: &str) -> Answer {
        self.submit(format!("delete {key}"), Verb::Delete(self.id(key)))
    }

    /// Ends an entity for good, whatever it does.
    pub fn kill(&mut self, key: &str, reason: &str) -> Answer {
        let verb = Verb::Kill { entity: self.id(key), reason: reason.to_owned() };
        self.submit(format!("kill {key}: {reason}"), verb)
    }

    /// Has a parked entity try again.
    pub fn unpark(&mut self, key: &str) -> Answer {
        self.submit(format!("unpark {key}"), Verb::Unpark(self.id(key)))
    }

    pub(crate) fn submit(&mut self, words: String, verb: Verb) -> Answer {
        let answer = Answer::new(self.lab.submit(Principal::local(), verb));
        self.note(format_args!("{words}: {answer}"));
        answer
    }

    #[track_caller]
    fn id(&self, key: &str) -> EntityId {
        let named = key.split_once('/').filter(|(machine, _)| self.machines.iter().any(|own| own.as_str() == *machine));
        let Some(first) = self.machines.first() else { panic!("expected a machine, got none deployed") };
        match named {
            Some(_) => parsed("an entity", key),
            None => EntityId { machine: first.clone(), key: parsed("a key", key) },
        }
    }
}

/// Going on.
impl MockHost {
    /// Lets everything run that can without time passing: every call of every step, the oldest attempt's first.
    #[track_caller]
    pub fn run(&mut self) {
        for _ in 0..TURNS_MAX {
            let Some(held) = self.next_held() else { return self.note_hung() };
            self.go(&held);
        }
        panic!("expected everything to come to rest, got {TURNS_MAX} calls of steps\n{self}");
    }

    /// Moves time by so much, stopping at each timer, back-off and deadline on the way, and lets everything run.
    #[track_caller]
    pub fn advance(&mut self, by: Duration) {
        self.run();
        let mut left_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        while left_ms > 0 {
            let next_ms = self.next_ms().unwrap_or(left_ms).min(left_ms);
            self.pass(next_ms);
            self.run();
            left_ms = left_ms.saturating_sub(next_ms);
        }
    }

    /// Lets things run, and time pass as far as needed, until the entity is in this state. Its step, if the state
    /// has one, is then held before its first call.
    ///
    /// # Panics
    /// If nothing more happens by itself before that.
    #[track_caller]
    pub fn until(&mut self, key: &str, state: &str) -> View {
        self.until_it(key, &format!("the state {state}"), |view| view.state() == state)
    }

    /// The same until no execution holds the entity, or it is parked.
    ///
    /// # Panics
    /// If nothing more happens by itself before that.
    #[track_caller]
    pub fn until_settled(&mut self, key: &str) -> View {
        self.until_it(key, "rest", |view| view.locked_by().is_none() || view.parked().is_some())
    }

    #[track_caller]
    fn until_it(&mut self, key: &str, what: &str, is: impl Fn(&View) -> bool) -> View {
        for _ in 0..TURNS_MAX {
            let view = self.entity(key);
            if is(&view) {
                return view;
            }
            match (self.next_held(), self.next_ms()) {
                (Some(held), _) => self.go(&held),
                (None, Some(next_ms)) => self.pass(next_ms),
                (None, None) => panic!("expected {key} to come to {what}, got {}", self.why_not(&view)),
            }
        }
        panic!("expected {key} to come to {what}, got {TURNS_MAX} calls and waits");
    }

    /// Lets the attempt that the entity is at run to its end, and nothing else; what it did. One that has come to
    /// its end already, since it asks for nothing, is told once too.
    ///
    /// # Panics
    /// If the entity is at no attempt, or it is [held](MockHost::hold).
    #[track_caller]
    pub fn step(&mut self, key: &str) -> Ran {
        let id = self.id(key).to_string();
        let place = self.native.with(|all| all.iter().rposition(|ran| ran.entity == id));
        let Some(place) = place.filter(|place| !self.stepped.contains(place)) else {
            panic!("expected {key} to be at an attempt, got {}", self.why_not(&self.entity(key)));
        };
        for _ in 0..TURNS_MAX {
            let Some(ran) = self.native.with(|all| all.get(place).cloned()) else { break };
            if ran.end != End::Running {
                self.stepped.push(place);
                return ran;
            }
            let is_it = |held: &Held| {
                held.entity.to_string() == id && held.step.as_str() == ran.step && held.attempt == ran.attempt
            };
            match self.lab.held().into_iter().find(|held| is_it(held) && !self.is_held(held)) {
                Some(held) => self.go(&held),
                None => panic!("expected {ran}\nto go on, got one that is held, or computes without end"),
            }
        }
        panic!("expected the step to come to its end, got {TURNS_MAX} calls");
    }

    /// Sets how long a step may compute, in real time, before nobody waits for it any more; two minutes are what it
    /// has otherwise. Time can then be moved to its deadline: for tests of steps that do not come to an end.
    pub fn patience(&mut self, patience: Duration) {
        self.lab.set_patience(patience);
    }

    /// Sets the wall clock forward or back by so many ms, and nothing else: a jump. Timers go by that clock,
    /// everything else by time that passes. A host notices within a second of that.
    #[track_caller]
    pub fn jump_ms(&mut self, by_ms: i64) {
        went(self.lab.set_wall(self.lab.wall_ms().saturating_add(by_ms)));
        self.note(format_args!("the wall clock jumps by {by_ms} ms"));
    }

    /// The wall clock, in ms since 1970. A new host's says 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        self.lab.wall_ms()
    }

    /// How much time has passed.
    #[must_use]
    pub fn passed(&self) -> Duration {
        Duration::from_millis(self.lab.passed_ms())
    }

    fn next_ms(&self) -> Option<u64> {
        let coming = self.lab.coming().ok()?;
        coming.first().map(|next| next.in_ms.max(1))
    }

    #[track_caller]
    fn pass(&mut self, ms: u64) {
        went(self.lab.advance(ms, &mut |_| Turn::Wait));
        self.follow();
    }

    fn next_held(&mut self) -> Option<Held> {
        let held = self.lab.held();
        for one in &held {
            if let Some(at) = self.holds.iter().find(|at| at.is(one))
                && !self.met.contains(at)
            {
                let at = at.clone();
                self.note(format_args!("held before {at}"));
                self.met.push(at);
            }
        }
        held.into_iter().find(|held| !self.is_held(held))
    }

    /// Says once of which steps nobody waits for the end.
    fn note_hung(&mut self) {
        let hung = self.lab.hung();
        if hung != self.hung {
            for entity in hung.iter().filter(|entity| !self.hung.contains(entity)) {
                self.story.note(
                    self.lab.passed_ms(),
                    format_args!("the step of {entity} computes on and on: not waited for"),
                );
            }
            self.hung = hung;
        }
    }

    fn is_held(&self, held: &Held) -> bool {
        self.holds.iter().any(|at| at.is(held))
    }

    /// Lets one call go on, with the first fault that is planted there.
    #[track_caller]
    fn go(&mut self, held: &Held) {
        let Some(place) = self.faults.iter().position(|(at, _)| at.is(held)) else {
            went(self.lab.let_go(held.place));
            return self.follow();
        };
        let (at, fault) = self.faults.remove(place);
        assert!(
            fits(fault, &held.asked),
            "expected a save or a transition at {at}, where the store is to fail, got {:?}",
            held.asked
        );
        self.note(format_args!("FAULT before {at}: {}", words(fault)));
        match fault {
            Fault::Crash => self.restart(),
            Fault::CrashBehind => {
                went(self.lab.fault(held.place, fault));
                self.native.reap();
                self.note("the host is killed, and booted again");
            }
            fault => {
                went(self.lab.fault(held.place, fault));
                self.follow();
            }
        }
    }
}

/// What can go wrong.
impl MockHost {
    /// Has something happen before a call of a step, once: `host.fault(at("plan").call(2), Fault::Conflict)`.
    /// Several for the same call happen in turn, as attempts come to it. One that is never met fails the test
    /// at its end, which does not test what it says.
    pub fn fault(&mut self, at: At, fault: Fault) {
        self.faults.push((at, fault));
    }

    /// Holds steps before a call until [`MockHost::let_go`], while everything else runs. What is sent meanwhile
    /// comes between two calls of the step.
    pub fn hold(&mut self, at: At) {
        self.holds.push(at);
    }

    /// Ends every hold; nothing runs yet.
    #[track_caller]
    pub fn let_go(&mut self) {
        self.follow();
        let _ = self.next_held();
        for at in std::mem::take(&mut self.holds) {
            assert!(self.met.contains(&at), "expected a step to come to {at}, where it was to be held");
        }
        self.met.clear();
    }

    /// Kills the host, as `kill -9` does: what is not on record is gone, and every step with it. Time goes on,
    /// commands are not done.
    pub fn crash(&mut self) {
        self.lab.kill();
        self.native.reap();
        self.note("the host is killed");
    }

    /// Boots the host on what is on record.
    #[track_caller]
    pub fn boot(&mut self) {
        went(self.lab.boot());
        let boots = self.lab.boots();
        self.note(format_args!("boot {boots}"));
    }

    /// Kills the host and boots it again.
    #[track_caller]
    pub fn restart(&mut self) {
        self.crash();
        self.boot();
    }
}

/// What came of it.
impl MockHost {
    /// An entity as it stands.
    ///
    /// # Panics
    /// If there is none with this key, or no host to ask.
    #[track_caller]
    #[must_use]
    pub fn entity(&self, key: &str) -> View {
        match self.find(key) {
            Some(view) => view,
            None => panic!("expected an entity {key}, got none"),
        }
    }

    /// The same, if there is one.
    ///
    /// # Panics
    /// If there is no host to ask.
    #[track_caller]
    #[must_use]
    pub fn find(&self, key: &str) -> Option<View> {
        let id = self.id(key);
        assert!(self.lab.is_up(), "expected a host that is up, got a killed one: boot it");
        went(self.view(&id).map_err(LabError::Store))
    }

    /// Every attempt so far, in the order in which they began.
    #[must_use]
    pub fn ran(&self) -> Vec<Ran> {
        self.native.ran()
    }

    /// What steps have logged, attempt by attempt.
    #[must_use]
    pub fn logs(&self) -> Vec<Log> {
        self.native.ran().iter().flat_map(|ran| ran.logs().into_iter().cloned().collect::<Vec<_>>()).collect()
    }

    /// What happened so far, as a failed test prints it.
    #[must_use]
    pub fn story(&self) -> String {
        self.to_string()
    }

    fn view(&self, id: &EntityId) -> Result<Option<View>, StoreError> {
        self.lab.read(|host| async move {
            let Some(entity) = host.entity(id).await? else { return Ok(None) };
            let mut entries = Vec::new();
            let mut before = None;
            while let Some(page) = host.history(id, None, before, PAGE_MAX).await? {
                entries.extend(page.entries);
                before = page.before;
                if before.is_none() {
                    break;
                }
            }
            entries.reverse();
            Ok(Some(View::new(entity, entries)))
        })
    }

    fn views(&self) -> Result<Vec<View>, StoreError> {
        let listing = Listing { limit: PAGE_MAX, ..Listing::default() };
        let page = self.lab.read(|host| async move { host.entities(listing).await })?;
        page.entities.iter().filter_map(|(id, _)| self.view(id).transpose()).collect()
    }

    fn why_not(&self, view: &View) -> String {
        let hung = self.lab.hung();
        let held: Vec<String> = self.met.iter().map(ToString::to_string).collect();
        let mut why = "nothing that happens by itself".to_owned();
        for (what, list) in [("held before", held), ("computing without end", hung)] {
            if !list.is_empty() {
                why.push_str(&format!("; {what} {}", list.join(", ")));
            }
        }
        format!("{why}: {view}")
    }

    pub(crate) fn note(&mut self, line: impl fmt::Display) {
        self.story.note(self.lab.passed_ms(), line);
        self.follow();
    }

    fn follow(&mut self) {
        let (at_ms, story) = (self.lab.passed_ms(), &mut self.story);
        self.native.with(|ran| story.follow(at_ms, ran));
        for interlock_lab::Arrival { request, what } in self.lab.take_arrivals() {
            story.note(
                at_ms,
                format_args!("{} effect {}, try {}: {request}: {what}", request.entity, request.number, request.tries),
            );
        }
    }
}

/// The story so far: what was done and answered, what each attempt asked and was told, and where every entity
/// stands, with its history.
impl fmt::Display for MockHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the story so far:\n{}", self.story)?;
        match self.views() {
            Ok(views) => views.iter().try_for_each(|view| writeln!(f, "{view}"))?,
            Err(why) => writeln!(f, "nothing can be read: {why}")?,
        }
        match self.lab.coming().ok().and_then(|coming| coming.into_iter().next()) {
            Some(next) => {
                write!(f, "next, in {}: {}", Span(next.in_ms), next.what)?;
                next.entity.map_or(Ok(()), |entity| write!(f, " of {entity}"))
            }
            None => f.write_str("nothing more happens by itself"),
        }
    }
}

impl fmt::Debug for MockHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockHost").field("machines", &self.machines).field("lab", &self.lab).finish_non_exhaustive()
    }
}

impl Drop for MockHost {
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        if failed {
            // Telling what happened must not end the process, whatever state things are in.
            let _ = catch_unwind(AssertUnwindSafe(|| eprintln!("\n{self}\n")));
        }
        self.lab.kill();
        self.native.reap();
        let unmet: Vec<String> = self.faults.iter().map(|(at, fault)| format!("{at} ({})", words(*fault))).collect();
        assert!(failed || unmet.is_empty(), "expected every fault to be met, got none at {}", unmet.join(", "));
    }
}

/// The next id of an event that the test did not name.
fn mint(sent: &mut u32) -> String {
    *sent += 1;
    format!("event-{sent}")
}

/// What keeps a lab from going on is no answer that a test could want.
#[track_caller]
pub(crate) fn went<T>(result: Result<T, LabError>) -> T {
    match result {
        Ok(value) => value,
        Err(why) => panic!("{why}"),
    }
}
