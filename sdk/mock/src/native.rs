//! Runs steps as functions of this program: one thread for each attempt, one task that answers it.

use crate::ran::{Asked, Call, Deed, End, Log, Ran, Told};
use crate::thread::{self, Message, Over, Reply, Wire};
use crate::{convert, convert_rows};
use interlock::log::Level;
use interlock::rows::{Answer, Page};
use interlock::{Done, Entity, Failure, Step};
use interlock_coordinator::contract::{self, Handle, Line, Lines, Refusal, Stopped, retryable};
use interlock_coordinator::{Attempt, Ended, Executor, HeldLease};
use interlock_kernel::doc::Digest;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a step may compute, in real time, after it was told that it lost its entity, or after its
/// accepted transition, before nobody waits for it. A component has a tick of 10 ms, and a second.
const LINGER: Duration = Duration::from_secs(5);

type Body = dyn Fn(&Entity) -> Result<Done, Failure> + Send + Sync;

/// What can be run: a table that [`steps!`](interlock::steps) made, or a single step.
#[derive(Clone)]
pub struct Steps(Kind);

#[derive(Clone)]
enum Kind {
    Table(&'static [Step]),
    One(String, Arc<Body>),
}

impl Steps {
    /// A step by this name, which may be a closure.
    pub fn one(
        name: impl Into<String>,
        step: impl Fn(&Entity) -> Result<Done, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::One(name.into(), Arc::new(step)))
    }

    fn run(&self, name: &str, entity: &Entity) -> Result<Done, Failure> {
        match &self.0 {
            Kind::Table(steps) => interlock::run(steps, name, entity),
            Kind::One(own, step) if own == name => step(entity),
            // As a component without this step says it.
            Kind::One(own, _) => {
                let reason = format!("this component has no step {name:?}; it has {own}");
                Err(Failure::permanent(reason).code("unknown-step"))
            }
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // By what is in them: a constant may have an address in each place where it is used.
            (Kind::Table(a), Kind::Table(b)) => a.len() == b.len() && a.iter().zip(*b).all(|(a, b)| a.is_same(b)),
            (Kind::One(_, a), Kind::One(_, b)) => Arc::ptr_eq(a, b),
            (Kind::Table(_), Kind::One(..)) | (Kind::One(..), Kind::Table(_)) => false,
        }
    }
}

impl From<&'static [Step]> for Steps {
    fn from(steps: &'static [Step]) -> Self {
        Self(Kind::Table(steps))
    }
}

impl<const N: usize> From<&'static [Step; N]> for Steps {
    fn from(steps: &'static [Step; N]) -> Self {
        Self(Kind::Table(steps))
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Table(steps) => f.debug_list().entries(steps.iter().map(Step::name)).finish(),
            Kind::One(name, _) => f.debug_list().entry(name).finish(),
        }
    }
}

/// Runs attempts natively. Clones are the same one.
///
/// A step blocks for its answers, so it has a thread of its own. It is ended by unwinding that thread: at its
/// next call, since nothing else can end a thread. A panic fails the attempt as `trap`.
#[derive(Clone, Debug, Default)]
pub struct Native {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    tables: Mutex<Vec<Steps>>,
    ran: Mutex<Vec<Ran>>,
    threads: Mutex<Vec<Thread>>,
}

#[derive(Debug)]
struct Thread {
    join: JoinHandle<()>,
    /// It waits for an answer.
    asking: Arc<AtomicBool>,
    /// Nobody will answer.
    gone: Arc<AtomicBool>,
}

impl Native {
    /// One that knows no steps yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes steps in; what stands for their component in a deploy. The same ones twice are one.
    pub fn add(&self, steps: impl Into<Steps>) -> Digest {
        let steps = steps.into();
        let mut tables = lock(&self.shared.tables);
        let place = tables.iter().position(|known| known.is(&steps)).unwrap_or_else(|| {
            tables.push(steps);
            tables.len().saturating_sub(1)
        });
        digest(place)
    }

    /// Every attempt so far, in the order in which they began.
    #[must_use]
    pub fn ran(&self) -> Vec<Ran> {
        lock(&self.shared.ran).clone()
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&[Ran]) -> T) -> T {
        look(&lock(&self.shared.ran))
    }

    /// Waits for the end of threads whose host was killed while they waited for its answer. One that computes
    /// is left alone: it ends at its next call.
    pub fn reap(&self) {
        let ended = {
            let mut threads = lock(&self.shared.threads);
            let (ended, on): (Vec<_>, Vec<_>) = std::mem::take(&mut *threads).into_iter().partition(Thread::ends);
            *threads = on;
            ended
        };
        for thread in ended {
            // What a step did wrong was told with its attempt.
            let _ = thread.join.join();
        }
    }

    fn steps(&self, component: Option<Digest>) -> Option<Steps> {
        let tables = lock(&self.shared.tables);
        tables.iter().enumerate().find(|(place, _)| Some(digest(*place)) == component).map(|(_, steps)| steps.clone())
    }
}

impl Thread {
    fn ends(&self) -> bool {
        let gone = self.gone.load(Ordering::Acquire) && self.asking.load(Ordering::Acquire);
        gone || self.join.is_finished()
    }
}

