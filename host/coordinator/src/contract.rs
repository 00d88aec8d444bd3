//! The contract with steps, from the host's side: what one attempt's step may ask, in its own words, and
//! in which order it is answered.
//!
//! Whatever runs a step's code (a component in the runtime, a function in the mock host) hands it a
//! [`Handle`] and nothing else. Nothing here decides: a request is parsed, handed to the kernel by the
//! [`Attempt`], and its answer handed back. The words of it are in `wit/`.
//!
//! Read next: `rights.rs` for the order of answers, `words.rs` for what becomes of a step's text.

mod effects;
mod leases;
mod lines;
mod rights;
mod row_words;
mod rows;
mod stopped;
mod words;

pub use effects::Asked;
pub use leases::Wanted;
pub use lines::{LOG_BYTES_MAX, LOG_FIELDS_MAX, LOG_LINES_MAX, LOG_TEXT_BYTES_MAX, Level, Line, Lines, escape};
pub use row_words::{
    Action, Expected, FIELDS_MAX, Operation, Order, OrderBy, Question, Requirement, Test, Tests, etag,
};
pub use rows::{OP_BYTES_MAX, QueryWanted, ROW_REQUESTS_MAX, RowsWanted};
pub use stopped::{Stopped, cut, retryable, said};
pub use words::{Edit, Event, Given, Kind, Published, Status, Wish, event};

use crate::error::SubmitError;
use crate::executor::{Attempt, Ended, Snapshot, Written, no_transition};
use crate::gate::Gate;
use interlock_kernel::Version;
use interlock_kernel::command::{Change, Stage, StagedDue, StagedTimer};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::Name;
use interlock_kernel::limits::STAGED_TIMERS_MAX;
use interlock_kernel::record::Failure;
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::rows::RowAnswer;
use interlock_kernel::view::{Documents, Start};
use rights::{No, Rights};
use rows::Requests;
use std::fmt;

/// Reads of the entity in one attempt: each is a transaction, and none is progress.
pub const RELOADS_MAX: u32 = 1_000;

/// What a step is told to wait when the store cannot answer, in ms.
const UNAVAILABLE_RETRY_MS: u64 = 1_000;

/// Why a step's request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A decided no, which the step is told.
    No(Box<Rejection>),
    /// The end of the attempt.
    Stop(Stopped),
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::No(Box::new(rejection))
    }
}

impl From<Stopped> for Refusal {
    fn from(stopped: Stopped) -> Self {
        Self::Stop(stopped)
    }
}

/// A checkpoint that a step may ask for now.
#[derive(Debug)]
pub struct Checkpoint(Change);

/// A move that a step may ask for now.
#[derive(Debug)]
pub struct Move(Name, Change);

/// The entity as the step sees it.
struct View {
    state: Name,
    version: Version,
    documents: Documents,
}

/// One attempt's entity: a snapshot to read, and the right to ask for its next state.
pub struct Handle {
    attempt: Attempt,
    gate: Gate,
    view: View,
    rights: Rights,
    reloads: u32,
    stage: Stage,
    /// What the newest commit answered to the operations on rows that it carried.
    answers: Vec<RowAnswer>,
    requests: Requests,
}

/// What a step reads. Each passes while the attempt may go on and ends it otherwise: it cannot answer a
/// rejection.
impl Handle {
    /// Over an attempt that begins.
    #[must_use]
    pub fn new(attempt: Attempt) -> Self {
        let start = attempt.start();
        Self {
            gate: attempt.gate(),
            view: View { state: start.state.clone(), version: start.claim.read, documents: start.documents.clone() },
            rights: Rights::default(),
            reloads: 0,
            stage: Stage::default(),
            answers: Vec::new(),
            requests: Requests::default(),
            attempt,
        }
    }

