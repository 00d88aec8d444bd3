//! Guests as functions: an executor whose steps are async functions on an [`Attempt`], in one of many moods.
//!
//! The good one does what its machine wants. The others save, hang, return nothing, fail, vanish, ask for
//! what they may not, go on after their end, or ask for two things at once. Each write carries a mark of its
//! own in `data.mark`, so that the history tells exactly which write it was.

use crate::cargo::{increment, promises, request, set, stage, target};
use crate::finding::Finding;
use crate::ledger::{Asked, Taken, Written};
use crate::log::Log;
use crate::moods::{Mood, Moods};
use interlock_conformance::Random;
use interlock_coordinator::{Attempt, Closed, Ended, Executor, HeldLease, SubmitError};
use interlock_kernel::Version;
use interlock_kernel::command::{Change, LeaseAsk, Stage};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{LeaseName, Name};
use interlock_kernel::record::{Condition, Failure};
use interlock_kernel::rejection::Code;
use interlock_kernel::time::WallTime;
use interlock_kernel::value::Value;
use interlock_store::Clock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a good step asks again after an answer that says nothing about its request.
const TRIES: usize = 4;
/// Before it does, in ms.
const AGAIN_MS: u64 = 300;
/// A second, in ms.
const NAP_MS: u64 = 1_000;
/// Longer than the longest time to live of a lease that a step is given, in ms.
const OUTLASTS_MS: u64 = 6_000;
/// Refused calls of a step that floods; more than a guest in the runtime would get.
const FLOOD: usize = 24;

/// What all boots of a run know of its guests.
pub(crate) struct Diary {
    log: Log,
    seed: u64,
    marks: AtomicU64,
    calm: AtomicBool,
    moods: Moods,
    written: Mutex<Vec<Written>>,
    taken: Mutex<Vec<Taken>>,
    findings: Mutex<Vec<Finding>>,
    met: Mutex<BTreeMap<Mood, u64>>,
    draws: Mutex<BTreeMap<String, [u8; 32]>>,
}

impl Diary {
    pub(crate) fn new(log: Log, seed: u64, moods: Moods) -> Arc<Self> {
        Arc::new(Self {
            log,
            seed,
            marks: AtomicU64::new(0),
            calm: AtomicBool::new(false),
            moods,
            written: Mutex::default(),
            taken: Mutex::default(),
            findings: Mutex::default(),
            met: Mutex::default(),
            draws: Mutex::default(),
        })
    }

    /// The diary of a run that goes on from here in another way.
    pub(crate) fn fork(&self, log: Log) -> Arc<Self> {
        Arc::new(Self {
            log,
            seed: self.seed,
            marks: AtomicU64::new(self.marks.load(Ordering::Relaxed)),
            calm: AtomicBool::new(self.calm.load(Ordering::Relaxed)),
            moods: self.moods.clone(),
            written: Mutex::new(self.written()),
            taken: Mutex::default(),
            findings: Mutex::default(),
            met: Mutex::default(),
            draws: Mutex::new(lock(&self.draws).clone()),
        })
    }

    /// From now on every new attempt is good.
    pub(crate) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    /// What guests found out that must not be.
    pub(crate) fn finding(&self) -> Option<Finding> {
        lock(&self.findings).first().cloned()
    }

    /// Every write a guest asked for.
    pub(crate) fn written(&self) -> Vec<Written> {
        lock(&self.written).clone()
    }

    /// Leases that guests were told they have, since the last look.
    pub(crate) fn take_taken(&self) -> Vec<Taken> {
        std::mem::take(&mut *lock(&self.taken))
    }

    /// How often each mood was met.
    pub(crate) fn met(&self) -> BTreeMap<Mood, u64> {
        lock(&self.met).clone()
    }

    fn find(&self, theorem: &'static str, attempt: &Attempt, detail: String) {
        lock(&self.findings).push(Finding::new(theorem, who(attempt), detail));
    }

