//! Requests on rows: what is read is within bounds and of a row, what is not has a place in the request.

use super::holds;
use crate::target::{Broken, Seen, Target};
use interlock_kernel::limits::COMPARISONS_MAX;
use interlock_kernel::rows::{Require, RowAsk, RowsAsk};
use interlock_kernel::value::{Filter, Mutation, Root, Roots, Source, Value};
use interlock_manifest::rows::{Asks, ask, text};
use serde_json::Value as Json;

/// See the module.
pub(crate) struct Rows;

const WORDS: &str = "\
    {\"¦\":¦{\"ops\":[¦{\"require\":[¦]}¦}]¦\"update\":\"t\",¦\"claim\":\"t\",¦\"upsert\":\"t\",¦\"put\":\"t\",¦\"get\":\"t\",¦\
    \"delete\":\"t\",¦\"delete\":true¦\"key\":\"k\",¦\"key\":7¦\"where\":¦\"set\":¦\"fill\":¦\"insert\":¦\"value\":¦\"literal\":¦\
    \"order\":\"-created\"¦\"limit\":¦\"return\":[\"a\"]¦\"must\":true¦\"expect\":\"absent\"¦\"version\"¦\"field\":\"a\"¦\
    \"operator\":\"eq\"¦\"operation\":\"append\"¦\"all\":[¦\"any\":[¦{\"any\":[{\"a\":1},{\"b\":2}]}¦{\"from\":\"now-5m\"}¦\
    {\"from\":\"row.a\"}¦{\"from\":\"event.a\"}¦{\"increment\":1}¦{\"remove\":true}¦\"row\":\"t\"¦\"absent\":\"t\"¦\
    \"entity\":\"m/k\"¦\"states\":[\"s\"]¦data.a¦row¦a\\\\.b¦[0]¦18446744073709551615¦18446744073709551616¦-1¦1.5¦null¦\
    true¦[]¦{}¦,¦[¦]¦{¦}";

impl Target for Rows {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let written = String::from_utf8_lossy(input);
        let mut seen = Seen::default();
        let json = match text(&written) {
            Ok(json) => json,
            Err(why) => {
                seen.say(&why.to_string());
                return Ok(seen);
            }
        };
        for asks in [Asks::Client, Asks::Step] {
            match ask(&json, asks) {
                Ok(read) => {
                    seen.note(&"read");
                    of_rows(&read, asks, &mut seen)?;
                    holds!(ask(&json, asks).as_ref() == Ok(&read), "the same request is another one the second time");
                }
                Err(why) => {
                    let around = why.at.rsplit_once('/').map_or("", |(around, _)| around);
                    holds!(json.pointer(around).is_some(), "no place in the request: {why}");
                    holds!(!why.expected.is_empty() && !why.got.is_empty(), "without words: {why:?}");
                    seen.note(&around.split('/').count());
                    seen.say(&why.expected);
                }
            }
        }
        // What a client may ask, a step may too.
        holds!(ask(&json, Asks::Client).is_err() || ask(&json, Asks::Step).is_ok(), "a step is refused it: {json}");
        Ok(seen)
    }
}

fn of_rows(ask: &RowsAsk, asks: Asks, seen: &mut Seen) -> Result<(), Broken> {
    for op in &ask.ops {
        seen.note(&std::mem::discriminant(&op.what));
        let nothing = Filter::default();
        let (key, filter, sets): (_, _, Vec<&[Mutation]>) = match &op.what {
            RowAsk::Get { key } => (Some(key), &nothing, Vec::new()),
            RowAsk::Put { key, fill, .. } => (Some(key), &nothing, vec![fill]),
            RowAsk::Update { key, filter, set } => (Some(key), filter, vec![set]),
            RowAsk::Upsert { key, fill, set, .. } => (Some(key), &nothing, vec![fill, set]),
            RowAsk::Claim { filter, set, .. } => {
                (None, filter.as_ref().unwrap_or(&nothing), set.iter().map(Vec::as_slice).collect())
            }
            RowAsk::Delete { key, filter } => (Some(key), filter, Vec::new()),
        };
        key.map_or(Ok(()), |key| named(key, asks))?;
        bounded(filter, Some(Root::Row), asks, seen)?;
        for one in sets.into_iter().flatten() {
            holds!(one.field.root == Root::Row, "{} is no field of a row", one.field);
            seen.note(&std::mem::discriminant(&one.operation));
            sees(&one.value, asks)?;
        }
    }
    for one in &ask.require {
        match one {
            Require::Row { key, filter, .. } => {
                named(key, asks)?;
                bounded(filter, Some(Root::Row), asks, seen)?;
            }
            Require::Entity { filter, .. } => bounded(filter, None, asks, seen)?,
        }
    }
    Ok(())
}

fn named(key: &Value, asks: Asks) -> Result<(), Broken> {
    if let Value::From(Source::Field(path)) = key {
        holds!(path.root != Root::Row, "a key that stands in a row that is not known yet: {path}");
    }
    sees(key, asks)
}

/// A client has neither event nor documents.
fn sees(value: &Value, asks: Asks) -> Result<(), Broken> {
    let Value::From(Source::Field(path)) = value else { return Ok(()) };
    holds!(asks == Asks::Step || path.root == Root::Row, "a client sees {path}");
    Ok(())
}

fn bounded(filter: &Filter, root: Option<Root>, asks: Asks, seen: &mut Seen) -> Result<(), Broken> {
    let count: usize = filter.any.iter().map(Vec::len).sum();
    holds!(count <= COMPARISONS_MAX, "{count} comparisons");
    seen.size("alternatives", filter.any.len());
    holds!(filter.any.iter().all(|all| !all.is_empty()), "an alternative that always holds");
    for one in filter.any.iter().flatten() {
        let fits = root.map_or(matches!(one.field.root, Root::Desired | Root::Data | Root::Outputs), |root| {
            one.field.root == root
        });
        holds!(fits, "{} is not of what is looked at", one.field);
        if root.is_some() {
            sees(&one.value, asks)?;
        }
    }
    let row = Json::Object(serde_json::Map::new());
    filter.judge(&Roots { row: Some(&row), ..Roots::default() }, &mut 0);
    Ok(())
}