    /// Passes while the attempt may go on: for calls that cannot answer a rejection.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn pass(&self) -> Result<(), Stopped> {
        self.rights.pass(self.gate.check())
    }

    /// `machine/key`.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn id(&self) -> Result<String, Stopped> {
        self.pass().map(|()| self.start().claim.execution.entity.to_string())
    }

    /// The key alone.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn key(&self) -> Result<String, Stopped> {
        self.pass().map(|()| self.start().claim.execution.entity.key.to_string())
    }

    /// The execution's id.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn execution(&self) -> Result<String, Stopped> {
        self.pass().map(|()| self.start().claim.execution.to_string())
    }

    /// Its number in the visit.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn attempt(&self) -> Result<u32, Stopped> {
        self.pass().map(|()| self.start().claim.attempt)
    }

    /// The state.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn state(&self) -> Result<String, Stopped> {
        self.pass().map(|()| self.view.state.to_string())
    }

    /// The version.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn version(&self) -> Result<u64, Stopped> {
        self.pass().map(|()| self.view.version.get())
    }

    /// What clients want.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn desired(&self) -> Result<Option<String>, Stopped> {
        self.pass().map(|()| text(self.view.documents.desired.as_ref()))
    }

    /// What steps remember.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn data(&self) -> Result<Option<String>, Stopped> {
        self.pass().map(|()| text(self.view.documents.data.as_ref()))
    }

    /// What steps promise.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn outputs(&self) -> Result<Option<String>, Stopped> {
        self.pass().map(|()| text(self.view.documents.outputs.as_ref()))
    }

    /// Whether somebody asked for the execution to be cancelled: no command does, in this release.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn cancel_requested(&self) -> Result<bool, Stopped> {
        self.pass().map(|()| false)
    }

    /// Milliseconds until it is ended at the latest.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn deadline_ms(&self) -> Result<u64, Stopped> {
        self.pass().map(|()| self.attempt.left_ms())
    }

    /// The fencing token, to carry outside.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn token(&self) -> Result<u64, Stopped> {
        self.pass().map(|()| self.attempt.token().get())
    }
}

/// What a step asks for. `fenced` and `spent` are answered once; the call after that ends the attempt.
impl Handle {
    /// Passes while the attempt may go on and its handle is not spent: how every call begins that answers a
    /// rejection.
    ///
    /// # Errors
    /// [`Refusal`]: what to tell the step, or its end.
    pub fn may_ask(&mut self) -> Result<(), Refusal> {
        let claim = &self.start().claim;
        let no = match self.rights.may_ask(self.gate.check()) {
            Ok(()) => return Ok(()),
            Err(No::Stop(stopped)) => return Err(stopped.into()),
            Err(No::Spent) => {
                let (expected, got) = ("one transition per attempt", "another call");
                Rejection::new(Code::Spent, &claim.execution.entity, expected, got)
            }
            Err(No::Fenced(closed)) => {
                let expected = format!("attempt {}, token {}, to be the open one", claim.attempt, claim.token);
                Rejection::new(Code::Fenced, &claim.execution.entity, expected, closed.text)
            }
        };
        Err(self.refuse(no))
    }