    /// The seed of a step's random numbers hangs on where it starts from, and on nothing else.
    fn draws_the_same(&self, attempt: &Attempt) {
        let start = attempt.start();
        let execution = &start.claim.execution;
        let from = format!("{}@{}:{}", execution.entity, execution.incarnation, start.base);
        let drawn = attempt.seed();
        let known = *lock(&self.draws).entry(from.clone()).or_insert(drawn);
        if known != drawn {
            self.find("a_retry_draws_the_same", attempt, from);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn who(attempt: &Attempt) -> String {
    let start = attempt.start();
    format!("{} attempt {} token {}", start.claim.execution, start.claim.attempt, start.claim.token)
}

/// The guests of one boot.
#[derive(Clone)]
pub(crate) struct Crew {
    diary: Arc<Diary>,
    clock: Arc<dyn Clock>,
    alive: Arc<AtomicBool>,
}

impl Crew {
    pub(crate) fn new(diary: Arc<Diary>, clock: Arc<dyn Clock>) -> Self {
        Self { diary, clock, alive: Arc::new(AtomicBool::new(true)) }
    }

    /// Nothing is begun any more.
    pub(crate) fn die(&self) {
        self.alive.store(false, Ordering::Relaxed);
    }
}

impl Executor for Crew {
    fn start(&self, attempt: Attempt) {
        if !self.alive.load(Ordering::Relaxed) {
            return;
        }
        self.diary.draws_the_same(&attempt);
        let start = attempt.start();
        let mut random = Random::new(self.diary.seed ^ start.claim.token.get().wrapping_mul(0x9e37_79b9));
        let mood = match self.diary.calm.load(Ordering::Relaxed) {
            true => Mood::Good,
            false => (self.diary.moods)(start, &mut random),
        };
        *lock(&self.diary.met).entry(mood).or_default() += 1;
        self.diary.log.say(format!("  {} in {} is {mood:?}", who(&attempt), start.state));
        let guest = Guest { crew: self.clone(), attempt, random };
        tokio::spawn(guest.run(mood));
    }
}

struct Guest {
    crew: Crew,
    attempt: Attempt,
    random: Random,
}

type Answer = Result<Version, SubmitError>;

impl Guest {
    async fn run(mut self, mood: Mood) {
        match mood {
            Mood::Good => self.work().await,
            Mood::Saves => {
                for _ in 0..2 {
                    drop(self.save(Change::default()).await);
                }
                self.work().await
            }
            Mood::Slow => {
                let ms = 500 + self.random.below(6_000);
                self.sleep(ms).await;
                self.work().await
            }
            Mood::Naps => {
                self.sleep(NAP_MS).await;
                self.work().await
            }
            Mood::Nothing => self.attempt.finish(Ended::Returned),
            Mood::Fails => self.fails(false),
            Mood::FailsForGood => self.fails(true),
            Mood::Vanishes => drop(self.attempt),
            Mood::Hangs => {
                drop(self.attempt.gate().closed().await);
                self.fails(false);
            }
            Mood::Zombie => self.goes_on().await,
            Mood::Twice => {
                let to = target(self.attempt.start());
                drop(self.step(to).await);
                drop(self.step(to).await);
                drop(self.save(Change::default()).await);
                self.attempt.finish(Ended::Returned);
            }
            Mood::Wrong => {
                self.asks_for_too_much().await;
                self.work().await
            }
            Mood::Floods => {
                for _ in 0..FLOOD {
                    drop(self.step("nowhere").await);
                }
                self.work().await
            }
            Mood::Together => {
                let to = target(self.attempt.start());
                drop(tokio::join!(self.save(Change::default()), self.step(to)));
                self.attempt.finish(Ended::Returned);
            }
            Mood::Rereads => {
                drop(self.attempt.reload().await);
                drop(self.attempt.still_holds().await);
                self.work().await
            }
            Mood::Again => {
                let own = self.attempt.start().state.clone();
                drop(self.step(own.as_str()).await);
                self.work().await
            }
            Mood::Leases => {
                self.uses_leases().await;
                self.work().await
            }
            Mood::Outlasts => {
                drop(self.lease(LeaseAsk::Acquire(lease("spare"), None)).await);
                self.sleep(OUTLASTS_MS).await;
                self.goes_on_at_once().await
            }
        }
    }

    fn fails(self, permanent: bool) {
        self.attempt.finish(Ended::Failed(Failure {
            permanent,
            code: if permanent { "broken" } else { "hiccup" }.to_owned(),
            reason: "as its mood says".to_owned(),
            retry_after_ms: None,
        }));
    }

    /// What a good step of each machine does.
    async fn work(mut self) {
        match self.attempt.start().state.as_str() {
            "lifting" if self.random.below(5) == 0 => self.uses_leases().await,
            "writing" if self.random.below(5) == 0 => self.asks_of(&["crane"]).await,
            _ => {}
        }
        if self.attempt.start().claim.execution.entity.machine.as_str() == "saver" {
            return self.work_in_parts().await;
        }
        let to = target(self.attempt.start());
        for _ in 0..TRIES {
            let answer = self.step(to).await;
            match then(&answer) {
                Then::Stop => break,
                Then::Reread => drop(self.attempt.reload().await),
                Then::Wait => self.sleep(AGAIN_MS).await,
            }
        }
        self.attempt.finish(Ended::Returned);
    }

    /// Saves after each part; goes on from what was saved.
    async fn work_in_parts(self) {
        let mut at = self.attempt.start().documents.data.clone();
        for _ in 0..FLOOD {
            let number = |field: &str| at.as_ref().and_then(|doc| doc.value().get(field)?.as_u64()).unwrap_or(0);
            let (done, parts) = (number("done"), number("parts"));
            let answer = if done >= parts {
                self.step("idle").await
            } else {
                let set = vec![increment("data.done", 1), increment("data.sum", done + 1)];
                self.save(Change { set, ..Change::default() }).await
            };
            match then(&answer) {
                Then::Stop if done >= parts || answer.is_err() => break,
                Then::Stop | Then::Reread => {}
                Then::Wait => self.sleep(AGAIN_MS).await,
            }
            // What it goes on from and the version it is judged by are of one look, always.
            match self.read_again().await {
                Some(data) => at = data,
                None => break,
            }
        }
        self.attempt.finish(Ended::Returned);
    }

    /// The data as it is now, if it may still have it and the store can be read.
    async fn read_again(&self) -> Option<Option<Doc>> {
        for _ in 0..TRIES {
            match self.attempt.reload().await {
                Ok(read) => return Some(read.documents.data),
                Err(SubmitError::Rejected(_)) => return None,
                Err(SubmitError::Contended { .. } | SubmitError::Store(_)) => self.sleep(AGAIN_MS).await,
            }
        }
        None
    }

    /// Waits until it is stopped, or for as long as it likes, and writes all the same.
    async fn goes_on(mut self) {
        let ms = 2_000 + self.random.below(30_000);
        let gate = self.attempt.gate();
        tokio::select! {
            biased;
            _ = gate.closed() => {}
            () = self.sleep(ms) => {}
        }
        let ms = self.random.below(3_000);
        self.sleep(ms).await;
        let to = target(self.attempt.start());
        drop(self.save(Change::default()).await);
        drop(self.step(to).await);
        self.sleep(ms).await;
        drop(self.step(to).await);
        drop(self.attempt.reload().await);
        drop(self.step(to).await);
    }

    /// Writes although it may not any more, then works.
    async fn goes_on_at_once(self) {
        let to = target(self.attempt.start());
        drop(self.save(Change::default()).await);
        drop(self.step(to).await);
        self.attempt.finish(Ended::Returned);
    }

    /// Takes a lease that others want too, renews it, gives it back; and asks for some that it may not have.
    async fn uses_leases(&mut self) {
        if self.random.below(8) == 0 {
            drop(self.lease(LeaseAsk::Acquire(lease("nobody-s"), None)).await);
        }
        let ttl_ms = [None, Some(1_000), Some(6_000), Some(60_000)];
        let ttl_ms = ttl_ms[usize::try_from(self.random.below(4)).unwrap_or(0)];
        let Ok(Some(held)) = self.lease(LeaseAsk::Acquire(lease("spare"), ttl_ms)).await else { return };
        drop(self.attempt.still_holds_lease(&held.claim).await);
        if self.random.below(3) == 0 {
            self.sleep(1_500).await;
        }
        let held = match self.lease(LeaseAsk::Extend(held.claim.clone(), None)).await {
            Ok(Some(longer)) => longer,
            _ => held,
        };
        if self.random.below(2) == 0 {
            drop(self.lease(LeaseAsk::Release(held.claim.clone())).await);
        }
        // A handle that is used up.
        if self.random.below(4) == 0 {
            drop(self.lease(LeaseAsk::Extend(held.claim, None)).await);
        }
    }

    async fn lease(&self, ask: LeaseAsk) -> Result<Option<HeldLease>, SubmitError> {
        let stopped = self.is_fenced();
        let what = match &ask {
            LeaseAsk::Acquire(name, ttl_ms) => format!("lease {name} for {ttl_ms:?}"),
            LeaseAsk::Extend(claim, ttl_ms) => format!("more of {} {} for {ttl_ms:?}", claim.lease, claim.token),
            LeaseAsk::Release(claim) => format!("an end of {} {}", claim.lease, claim.token),
        };
        let answer = self.attempt.lease(ask).await;
        let diary = &self.crew.diary;
        let told = match &answer {
            Ok(held) => format!("{:?}", held.as_ref().map(|held| (held.claim.token.get(), held.ttl_ms, held.until.0))),
            Err(error) => format!("{error}"),
        };
        diary.log.say(format!("  {} asks for {what}: {told}", who(&self.attempt)));
        if let Ok(Some(held)) = &answer {
            let (lease, token) = (held.claim.lease.clone(), held.claim.token.get());
            lock(&diary.taken).push(Taken { execution: self.attempt.start().claim.execution.clone(), lease, token });
        }
        if stopped && answer.is_ok() {
            diary.find("a_stopped_attempt_never_writes", &self.attempt, what);
        }
        answer
    }

    async fn asks_for_too_much(&mut self) {
        let mail = self.attempt.start().claim.execution.entity.machine.as_str() == "mail";
        match if mail { 5 + self.random.below(3) } else { self.random.below(9) } {
            0 => drop(self.step("nowhere").await),
            1 => {
                let data = Some(Doc::new(serde_json::json!({ "mark": "a text" })));
                drop(self.save(Change { data, ..Change::default() }).await);
            }
            2 => {
                let set = vec![increment("desired.level", 1)];
                drop(self.save(Change { set, ..Change::default() }).await);
            }
            3 => {
                let conditions = vec![Condition {
                    kind: "interlock/execution".to_owned(),
                    status: "fine".to_owned(),
                    reason: String::new(),
                    message: String::new(),
                    since: WallTime(0),
                }];
                drop(self.save(Change { conditions, ..Change::default() }).await);
            }
            4 => {
                let set = vec![set("data.wrong", Value::Json(Doc::new("a text".into())))];
                drop(self.save(Change { set, ..Change::default() }).await);
            }
            5 => self.asks_of(&["nobody-s"]).await,
            6 => self.asks_of(&["crane"]).await,
            7 => self.asks_of(&["note"; 17]).await,
            _ => {
                let set = (0..70).map(|_| increment("data.mark", 0)).collect();
                drop(self.save(Change { set, ..Change::default() }).await);
            }
        }
    }

    /// Asks for requests that it may not ask for.
    async fn asks_of(&self, targets: &[&str]) {
        let effects = targets.iter().map(|target| request(target, u64::MAX, 0)).collect();
        let stage = Stage { effects, ..Stage::default() };
        drop(self.save(Change { stage, ..Change::default() }).await);
    }

    async fn sleep(&self, ms: u64) {
        let clock = &self.crew.clock;
        clock.sleep_until(clock.monotonic().saturating_add(Duration::from_millis(ms))).await;
    }

    async fn save(&self, mut change: Change) -> Answer {
        let nth = self.asks(Asked::Save, None, &mut change);
        let stopped = self.is_fenced();
        let answer = self.attempt.save(change).await.map(|done| done.version);
        self.hears(nth, "save", &answer, stopped);
        answer
    }

    async fn step(&self, to: &str) -> Answer {
        let Ok(name) = to.parse::<Name>() else {
            return Err(SubmitError::Contended { retry_after_ms: 0 });
        };
        let mut change = Change { set: promises(to), ..Change::default() };
        let nth = self.asks(Asked::Move, Some(to), &mut change);
        let stopped = self.is_fenced();
        let answer = self.attempt.transition(name, change).await.map(|done| done.version);
        self.hears(nth, to, &answer, stopped);
        answer
    }

    fn is_fenced(&self) -> bool {
        self.attempt.gate().check().is_err_and(|closed| closed.why == Closed::FENCED)
    }

    /// Gives a write its mark and writes it down before it is asked for.
    fn asks(&self, asked: Asked, to: Option<&str>, change: &mut Change) -> usize {
        let diary = &self.crew.diary;
        let mark = diary.marks.fetch_add(1, Ordering::Relaxed) + 1;
        if change.stage == Stage::default() {
            change.stage = stage(self.attempt.start(), to, mark, diary.seed);
        }
        change.set.push(set("data.mark", Value::Json(Doc::new(mark.into()))));
        let claim = &self.attempt.start().claim;
        let mut written = lock(&diary.written);
        written.push(Written {
            entity: claim.execution.entity.clone(),
            incarnation: claim.execution.incarnation.get(),
            token: claim.token.get(),
            mark,
            asked,
            effects: change.stage.effects.len(),
            told: None,
        });
        written.len() - 1
    }

    fn hears(&self, nth: usize, what: &str, answer: &Answer, stopped: bool) {
        let diary = &self.crew.diary;
        let told = match answer {
            Ok(version) => Some(Ok(version.get())),
            Err(SubmitError::Rejected(no)) => Some(Err(no.code)),
            Err(SubmitError::Contended { .. }) => Some(Err(Code::Unavailable)),
            Err(SubmitError::Store(error)) if error.is_retryable() => Some(Err(Code::Unavailable)),
            Err(SubmitError::Store(_)) => None,
        };
        diary.log.say(format!("  {} asks for {what}: {told:?}", who(&self.attempt)));
        if let Some(written) = lock(&diary.written).get_mut(nth) {
            written.told = told;
        }
        if stopped && answer.is_ok() {
            diary.find("a_stopped_attempt_never_writes", &self.attempt, format!("{what}: {answer:?}"));
        }
    }
}

/// What a good step does after an answer.
enum Then {
    Stop,
    Reread,
    Wait,
}

fn then(answer: &Answer) -> Then {
    match answer {
        Err(SubmitError::Rejected(no)) if no.code == Code::Conflict => Then::Reread,
        Ok(_) | Err(SubmitError::Rejected(_)) => Then::Stop,
        Err(SubmitError::Contended { .. } | SubmitError::Store(_)) => Then::Wait,
    }
}

fn lease(name: &str) -> LeaseName {
    name.parse().unwrap_or_else(|_| unreachable!("{name} is the name of a lease"))
}
