//! One boot of a host on a gated store: opened, used, and ended as a process ends.

use crate::gated::Gated;
use crate::guests::Crew;
use crate::ledger::Told;
use interlock_coordinator::{Coordinator, EntityView, Filter, OpenError, Options, Settled, WatchError, Watched};
use interlock_kernel::command::{Command, Verb};
use interlock_kernel::ids::EntityId;
use interlock_kernel::record::Answer;
use interlock_store::{Position, Store, StoreError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, yield_now};

/// Tasks that one round of the runtime may poll before it looks at the driver again: in effect all of them.
const ALL_TASKS: u32 = 1_000_000;

/// Rounds after which every task waits: one lets all run until none can, the others are for those that gave
/// way to others on their own.
const ROUNDS: usize = 6;

/// Before a watch that failed is begun again.
pub(crate) const WATCHES_AGAIN: Duration = Duration::from_millis(100);

/// What a client, or the host, has to say.
pub(crate) enum Word {
    /// An answer to a request: which, its how-manieth try, and what.
    Answer(usize, usize, Told),
    /// What an entity was seen to be, and the incarnation and version it had when it was looked at.
    Seen(EntityId, Option<(u64, u64)>, Result<Option<Box<EntityView>>, StoreError>),
    /// What came of an answer.
    Settled(EntityId, Result<Settled, StoreError>),
    /// Entries that were watched.
    Watched(Vec<Watched>),
    /// The host has stopped.
    Stopped(bool),
}

/// Words that were said and not heard yet.
#[derive(Clone, Default)]
pub(crate) struct Words(Arc<Mutex<Vec<Word>>>);

impl Words {
    fn say(&self, word: Word) {
        self.lock().push(word);
    }

    /// All of them, in the order they were said.
    pub(crate) fn take(&self) -> Vec<Word> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Word>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A runtime on which the same tasks run in the same order every time.
///
/// # Errors
/// What the system says.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().event_interval(ALL_TASKS).build()
}

/// Lets every task run until all of them wait for the store, the clock or the driver.
pub(crate) async fn rest() {
    for _ in 0..ROUNDS {
        yield_now().await;
    }
}

/// See the module.
pub(crate) struct Boot {
    pub(crate) gated: Arc<Gated>,
    pub(crate) host: Option<Arc<Coordinator>>,
    pub(crate) words: Words,
    opening: Option<JoinHandle<Result<Coordinator, OpenError>>>,
    crew: Crew,
}

impl Boot {
    /// Begins to open a host. Inside of its runtime.
    pub(crate) fn begin(gated: Arc<Gated>, crew: Crew, options: Options) -> Self {
        let (store, executor) = (gated.clone(), Arc::new(crew.clone()));
        let opening = tokio::spawn(async move { Coordinator::open(store, executor, options).await });
        Self { gated, host: None, words: Words::default(), opening: Some(opening), crew }
    }

    /// Takes the host in once it is open; an error if it cannot be opened.
    pub(crate) async fn take_host(&mut self) -> Result<bool, OpenError> {
        let Some(opening) = self.opening.take_if(|opening| opening.is_finished()) else { return Ok(false) };
        match opening.await {
            Ok(Ok(host)) => {
                self.host = Some(Arc::new(host));
                Ok(true)
            }
            Ok(Err(error)) => Err(error),
            // Cancelled with its runtime: nobody is here to be told.
            Err(_) => Ok(false),
        }
    }

    /// A client asks, and will say what it is told. The handle makes it give up.
    pub(crate) fn ask(&self, request: usize, nth: usize, command: Command) -> Option<JoinHandle<()>> {
        let (host, words) = (self.host.clone()?, self.words.clone());
        Some(tokio::spawn(async move {
            let answer = match command {
                // It stands in line if it has to, and gives its place up with this task.
                Command { by, verb: Verb::Acquire(ask) } => host.acquire(by, *ask).await,
                command => host.submit(command).await,
            };
            let told = Told::of(answer);
            words.say(Word::Answer(request, nth, told));
        }))
    }

    /// A client looks at an entity that has this incarnation and version at this moment.
    pub(crate) fn look(&self, id: EntityId, floor: Option<(u64, u64)>) {
        let Some(host) = self.host.clone() else { return };
        let words = self.words.clone();
        tokio::spawn(async move {
            let seen = host.entity(&id).await.map(|found| found.map(Box::new));
            words.say(Word::Seen(id, floor, seen));
        });
    }

    /// A client waits for what an answer speaks of.
    pub(crate) fn wait(&self, id: EntityId, answer: Answer, within: Duration) {
        let Some(host) = self.host.clone() else { return };
        let words = self.words.clone();
        tokio::spawn(async move {
            let settled = host.settled(&id, &answer, within).await;
            words.say(Word::Settled(id, settled));
        });
    }

    /// Somebody watches everything from a position on.
    pub(crate) fn watch(&self, from: Position) {
        let Some(host) = self.host.clone() else { return };
        let (words, clock) = (self.words.clone(), self.gated.clock());
        tokio::spawn(async move {
            let mut watch = host.watch(Filter::All, Some(from));
            loop {
                match watch.next().await {
                    Ok(watched) => words.say(Word::Watched(watched)),
                    Err(WatchError::Store(error)) if error.is_retryable() => {
                        clock.sleep_until(clock.monotonic() + WATCHES_AGAIN).await;
                        watch = host.watch(Filter::All, Some(watch.position()));
                    }
                    // It ends with the store.
                    Err(_) => return,
                }
            }
        });
    }

    /// The host is told to stop in good order.
    pub(crate) fn stop(&self, drain: Duration) -> Option<JoinHandle<()>> {
        let host = self.host.clone()?;
        let words = self.words.clone();
        Some(tokio::spawn(async move {
            let stopped = host.stop(drain).await;
            words.say(Word::Stopped(stopped.is_ok()));
        }))
    }

    /// Everything of this boot is gone, as a process is. The engine below must have been closed before.
    pub(crate) fn end(self, runtime: Runtime) {
        let Self { gated, host, words, opening, crew } = self;
        crew.die();
        gated.die();
        drop((host, opening));
        drop(runtime);
        gated.bury();
        drop((words, crew));
    }
}
