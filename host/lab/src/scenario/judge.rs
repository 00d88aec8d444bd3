//! Whether an entity is as a promise says.

use super::{AtMost, Ending, Parked, Promise, Test, lease};
use crate::{Request, TableRows};
use interlock_coordinator::{EntityView, LeaseView};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::TableName;
use interlock_kernel::value::{Roots, Verdict};
use std::fmt;

/// What is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What should be.
    pub expected: String,
    /// What is.
    pub got: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, got {}", self.expected, self.got)
    }
}

impl Promise {
    /// Whether an entity keeps it; `requests` are those of all.
    ///
    /// # Errors
    /// [`Broken`] if it does not.
    pub fn judge(&self, view: &EntityView, leases: &[LeaseView], requests: &[Request]) -> Result<(), Broken> {
        let concerned = !self.is_about_rows()
            && self.entity.as_ref().is_none_or(|entity| view.id == *entity)
            && self.when.as_ref().is_none_or(|when| when.judge(view, leases).is_ok());
        if !concerned {
            return Ok(());
        }
        self.made.as_ref().map_or(Ok(()), |bound| bound.judge(view, requests))?;
        self.hold.judge(view, leases)
    }
}

impl AtMost {
    fn judge(&self, view: &EntityView, requests: &[Request]) -> Result<(), Broken> {
        let is_one = |one: &&Request| one.entity == view.id && one.target == self.target && one.arrivals > 0;
        let arrived: Vec<String> = requests.iter().filter(is_one).map(ToString::to_string).collect();
        if u64::try_from(arrived.len()).is_ok_and(|count| count <= u64::from(self.at_most)) {
            return Ok(());
        }
        let plural = if self.at_most == 1 { "request" } else { "different requests" };
        broken(
            format!("at most {} {plural} on {}", self.at_most, self.target),
            format!("{}: {}", arrived.len(), arrived.join(" | ")),
        )
    }
}

impl Promise {
    /// Whether it is about rows, and of no entity.
    #[must_use]
    pub fn is_about_rows(&self) -> bool {
        !self.counts.is_empty()
    }

    /// Whether rows are as it says; the tables that it is about, and what is not so.
    ///
    /// # Errors
    /// The first count that does not hold, with its table.
    pub fn judge_rows(&self, tables: &[TableRows]) -> Result<(), (TableName, Broken)> {
        self.counts.iter().try_for_each(|one| one.judge(tables).map_err(|why| (one.table.clone(), why)))
    }

    /// Whether it hangs on who has leases.
    #[must_use]
    pub fn is_about_leases(&self) -> bool {
        self.hold.holds.is_some() || self.when.as_ref().is_some_and(|when| when.holds.is_some())
    }
}

impl Test {
    /// Whether an entity is like this.
    ///
    /// # Errors
    /// [`Broken`]: the first thing that is not.
    pub fn judge(&self, view: &EntityView, leases: &[LeaseView]) -> Result<(), Broken> {
        let head = &view.head;
        if !self.states.is_empty() && !self.states.contains(&head.state) {
            let states: Vec<&str> = self.states.iter().map(|state| state.as_str()).collect();
            return broken(format!("state {}", states.join(" or ")), head.state.to_string());
        }
        if let Some(wanted) = &self.parked {
            parked(wanted, view)?;
        }
        if let Some(wanted) = self.locked {
            locked(wanted, view)?;
        }
        if let Some(wanted) = self.outcome {
            outcome(wanted, view)?;
        }
        if let Some(name) = &self.holds {
            lease::holds(name, &view.id, leases)?;
        }
        let documents = &view.documents;
        let execution = head.locked_by(&view.id).map(|id| id.to_string());
        let roots = Roots {
            desired: documents.desired.as_ref().map(Doc::value),
            data: documents.data.as_ref().map(Doc::value),
            outputs: documents.outputs.as_ref().map(Doc::value),
            execution: execution.as_deref(),
            ..Roots::default()
        };
        match self.filter.judge(&roots, &mut 0) {
            _ if self.filter.any.is_empty() => Ok(()),
            Verdict::Holds => Ok(()),
            Verdict::Fails { expected, got } => broken(expected, got),
        }
    }
}

pub(crate) fn broken(expected: impl Into<String>, got: impl Into<String>) -> Result<(), Broken> {
    Err(Broken { expected: expected.into(), got: got.into() })
}

pub(crate) fn parked(wanted: &Parked, view: &EntityView) -> Result<(), Broken> {
    let park = view.head.park.as_ref();
    let got = || park.map_or("not parked".to_owned(), |park| format!("parked: {} ({})", park.code, park.reason));
    match (wanted, park) {
        (Parked::No, None) | (Parked::Yes, Some(_)) => Ok(()),
        (Parked::Because(code), Some(park)) if park.code == *code => Ok(()),
        (Parked::No, Some(_)) => broken("not parked", got()),
        (Parked::Yes, None) => broken("parked", got()),
        (Parked::Because(code), _) => broken(format!("parked: {code}"), got()),
    }
}

pub(crate) fn locked(wanted: bool, view: &EntityView) -> Result<(), Broken> {
    match (wanted, &view.head.lock) {
        (true, Some(_)) | (false, None) => Ok(()),
        (true, None) => broken("locked", format!("unlocked, in {}", view.head.state)),
        (false, Some(lock)) => broken(
            "unlocked",
            format!("locked by execution {} ({}), in {}", lock.ordinal, lock.started_by, view.head.state),
        ),
    }
}

pub(crate) fn outcome(wanted: Ending, view: &EntityView) -> Result<(), Broken> {
    let word = |succeeded: bool| if succeeded { "succeeded" } else { "failed" };
    let expected = word(wanted == Ending::Succeeded);
    match &view.head.last {
        Some(last) if last.succeeded == (wanted == Ending::Succeeded) => Ok(()),
        Some(last) => broken(format!("the last execution {expected}"), word(last.succeeded)),
        None => broken(format!("the last execution {expected}"), "none has ended yet"),
    }
}
