//! The bodies of the HTTP API: what clients send and what they get. The command line uses the same types.
//!
//! Requests refuse fields they do not know; answers may gain fields. Times are RFC 3339 in UTC, lengths of
//! time end in their unit, documents keep 64-bit integers exactly. Nothing here decides anything: read
//! `views.rs` for how records become answers, `problem.rs` for every refusal.

mod document;
mod effect;
mod entity;
mod event;
mod history;
mod host;
mod lease;
mod machine;
mod row;
mod schedule;
mod table;
mod why;

pub use document::Document;
pub use effect::{DropRequest, EffectList, EffectRequestView, EffectView, OutboxView, StandsView};
pub use entity::{
    Applied, ApplyRequest, ConditionView, CreateRequest, Created, DesiredView, EntityPage, EntitySummary, EntityView,
    Existing, FirstEvent, HolderView, KillRequest, Kind, LastExecutionView, LockView, NowView, ParkView, TimerView,
    UnlockRequest, WaitingFor,
};
pub use event::{AnswerKind, AnswerView, EventRequest, ExecutionOutcome, ExpectView, RejectionView};
pub use history::{
    ChangedView, EntryView, FailureView, HistoryPage, LeaseEntryView, RowEntryView, WatchEntry, WatchLease, WatchRows,
};
pub use host::{Alive, BackgroundTask, ReadyView, StatsView, StoreCondition, StoreView};
pub use lease::{
    AcquireRequest, ExtendRequest, LeaseBusyView, LeaseDelayView, LeaseHeld, LeaseHolderView, LeasePage, LeaseReleased,
    LeaseSummary, LeaseView, LeaseWaiterView, ReleaseRequest,
};
pub use machine::{
    DeployRequest, Deployed, Finding, HeldBack, MachineList, MachineSummary, MachineView, PowerView, RevisionView,
    RollbackRequest, Severity,
};
pub use row::{
    ClaimRequest, QueryRequest, RowDeleted, RowPage, RowUpdated, RowView, RowWritten, RowsClaimed, TransactRequest,
    Transacted, UnmatchedView, UpdateRequest, UpsertRequest,
};
pub use schedule::{FiringKind, FiringView, SchedulePage, ScheduleRequest, ScheduleSummary, ScheduleView, Scheduled};
pub use table::{
    AccessView, ClaimView, DeclareRequest, Declared, Dropping, IndexView, ReaperView, StageView, TablePage,
    TableSummary, TableView, TtlView,
};
pub use why::{AwaitsView, Because, ClaimedRowView, LeaseUntilView, NextView, WhyView};