fn digest(place: usize) -> Digest {
    Digest::of(&[b"steps of this program", &place.to_be_bytes()])
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Executor for Native {
    fn start(&self, attempt: Attempt) {
        self.reap();
        let Some(steps) = self.steps(attempt.start().component) else {
            return attempt.finish(Ended::Failed(retryable("component-missing", "no steps were added for it")));
        };
        let (messages, inbox) = mpsc::unbounded_channel();
        let asking = Arc::new(AtomicBool::new(false));
        let presence = Presence::new(Arc::clone(&self.shared), &attempt);
        let gone = Arc::clone(&presence.gone);
        let (name, event) = (attempt.start().step.to_string(), convert::event(contract::event(attempt.start())));
        let wire = Wire::new(messages, Arc::clone(&asking));
        let thread = std::thread::Builder::new().name(format!("step {name}"));
        match thread.spawn(move || thread::run(|entity| steps.run(&name, entity), wire, event)) {
            Ok(join) => {
                lock(&self.shared.threads).push(Thread { join, asking, gone });
                tokio::spawn(attend(attempt, presence, inbox));
            }
            Err(why) => attempt.finish(Ended::Failed(retryable("no-thread", why.to_string()))),
        }
    }
}

/// An attempt in the list of those that ran; lost if it is dropped before it came to its end.
struct Presence {
    shared: Arc<Shared>,
    place: usize,
    gone: Arc<AtomicBool>,
}

impl Presence {
    fn new(shared: Arc<Shared>, attempt: &Attempt) -> Self {
        let claim = &attempt.start().claim;
        let ran = Ran {
            entity: claim.execution.entity.to_string(),
            step: attempt.start().step.to_string(),
            attempt: claim.attempt,
            token: claim.token.get(),
            event: convert::event(contract::event(attempt.start())),
            end: End::Running,
            afterwards: None,
            deeds: Vec::new(),
        };
        let place = {
            let mut all = lock(&shared.ran);
            all.push(ran);
            all.len().saturating_sub(1)
        };
        Self { shared, place, gone: Arc::new(AtomicBool::new(false)) }
    }

    fn change(&self, change: impl FnOnce(&mut Ran)) {
        if let Some(ran) = lock(&self.shared.ran).get_mut(self.place) {
            change(ran);
        }
    }

    fn asked(&self, asked: Asked) {
        self.change(|ran| ran.deeds.push(Deed::Called(Box::new(Call { asked, told: None }))));
    }

    fn told(&self, told: Told) {
        self.change(|ran| {
            if let Some(Deed::Called(call)) = ran.deeds.last_mut() {
                call.told = Some(told);
            }
        });
    }

    fn logged(&self, Line { level: _, message, fields }: Line, level: Level) {
        self.change(|ran| ran.deeds.push(Deed::Logged(Log { level, message, fields })));
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Release);
        self.change(|ran| {
            if ran.end == End::Running {
                ran.end = End::Lost;
            }
        });
    }
}

/// Answers a step until it comes to its end, or its attempt does.
async fn attend(attempt: Attempt, presence: Presence, mut inbox: mpsc::UnboundedReceiver<Message>) {
    let mut handle = Handle::new(attempt);
    let mut lines = Lines::default();
    let ended = loop {
        let message = tokio::select! {
            biased;
            message = inbox.recv() => message,
            ended = given_up(&handle) => break ended,
        };
        match message {
            Some(Message::Read(read)) => read(&handle),
            Some(Message::Line(level, message, fields, reply)) => {
                let passed = handle.pass();
                if passed.is_ok()
                    && let Some(line) = lines.line(convert::level(level), &message, &fields)
                {
                    presence.logged(line, level);
                }
                // A step that is gone needs no answer; so below.
                let _ = reply.send(passed);
            }
            Some(Message::Ask(asked, held, reply)) => {
                presence.asked(asked.clone());
                let answer = answer(&mut handle, asked, held).await;
                presence.told(match &answer {
                    Ok(Answered::Written(version)) => Told::Accepted(*version),
                    Ok(Answered::Read) => Told::Reloaded,
                    Ok(Answered::Staged) => Told::Staged,
                    Ok(Answered::Holds(holds)) => Told::Holds(*holds),
                    Ok(Answered::Leased(held)) => Told::Leased(held.claim.token.get(), held.ttl_ms),
                    Ok(Answered::Released) => Told::Released,
                    Ok(Answered::Rows(answers, replayed)) => Told::Rows(answers.clone(), *replayed),
                    Ok(Answered::Found(page)) => Told::Found(page.clone()),
                    Err(Refusal::No(no)) => Told::Refused(convert::rejection(no)),
                    Err(Refusal::Stop(stopped)) => Told::Stopped(stopped.code().to_owned(), stopped.to_string()),
                });
                let _ = reply.send(answer.map(|answered| match answered {
                    Answered::Holds(holds) => Reply::Holds(holds),
                    Answered::Leased(held) => Reply::Leased(held),
                    Answered::Rows(answers, _) => Reply::Rows(answers),
                    Answered::Found(page) => Reply::Found(page),
                    Answered::Written(_) | Answered::Read | Answered::Staged | Answered::Released => Reply::Done,
                }));
            }
            Some(Message::Over(over)) => break ended(&handle, over, &mut lines, &presence),
            // The thread is gone without a word: nothing in here lets it, so its end is as good as a trap.
            None => break Ended::Failed(retryable("trap", "the step's thread ended without a word")),
        }
    };
    let (attempt, ended, afterwards) = handle.over(ended);
    presence.change(|ran| {
        ran.end = match &ended {
            Ended::Returned => End::Done,
            Ended::Failed(failure) => End::Failed(convert::failure(failure)),
        };
        ran.afterwards = afterwards.as_ref().map(convert::failure);
    });
    // In this order: a thread that asks from now on hears at once that nobody answers, and may be waited for.
    drop(inbox);
    drop(presence);
    attempt.finish(ended);
}

