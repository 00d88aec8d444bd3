//! From the TOML tree to a [`Draft`]: every value is read where it stands, nothing is compared with
//! anything else yet.

pub(crate) mod field;
mod lease;
mod path;
mod state;
mod target;
mod timer;

pub(crate) use timer::zone_name;

pub(crate) use path::Paths;

use crate::draft::{ContractDraft, Draft, EventDraft, Schema, Written};
use crate::keys;
use crate::log::{Log, Spot, excerpt};
use crate::node::{DURATION_MS_MAX, Node, Table, name};
use crate::problem::Code;
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{BadName, Name};
use interlock_kernel::limits::{
    DEDUP_MS_DEFAULT, DEDUP_MS_MAX, DEDUP_MS_MIN, DOCUMENT_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX, TEXT_BYTES_MAX,
};
use interlock_kernel::machine::{ApplyPolicy, HOST_EVENTS, KILLED, MachineLimits, OnBusy, Revisions};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use toml::de::DeTable;

/// Linear memory of a step: less than one page does nothing, more than 4 GiB no 32-bit memory has.
const MEMORY_BYTES: RangeInclusive<u64> = (64 << 10)..=(4 << 30);
/// Transitions in a row: one is the least an execution can make.
const TRANSITIONS: RangeInclusive<u64> = 1..=1_000_000;
/// Shortest wait, deadline or window a manifest may name, in ms: the host's clocks tick in ms.
const DURATION_MS_MIN: u64 = 1;

/// Any duration that is not nothing.
const fn any_duration() -> RangeInclusive<u64> {
    DURATION_MS_MIN..=DURATION_MS_MAX
}

pub(crate) fn manifest<'a>(entries: &'a DeTable<'a>, log: &mut Log<'_>) -> Draft<'a> {
    let table = Table::root(entries, &keys::MANIFEST, log);
    let machine = table.need("machine", "name it: machine = \"my-machine\"", log).and_then(|node| node.name(log));
    let owner = table.need("owner", "say who answers for it: owner = \"team <mail@example.com>\"", log);
    let initial = table.need("initial", "name the rest state entities begin in: initial = \"ready\"", log);
    let mut unread = Vec::new();
    let calendars = table.get("calendars").map(|node| timer::calendars(&node, log)).unwrap_or_default();
    let states = match table.need("states", "add at least a rest state: [states.ready] kind = \"rest\"", log) {
        Some(node) => states(&node, &calendars, &mut unread, log),
        None => Vec::new(),
    };
    timer::unused(&calendars, log);
    let initial = initial.and_then(|node| {
        let found = node.name(log);
        if found.is_none() {
            unread.extend(node.as_text());
        }
        found
    });
    Draft {
        machine: machine.map(|name| name.value),
        owner: owner.and_then(|node| owner_text(&node, "machine", log)),
        has_component: table.get("component").is_some(),
        component: table.get("component").and_then(|node| component(&node, log)),
        initial,
        revisions: choice(&table, "revisions", &[("newest", Revisions::Newest), ("pinned", Revisions::Pinned)], log)
            .unwrap_or(Revisions::Newest),
        apply: choice(
            &table,
            "apply",
            &[("if-match", ApplyPolicy::IfMatch), ("last-writer", ApplyPolicy::LastWriter)],
            log,
        )
        .unwrap_or(ApplyPolicy::IfMatch),
        labels: table.get("labels").map(|node| labels(&node, log)).unwrap_or_default(),
        desired: contract(table.get("desired"), &keys::DOCUMENT, log),
        data: contract(table.get("data"), &keys::DOCUMENT, log),
        outputs: contract(table.get("outputs"), &keys::OUTPUTS, log),
        events: table.get("events").map(|node| events(&node, &mut unread, log)).unwrap_or_default(),
        states,
        targets: table.get("targets").map(|node| target::read(&node, &mut unread, log)).unwrap_or_default(),
        leases: table.get("leases").map(|node| lease::granted(&node, log)).unwrap_or_default(),
        tables: table.get("tables").map(|node| names(&node, "a table", log)).unwrap_or_default(),
        peers: table.get("peers").map(|node| names(&node, "a machine", log)).unwrap_or_default(),
        limits: table.get("limits").and_then(|node| limits(&node, log)).unwrap_or_default(),
        unread,
    }
}

