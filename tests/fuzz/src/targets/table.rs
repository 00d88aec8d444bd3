//! Tables: every problem has a place, and what is accepted is a table whose claims are claims.

use super::holds;
use super::manifest::{place, shown};
use crate::target::{Broken, Seen, Target};
use interlock_kernel::doc::Doc;
use interlock_kernel::limits::{INDEX_FIELDS_MAX, INDEXES_MAX, ROW_MS_MAX, ROW_MS_MIN};
use interlock_kernel::record::{Key, Record, TableSpec};
use interlock_kernel::table::{ClaimSpec, Table};
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Mutation, Root, Roots};
use interlock_manifest::{CompiledTable, Severity, TABLE_SCHEMA, parse_table};
use std::sync::{Arc, LazyLock};

/// See the module.
pub(crate) struct Tables;

const WORDS: &str = "\
    table¦owner¦schema¦indexes¦claim¦ttl¦access¦fields¦tie¦status¦held¦where¦set¦release¦on_end¦reaper¦after¦from¦\
    attempts¦dead¦clients¦machines¦created¦updated¦keep¦insert¦change¦get¦query¦put¦update¦upsert¦delete¦field¦op¦\
    value¦all¦any¦json¦increment¦append¦max¦min¦remove¦eq¦ne¦lt¦ge¦in¦exists¦contains¦pending¦in_flight¦row¦row.a¦\
    a.b¦[0]¦now¦now-5m¦execution¦event.x¦1s¦366d¦5m¦true¦false¦{}¦[]¦{ ¦ }¦[[¦]]¦\"\"¦\"status\"¦type¦object¦string¦\
    properties¦additionalProperties¦required¦enum¦const¦$ref¦#/$defs/a¦$defs¦minimum¦= ¦.¦\n¦, ¦\u{0}¦é¦# ";

/// The schema for editors, compiled as any author's schema is.
static FOR_EDITORS: LazyLock<Option<CompiledTable>> = LazyLock::new(|| {
    let (table, _) = parse_table("editors", "table = \"t\"\nowner = \"o\"\n").ok()?;
    CompiledTable::compile(&Table { schema: Some(Doc::parse(TABLE_SCHEMA).ok()?), ..table }).ok()
});

impl Target for Tables {
    fn name(&self) -> &'static str {
        "table"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let text = String::from_utf8_lossy(input);
        let (table, report) = match parse_table("t.table.toml", &text) {
            Ok((table, report)) => (Some(table), report),
            Err(report) => (None, *report),
        };
        let mut seen = Seen::default();
        for problem in &report.problems {
            place(problem, &text)?;
            seen.note(&problem.code);
            problem.message.split(": ").for_each(|part| seen.say(part));
            seen.say(&problem.remedy);
        }
        shown(&report)?;
        let errors = report.count(Severity::Error);
        let whole = errors == 0 && !report.incomplete;
        holds!(table.is_some() == whole, "{errors} errors, and a table: {}", table.is_some());
        let Some(table) = table else { return Ok(seen) };
        seen.note(&"accepted");
        let again = parse_table("another name", &text).ok().map(|(table, _)| table);
        holds!(again.as_ref() == Some(&table), "the same text is another table the second time");
        relied_on(&table)?;
        claimed(&table.claim, &mut seen)?;
        for_editors(&text)?;
        stored(table)?;
        Ok(seen)
    }
}

/// What the kernel relies on without looking again.
fn relied_on(table: &Table) -> Result<(), Broken> {
    CompiledTable::compile(table).map_err(|why| format!("accepted, and yet {why}"))?;
    holds!(table.indexes.len() <= INDEXES_MAX, "{} indexes", table.indexes.len());
    for (name, index) in &table.indexes {
        holds!((1..=INDEX_FIELDS_MAX).contains(&index.fields.len()), "{name} has {} fields", index.fields.len());
        let fields = || index.fields.iter().all(|field| field.root == Root::Row && !field.segments.is_empty());
        holds!(fields(), "{name} orders by what is no field of a row");
    }
    let claim = &table.claim;
    let changes = [&claim.set, &claim.release].into_iter().chain(claim.reaper.as_ref().map(|reaper| &reaper.dead));
    for one in changes.flatten() {
        holds!(one.field.root == Root::Row, "{} is no field of a row", one.field);
    }
    let after = claim.reaper.as_ref().map(|reaper| reaper.after_ms);
    for ms in after.into_iter().chain(table.ttl.map(|ttl| ttl.ms)) {
        holds!((ROW_MS_MIN..=ROW_MS_MAX).contains(&ms), "{ms} ms");
    }
    Ok(())
}

/// A row that a claim has marked counts as claimed.
fn claimed(claim: &ClaimSpec, seen: &mut Seen) -> Result<(), Broken> {
    let mut row = serde_json::json!({});
    let roots = Roots { execution: Some("m/k@1#1"), now: Some(WallTime(0)), ..Roots::default() };
    let apply = |one: &Mutation| one.apply(&mut row, &roots).is_ok();
    if claim.set.iter().all(apply) {
        seen.note(&"claimed");
        holds!(claim.is_held(&row), "claimed, and it does not count as that: {row} by {claim:?}");
    }
    Ok(())
}

fn stored(table: Table) -> Result<(), Broken> {
    let key = Key::TableSpec(table.name.clone(), 1);
    let spec = TableSpec { number: 1, table, source: String::new(), declared: WallTime(0) };
    let record = Record::TableSpec(Arc::new(spec));
    let read = Record::decode(&key, &record.encode(&key)).map_err(|corrupt| corrupt.to_string())?;
    holds!(read == record, "the stored table is another one: {record:?}");
    Ok(())
}

/// What the parser takes, an editor does not mark.
fn for_editors(text: &str) -> Result<(), Broken> {
    let schema = FOR_EDITORS.as_ref().ok_or("the schema for editors does not compile")?;
    let Ok(value) = toml::from_str::<serde_json::Value>(text) else { return Ok(()) };
    let judged = schema.check(&Doc::new(value));
    holds!(judged.is_ok(), "the schema for editors refuses what is accepted: {judged:?}");
    Ok(())
}
