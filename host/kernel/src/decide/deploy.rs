//! Deploy and rollback: a machine's revisions are numbered and immutable; entities adopt them lazily.

use super::draft::Given;
use super::no_machine;
use crate::command::{Deploy, Outcome};
use crate::ids::MachineName;
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::machine::Revision;
use crate::record::{Key, MachineRecord, Record};
use crate::rejection::{Code, Rejection};
use crate::view::{Decision, Stop};
use std::sync::Arc;

/// A new revision; a no-op if its digest is the active one's.
pub(super) fn deploy(given: &Given<'_>, deploy: &Deploy) -> Result<Decision, Stop> {
    let name = &deploy.machine.name;
    let active = match given.machine(name)? {
        None => None,
        Some(record) => Some((record.latest, given.revision(name, record.active)?)),
    };
    if let Some((_, Some(active))) = &active
        && active.digest == deploy.digest
    {
        return Ok(Decision::plain(Outcome::Deployed { revision: active.number, new: false }));
    }
    let number = active.map_or(0, |(latest, _)| latest).saturating_add(1);
    let revision = Revision {
        number,
        digest: deploy.digest,
        component: deploy.component,
        source: deploy.source.clone(),
        rollback_of: None,
        deployed: given.now.wall,
        by: given.by.clone(),
        machine: Arc::clone(&deploy.machine),
    };
    activate(name, revision)
}

/// A new revision with the content of an old one.
pub(super) fn rollback(given: &Given<'_>, name: &MachineName, to: u64) -> Result<Decision, Stop> {
    let Some(record) = given.machine(name)? else {
        return Ok(Decision::refused(no_machine(name)));
    };
    let Some(old) = given.revision(name, to)? else {
        let expected = format!("a revision from 1 to {}", record.latest);
        return Ok(Decision::refused(Rejection::new(Code::NotFound, name, expected, format!("revision {to}"))));
    };
    let active = given.revision(name, record.active)?;
    if active.is_some_and(|active| active.digest == old.digest) {
        return Ok(Decision::plain(Outcome::Deployed { revision: record.active, new: false }));
    }
    let revision = Revision {
        number: record.latest.saturating_add(1),
        rollback_of: Some(to),
        deployed: given.now.wall,
        by: given.by.clone(),
        ..old.as_ref().clone()
    };
    activate(name, revision)
}

fn activate(name: &MachineName, revision: Revision) -> Result<Decision, Stop> {
    let number = revision.number;
    let key = Key::Revision(name.clone(), number);
    let record = Record::Revision(Arc::new(revision));
    let size = record.encode(&key).len();
    if size > DOCUMENT_BYTES_MAX {
        let expected = format!("at most {DOCUMENT_BYTES_MAX} bytes of definition (document_bytes_max)");
        return Ok(Decision::refused(Rejection::new(Code::Limit, name, expected, format!("{size} bytes"))));
    }
    // Nothing refuses below this line.
    let mut decision = Decision::plain(Outcome::Deployed { revision: number, new: true });
    decision.writes.push((key, Some(record)));
    decision
        .writes
        .push((Key::Machine(name.clone()), Some(Record::Machine(MachineRecord { active: number, latest: number }))));
    Ok(decision)
}
