//! The world of a script.

use super::say::Words;
use crate::{Attempt, Coordinator, Ended, Executor, Filter, Of, Options, Settled, SubmitError, Watch};
use interlock_conformance::Hostile;
use interlock_kernel::command::{Change, Command, Create, DeclareSchedule, Deploy, OnExisting, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, EventId, Name, Principal};
use interlock_kernel::record::{Answer, Expect, Failure, Firing, Key};
use interlock_kernel::view::Event;
use interlock_store::{
    Abort, Fault, Lane, ManualClock, Mem, MemImage, Store, StoreError, TransactError, Txn, transact,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

pub(super) const POOL: &str = include_str!("pool.toml");

/// Enough for every background task to come to rest on one thread.
const YIELDS: usize = 256;

/// How a world keeps what is stored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    /// In memory.
    AsItIs,
    /// The same, and everything that the contract of a store allows happens.
    Hostile,
}

impl Kept {
    fn store(self, mem: &Mem) -> Arc<dyn Store> {
        match self {
            Self::AsItIs => Arc::new(mem.clone()),
            Self::Hostile => Arc::new(Hostile::over(Arc::new(mem.clone()))),
        }
    }
}

pub(super) struct World {
    kept: Kept,
    pub(super) clock: ManualClock,
    image: MemImage,
    pub(super) mem: Mem,
    host: Option<Arc<Coordinator>>,
    hands: Hands,
    slots: usize,
    waits: Vec<(String, JoinHandle<Result<Settled, StoreError>>)>,
    answers: BTreeMap<String, Answer>,
    watch: Option<Watch>,
    words: Words,
    out: String,
}

/// Keeps what it is handed until the script says what it does.
#[derive(Clone, Default)]
pub(super) struct Hands(Arc<Mutex<Vec<Held>>>, Arc<Mutex<Scales>>);

/// What components weigh, and how much there is.
#[derive(Default)]
struct Scales {
    max: Option<u64>,
    weights: BTreeMap<Digest, u64>,
}

struct Held {
    entity: EntityId,
    attempt: Option<Arc<Attempt>>,
    told: bool,
    closed: bool,
}

impl Hands {
    fn scales(&self) -> MutexGuard<'_, Scales> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn last(&self, key: &str) -> Arc<Attempt> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = held.iter().rev().find(|held| held.entity == entity(key)).and_then(|held| held.attempt.clone());
        last.unwrap_or_else(|| panic!("no attempt of {key}"))
    }

    pub(super) fn take_last(&self, key: &str) -> Attempt {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = held.iter_mut().rev().find(|held| held.entity == entity(key)).and_then(|held| held.attempt.take());
        match last.map(Arc::try_unwrap) {
            Some(Ok(attempt)) => attempt,
            _ => panic!("no attempt of {key}"),
        }
    }
}

impl Executor for Hands {
    fn start(&self, attempt: Attempt) {
        let entity = attempt.start().claim.execution.entity.clone();
        let held = Held { entity, attempt: Some(Arc::new(attempt)), told: false, closed: false };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(held);
    }

    fn memory_bytes_max(&self) -> u64 {
        self.scales().max.unwrap_or(u64::MAX)
    }

    fn weight_bytes(&self, component: Option<Digest>) -> u64 {
        component.and_then(|component| self.scales().weights.get(&component).copied()).unwrap_or(0)
    }
}