pub(crate) fn choice<T: Copy>(
    table: &Table<'_>,
    key: &str,
    choices: &[(&'static str, T)],
    log: &mut Log<'_>,
) -> Option<T> {
    table.get(key)?.choice(choices, log).map(|found| found.value)
}

/// A list of names, each once.
fn names<T>(node: &Node<'_>, what: &str, log: &mut Log<'_>) -> Vec<Spot<T>>
where
    T: FromStr<Err = BadName> + PartialEq + Display,
{
    let Some(items) = node.as_items() else {
        node.wrong("an array", "write names in quotes, in square brackets", log);
        return Vec::new();
    };
    if items.is_empty() {
        let message = format!("`{}` is empty", node.path);
        log.add(Code::BadValue, &node.at(), message, format!("name {what}, or leave it out"));
    }
    let mut found: Vec<Spot<T>> = Vec::new();
    for item in &items {
        let Some(one) = item.name::<T>(log) else { continue };
        if found.iter().any(|other| other.value == one.value) {
            let message = format!("`{}` names `{}` twice", node.path, one.value);
            log.add(Code::BadValue, &one.at, message, "name it once");
            continue;
        }
        found.push(one);
    }
    found
}

pub(crate) fn owner_text(node: &Node<'_>, what: &str, log: &mut Log<'_>) -> Option<String> {
    let text = node.text(log)?;
    let good = !text.value.trim().is_empty()
        && text.value.len() <= TEXT_BYTES_MAX
        && !text.value.chars().any(char::is_control);
    if !good {
        log.add(
            Code::BadValue,
            &text.at,
            format!("`owner` does not say who answers for the {what}"),
            "write a team or person and how to reach them",
        )
        .expected(format!("1 to {TEXT_BYTES_MAX} bytes without control characters"))
        .got(format!("{:?}", excerpt(text.value)));
    }
    good.then(|| text.value.to_owned())
}

/// A path beside the manifest: it is the same wherever the folder is copied to.
fn component(node: &Node<'_>, log: &mut Log<'_>) -> Option<Spot<String>> {
    let text = node.text(log)?;
    let good = !text.value.is_empty()
        && !text.value.starts_with('/')
        && !text.value.contains(['\\', ':'])
        && !text.value.chars().any(char::is_control);
    if !good {
        log.add(
            Code::BadValue,
            &text.at,
            "`component` is not a relative path",
            "name the file as seen from the manifest, with forward slashes: component = \"step.wasm\"",
        )
        .expected("a relative path")
        .got(format!("{:?}", excerpt(text.value)));
    }
    good.then(|| node.spot(text.value.to_owned()))
}

pub(crate) fn labels(node: &Node<'_>, log: &mut Log<'_>) -> BTreeMap<String, String> {
    let entries = node.entries(log);
    if entries.len() > LABELS_MAX {
        log.add(Code::TooLarge, &node.key, format!("{} labels", entries.len()), format!("keep at most {LABELS_MAX}"));
    }
    let mut found = BTreeMap::new();
    for (key, node) in entries {
        let Some(text) = node.text(log) else { continue };
        if key.value.is_empty() || key.value.len() > LABEL_BYTES_MAX || text.value.len() > LABEL_BYTES_MAX {
            let remedy = format!("keep names at 1 to {LABEL_BYTES_MAX} bytes and values at most as long");
            log.add(
                Code::TooLarge,
                &key.at,
                format!("the label `{}` is empty or too long", excerpt(key.value)),
                remedy,
            );
        }
        found.insert(key.value.to_owned(), text.value.to_owned());
    }
    found
}

fn contract<'a>(node: Option<Node<'a>>, keys: &keys::Keys, log: &mut Log<'_>) -> ContractDraft<'a> {
    let table = node.as_ref().and_then(|node| node.table(keys, log));
    let default = match table.as_ref().and_then(|table| table.get("default")) {
        Some(node) if node.as_table().is_some() => document(node, log),
        Some(node) => {
            node.wrong("a table", "write the document as a table", log);
            None
        }
        None => None,
    };
    ContractDraft {
        schema: match (&node, &table) {
            (Some(_), None) => Schema::Unread,
            _ => schema(table.as_ref().and_then(|table| table.get("schema")), log),
        },
        at: node.map(|node| node.key),
        default,
    }
}

fn document<'a>(node: Node<'a>, log: &mut Log<'_>) -> Option<Written<'a>> {
    let doc = Doc::new(node.json(log)?);
    if doc.text().len() > DOCUMENT_BYTES_MAX {
        let message = format!("`{}` is {} bytes of JSON", node.path, doc.text().len());
        log.add(Code::TooLarge, &node.key, message, format!("keep it at most {DOCUMENT_BYTES_MAX} bytes"));
        return None;
    }
    Some(Written { doc, node })
}

pub(crate) fn schema<'a>(node: Option<Node<'a>>, log: &mut Log<'_>) -> Schema<'a> {
    let Some(node) = node else { return Schema::None };
    let is_schema = node.as_table().is_some() || matches!(node.value.get_ref(), toml::de::DeValue::Boolean(_));
    if !is_schema {
        node.wrong("a JSON Schema", "write it as a table, or as `false` if there is never such a document", log);
        return Schema::Unread;
    }
    document(node, log).map_or(Schema::Unread, Schema::Known)
}

fn events<'a>(node: &Node<'a>, unread: &mut Vec<&'a str>, log: &mut Log<'_>) -> Vec<EventDraft<'a>> {
    let mut found = Vec::new();
    for (key, node) in node.entries(log) {
        let Some(table) = node.table(&keys::EVENT, log) else {
            unread.push(key.value);
            continue;
        };
        let on_busy = choice(&table, "on_busy", &[("reject", OnBusy::Reject), ("queue", OnBusy::Queue)], log);
        let dedup = table.get("dedup").and_then(|node| node.duration(DEDUP_MS_MIN..=DEDUP_MS_MAX, log));
        let schema = schema(table.get("schema"), log);
        let Some(name) = name::<Name>(&key, log) else {
            unread.push(key.value);
            continue;
        };
        if HOST_EVENTS.contains(&name.value) {
            log.add(
                Code::ReservedName,
                &name.at,
                format!("the host raises `{}` itself: clients cannot send it", name.value),
                format!("take it out here; a state may take it without declaring it: [states.x.on.{}]", name.value),
            );
            continue;
        }
        found.push(EventDraft {
            name,
            on_busy: on_busy.unwrap_or(OnBusy::Reject),
            dedup_ms: dedup.map_or(DEDUP_MS_DEFAULT, |dedup| dedup.value),
            schema,
        });
    }
    found
}

