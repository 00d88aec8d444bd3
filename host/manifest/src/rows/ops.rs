//! Operations, conditions and queries.

use super::at::At;
use super::filter::filter;
use super::set::{Scope, set};
use super::{Asks, Misread, QUERY_DEFAULT};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, TableName};
use interlock_kernel::limits::{CLAIM_DEFAULT, ROWS_MAX};
use interlock_kernel::rows::{Found, Order, OrderBy, QueryAsk, Require, RowAsk, RowOp, RowsAsk};
use interlock_kernel::value::{Filter, Mutation, Value};
use serde_json::Value as Json;

const TABLE: &str = "a table's name";
const ASK: &str = "{require: [...], ops: [...]}";

pub(super) fn ask(at: &At<'_>, asks: Asks) -> Result<RowsAsk, Misread> {
    at.only(ASK, &["require", "ops"])?;
    if !at.has("require") && !at.has("ops") {
        return Err(at.misread(ASK));
    }
    let require = at.get("require").map(|all| all.each("a list of conditions", |one| require(&one, asks)));
    let ops = at.get("ops").map(|all| all.each("a list of operations", |one| op(&one, asks)));
    Ok(RowsAsk { require: require.transpose()?.unwrap_or_default(), ops: ops.transpose()?.unwrap_or_default() })
}

/// The kinds of operations, and what each may have beside its table.
const OPERATIONS: [(&str, &[&str]); 6] = [
    // First: what it takes it may delete, and so has a field of that name.
    ("claim", &["where", "set", "order", "limit", "delete", "return", "must"]),
    ("get", &["key", "return"]),
    ("put", &["key", "value", "fill", "expect", "return"]),
    ("update", &["key", "where", "set", "return", "must"]),
    ("upsert", &["key", "insert", "fill", "set", "return"]),
    ("delete", &["key", "where", "must"]),
];

pub(super) fn op(at: &At<'_>, asks: Asks) -> Result<RowOp, Misread> {
    let names = OPERATIONS.map(|(name, _)| name);
    let expected = format!("an operation with one of {}, and the table under it", names.join(", "));
    at.map(&expected)?;
    let Some((kind, known)) = OPERATIONS.iter().find(|(name, _)| at.has(name)) else {
        // A misspelt kind is told which one it may have been.
        let beside = |name: &str| OPERATIONS.iter().any(|(_, known)| known.contains(&name));
        let odd = at.entries(&expected)?.into_iter().find(|(name, _)| !beside(name));
        return Err(odd.map_or_else(|| at.misread(expected), |(name, at)| at.unknown(name, &names)));
    };
    let known: Vec<&str> = [kind].into_iter().chain(*known).copied().collect();
    at.only(&expected, &known)?;
    Ok(RowOp {
        table: at.need(kind, TABLE)?.name(TABLE)?,
        what: what(kind, at, asks)?,
        fields: fields(at)?,
        must: at.get("must").map_or(Ok(false), |must| must.boolean())?,
    })
}

fn what(kind: &str, at: &At<'_>, asks: Asks) -> Result<RowAsk, Misread> {
    Ok(match kind {
        "get" => RowAsk::Get { key: key(at, asks)? },
        "put" => RowAsk::Put {
            key: key(at, asks)?,
            value: document(at, "value")?,
            fill: changes(at, "fill", asks)?.unwrap_or_default(),
            expect: at.get("expect").map(|expect| expected(&expect)).transpose()?,
        },
        "update" => RowAsk::Update {
            key: key(at, asks)?,
            filter: guard(at, asks)?.unwrap_or_default(),
            set: set(&at.need("set", "what changes")?, &Scope::row(asks))?,
        },
        "upsert" => RowAsk::Upsert {
            key: key(at, asks)?,
            insert: document(at, "insert")?,
            fill: changes(at, "fill", asks)?.unwrap_or_default(),
            set: changes(at, "set", asks)?.unwrap_or_default(),
        },
        "delete" => RowAsk::Delete { key: key(at, asks)?, filter: guard(at, asks)?.unwrap_or_default() },
        _ => claim(at, asks)?,
    })
}

fn claim(at: &At<'_>, asks: Asks) -> Result<RowAsk, Misread> {
    let delete = at.get("delete").map_or(Ok(false), |delete| delete.boolean())?;
    if let Some(set) = at.get("set").filter(|_| delete) {
        return Err(set.misread_as("no `set` where the claim deletes what it takes", "one"));
    }
    Ok(RowAsk::Claim {
        filter: guard(at, asks)?,
        set: changes(at, "set", asks)?,
        order: order(at)?,
        limit: limit(at, CLAIM_DEFAULT)?,
        delete,
    })
}

