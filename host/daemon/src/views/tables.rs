//! Tables as clients read them.

use super::{rfc3339, row_entry};
use crate::api::{AccessView, ClaimView, Document, IndexView, ReaperView, StageView, TableSummary, TableView, TtlView};
use interlock_coordinator::TableView as Found;
use interlock_kernel::record::{Index, IndexStage};
use interlock_kernel::table::{Access, ClaimSpec, OnEnd, Right, Tie};
use interlock_kernel::value::Path;
use std::collections::BTreeSet;

/// One table in a list.
pub(crate) fn table_summary(found: &Found) -> TableSummary {
    TableSummary {
        table: found.name.to_string(),
        owner: found.spec.table.owner.clone(),
        rows: found.head.rows,
        claimed: found.head.held,
        revision: found.head.revision,
        declared: rfc3339(found.head.declared),
        dropping: found.head.dropped,
    }
}

/// One table, with what became of its rows.
pub(crate) fn table(found: &Found) -> TableView {
    let table = &found.spec.table;
    TableView {
        summary: table_summary(found),
        created: rfc3339(found.head.created),
        digest: found.head.digest.to_string(),
        indexes: found.head.indexes.iter().filter_map(index).collect(),
        catching_up: found.head.anew.is_some(),
        claim: claim(&table.claim),
        ttl: table.ttl.map(|ttl| TtlView {
            after_ms: ttl.ms,
            from: if ttl.from_change { "change" } else { "insert" }.to_owned(),
        }),
        access: access(&table.access),
        entries: found.entries.iter().map(row_entry).collect(),
        manifest: found.spec.source.clone(),
    }
}

/// A declared index; that of every table, by insertion, has no name and is not shown.
fn index(index: &Index) -> Option<IndexView> {
    let (stage, done) = match index.stage {
        IndexStage::Ready => (StageView::Ready, None),
        IndexStage::Building { done, .. } => (StageView::Building, Some(done)),
        IndexStage::Dropping => (StageView::Dropping, None),
    };
    Some(IndexView {
        name: index.name.as_ref()?.to_string(),
        fields: index.spec.fields.iter().map(field).collect(),
        tie: match index.spec.tie {
            Tie::Created => "created",
            Tie::Updated => "updated",
        }
        .to_owned(),
        stage,
        done,
    })
}

/// A field as requests name it: what they are about is the row, so it goes without saying.
fn field(path: &Path) -> String {
    let text = path.to_string();
    text.strip_prefix("row.").map(str::to_owned).unwrap_or(text)
}

fn claim(spec: &ClaimSpec) -> ClaimView {
    let on_end = match spec.on_end {
        OnEnd::Keep => "keep",
        OnEnd::Release => "release",
    };
    let reaper = spec.reaper.as_ref();
    ClaimView {
        status: field(&spec.status),
        held: Document(spec.held.clone()),
        on_end: on_end.to_owned(),
        reaper: reaper.map(|reaper| ReaperView { after_ms: reaper.after_ms, attempts: reaper.attempts }),
    }
}

fn access(access: &Access) -> AccessView {
    let names = |rights: &BTreeSet<Right>| rights.iter().map(ToString::to_string).collect();
    AccessView {
        clients: names(&access.clients),
        machines: access.machines.iter().map(|(machine, rights)| (machine.to_string(), names(rights))).collect(),
    }
}
