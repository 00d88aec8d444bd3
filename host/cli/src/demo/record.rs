//! Scene 4: what is on record, and whether it says what was done.

use super::ENTITY;
use super::board::Board;
use super::stage::Stage;
use crate::failed::Failed;
use crate::show::{self, When};
use interlock_kernel::ids::EntityId;

/// What must be on record: the version, and what happened.
const RECORD: [(u64, &str); 6] = [
    (1, "created, ready"),
    (2, "resize -> planning"),
    (2, "attempt 1 lost with its host, begun again"),
    (3, "plan -> provisioning"),
    (4, "-> verifying"),
    (5, "verify -> ready"),
];

pub(crate) async fn play(stage: &Stage<'_>, board: &mut Board) -> Result<(), Failed> {
    board.scene(4, &format!("What is on record          interlock entity history {ENTITY}"));
    let entity: EntityId = ENTITY.parse().map_err(|why| Failed::Input(format!("{why}")))?;
    let page = stage.client.history(&entity, &[("limit", "100".to_owned())]).await?;
    for line in show::history(&page, When::Left).lines() {
        board.line(&format!("   {line}"));
    }
    let entries: Vec<_> = page.entries.iter().rev().collect();
    board.expect(
        &format!("the record has {} entries, it has {}", RECORD.len(), entries.len()),
        entries.len() == RECORD.len(),
    );
    for (entry, (version, what)) in entries.iter().zip(RECORD) {
        let so = entry.version == version && entry.what.ends_with(what);
        board.expect(&format!("entry {} is {what:?} at version {version}", entry.number), so);
    }
    let tokens: Vec<u64> = entries.iter().filter_map(|entry| entry.token).collect();
    board.expect("tokens never fall", tokens.is_sorted());
    Ok(())
}
