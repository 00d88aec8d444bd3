//! The thread that a step runs on: every call goes to the attempt's task, and blocks for the answer.
//!
//! The host ends a step by unwinding its thread, without a message. What a component would not do either,
//! a step does not do while it unwinds: its calls are not made.

use crate::convert_rows;
use crate::ran::{Asked, TimerDue};
use interlock::log::Level;
use interlock::rows::{
    Action, Answer, Claimed, Claiming, Deleted, Deleting, EntityRequirement, Getting, Got, Operation, Page, Putting,
    Querying, Requirement, RowRequirement, Updated, Updating, Upserting, Written,
};
use interlock::{
    Change, Checkpoint, Done, Entity, Event, Failure, Held, Host, HostLease, Rejection, RejectionKind, Request,
};
use interlock_coordinator::HeldLease;
use interlock_coordinator::contract::{Handle, Refusal, Stopped};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, mpsc};
use tokio::sync::mpsc::UnboundedSender;

/// From a step's thread to its attempt's task.
pub(crate) enum Message {
    /// Something to read of the snapshot; answers by itself.
    Read(Box<dyn FnOnce(&Handle) + Send>),
    /// A line for the log.
    Line(Level, String, Vec<(String, String)>, mpsc::Sender<Result<(), Stopped>>),
    /// Something to ask for, with the lease that it is about, if the attempt holds that.
    Ask(Asked, Option<HeldLease>, mpsc::Sender<Result<Reply, Refusal>>),
    /// The step is at its end.
    Over(Over),
}

/// What a step is told of what it asked for.
pub(crate) enum Reply {
    Done,
    Holds(bool),
    Leased(HeldLease),
    Rows(Vec<Answer>),
    Found(Page),
}

/// How a step came to its end.
pub(crate) enum Over {
    Returned,
    Failed(Failure),
    /// Its panic, in one line.
    Panicked(String),
    Stopped(Stopped),
}

/// Why a thread is unwound by the host.
enum Ending {
    /// Its attempt is ended.
    Stopped(Stopped),
    /// Nobody listens any more.
    Gone,
}

/// A step's end of the line to its attempt's task.
#[derive(Clone)]
pub(crate) struct Wire {
    messages: UnboundedSender<Message>,
    asking: Arc<AtomicBool>,
}

impl Wire {
    /// `asking` tells whether the thread waits for an answer.
    pub(crate) fn new(messages: UnboundedSender<Message>, asking: Arc<AtomicBool>) -> Self {
        Self { messages, asking }
    }

    fn exchange<T>(&self, message: impl FnOnce(mpsc::Sender<T>) -> Message) -> T {
        let (reply, answer) = mpsc::channel();
        self.asking.store(true, Ordering::Release);
        let sent = self.messages.send(message(reply));
        match sent.ok().and_then(|()| answer.recv().ok()) {
            Some(answer) => {
                self.asking.store(false, Ordering::Release);
                answer
            }
            None => unwind(Ending::Gone),
        }
    }

    fn read<T: Default + Send + 'static>(
        &self,
        read: impl FnOnce(&Handle) -> Result<T, Stopped> + Send + 'static,
    ) -> T {
        if std::thread::panicking() {
            return T::default();
        }
        let answer = self.exchange(|reply| {
            Message::Read(Box::new(move |handle| {
                // Whoever asked may be gone.
                let _ = reply.send(read(handle));
            }))
        });
        answer.unwrap_or_else(|stopped| unwind(Ending::Stopped(stopped)))
    }

    fn ask(&self, asked: Asked) -> Result<Reply, Rejection> {
        self.ask_of(asked, None)
    }

    fn ask_of(&self, asked: Asked, held: Option<HeldLease>) -> Result<Reply, Rejection> {
        if std::thread::panicking() {
            return Err(not_made());
        }
        match self.exchange(|reply| Message::Ask(asked, held, reply)) {
            Ok(answer) => Ok(answer),
            Err(Refusal::No(no)) => Err(crate::convert::rejection(&no)),
            Err(Refusal::Stop(stopped)) => unwind(Ending::Stopped(stopped)),
        }
    }

    fn line(&self, level: Level, message: &str, fields: &[(String, String)]) {
        if std::thread::panicking() {
            return;
        }
        let written = self.exchange(|reply| Message::Line(level, message.to_owned(), fields.to_vec(), reply));
        written.unwrap_or_else(|stopped| unwind(Ending::Stopped(stopped)));
    }
}

fn unwind(ending: Ending) -> ! {
    resume_unwind(Box::new(ending))
}

