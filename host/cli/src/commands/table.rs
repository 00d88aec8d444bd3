//! `interlock table ...`

use super::{input, watch};
use crate::args::{Declare, Table, TableList};
use crate::client::Client;
use crate::failed::Failed;
use crate::out::Out;
use crate::show;
use interlock_daemon::api::WatchRows;
use interlock_manifest::parse_table;
use std::path::PathBuf;

/// Runs it.
pub(crate) async fn run(args: Table, client: &Client, out: Out) -> Result<(), Failed> {
    match args {
        Table::Create(args) => create(&args, client, out).await,
        Table::List(args) => list(args, client, out).await,
        Table::Show { table, manifest } => {
            let found = client.table(&table).await?;
            if manifest && !out.json {
                out.text(&found.manifest);
            } else {
                out.result(&found, |paint| show::declared_table(&found, paint));
            }
            Ok(())
        }
        Table::Drop { table } => {
            let dropping = client.drop_table(&table).await?;
            out.result(&dropping, |_| format!("{table}   goes, with {}\n", show::count(dropping.rows, "row")));
            Ok(())
        }
        Table::Watch { table, after } => watch(after, out, async |at| client.watch_table(&table, at).await, told).await,
    }
}

async fn create(args: &Declare, client: &Client, out: Out) -> Result<(), Failed> {
    let files = input::some_manifests(&args.paths, input::TABLE_ENDING)?;
    declare(&files, args.check_only, client, out).await
}

/// Declares tables, once all of them are sound.
///
/// # Errors
/// What is wrong with them, all of it shown; what the daemon says.
pub(crate) async fn declare(files: &[PathBuf], check_only: bool, client: &Client, out: Out) -> Result<(), Failed> {
    for text in input::sound(files, parse_table, out)? {
        let declared = client.declare(&text, check_only).await?;
        out.result(&declared, |paint| show::declared(&declared, paint));
    }
    Ok(())
}

async fn list(args: TableList, client: &Client, out: Out) -> Result<(), Failed> {
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.after.map(|after| ("after", after)));
    let page = client.tables(&query).await?;
    out.result(&page, |_| show::tables(&page));
    if page.tables.is_empty() {
        out.hint("no table is declared: interlock table create FOLDER");
    }
    if let Some(next) = &page.next {
        out.hint(&format!("there may be more: --after {next}"));
    }
    Ok(())
}

fn told(name: &str, data: &str, out: Out) {
    let entry: Result<WatchRows, _> = serde_json::from_str(data);
    if let (Ok(entry), "rows") = (entry, name) {
        out.result(&entry, |_| show::watched_rows(&entry));
    }
}
