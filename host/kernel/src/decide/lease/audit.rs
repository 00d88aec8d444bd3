//! The reconciler's command for a lease: its index is rebuilt from it, and whoever it names and does not agree has
//! it no longer. It should find nothing.

use super::super::draft::Given;
use super::LeaseDraft;
use crate::command::{Command, Outcome, Verb};
use crate::ids::{EntityId, ExecutionId, LeaseName, Principal};
use crate::record::{Head, Key, LeaseWhat, Owner, Record};
use crate::view::{Decision, Stop};

/// Compares a lease with the index entries found for it, with the executions it names, and with an entity that names
/// it, and repairs.
pub(in crate::decide) fn audit(
    given: &Given<'_>,
    name: &LeaseName,
    found: &[Key],
    named_by: Option<&EntityId>,
) -> Result<Decision, Stop> {
    let mut lease = LeaseDraft::of(given, name)?;
    let mut repaired = lease.repair_index(found)?;
    repaired.append(&mut lease.repair_owners()?);
    if let Some(entity) = named_by {
        repaired.extend(lease.repair_named_by(entity)?);
    }
    if repaired.is_empty() {
        return Ok(Decision::plain(Outcome::Repaired(repaired)));
    }
    lease.enter(LeaseWhat::Reconciled, Principal::host().to_string(), None, repaired.join("; "));
    Ok(lease.answer(Outcome::Repaired(repaired)))
}

impl LeaseDraft<'_> {
    fn repair_index(&mut self, found: &[Key]) -> Result<Vec<String>, Stop> {
        let mut repaired = Vec::new();
        let implied = self.was.as_ref().and_then(|was| was.due).map(|due| Key::Lapse(due, self.name.clone()));
        for key in found.iter().filter(|key| Some(*key) != implied.as_ref()) {
            if self.given.view.get(key)?.is_some() {
                repaired.push(format!("index entry without cause: {key:?}"));
                self.writes.push((key.clone(), None));
            }
        }
        let Some(key) = implied else { return Ok(repaired) };
        if self.given.view.get(&key)?.is_none() {
            repaired.push(format!("missing index entry: {key:?}"));
            if let Some(was) = self.was.as_mut() {
                was.due = None; // so that it is written anew
            }
        }
        Ok(repaired)
    }

    /// Executions that it names and that do not have it, or do not wait for it.
    fn repair_owners(&mut self) -> Result<Vec<String>, Stop> {
        let mut repaired = Vec::new();
        let was = self.was.clone().unwrap_or_default();
        if let Some(Owner::Execution(execution)) = was.holder.as_ref().map(|holder| &holder.owner)
            && !self.running(execution)?.is_some_and(|head| head.leases.contains(&self.name))
        {
            repaired.push(format!("held by {execution}, which does not have it"));
            self.lease.holder = None;
        }
        for waiter in &was.line {
            if let Owner::Execution(execution) = &waiter.owner
                && self.running(execution)?.is_none_or(|head| head.awaits.as_ref() != Some(&self.name))
            {
                repaired.push(format!("{execution} stands in line and does not wait for it"));
                self.leave(&waiter.owner);
            }
        }
        Ok(repaired)
    }

    /// An entity whose execution says that it has it, or waits for it, and is not named here. What store time has
    /// ended is no mismatch.
    fn repair_named_by(&mut self, entity: &EntityId) -> Result<Option<String>, Stop> {
        let was = self.was.clone().unwrap_or_default();
        let Some(head) = self.head(entity)?.filter(|head| !head.is_inconsistent()) else { return Ok(None) };
        let Some(execution) = head.locked_by(entity) else { return Ok(None) };
        let owner = Owner::Execution(execution.clone());
        let holds = was.holder.is_some_and(|holder| holder.owner == owner);
        let waits = was.line.iter().any(|waiter| waiter.owner == owner);
        let (verb, words) = if head.leases.contains(&self.name) && !holds {
            let words = format!("{execution} names it and does not have it");
            (Verb::Lose(execution, self.name.clone()), words)
        } else if head.awaits.as_ref() == Some(&self.name) && !waits {
            let words = format!("{execution} waits for it and does not stand in line");
            (Verb::Turn(execution, self.name.clone()), words)
        } else {
            return Ok(None);
        };
        self.then.push(Command { by: Principal::host(), verb });
        Ok(Some(words))
    }

    /// The head of an execution that holds its entity's lock.
    fn running(&self, execution: &ExecutionId) -> Result<Option<Head>, Stop> {
        let head = self.head(&execution.entity)?;
        Ok(head.filter(|head| head.locked_by(&execution.entity).as_ref() == Some(execution)))
    }

    fn head(&self, entity: &EntityId) -> Result<Option<Head>, Stop> {
        Ok(match self.given.view.get(&Key::Head(entity.clone()))? {
            Some(Record::Head(head)) => Some(*head),
            _ => None,
        })
    }
}