    /// A step's checkpoint, if it may ask for one and it can be read.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn checkpoint(&mut self, wish: Wish) -> Result<Checkpoint, Refusal> {
        self.may_ask()?;
        let stage = std::mem::take(&mut self.stage); // accepted or refused, it is not staged any more
        let change = words::change(wish).map_err(|no| self.refuse(no))?;
        Ok(Checkpoint(Change { stage, ..change }))
    }

    /// A step's move, if it may ask for one and it can be read.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn change(&mut self, to: &str, wish: Wish) -> Result<Move, Refusal> {
        self.may_ask()?;
        let stage = std::mem::take(&mut self.stage);
        let to = words::state(to).map_err(|no| self.refuse(no))?;
        let change = words::change(wish).map_err(|no| self.refuse(no))?;
        Ok(Move(to, Change { stage, ..change }))
    }

    /// Stages a timer, or taking one back, for the next save or transition: whether the state has such a timer is
    /// judged by then. The last word on a name counts.
    ///
    /// # Errors
    /// [`Refusal`]. What was staged before stays.
    pub fn stage_timer(&mut self, name: &str, due: StagedDue) -> Result<(), Refusal> {
        self.may_ask()?;
        let name = words::timer(name).map_err(|no| self.refuse(no))?;
        let timers = &mut self.stage.timers;
        timers.retain(|staged| staged.name != name);
        if timers.len() >= STAGED_TIMERS_MAX {
            let expected = format!("at most {STAGED_TIMERS_MAX} staged timers (staged_timers_max)");
            return Err(self.refuse(Rejection::new(Code::Limit, "timers", expected, "one more")));
        }
        timers.push(StagedTimer { name, due });
        Ok(())
    }

    /// Puts a checkpoint on record, with this version; the snapshot is then what is there.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn save(&mut self, Checkpoint(change): Checkpoint) -> Result<Version, Refusal> {
        let Written { version, rows } = self.attempt.save(change).await.map_err(|error| self.refuse_submit(error))?;
        self.view.version = version;
        self.answers = rows;
        self.requests = Requests::default(); // a later attempt begins from here
        // It is on record: whatever goes wrong from here on is no refusal of it.
        match self.attempt.look_again().await {
            Ok(now) => self.view = now.into(),
            Err(SubmitError::Rejected(no)) if no.code == Code::Fenced => self.rights.lose(),
            Err(error) => return Err(Stopped::Unavailable(error.to_string()).into()),
        }
        Ok(version)
    }

    /// Moves the entity, with this version; the handle is then spent.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn transition(&mut self, Move(to, change): Move) -> Result<Version, Refusal> {
        let moved = self.attempt.transition(to, change).await;
        let Written { version, rows } = moved.map_err(|error| self.refuse_submit(error))?;
        self.answers = rows;
        self.rights.spend();
        Ok(version)
    }

    /// Reads the entity again; at most [`RELOADS_MAX`] times.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn reload(&mut self) -> Result<(), Refusal> {
        self.may_ask()?;
        self.stage = Stage::default();
        self.reloads = self.reloads.saturating_add(1);
        if self.reloads > RELOADS_MAX {
            let expected = format!("at most {RELOADS_MAX} reloads in an attempt (reloads_max)");
            return Err(self.refuse(Rejection::new(Code::Limit, "reload", expected, self.reloads)));
        }
        let read = self.attempt.reload().await;
        self.view = read.map_err(|error| self.refuse_submit(error))?.into();
        Ok(())
    }

    /// Whether the attempt is still the open one. No is said once.
    ///
    /// # Errors
    /// Ends the attempt.
    pub async fn still_holds(&mut self) -> Result<bool, Stopped> {
        let holds = self.rights.may_hold(self.gate.check())? && {
            let held = self.attempt.still_holds().await;
            held.map_err(|error| Stopped::Unavailable(error.to_string()))?
        };
        if !holds {
            self.rights.told_lost();
        }
        Ok(holds)
    }

    /// Counts a rejection on its way to the step.
    pub fn refuse(&mut self, rejection: Rejection) -> Refusal {
        self.rights.refused(rejection.code);
        rejection.into()
    }

    /// The same for what the coordinator answered.
    fn refuse_submit(&mut self, error: SubmitError) -> Refusal {
        let unavailable =
            |got: String, ms| Rejection::new(Code::Unavailable, "store", "an answer", got).retry_after(ms);
        self.refuse(match error {
            SubmitError::Rejected(rejection) => *rejection,
            SubmitError::Contended { retry_after_ms } => unavailable("a full queue".to_owned(), retry_after_ms),
            // What the store cannot do is no fault of the step's, so none of it is for good. Where a write's fate is
            // not known, asking again is safe: version and token tell whether it was made.
            SubmitError::Store(error) => unavailable(error.to_string(), UNAVAILABLE_RETRY_MS),
        })
    }
}

/// For whoever runs the step.
impl Handle {
    /// The attempt.
    #[must_use]
    pub fn running(&self) -> &Attempt {
        &self.attempt
    }

    /// What to run, on what.
    #[must_use]
    pub fn start(&self) -> &Start {
        self.attempt.start()
    }

    /// Closed when the attempt may not go on.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Whether its transition is accepted.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.rights.is_spent()
    }

    /// Whether the step was told that it lost its entity: its next call ends it.
    #[must_use]
    pub fn is_told_lost(&self) -> bool {
        self.rights.is_told_lost()
    }

    /// The attempt back, and how it ended: returning without an accepted transition is a failure. Nothing that a
    /// step does after its accepted transition changes anything: a failure of that time comes third, for the log.
    #[must_use]
    pub fn over(self, ended: Ended) -> (Attempt, Ended, Option<Failure>) {
        match ended {
            Ended::Failed(failure) if self.is_spent() => (self.attempt, Ended::Returned, Some(failure)),
            Ended::Returned if !self.is_spent() => (self.attempt, Ended::Failed(no_transition()), None),
            ended => (self.attempt, ended, None),
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("attempt", &self.attempt).field("rights", &self.rights).finish_non_exhaustive()
    }
}

impl From<Snapshot> for View {
    fn from(snapshot: Snapshot) -> Self {
        let Snapshot { state, version, documents, deadline: _ } = snapshot;
        Self { state, version, documents }
    }
}

fn text(document: Option<&Doc>) -> Option<String> {
    document.map(|doc| doc.text().to_owned())
}
