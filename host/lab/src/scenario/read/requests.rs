//! What targets reply, and which requests must have been made.

use super::{NOTHING, Reader, literal_text};
use crate::receiver::Reply;
use crate::scenario::{AtMost, Made, Replies, keys};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::Name;
use interlock_manifest::reading::{Code, Log, Node, Table, list, suggest};

/// Times and counts: more than any story has.
const COUNT_MAX: u64 = 100_000;

/// What happens to a request besides an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Lost,
    Down,
    Hang,
}

const WHATS: [(&str, What); 3] = [("lost", What::Lost), ("down", What::Down), ("hang", What::Hang)];

impl Reader<'_> {
    pub(super) fn replies(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Replies> {
        let table = node.table(&keys::REPLY, log)?;
        let target = self.target(&table, log);
        let what = table.get("what").map(|node| node.choice(&WHATS, log));
        let status = table.get("status").map(|node| node.integer(100..=599, log));
        let body = table.get("body").map(|node| node.json(log).map(Doc::new));
        let times = number(&table, "times", 1, log);
        // What is written and cannot be read was reported.
        let what = what.map_or(Some(None), |read| read.map(|what| Some(what.value)))?;
        let status =
            status.map_or(Some(None), |read| read.and_then(|status| u16::try_from(status.value).ok()).map(Some))?;
        let body = body.map_or(Some(None), |read| read.map(Some))?;
        if let (Some(What::Down | What::Hang), Some(key)) =
            (what, table.written().into_iter().find(|key| matches!(key.value, "status" | "body")))
        {
            let message = format!("`{}` has an answer, and nobody answers", table.path);
            log.add(Code::BadValue, &key.at, message, "take one of the two out");
            return None;
        }
        let status = status.unwrap_or(200);
        let reply = match what {
            None => Reply::Answer { status, body },
            Some(What::Lost) => Reply::Lost { status, body },
            Some(What::Down) => Reply::Down,
            Some(What::Hang) => Reply::Hang,
        };
        Some(Replies { target: target?, reply, times })
    }

    /// The requests that must have been made, in order.
    pub(super) fn made(&self, node: &Node<'_>, log: &mut Log<'_>) -> Vec<Made> {
        let items = node.one_or_more();
        items.iter().filter_map(|item| self.one_made(item, log)).collect()
    }

    fn one_made(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Made> {
        let table = node.table(&keys::MADE, log)?;
        let url = table.get("url").and_then(|node| literal_text(&node, log));
        let body = table.get("body").and_then(|node| node.json(log)).map(Doc::new);
        let tries = number(&table, "tries", 1, log);
        Some(Made { target: self.target(&table, log)?, url, body, tries })
    }

    pub(super) fn at_most(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<AtMost> {
        let table = node.table(&keys::AT_MOST, log)?;
        let most = number(&table, "at_most", 0, log);
        if most.is_none() && table.get("at_most").is_none() {
            let remedy = "say how many may ever arrive: at_most = 1";
            log.add(NOTHING, &table.at, format!("`{}` promises nothing", table.path), remedy);
        }
        Some(AtMost { target: self.target(&table, log)?, at_most: most? })
    }

    fn target(&self, table: &Table<'_>, log: &mut Log<'_>) -> Option<Name> {
        let known = || self.machine.targets.keys().map(Name::as_str);
        let names: Vec<&str> = known().collect();
        let remedy = match names.first() {
            Some(first) => format!("name it: target = \"{first}\""),
            None => "this machine has no targets".to_owned(),
        };
        let text = table.need("target", &remedy, log)?.text(log)?;
        let found = self.machine.targets.keys().find(|name| name.as_str() == text.value);
        if found.is_none() {
            let message = format!("the machine has no target `{}`", text.value);
            log.add(
                Code::UnknownTarget,
                &text.at,
                message,
                suggest(text.value, known(), "this machine has no targets"),
            )
            .expected(if names.is_empty() { "a machine with targets".to_owned() } else { list(&names) });
        }
        found.cloned()
    }
}

fn number(table: &Table<'_>, key: &str, least: u64, log: &mut Log<'_>) -> Option<u32> {
    let found = table.get(key).and_then(|node| node.integer(least..=COUNT_MAX, log));
    found.and_then(|number| u32::try_from(number.value).ok())
}
