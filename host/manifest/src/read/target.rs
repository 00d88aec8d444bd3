//! `[targets]`: where effects may go, and how.

use super::path::Paths;
use super::state::retry;
use super::{choice, field};
use crate::draft::TargetDraft;
use crate::keys;
use crate::log::{Log, Spot, excerpt};
use crate::node::{Node, Table, name};
use crate::problem::Code;
use interlock_courier::{Method, Pattern, guest_may_set};
use interlock_kernel::ids::{LeaseName, Name};
use interlock_kernel::limits::{ANSWER_BYTES_MAX, EFFECT_TIMEOUT_MS_DEFAULT, EFFECT_TIMEOUT_MS_MAX};
use interlock_kernel::machine::{OnLate, Retry, SecretUse, Target};
use interlock_kernel::value::Value;

/// Tries of an effect when its target does not say: back-off up to a minute for about a quarter of an hour.
const ATTEMPTS_DEFAULT: u32 = 20;

pub(super) fn read<'a>(node: &Node<'a>, unread: &mut Vec<&'a str>, log: &mut Log<'_>) -> Vec<TargetDraft> {
    let mut found = Vec::new();
    for (key, node) in node.entries(log) {
        let Some(table) = node.table(&keys::TARGET, log) else {
            unread.push(key.value);
            continue;
        };
        let target = one(&table, log);
        match (name::<Name>(&key, log), target) {
            (Some(name), Some(target)) => {
                let [fence_at, late_at] = ["fence", "on_late"].map(|key| table.get(key).map(|node| node.at()));
                found.push(TargetDraft { name, fence_at, late_at, compensates: compensates(&table), target });
            }
            _ => unread.push(key.value),
        }
    }
    found
}

fn one(table: &Table<'_>, log: &mut Log<'_>) -> Option<Target> {
    let method = match table.get("method") {
        None => Some(Method::Post),
        Some(node) => method(&node, log),
    };
    let url = table
        .need("url", "say where it goes: url = \"https://tickets.example.com/v1/{project}\"", log)
        .and_then(|node| url(&node, log));
    let most = EFFECT_TIMEOUT_MS_MAX;
    let timeout = table.get("timeout").and_then(|node| node.duration(1..=most, log));
    let default = Retry { attempts: ATTEMPTS_DEFAULT, ..Retry::default() };
    let answer = table.get("answer_max").and_then(|node| node.size(0..=ANSWER_BYTES_MAX, log));
    let secret = table.get("secret").map(|node| secret(&node, log));
    let fence = table.get("fence").map(|node| fence(&node, log));
    let on_late = table.get("on_late").map(|node| on_late(&node, log));
    let skips = choice(table, "on_dead_letter", &[("hold", false), ("skip", true)], log);
    Some(Target {
        method: method?.as_str().to_owned(),
        url: url?,
        timeout_ms: timeout.map_or(EFFECT_TIMEOUT_MS_DEFAULT, |timeout| timeout.value),
        retry: table.get("retry").map_or(default, |node| Retry { ..retry(&node, log) }),
        // A part that cannot be read was reported, and the whole manifest is refused for it.
        secret: secret.flatten(),
        fence: fence.flatten(),
        on_late: on_late.flatten().unwrap_or(OnLate::Record),
        skips_dead: skips.unwrap_or(false),
        answer_bytes_max: answer.map_or(ANSWER_BYTES_MAX, |answer| answer.value),
    })
}

fn method(node: &Node<'_>, log: &mut Log<'_>) -> Option<Method> {
    let text = node.text(log)?;
    text.value
        .parse()
        .map_err(|why| {
            let remedy = "write one of GET, HEAD, POST, PUT, PATCH, DELETE";
            log.add(Code::BadValue, &text.at, format!("`{}`: {why}", node.path), remedy).got(excerpt(text.value));
        })
        .ok()
}

fn url(node: &Node<'_>, log: &mut Log<'_>) -> Option<String> {
    let text = node.text(log)?;
    let mut bad = |message: String, remedy: &str| {
        log.add(Code::BadValue, &text.at, message, remedy).got(excerpt(text.value));
    };
    match Pattern::parse(text.value) {
        Ok(pattern) if pattern.is_open() => {
            bad(
                format!("`{}` means many URLs, and a request goes to one", node.path),
                "write placeholders that the step fills: https://host/v1/{project}",
            );
            None
        }
        Ok(_) => Some(text.value.to_owned()),
        Err(why) => {
            bad(format!("`{}`: {why}", node.path), "write it like https://host/v1/{project}/tickets");
            None
        }
    }
}

fn secret(node: &Node<'_>, log: &mut Log<'_>) -> Option<SecretUse> {
    let table = node.table(&keys::SECRET, log)?;
    let named = table.need("name", "name the operator's secret: name = \"tickets\"", log)?.text(log)?;
    let header = table.get("header").and_then(|node| node.text(log)).map_or("Authorization", |text| text.value);
    let prefix = table.get("prefix").and_then(|node| node.text(log)).map_or("", |text| text.value);
    let own = |header: &str| {
        let header = header.to_ascii_lowercase();
        header.starts_with("interlock-") || matches!(header.as_str(), "idempotency-key" | "traceparent" | "host")
    };
    // What carries credentials is what a guest may not set; the rest of what it may not is not for a secret either.
    let credentials = ["authorization", "proxy-authorization", "cookie"];
    let fits = credentials.contains(&header.to_ascii_lowercase().as_str()) || guest_may_set(header).is_ok();
    if own(header) || !fits {
        let at = table.get("header").map_or_else(|| node.at(), |node| node.at());
        let message = format!("`{}` puts the secret into {}, which is the host's", node.path, excerpt(header));
        log.add(Code::BadValue, &at, message, "use Authorization, or a header of the target's own");
        return None;
    }
    Some(SecretUse { name: named.value.to_owned(), header: header.to_owned(), prefix: prefix.to_owned() })
}

fn fence(node: &Node<'_>, log: &mut Log<'_>) -> Option<Value> {
    if node.as_text() == Some("entity") {
        return None;
    }
    let found: Spot<Value> = field::value(Paths::Documents, node, log)?;
    if let Value::Json(literal) = &found.value {
        let Some(name) = literal.value().as_str() else {
            node.wrong("the name of a lease", "write \"cluster/a\", { from = \"data.cluster\" } or \"entity\"", log);
            return None;
        };
        if let Err(bad) = name.parse::<LeaseName>() {
            let message = format!("{:?} is not a lease name", excerpt(name));
            log.add(Code::BadName, &found.at, message, "use printable text").expected(bad.expected).got(bad.got);
            return None;
        }
    }
    Some(found.value)
}

fn on_late(node: &Node<'_>, log: &mut Log<'_>) -> Option<OnLate> {
    if node.as_table().is_none() {
        return node
            .choice(&[("record", 0_u8), ("event", 1)], log)
            .map(|found| if found.value == 1 { OnLate::Event } else { OnLate::Record });
    }
    let table = node.table(&keys::ON_LATE, log)?;
    let undo = table.need("compensate", "name the target that undoes it", log)?.name::<Name>(log)?;
    Some(OnLate::Compensate(undo.value))
}

/// Where the name of a target stands that undoes another.
fn compensates(table: &Table<'_>) -> Option<crate::log::Span> {
    Some(table.get("on_late")?.part("compensate")?.at())
}