enum Answered {
    Written(u64),
    Read,
    Holds(bool),
    Staged,
    Leased(HeldLease),
    Released,
    Rows(Vec<Answer>, bool),
    Found(Page),
}

async fn answer(handle: &mut Handle, asked: Asked, held: Option<HeldLease>) -> Result<Answered, Refusal> {
    match asked {
        Asked::Save(checkpoint) => {
            let checkpoint = handle.checkpoint(convert::wish_of_checkpoint(&checkpoint))?;
            handle.save(checkpoint).await.map(|version| Answered::Written(version.get()))
        }
        Asked::Transition(change) => {
            let change = handle.change(&change.to, convert::wish_of_change(&change))?;
            handle.transition(change).await.map(|version| Answered::Written(version.get()))
        }
        Asked::Reload => handle.reload().await.map(|()| Answered::Read),
        Asked::Timer(name, due) => handle.stage_timer(&name, convert::due(due)).map(|()| Answered::Staged),
        Asked::Effect(request) => handle.stage_effect(convert::request(request)).map(|()| Answered::Staged),
        Asked::Rows(operations, requirements, op) => {
            let operations = operations.into_iter().map(convert_rows::operation).collect();
            let requirements = requirements.into_iter().map(convert_rows::requirement).collect();
            let wanted = handle.rows_wanted(operations, requirements, op)?;
            let (answers, replayed) = handle.rows(wanted).await?;
            Ok(Answered::Rows(convert_rows::answers(answers), replayed))
        }
        Asked::Query(table, querying) => {
            let wanted = handle.query_wanted(convert_rows::question(table, querying))?;
            handle.query(wanted).await.map(|found| Answered::Found(convert_rows::page(found)))
        }
        Asked::StageRow(one) => handle.stage_row(convert_rows::operation(one)).map(|()| Answered::Staged),
        Asked::Require(one) => handle.stage_requirement(convert_rows::requirement(one)).map(|()| Answered::Staged),
        Asked::StillHolds => handle.still_holds().await.map(Answered::Holds).map_err(Refusal::Stop),
        Asked::Acquire(name, ttl_ms) => {
            let wanted = handle.wanted(&name, ttl_ms)?;
            handle.acquire(wanted).await.map(Answered::Leased)
        }
        Asked::Extend(_, ttl_ms) => handle.extend(&of(held)?, ttl_ms).await.map(Answered::Leased),
        Asked::Release(_) => handle.release(of(held)?).await.map(|()| Answered::Released),
        Asked::StillHoldsLease(_) => {
            let held = of(held)?;
            handle.still_holds_lease(&held).await.map(Answered::Holds).map_err(Refusal::Stop)
        }
    }
}

/// The lease that a call is about: the handle that makes the call has it.
fn of(held: Option<HeldLease>) -> Result<HeldLease, Refusal> {
    held.ok_or_else(|| Stopped::Unavailable("a call about a lease without one".to_owned()).into())
}

/// How an attempt ends whose step has come to its end.
fn ended(handle: &Handle, over: Over, lines: &mut Lines, presence: &Presence) -> Ended {
    match over {
        Over::Returned => Ended::Returned,
        Over::Failed(failure) => Ended::Failed(convert::said(&failure)),
        Over::Stopped(stopped) => stop(&stopped),
        Over::Panicked(words) => {
            // A panicking component writes its last line, and then traps.
            if let Err(stopped) = handle.pass() {
                return stop(&stopped);
            }
            if let Some(line) = lines.line(contract::Level::Error, &words, &[]) {
                presence.logged(line, Level::Error);
            }
            Ended::Failed(retryable("trap", lines.last_words().unwrap_or_default()))
        }
    }
}

fn stop(stopped: &Stopped) -> Ended {
    Ended::Failed(retryable(stopped.code(), stopped.to_string()))
}

/// Completes when nobody waits any longer for a step that computes.
async fn given_up(handle: &Handle) -> Ended {
    if handle.is_spent() || handle.is_told_lost() {
        tokio::time::sleep(LINGER).await;
        let why = format!("still computing {} s after its end", LINGER.as_secs());
        return Ended::Failed(retryable("afterwards", why));
    }
    let closed = handle.gate().closed().await;
    Ended::Failed(retryable(closed.why, closed.text))
}
