//! What must hold between the parts of a table's manifest.

use super::{Draft, claim};
use crate::check::field::types_of;
use crate::check::schema as schemas;
use crate::draft::Schema;
use crate::log::Log;
use crate::problem::Code;
use serde_json::Value as Json;

pub(super) fn draft(draft: &Draft<'_>, log: &mut Log<'_>) {
    if !matches!(draft.schema, Schema::None) {
        schemas::one("the table's rows", &draft.schema, &(0..0), "", log);
    }
    indexes(draft, log);
    claim::check(draft, log);
    if !draft.access.half_read && draft.access.all().next().is_none() {
        let remedy = "grant it: [access] clients = [\"get\", \"put\"], machines = { NAME = [\"claim\", \"update\"] }";
        log.add(Code::NoAccess, &draft.access.at, "nobody may do anything with the table", remedy);
    }
}

impl Draft<'_> {
    /// The schema of a row, if there is one that could be read.
    pub(super) fn row(&self) -> Option<&Json> {
        match &self.schema {
            Schema::Known(written) => Some(written.doc.value()),
            Schema::None | Schema::Unread => None,
        }
    }
}

fn indexes(draft: &Draft<'_>, log: &mut Log<'_>) {
    for (place, index) in draft.indexes.iter().enumerate() {
        for field in &index.fields {
            types_of(draft.row(), &field.value, &field.at, log);
        }
        let fields =
            |index: &super::IndexDraft| index.fields.iter().map(|field| field.value.clone()).collect::<Vec<_>>();
        let same = |other: &&super::IndexDraft| other.tie == index.tie && fields(other) == fields(index);
        if let Some(other) = draft.indexes.iter().take(place).find(same) {
            let message = format!("`{}` orders as `{}` does", index.name.value, other.name.value);
            log.add(Code::UnusedKey, &index.name.at, message, "keep one of them: each is written with every row");
        }
    }
}