fn states<'a>(
    node: &Node<'a>,
    calendars: &[timer::Calendar],
    unread: &mut Vec<&'a str>,
    log: &mut Log<'_>,
) -> Vec<crate::draft::StateDraft> {
    let entries = node.entries(log);
    if entries.is_empty() && node.as_table().is_some() {
        log.add(
            Code::MissingKey,
            &node.key,
            "there is no state",
            "add at least a rest state: [states.ready] kind = \"rest\"",
        );
    }
    let mut found = Vec::new();
    for (key, node) in entries {
        let table = node.table(&keys::STATE, log);
        let name = name::<Name>(&key, log);
        // Read without a good name too: its other mistakes are reported all the same.
        let placeholder = || Spot { value: KILLED.clone(), at: key.at.clone() };
        let state = table.map(|table| state::read(name.clone().unwrap_or_else(placeholder), &table, calendars, log));
        match (name, state) {
            (Some(name), _) if name.value == *KILLED => {
                log.add(
                    Code::ReservedName,
                    &name.at,
                    "every machine has the final state `killed`: it belongs to the host",
                    "choose another name; an operator's kill enters `killed` by itself",
                );
                unread.push(key.value);
            }
            (Some(_), Some(state)) => found.push(state),
            _ => unread.push(key.value),
        }
    }
    found
}

fn limits(node: &Node<'_>, log: &mut Log<'_>) -> Option<MachineLimits> {
    let table = node.table(&keys::LIMITS, log)?;
    let default = MachineLimits::default();
    let memory = table.get("memory").and_then(|node| node.size(MEMORY_BYTES, log));
    let transitions = table.get("transitions").and_then(|node| node.integer(TRANSITIONS, log));
    let execution = table.get("execution").and_then(|node| node.duration(any_duration(), log));
    let history = table.get("history").and_then(|node| node.duration(any_duration(), log));
    Some(MachineLimits {
        memory_bytes: memory.map_or(default.memory_bytes, |memory| memory.value),
        transitions: transitions.and_then(|count| u32::try_from(count.value).ok()).unwrap_or(default.transitions),
        execution_ms: execution.map(|execution| execution.value),
        history_ms: history.map_or(default.history_ms, |history| history.value),
    })
}