pub(super) fn query(at: &At<'_>, asks: Asks) -> Result<QueryAsk, Misread> {
    at.only("{query: TABLE, where, order, limit}", &["query", "where", "order", "limit", "after", "return"])?;
    let after = at.get("after").map(|after| after.text("the `next` of an earlier answer").map(str::to_owned));
    Ok(QueryAsk {
        table: at.need("query", TABLE)?.name(TABLE)?,
        filter: guard(at, asks)?.unwrap_or_default(),
        order: order(at)?,
        limit: limit(at, QUERY_DEFAULT)?,
        after: after.transpose()?,
        fields: fields(at)?,
    })
}

fn require(at: &At<'_>, asks: Asks) -> Result<Require, Misread> {
    let expected = "a condition with row, absent or entity";
    at.map(expected)?;
    if let Some(entity) = at.get("entity") {
        at.only(expected, &["entity", "states", "where"])?;
        let states = at.get("states").map(|states| states.each("a list of states", |one| one.name("a state's name")));
        return Ok(Require::Entity {
            entity: entity.name::<EntityId>("an entity")?,
            states: states.transpose()?.unwrap_or_default(),
            filter: at.get("where").map_or(Ok(Filter::default()), |one| filter(&one, &Scope::entity(asks)))?,
        });
    }
    let (name, known, present): (_, &[&str], _) = match at.has("row") {
        true => ("row", &["row", "key", "where"], true),
        false => ("absent", &["absent", "key"], false),
    };
    if !at.has(name) {
        at.only(expected, &["row", "absent", "entity", "key", "where", "states"])?;
        return Err(at.misread(expected));
    }
    at.only(expected, known)?;
    let table: TableName = at.need(name, TABLE)?.name(TABLE)?;
    Ok(Require::Row { table, key: key(at, asks)?, present, filter: guard(at, asks)?.unwrap_or_default() })
}

/// Text, a whole number as it is written, or what a source holds.
fn key(at: &At<'_>, asks: Asks) -> Result<Value, Misread> {
    let expected = "a row's key: text, a whole number or {from: SOURCE}";
    let at = at.need("key", expected)?;
    let value = Scope::key(asks).value(&at)?;
    let fits = match &value {
        Value::From(_) => true,
        Value::Json(doc) => doc.value().is_string() || doc.value().is_i64() || doc.value().is_u64(),
    };
    if fits { Ok(value) } else { Err(at.misread(expected)) }
}

fn document(at: &At<'_>, name: &str) -> Result<Doc, Misread> {
    Ok(Doc::new(at.need(name, "the row's value")?.json.clone()))
}

fn guard(at: &At<'_>, asks: Asks) -> Result<Option<Filter>, Misread> {
    at.get("where").map(|one| filter(&one, &Scope::row(asks))).transpose()
}

fn changes(at: &At<'_>, name: &str, asks: Asks) -> Result<Option<Vec<Mutation>>, Misread> {
    at.get(name).map(|one| set(&one, &Scope::row(asks))).transpose()
}

/// `"absent"`, or `{"version": n}`.
fn expected(at: &At<'_>) -> Result<Found, Misread> {
    let expected = "\"absent\" or {version: NUMBER}";
    if at.json == "absent" {
        return Ok(Found::Absent);
    }
    at.only(expected, &["version"])?;
    let version = at.need("version", "the version of an earlier answer")?;
    version.json.as_u64().map(Found::Version).ok_or_else(|| version.misread("the version of an earlier answer"))
}

/// `created`, `updated` or an index's name; a `-` before it turns it round.
fn order(at: &At<'_>) -> Result<Order, Misread> {
    let Some(at) = at.get("order") else { return Ok(Order::default()) };
    let expected = "created, updated or the name of an index, with a - before it for the last first";
    let text = at.text(expected)?;
    let (name, descending) = text.strip_prefix('-').map_or((text, false), |name| (name, true));
    let by = match name {
        "created" => OrderBy::Created,
        "updated" => OrderBy::Updated,
        index => OrderBy::Index(index.parse().map_err(|_| at.misread(expected))?),
    };
    Ok(Order { by, descending })
}

/// The kernel refuses what is out of its bounds; here it must be a number that it can be asked for.
fn limit(at: &At<'_>, default: u32) -> Result<u32, Misread> {
    let Some(at) = at.get("limit") else { return Ok(default) };
    let number = at.json.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| at.misread(format!("a limit of 1 to {ROWS_MAX} rows (rows_max)")))
}

fn fields(at: &At<'_>) -> Result<Vec<String>, Misread> {
    let Some(at) = at.get("return") else { return Ok(Vec::new()) };
    let expected = "a list of the value's own fields, or none at all for the whole value";
    let names = at.each(expected, |one| Ok(one.text("a field of the value")?.to_owned()))?;
    match at.json {
        Json::Array(items) if items.is_empty() => Err(at.misread(expected)),
        _ => Ok(names),
    }
}