pub(super) fn parse<T: FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Display,
{
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

pub(super) fn entity(key: &str) -> EntityId {
    parse(&format!("pool/{key}"))
}

pub(super) fn deploy(source: &str, component: &str) -> Command {
    let report = interlock_manifest::parse("pool.toml", source);
    let Some(manifest) = report.manifest else { panic!("{:#?}", report.problems) };
    let component = Digest::of(&[component.as_bytes()]);
    command(Verb::Deploy(Box::new(Deploy {
        machine: Arc::new(manifest.machine),
        digest: Digest::of(&[source.as_bytes(), &component.0]),
        component: Some(component),
        source: source.to_owned(),
    })))
}

/// `schedule NAME ENTITY EVENT PAYLOAD cron=*/5_*_*_*_* ...`: every minute in Greenwich unless it says otherwise.
fn declared(path: &str, line: &Line<'_>) -> Verb {
    let cron = line.named("cron").unwrap_or("*_*_*_*_*").replace('_', " ");
    let mut text = format!(
        "schedule = \"{}\"\nowner = \"ops\"\ncron = \"{cron}\"\nzone = \"UTC\"\nentity = \"pool/{}\"\nevent = \"{}\"\n",
        line.at(1),
        line.at(2),
        line.at(3),
    );
    let size = line.at(4);
    let _ = writeln!(text, "payload = {{ size = {size} }}");
    for key in ["overlap", "catch_up"] {
        if let Some(word) = line.named(key) {
            let _ = writeln!(text, "{key} = \"{word}\"");
        }
    }
    let schedule = match interlock_manifest::parse_schedule(path, &text) {
        Ok((schedule, _)) => Arc::new(schedule),
        Err(report) => panic!("{}", interlock_manifest::render(&report, false)),
    };
    Verb::Schedule(Box::new(DeclareSchedule { schedule, digest: Digest::of(&[text.as_bytes()]), source: text }))
}

pub(super) fn command(verb: Verb) -> Command {
    Command { by: Principal::local(), verb }
}

pub(super) async fn rest() {
    for _ in 0..YIELDS {
        tokio::task::yield_now().await;
    }
}

fn ms(text: &str) -> u64 {
    interlock_kernel::value::parse_ms(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The words of a line: what stands alone, and what stands behind `name=`.
struct Line<'a> {
    plain: Vec<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    fn new(text: &'a str) -> Self {
        let mut line = Self { plain: Vec::new(), named: BTreeMap::new() };
        for word in text.split_whitespace() {
            match word.split_once('=').filter(|_| !word.starts_with('{')) {
                Some((name, value)) => {
                    line.named.insert(name, value);
                }
                None => line.plain.push(word),
            }
        }
        line
    }

    fn at(&self, at: usize) -> &'a str {
        self.plain.get(at).copied().unwrap_or_else(|| panic!("word {at} is missing: {:?}", self.plain))
    }

    fn doc(&self, at: usize) -> Option<Doc> {
        self.plain.get(at).map(|text| json(text))
    }

    fn named(&self, name: &str) -> Option<&'a str> {
        self.named.get(name).copied()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.named(name).map(parse)
    }
}

