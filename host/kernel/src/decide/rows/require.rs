//! Conditions of a request on something else: a row, or an entity.

use super::super::draft::Draft;
use super::draft::Tables;
use super::{Asker, values};
use crate::ids::{EntityId, Name};
use crate::rejection::{Code, Rejection};
use crate::rows::Require;
use crate::table::Right;
use crate::value::{Filter, Roots, Verdict};
use crate::view::Stop;

impl Tables<'_> {
    /// Why a condition does not hold.
    pub(super) fn unmet(
        &mut self,
        asker: &Asker<'_>,
        require: &Require,
        mismatches: &mut u32,
    ) -> Result<Option<Rejection>, Stop> {
        match require {
            Require::Row { table, key, present, filter } => {
                if let Some(refused) = self.allowed(asker, table, Right::Get)? {
                    return Ok(Some(refused));
                }
                let key = match values::key(key, &asker.roots(self.given.now), table) {
                    Ok(key) => key,
                    Err(refused) => return Ok(Some(refused)),
                };
                let found = self.table(table)?.row(&key)?.cloned();
                let subject = format!("{table}/{key}");
                let Some(row) = found.filter(|_| *present) else {
                    let there = self.table(table)?.row(&key)?.is_some();
                    let word = |there| if there { "a row" } else { "no row" };
                    let refused = || Rejection::new(Code::Require, subject, word(*present), word(there));
                    return Ok((there != *present).then(refused));
                };
                let roots = Roots { row: Some(row.value.value()), ..asker.roots(self.given.now) };
                Ok(match filter.judge(&roots, mismatches) {
                    Verdict::Holds => None,
                    Verdict::Fails { expected, got } => Some(Rejection::new(Code::Require, subject, expected, got)),
                })
            }
            Require::Entity { entity, states, filter } => self.unmet_entity(asker, entity, states, filter, mismatches),
        }
    }

    fn unmet_entity(
        &self,
        asker: &Asker<'_>,
        entity: &EntityId,
        states: &[Name],
        filter: &Filter,
        mismatches: &mut u32,
    ) -> Result<Option<Rejection>, Stop> {
        if let Asker::Step { execution, peers, .. } = asker
            && execution.entity.machine != entity.machine
            && !peers.contains(&entity.machine)
        {
            let expected = format!("a machine that the manifest of {} names in peers", execution.entity.machine);
            return Ok(Some(Rejection::new(Code::Denied, entity, expected, &entity.machine)));
        }
        let Some(mut draft) = Draft::of(self.given, entity)? else {
            return Ok(Some(Rejection::new(Code::Require, entity, "an entity", "none with this key")));
        };
        let state = draft.head.state.clone();
        if !states.is_empty() && !states.contains(&state) {
            let names: Vec<&str> = states.iter().map(Name::as_str).collect();
            return Ok(Some(Rejection::new(Code::Require, entity, names.join(" or "), state)));
        }
        let scope = draft.scope(None)?;
        let own = asker.roots(self.given.now);
        let theirs = scope.roots(self.given.now);
        let roots = Roots { desired: theirs.desired, data: theirs.data, outputs: theirs.outputs, ..own };
        Ok(match filter.judge(&roots, mismatches) {
            Verdict::Holds => None,
            Verdict::Fails { expected, got } => Some(Rejection::new(Code::Require, entity, expected, got)),
        })
    }
}
