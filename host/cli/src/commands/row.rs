//! `interlock row ...`

mod words;

use self::words::{changes, filter};
use super::input::{document, text};
use crate::args::{Caller, Claim, Delete, Put, Query, Row, Transact, UpdateRow, Upsert};
use crate::client::{Asking, Client, Expected};
use crate::failed::{Failed, Silence};
use crate::out::Out;
use crate::show;
use interlock_daemon::api::{
    ClaimRequest, QueryRequest, RowDeleted, RowUpdated, RowWritten, RowsClaimed, Transacted, UpdateRequest,
    UpsertRequest,
};
use interlock_kernel::doc::exact;
use serde_json::{Value, json};

/// Runs it.
pub(crate) async fn run(args: Row, client: &Client, out: Out) -> Result<(), Failed> {
    match args {
        Row::Get { table, key } => {
            let row = client.row(&table, &key).await?;
            out.result(&row, |paint| show::row(table.as_str(), &row, paint));
            Ok(())
        }
        Row::Query(args) => query(args, client, out).await,
        Row::Put(args) => put(args, client, out).await,
        Row::Update(args) => update(args, client, out).await,
        Row::Claim(args) => claim(args, client, out).await,
        Row::Upsert(args) => upsert(args, client, out).await,
        Row::Delete(args) => delete(args, client, out).await,
        Row::Transact(args) => transact(args, client, out).await,
    }
}

fn asking(caller: Caller) -> Asking {
    Asking { label: caller.label, id: caller.id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string()) }
}

/// An answer; or, where none came, how to ask for it again.
fn answered<T>(answer: Result<T, Failed>, asking: &Asking, out: Out) -> Result<T, Failed> {
    if let Err(Failed::Unreachable { why: Silence::Broken(_), .. }) = &answer {
        let id = &asking.id;
        out.hint(&format!("whether it was done is not known; the same id is safe to send again: --id {id}"));
    }
    answer
}

fn some(fields: Vec<String>) -> Option<Vec<String>> {
    (!fields.is_empty()).then_some(fields)
}

async fn query(args: Query, client: &Client, out: Out) -> Result<(), Failed> {
    let which = args.which;
    let request = QueryRequest {
        filter: filter(&which.filter)?,
        order: which.order,
        limit: which.limit,
        after: args.after,
        fields: some(which.fields),
    };
    let page = client.query_rows(&args.table, &request, args.label.as_deref()).await?;
    out.result(&page, |_| show::rows(&page.rows));
    if let Some(next) = &page.next {
        out.hint(&format!("there may be more: --after '{next}'"));
    }
    Ok(())
}

async fn put(args: Put, client: &Client, out: Out) -> Result<(), Failed> {
    let value = document("value", &args.value)?;
    let expected = match (args.if_version, args.if_absent) {
        (Some(version), _) => Expected::Version(version),
        (None, true) => Expected::Absent,
        (None, false) => Expected::Any,
    };
    let asking = asking(args.caller);
    let put = client.put_row((&args.table, &args.key), &value, expected, &asking).await;
    let written: RowWritten = answered(put, &asking, out)?;
    out.result(&written, |paint| show::written(args.table.as_str(), &written, paint));
    Ok(())
}

async fn update(args: UpdateRow, client: &Client, out: Out) -> Result<(), Failed> {
    let request = UpdateRequest {
        key: args.key.as_str().into(),
        filter: filter(&args.filter)?,
        set: changes("--set", &args.set)?.unwrap_or_default(),
        fields: some(args.fields),
        must: args.must,
    };
    let asking = asking(args.caller);
    let updated = client.on_rows((&args.table, "update"), &request, &asking).await;
    let updated: RowUpdated = answered(updated, &asking, out)?;
    out.result(&updated, |paint| show::updated(args.table.as_str(), &updated, paint));
    Ok(())
}

async fn claim(args: Claim, client: &Client, out: Out) -> Result<(), Failed> {
    let which = args.which;
    let request = ClaimRequest {
        filter: filter(&which.filter)?,
        set: changes("--set", &args.set)?,
        order: which.order,
        limit: which.limit,
        delete: args.delete,
        fields: some(which.fields),
        must: args.must,
    };
    let asking = asking(args.caller);
    let claimed: RowsClaimed = answered(client.on_rows((&args.table, "claim"), &request, &asking).await, &asking, out)?;
    out.result(&claimed, |_| show::claimed(&claimed));
    if claimed.more {
        out.hint("it was cut by the bound on bytes: there is more to claim");
    }
    Ok(())
}

async fn upsert(args: Upsert, client: &Client, out: Out) -> Result<(), Failed> {
    let request = UpsertRequest {
        key: args.key.as_str().into(),
        insert: document("--insert", &args.insert)?.0.value().clone(),
        fill: changes("--fill", &args.fill)?,
        set: changes("--set", &args.set)?,
        fields: some(args.fields),
    };
    let asking = asking(args.caller);
    let upserted: RowWritten =
        answered(client.on_rows((&args.table, "upsert"), &request, &asking).await, &asking, out)?;
    out.result(&upserted, |paint| show::written(args.table.as_str(), &upserted, paint));
    Ok(())
}

/// A delete under a condition is an operation of a transaction.
async fn delete(args: Delete, client: &Client, out: Out) -> Result<(), Failed> {
    let mut op = json!({ "delete": args.table.as_str(), "key": args.key.as_str(), "must": args.must });
    if let Some(filter) = filter(&args.filter)? {
        op["where"] = filter;
    }
    let asking = asking(args.caller);
    let done: Transacted = answered(client.transact(&json!({ "ops": [op] }), &asking).await, &asking, out)?;
    let answer = done.answers.into_iter().next().unwrap_or_default();
    let deleted: RowDeleted = serde_json::from_value(answer).map_err(anyhow::Error::from)?;
    out.result(&deleted, |paint| show::deleted(args.table.as_str(), &deleted, paint));
    Ok(())
}

async fn transact(args: Transact, client: &Client, out: Out) -> Result<(), Failed> {
    let (place, text) = text("the request", &args.request)?;
    let request = exact(&text).map_err(|why| Failed::Input(format!("{place}: {why}")))?;
    let asking = asking(args.caller);
    let done: Transacted = answered(client.transact(&request, &asking).await, &asking, out)?;
    out.result(&done, |paint| show::transacted(&named(&request), &done, paint));
    Ok(())
}

/// Of each operation of a request, its kind and its table.
fn named(request: &Value) -> Vec<(String, String)> {
    let kinds = ["claim", "get", "put", "update", "upsert", "delete"];
    let ops = request["ops"].as_array().into_iter().flatten();
    ops.map(|op| {
        let kind = kinds.into_iter().find(|kind| op.get(kind).is_some()).unwrap_or_default();
        (kind.to_owned(), op[kind].as_str().unwrap_or_default().to_owned())
    })
    .collect()
}