fn json(text: &str) -> Doc {
    Doc::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl World {
    pub(super) async fn new(kept: Kept) -> Self {
        let clock = ManualClock::new();
        let image = MemImage::new();
        let mem = open(&image, &clock);
        let mut world = Self {
            kept,
            clock,
            image,
            mem,
            host: None,
            hands: Hands::default(),
            slots: 4,
            waits: Vec::new(),
            answers: BTreeMap::new(),
            watch: None,
            words: Words::default(),
            out: String::new(),
        };
        world.boot().await;
        world
    }

    pub(super) fn host(&self) -> Arc<Coordinator> {
        self.host.clone().unwrap_or_else(|| panic!("no host"))
    }

    async fn boot(&mut self) {
        let options = Options { executions_max: self.slots, reconcile: true, ..Options::default() };
        match Coordinator::open(self.kept.store(&self.mem), Arc::new(self.hands.clone()), options).await {
            Ok(host) => self.host = Some(Arc::new(host)),
            Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string)),
        }
    }

    fn say(&mut self, text: impl AsRef<str>) {
        let text = self.words.plain(text.as_ref());
        let _ = writeln!(self.out, "    {text}");
    }

    /// Plays one line and tells what came of it.
    pub(super) async fn play(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
        if text.starts_with('#') {
            return;
        }
        let line = Line::new(text);
        match line.at(0) {
            "deploy" => self.submit(deploy(POOL, line.at(1))).await,
            "rollback" => {
                let verb = Verb::Rollback { machine: parse("pool"), to: parse(line.at(1)) };
                self.submit(command(verb)).await;
            }
            "create" => self.create(&line).await,
            "send" => self.send(&line).await,
            "apply" => {
                let verb = Verb::Apply {
                    entity: entity(line.at(1)),
                    desired: json(line.at(2)),
                    expect: line.number("generation"),
                    checked: None,
                };
                self.submit(command(verb)).await;
            }
            "kill" => {
                let verb = Verb::Kill { entity: entity(line.at(1)), reason: line.at(2).to_owned() };
                self.submit(command(verb)).await;
            }
            "unpark" => self.submit(command(Verb::Unpark(entity(line.at(1))))).await,
            "delete" => self.submit(command(Verb::Delete(entity(line.at(1))))).await,
            "step" => self.step(&line).await,
            "advance" => self.clock.advance(Duration::from_millis(ms(line.at(1)))),
            "wall" => {
                let now = self.host().now().wall_ms;
                let by = i64::try_from(ms(line.at(2))).unwrap_or(i64::MAX);
                self.clock.set_wall(if line.at(1) == "forward" { now + by } else { now - by });
            }
            "wait" => self.wait(&line),
            "kill-9" => self.crash().await,
            "boot" => {
                self.mem = open(&self.image, &self.clock);
                self.boot().await;
            }
            "slots" => self.slots = parse(line.at(1)),
            "memory" => self.hands.scales().max = Some(parse(line.at(1))),
            "weighs" => {
                let component = Digest::of(&[line.at(1).as_bytes()]);
                self.hands.scales().weights.insert(component, parse(line.at(2)));
            }
            "stop" => self.stop(ms(line.at(1))).await,
            "show" => self.show(&line).await,
            "history" => self.history(&line).await,
            "watch" => self.watch(&line).await,
            "attempts" => self.attempts(),
            "answer" => {
                let found = self.host().answer(&entity(line.at(1)), &parse(line.at(2))).await;
                self.say(format!("{:?}", found.map(|dedup| dedup.map(|dedup| Words::answer(&dedup.answer, false)))));
            }
            "plant" => self.plant(&line).await,
            "reconcile" => {
                let found = self.host().reconcile().await;
                self.say(format!("{found:?}"));
            }
            // The host loses sight of an attempt, as if a wake-up had been lost.
            "forget" => {
                let token = self.attempt(line.at(1)).token().get();
                self.host().core().forget(token);
            }
            "fail-next" => self.mem.fail_next(match line.at(1) {
                "unavailable" => Fault::Unavailable,
                "kept" => Fault::Indeterminate { kept: true },
                _ => Fault::Indeterminate { kept: false },
            }),
            "schedule" => {
                let path = format!("schedules/{}.toml", line.at(1));
                let verb = declared(&path, &line);
                self.submit(command(verb)).await;
            }
            "pause" | "resume" => {
                let verb = Verb::PauseSchedule { schedule: parse(line.at(1)), paused: line.at(0) == "pause" };
                self.submit(command(verb)).await;
            }
            "drop" => self.submit(command(Verb::DropSchedule(parse(line.at(1))))).await,
            "firings" => self.firings(&line).await,
            "coming" => {
                let coming = self.host().coming(4).await;
                let lines: Vec<String> = accepted(coming.map_err(SubmitError::Store))
                    .into_iter()
                    .map(|coming| format!("in {} ms: {}", coming.in_ms, coming.what))
                    .collect();
                self.say(if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n    ") });
            }
            "stats" => self.stats(),
            other => panic!("unknown command {other}"),
        }
        rest().await;
        self.tell().await;
    }

    async fn firings(&mut self, line: &Line<'_>) {
        let found = accepted(self.host().schedule(&parse(line.at(1))).await.map_err(SubmitError::Store));
        let Some(record) = found else { return self.say("no schedule") };
        for Firing { due, at, fired } in &record.firings {
            self.say(format!("due {} looked at {}: {fired}", due.0, at.0));
        }
        let next = record.next.map_or_else(|| "none".to_owned(), |next| next.0.to_string());
        let paused = if record.paused { ", paused" } else { "" };
        self.say(format!("next {next}, raised {}, passed {}{paused}", record.raised, record.passed));
    }

    async fn submit(&mut self, command: Command) {
        let answer = self.host().submit(command).await;
        self.say(Words::outcome(&answer));
    }

    async fn create(&mut self, line: &Line<'_>) {
        let create = Create {
            entity: entity(line.at(1)),
            desired: line.doc(2),
            labels: BTreeMap::new(),
            on_existing: match line.named("existing") {
                Some("fail") => OnExisting::Fail,
                Some("use") => OnExisting::Use,
                Some("recreate") => OnExisting::Recreate,
                _ => OnExisting::Same,
            },
            event: None,
        };
        self.submit(command(Verb::Create(Box::new(create)))).await;
    }

    async fn send(&mut self, line: &Line<'_>) {
        let event = Event {
            id: parse::<EventId>(line.named("id").unwrap_or("e0")),
            name: parse::<Name>(line.at(2)),
            payload: line.doc(3),
            expect: Expect {
                incarnation: line.number("incarnation"),
                execution: line.number("execution"),
                visit: line.number("visit"),
                generation: line.number("generation"),
                version: line.number("version"),
            },
            checked: None,
        };
        let id = event.id.to_string();
        let verb = Verb::Deliver { entity: entity(line.at(1)), event: Box::new(event) };
        let answer = self.host().submit(command(verb)).await;
        if let Ok(interlock_kernel::command::Outcome::Answered { answer, .. }) = &answer {
            self.answers.insert(id, (**answer).clone());
        }
        self.say(Words::outcome(&answer));
    }

    fn wait(&mut self, line: &Line<'_>) {
        let (host, id) = (self.host(), entity(line.at(1)));
        let event = line.at(2).to_owned();
        let answer = self.answers.get(&event).cloned().unwrap_or_else(|| panic!("{event} was not answered"));
        let within = Duration::from_millis(ms(line.at(3)));
        let task = tokio::spawn(async move { host.settled(&id, &answer, within).await });
        self.waits.push((event, task));
    }

    /// What the step of an entity does: of the newest attempt, or of `#n`, the n-th it was handed.
    async fn step(&mut self, line: &Line<'_>) {
        let attempt = self.attempt(line.at(1));
        let change = || Change {
            data: line.named("data").map(json),
            outputs: line.named("outputs").map(json),
            ..Change::default()
        };
        let said = match line.at(2) {
            "to" => Words::written(&attempt.transition(parse(line.at(3)), change()).await),
            "save" => Words::written(&attempt.save(change()).await),
            "reload" => match attempt.reload().await {
                Ok(read) => format!("{} v{} {}", read.state, read.version, Words::documents(&read.documents)),
                Err(error) => Words::error(&error),
            },
            "holds" => format!("{:?}", attempt.still_holds().await),
            "seed" => format!("seed {}", Digest(attempt.seed())),
            "returns" => return self.finish(line.at(1), attempt, Ended::Returned),
            "fails" => {
                let failure = Failure {
                    permanent: line.named("permanent").is_some(),
                    code: line.at(3).to_owned(),
                    reason: "as the script says".to_owned(),
                    retry_after_ms: None,
                };
                return self.finish(line.at(1), attempt, Ended::Failed(failure));
            }
            "vanishes" => {
                drop(attempt);
                drop(self.take(line.at(1)));
                return;
            }
            other => panic!("a step cannot {other}"),
        };
        self.say(said);
    }

    fn finish(&mut self, name: &str, attempt: Arc<Attempt>, ended: Ended) {
        drop(attempt);
        match Arc::try_unwrap(self.take(name)) {
            Ok(attempt) => attempt.finish(ended),
            Err(_) => panic!("{name} is still in use"),
        }
    }

    fn position(&self, name: &str) -> (EntityId, Option<usize>) {
        match name.split_once('#') {
            Some((key, nth)) => (entity(key), Some(parse(nth))),
            None => (entity(name), None),
        }
    }

    fn with_held<T>(&self, name: &str, take: impl FnOnce(&mut Held) -> Option<T>) -> T {
        let (id, nth) = self.position(name);
        let mut held = self.hands.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_entity: Vec<_> = held.iter_mut().filter(|held| held.entity == id).collect();
        let chosen = match nth {
            Some(nth) => of_entity.get_mut(nth - 1),
            None => of_entity.last_mut(),
        };
        chosen.and_then(|held| take(held)).unwrap_or_else(|| panic!("no attempt of {name} is held"))
    }

    fn attempt(&self, name: &str) -> Arc<Attempt> {
        self.with_held(name, |held| held.attempt.clone())
    }

    fn take(&self, name: &str) -> Arc<Attempt> {
        self.with_held(name, |held| held.attempt.take())
    }

    async fn crash(&mut self) {
        self.mem.crash();
        self.part().await;
    }

    async fn stop(&mut self, drain_ms: u64) {
        let host = self.host();
        let hands = self.hands.clone();
        // An executor that stops what it is told to stop.
        let obey = tokio::spawn(async move {
            loop {
                let gone: Vec<Held> = {
                    let mut held = hands.0.lock().unwrap_or_else(PoisonError::into_inner);
                    let shut =
                        |held: &mut Held| held.attempt.as_ref().is_some_and(|attempt| attempt.gate().check().is_err());
                    held.extract_if(.., shut).collect()
                };
                drop(gone);
                tokio::task::yield_now().await;
            }
        });
        let stopped = host.stop(Duration::from_millis(drain_ms)).await;
        obey.abort();
        self.say(match stopped {
            Ok(()) => "stopped in good order".to_owned(),
            Err(error) => Words::error(&error),
        });
        self.part().await;
    }

    async fn part(&mut self) {
        if let Some(host) = self.host.take() {
            host.halt();
        }
        self.watch = None;
        let waits = std::mem::take(&mut self.waits);
        for (event, wait) in waits {
            let ended = wait.await;
            self.say(format!("{event}: the wait ended with the host: {}", ended.is_ok_and(|ended| ended.is_err())));
        }
        self.hands.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        rest().await;
    }

    /// Breaks a record behind the coordinator's back.
    async fn plant(&mut self, line: &Line<'_>) {
        let id = entity(line.at(2));
        let head = match self.host().entity(&id).await {
            Ok(Some(found)) => found.head,
            other => panic!("{other:?}"),
        };
        let open = head.lock.as_ref().and_then(|lock| lock.attempt);
        let (key, put) = match line.at(1) {
            "no-open" => (open.map(|open| Key::Open(open.session, id)), false),
            "stray-open" => (Some(Key::Open(self.session(), id)), true),
            "stray-due" => (Some(Key::Due(interlock_kernel::time::StoreTime(7), id)), true),
            "no-due" => (head.due.map(|due| Key::Due(due, id)), false),
            other => panic!("cannot plant {other}"),
        };
        let Some(key) = key else { panic!("nothing to plant on") };
        let bytes = crate::codec::encode(&key);
        let planted: Result<_, TransactError<&str>> = transact(&self.mem, Lane::Admission, move |txn: &mut dyn Txn| {
            match put {
                true => txn.put(&bytes, interlock_kernel::record::Record::Mark.encode(&key).into())?,
                false => txn.delete(&bytes)?,
            }
            Ok::<_, Abort<&str>>(())
        })
        .await;
        self.say(if planted.is_ok() { "planted" } else { "not planted" });
    }

    fn session(&self) -> interlock_kernel::SessionId {
        self.host().core().session_id().unwrap_or_else(|| panic!("no session"))
    }

    async fn show(&mut self, line: &Line<'_>) {
        match self.host().entity(&entity(line.at(1))).await {
            Ok(Some(found)) => {
                for text in Words::entity(&found) {
                    self.say(text);
                }
            }
            other => self.say(format!("{:?}", other.map(|_| "not there"))),
        }
    }

    async fn history(&mut self, line: &Line<'_>) {
        match self.host().history(&entity(line.at(1)), None, None, 100).await {
            Ok(Some(history)) => {
                for entry in history.entries.iter().rev() {
                    self.say(Words::entry(entry));
                }
            }
            other => self.say(format!("{:?}", other.map(|_| "none"))),
        }
    }

    async fn watch(&mut self, line: &Line<'_>) {
        if line.plain.len() > 1 {
            let filter = if line.at(1) == "all" { Filter::All } else { Filter::Entity(entity(line.at(1))) };
            let from = line.named("from").map(parse);
            self.watch = Some(self.host().watch(filter, from));
            return;
        }
        let Some(mut watch) = self.watch.take() else { panic!("no watch") };
        let met = tokio::select! {
            met = watch.next() => Some(met),
            () = rest() => None,
        };
        match met {
            None => self.say("nothing"),
            Some(Ok(met)) => {
                for one in met {
                    self.say(match one.of {
                        Of::Entity { entity, entry, .. } => format!("{entity}: {}", Words::entry(&entry)),
                        Of::Lease { lease, entry } => format!("{lease}: {} {}", entry.what, entry.owner),
                        Of::Rows { table, entry } => format!("{table}: {} {:?}", entry.what, entry.keys),
                    });
                }
            }
            Some(Err(error)) => self.say(error.to_string()),
        }
        self.watch = Some(watch);
    }

    fn attempts(&mut self) {
        let mut views = self.host().attempts(100);
        views.sort_by_key(|view| view.token);
        for view in views {
            let closed = view.closed.map(|closed| format!(" told to stop: {}", closed.why)).unwrap_or_default();
            self.say(format!("{} token {} {:?}{closed}", view.entity, view.token, view.phase));
        }
    }

    fn stats(&mut self) {
        let stats = self.host().stats();
        let refused: Vec<_> = stats.refused.iter().filter(|(_, count)| *count > 0).collect();
        self.say(format!(
            "dispatched {} deadlines {} due {} timers {} recovered {} repaired {} jumps {} resyncs {} refused {refused:?}",
            stats.dispatched,
            stats.deadlines,
            stats.due,
            stats.timers,
            stats.recovered,
            stats.repaired,
            stats.clock_jumps,
            stats.resyncs,
        ));
    }

    /// What happened by itself since the last line.
    async fn tell(&mut self) {
        let mut news = Vec::new();
        for held in self.hands.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            let Some(attempt) = &held.attempt else { continue };
            let start = attempt.start();
            let who = format!("{} attempt {} token {}", held.entity, start.claim.attempt, start.claim.token);
            if !std::mem::replace(&mut held.told, true) {
                news.push(format!("* {} runs {} in {}", who, start.step, start.state));
            }
            if let (false, Err(closed)) = (held.closed, attempt.gate().check()) {
                held.closed = true;
                news.push(format!("* {who} is stopped: {closed}"));
            }
        }
        for line in news {
            self.say(line);
        }
        let waits = std::mem::take(&mut self.waits);
        for (event, wait) in waits {
            if !wait.is_finished() {
                self.waits.push((event, wait));
                continue;
            }
            let text = match wait.await {
                Ok(Ok(settled)) => Words::settled(&settled),
                other => format!("{other:?}"),
            };
            self.say(format!("* {event}: {text}"));
        }
    }

    pub(super) async fn end(mut self) -> String {
        self.hands.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(host) = self.host.take() {
            host.halt();
        }
        self.out
    }
}

fn open(image: &MemImage, clock: &ManualClock) -> Mem {
    match Mem::open(image.clone(), Arc::new(clock.clone())) {
        Ok(mem) => mem,
        Err(error) => panic!("{error}"),
    }
}

/// A failed submit, for tests without a script.
pub(super) fn accepted<T: std::fmt::Debug>(answer: Result<T, SubmitError>) -> T {
    answer.unwrap_or_else(|error| panic!("{error}"))
}