/// The answer to a destructor that asks for something while its step unwinds. A component is gone then.
fn not_made() -> Rejection {
    Rejection {
        kind: RejectionKind::Unavailable,
        code: "unavailable".to_owned(),
        subject: "host".to_owned(),
        expected: "a step that runs".to_owned(),
        got: "one that unwinds".to_owned(),
        retryable: false,
        retry_after: None,
        detail: None,
    }
}

impl Host for Wire {
    fn id(&self) -> String {
        self.read(Handle::id)
    }
    fn key(&self) -> String {
        self.read(Handle::key)
    }
    fn execution(&self) -> String {
        self.read(Handle::execution)
    }
    fn attempt(&self) -> u32 {
        self.read(Handle::attempt)
    }
    fn state(&self) -> String {
        self.read(Handle::state)
    }
    fn version(&self) -> u64 {
        self.read(Handle::version)
    }
    fn desired(&self) -> Option<String> {
        self.read(Handle::desired)
    }
    fn data(&self) -> Option<String> {
        self.read(Handle::data)
    }
    fn outputs(&self) -> Option<String> {
        self.read(Handle::outputs)
    }
    fn cancel_requested(&self) -> bool {
        self.read(Handle::cancel_requested)
    }
    fn deadline_ms(&self) -> u64 {
        self.read(Handle::deadline_ms)
    }
    fn reload(&self) -> Result<(), Rejection> {
        self.ask(Asked::Reload).map(drop)
    }
    fn save(&self, checkpoint: Checkpoint) -> Result<(), Rejection> {
        self.ask(Asked::Save(checkpoint)).map(drop)
    }
    fn transition(&self, change: Change) -> Result<(), Rejection> {
        self.ask(Asked::Transition(change)).map(drop)
    }
    fn token(&self) -> u64 {
        self.read(Handle::token)
    }
    fn still_holds(&self) -> bool {
        // It answers no rejection, but for a step that unwinds.
        matches!(self.ask(Asked::StillHolds), Ok(Reply::Holds(true)))
    }
    fn acquire(&self, name: &str, ttl_ms: Option<u64>) -> Result<Held, Rejection> {
        match self.ask(Asked::Acquire(name.to_owned(), ttl_ms))? {
            Reply::Leased(held) => Ok(Box::new(LeaseWire { wire: self.clone(), held: RefCell::new(held) })),
            Reply::Done | Reply::Holds(_) | Reply::Rows(_) | Reply::Found(_) => Err(not_made()),
        }
    }
    fn timer_after(&self, name: &str, ms: u64) -> Result<(), Rejection> {
        self.ask(Asked::Timer(name.to_owned(), TimerDue::After(ms))).map(drop)
    }
    fn timer_at(&self, name: &str, unix_ms: i64) -> Result<(), Rejection> {
        self.ask(Asked::Timer(name.to_owned(), TimerDue::At(unix_ms))).map(drop)
    }
    fn timer_cancel(&self, name: &str) -> Result<(), Rejection> {
        self.ask(Asked::Timer(name.to_owned(), TimerDue::Cancelled)).map(drop)
    }
    fn effect_request(&self, request: Request) -> Result<(), Rejection> {
        self.ask(Asked::Effect(request)).map(drop)
    }
    fn row_get(&self, table: &str, getting: Getting) -> Result<Got, Rejection> {
        match self.row(table, Action::Get(getting), None)? {
            Answer::Got(got) => Ok(got),
            _ => Err(not_made()),
        }
    }
    fn row_query(&self, table: &str, querying: Querying) -> Result<Page, Rejection> {
        match self.ask(Asked::Query(table.to_owned(), querying))? {
            Reply::Found(page) => Ok(page),
            _ => Err(not_made()),
        }
    }
    fn row_put(&self, table: &str, putting: Putting, op: Option<&str>) -> Result<Written, Rejection> {
        match self.row(table, Action::Put(putting), op)? {
            Answer::Put(written) => Ok(written),
            _ => Err(not_made()),
        }
    }
    fn row_update(&self, table: &str, updating: Updating, op: Option<&str>) -> Result<Updated, Rejection> {
        match self.row(table, Action::Update(updating), op)? {
            Answer::Updated(updated) => Ok(updated),
            _ => Err(not_made()),
        }
    }
    fn row_upsert(&self, table: &str, upserting: Upserting, op: Option<&str>) -> Result<Written, Rejection> {
        match self.row(table, Action::Upsert(upserting), op)? {
            Answer::Upserted(written) => Ok(written),
            _ => Err(not_made()),
        }
    }
    fn row_claim(&self, table: &str, claiming: Claiming, op: Option<&str>) -> Result<Claimed, Rejection> {
        match self.row(table, Action::Claim(claiming), op)? {
            Answer::Claimed(claimed) => Ok(claimed),
            _ => Err(not_made()),
        }
    }
    fn row_delete(&self, table: &str, deleting: Deleting, op: Option<&str>) -> Result<Deleted, Rejection> {
        match self.row(table, Action::Delete(deleting), op)? {
            Answer::Deleted(deleted) => Ok(deleted),
            _ => Err(not_made()),
        }
    }
    fn row_transact(
        &self,
        operations: Vec<Operation>,
        requirements: Vec<Requirement>,
        op: Option<&str>,
    ) -> Result<Vec<Answer>, Rejection> {
        match self.ask(Asked::Rows(operations, requirements, op.map(str::to_owned)))? {
            Reply::Rows(answers) => Ok(answers),
            _ => Err(not_made()),
        }
    }
    fn row_stage(&self, operation: Operation) -> Result<(), Rejection> {
        self.ask(Asked::StageRow(operation)).map(drop)
    }
    fn row_require(&self, requirement: RowRequirement) -> Result<(), Rejection> {
        self.ask(Asked::Require(Requirement::Row(requirement))).map(drop)
    }
    fn entity_require(&self, requirement: EntityRequirement) -> Result<(), Rejection> {
        self.ask(Asked::Require(Requirement::Entity(requirement))).map(drop)
    }
    fn row_answers(&self) -> Vec<Answer> {
        self.read(|handle| handle.row_answers().map(convert_rows::answers))
    }
}

impl Wire {
    /// One operation, at once: its answer.
    fn row(&self, table: &str, what: Action, op: Option<&str>) -> Result<Answer, Rejection> {
        let operation = Operation { table: table.to_owned(), what };
        self.row_transact(vec![operation], Vec::new(), op)?.pop().ok_or_else(not_made)
    }
}

/// A lease in a step's hand.
struct LeaseWire {
    wire: Wire,
    held: RefCell<HeldLease>,
}

impl LeaseWire {
    fn held(&self) -> HeldLease {
        self.held.borrow().clone()
    }
}

impl HostLease for LeaseWire {
    fn name(&self) -> String {
        let name = self.held().claim.lease.to_string();
        self.wire.read(move |handle| handle.pass().map(|()| name))
    }
    fn left_ms(&self) -> u64 {
        let held = self.held();
        self.wire.read(move |handle| handle.lease_left_ms(&held))
    }
    fn extend(&self, ttl_ms: Option<u64>) -> Result<(), Rejection> {
        let held = self.held();
        let asked = Asked::Extend(held.claim.lease.to_string(), ttl_ms);
        if let Reply::Leased(held) = self.wire.ask_of(asked, Some(held))? {
            self.held.replace(held);
        }
        Ok(())
    }
    fn release(self: Box<Self>) -> Result<(), Rejection> {
        let held = self.held();
        self.wire.ask_of(Asked::Release(held.claim.lease.to_string()), Some(held)).map(drop)
    }
    fn token(&self) -> u64 {
        let held = self.held();
        self.wire.read(move |handle| handle.lease_token(&held))
    }
    fn still_holds(&self) -> bool {
        let held = self.held();
        let asked = Asked::StillHoldsLease(held.claim.lease.to_string());
        matches!(self.wire.ask_of(asked, Some(held)), Ok(Reply::Holds(true)))
    }
}

thread_local! {
    static IS_STEP: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a step on this thread, from its first instruction to its last word.
pub(crate) fn run(step: impl FnOnce(&Entity) -> Result<Done, Failure>, wire: Wire, event: Event) {
    quiet_panics();
    IS_STEP.set(true);
    let messages = wire.messages.clone();
    let lines = wire.clone();
    let sink = move |level: Level, message: &str, fields: &[(String, String)]| lines.line(level, message, fields);
    let whole = || interlock::log::captured(sink, || step(&Entity::new(wire, event)).map(drop_done));
    let over = match catch_unwind(AssertUnwindSafe(whole)) {
        Ok(Ok(())) => Over::Returned,
        Ok(Err(failure)) => Over::Failed(failure),
        Err(payload) => match payload.downcast::<Ending>().map(|ending| *ending) {
            Ok(Ending::Stopped(stopped)) => Over::Stopped(stopped),
            Ok(Ending::Gone) => return,
            Err(payload) => Over::Panicked(PANIC.take().unwrap_or_else(|| text(&*payload))),
        },
    };
    // Nobody listens if the host is gone.
    let _ = messages.send(Message::Over(over));
}

fn drop_done(_done: Done) {}

/// A panic of a step is no panic of the test: it is kept, and told with the attempt that it ended. Of
/// other threads nothing changes.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if IS_STEP.get() {
                PANIC.set(Some(panic.to_string().replace('\n', " ")));
            } else {
                others(panic);
            }
        }));
    });
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no text"))
}
