//! Timers: when each is due and what it does; and the calendars that several of them share.

use super::path::Paths;
use super::{any_duration, field};
use crate::calendar;
use crate::draft::{GuardDraft, MoveDraft, TimerDraft};
use crate::keys;
use crate::log::{Log, Spot, excerpt, suggest};
use crate::node::{Node, Table, name};
use crate::problem::Code;
use interlock_kernel::ids::Name;
use interlock_kernel::machine::KILLED;
use interlock_kernel::time;
use interlock_kernel::timer::{CalendarRule, Date, Days, Due, FirstDay};

/// Holidays of one list: a dozen a year for eighty years.
const HOLIDAYS_MAX: usize = 1_000;
/// Monday first, as bit 0 of a set of weekdays.
const WEEKDAYS: [(&str, u8); 7] =
    [("mon", 1), ("tue", 2), ("wed", 4), ("thu", 8), ("fri", 16), ("sat", 32), ("sun", 64)];
const SATURDAY_AND_SUNDAY: u8 = 32 | 64;
const EVERY_DAY: u8 = 127;

/// What several timers may share: the days on which nobody works.
#[derive(Debug)]
pub(super) struct Calendar {
    name: Spot<Name>,
    weekend: u8,
    holidays: Vec<Date>,
    used: std::cell::Cell<bool>,
}

/// `[calendars.berlin]`.
pub(super) fn calendars(node: &Node<'_>, log: &mut Log<'_>) -> Vec<Calendar> {
    let mut found = Vec::new();
    for (key, node) in node.entries(log) {
        let Some(table) = node.table(&keys::CALENDAR, log) else { continue };
        let weekend = table.get("weekend").and_then(|node| weekdays(&node, log));
        let holidays = table.get("holidays").map(|node| holidays(&node, log)).unwrap_or_default();
        let Some(name) = name(&key, log) else { continue };
        let weekend = weekend.unwrap_or(SATURDAY_AND_SUNDAY);
        found.push(Calendar { name, weekend, holidays, used: false.into() });
    }
    found
}

/// Reports the calendars no timer names.
pub(super) fn unused(calendars: &[Calendar], log: &mut Log<'_>) {
    for calendar in calendars.iter().filter(|calendar| !calendar.used.get()) {
        let message = format!("no timer uses the calendar `{}`", calendar.name.value);
        let remedy = format!("name it in a timer, calendar = \"{}\", or take it out", calendar.name.value);
        log.add(Code::UnusedKey, &calendar.name.at, message, remedy);
    }
}

/// A state's `after`.
pub(super) fn read(node: &Node<'_>, calendars: &[Calendar], log: &mut Log<'_>) -> Vec<TimerDraft> {
    let mut found = Vec::new();
    for (index, item) in node.one_or_more().iter().enumerate() {
        let Some(table) = item.table(&keys::TIMER, log) else { continue };
        // Without a good time or name the timer is kept for what its target says.
        let due = due(&table, calendars, log).unwrap_or(Spot { value: Due::After(1), at: item.key.clone() });
        let named = table.get("name").map(|node| node.name::<Name>(log));
        let (to, set) = (table.get("to"), table.get("set"));
        let then = MoveDraft {
            at: item.key.clone(),
            has_to: to.is_some(),
            to: to.and_then(|node| super::state::target(&node, log)),
            guard: GuardDraft::None,
            requires: Vec::new(),
            has_set: set.is_some(),
            set: set.map(|node| field::set(Paths::Documents, &node, log)).unwrap_or_default(),
        };
        // Named by position, not by length: a longer wait is still the same timer to a next revision.
        let name = match named {
            Some(name) => name,
            None if index == 0 => Some(spot_name(item, "after")),
            None => Some(spot_name(item, &format!("after-{}", index + 1))),
        };
        let name = name.unwrap_or_else(|| spot_name(item, "after"));
        found.push(TimerDraft { name, due: due.value, due_at: due.at, then });
    }
    found
}

/// A name the host gives; the texts above are names.
fn spot_name(node: &Node<'_>, text: &str) -> Spot<Name> {
    Spot { value: text.parse().unwrap_or_else(|_| KILLED.clone()), at: node.key.clone() }
}

/// Keys that each say on which day.
const DAY_KEYS: [&str; 3] = ["next", "every", "day"];
/// Keys that only a calendar rule has.
const OF_A_RULE: [&str; 4] = ["zone", "at_least", "calendar", "holidays"];

fn due(table: &Table<'_>, calendars: &[Calendar], log: &mut Log<'_>) -> Option<Spot<Due>> {
    let kinds: Vec<(&str, Node<'_>)> =
        ["wait", "due"].into_iter().chain(DAY_KEYS).filter_map(|key| Some((key, table.get(key)?))).collect();
    if let [(first, _), (second, node), ..] = kinds.as_slice() {
        let message = format!("`{first}` and `{second}` both say when the timer is due");
        log.add(Code::BadValue, &node.key, message, "keep one of them; a second timer may have the other");
        return None;
    }
    match kinds.first() {
        Some(("wait", node)) => {
            beside(table, "wait", &["at"], log);
            node.duration(any_duration(), log).map(|wait| Spot { value: Due::After(wait.value), at: wait.at })
        }
        Some(("due", node)) => {
            beside(table, "due", &["at"], log);
            if table.get("name").is_none() {
                table.need("name", "name it: the step says which timer it sets, name = \"reminder\"", log);
            }
            Some(node.spot(node.choice(&[("step", ())], log).map(|_| Due::Step)?))
        }
        Some((key, node)) => rule(table, key, node, calendars, log),
        None => instant(table, log),
    }
}

/// Reports keys that say nothing beside another.
fn beside(table: &Table<'_>, key: &str, more: &[&str], log: &mut Log<'_>) {
    for other in more.iter().chain(&OF_A_RULE).filter_map(|other| table.get(other)) {
        let name = other.path.rsplit('.').next().unwrap_or_default().to_owned();
        let message = format!("`{name}` says nothing beside `{key}`");
        log.add(Code::BadValue, &other.key, message, "take it out, or say the day: next, every or day");
    }
}

fn instant(table: &Table<'_>, log: &mut Log<'_>) -> Option<Spot<Due>> {
    let Some(at) = table.get("at") else {
        let remedy = "say how long after entry, wait = \"90s\"; or at which instant, at = \"data.renew_at\"; or on \
                      which day, next = \"business day\", at = \"09:00\", zone = \"Europe/Berlin\"; or leave it to \
                      the step, due = \"step\"";
        table.need("wait", remedy, log);
        return None;
    };
    if at.as_text().is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit())) {
        let message = format!("`{}` is a time of day, and nothing says of which day", at.path);
        let remedy = "say the day too: next = \"business day\", every = \"weekday\" or day = 1; an instant is named by \
                      its field: at = \"data.renew_at\"";
        log.add(Code::MissingKey, &at.at(), message, remedy);
        return None;
    }
    beside(table, "at", &[], log);
    Paths::Documents.field(&at.text(log)?, log).map(|path| Spot { value: Due::At(path.value), at: path.at })
}

fn rule(table: &Table<'_>, key: &str, node: &Node<'_>, calendars: &[Calendar], log: &mut Log<'_>) -> Option<Spot<Due>> {
    let at = table.need("at", "say at what time of the day: at = \"09:00\"", log);
    let at = at.and_then(|node| time_of_day(&node, log));
    let zone = table.need("zone", "say by whose clocks: zone = \"Europe/Berlin\", or \"UTC\"", log);
    let zone = zone.and_then(|node| zone_name(&node, log));
    let at_least = table.get("at_least").and_then(|node| node.duration(any_duration(), log));
    let off = if key == "day" {
        for other in ["calendar", "holidays"].into_iter().filter_map(|other| table.get(other)) {
            let message = format!("`{}` says nothing beside `day`", other.path);
            let remedy = "take it out: a day of the month comes on weekends and holidays too";
            log.add(Code::BadValue, &other.key, message, remedy);
        }
        Some((SATURDAY_AND_SUNDAY, Vec::new()))
    } else {
        days_off(table, calendars, log)
    };
    let (weekend, holidays) = off?;
    let days = if key == "day" {
        let day = node.integer(1..=31, log)?.value;
        (Days::OfMonth(u8::try_from(day).ok()?), format!("day {day} of the month"))
    } else {
        let (mask, words) = fitting(node, weekend, log)?;
        (Days::Weekdays(mask), format!("{key} {words}"))
    };
    let (at, zone) = (at?, zone?);
    let least = at_least.as_ref().map(|least| format!(", at least {}", time::Span(least.value))).unwrap_or_default();
    let rule = CalendarRule {
        text: format!("{}, {} {zone}{least}", days.1, at.value),
        from: if key == "next" { FirstDay::Tomorrow } else { FirstDay::Today },
        days: days.0,
        at_s: seconds(at.value)?,
        zone,
        at_least_ms: at_least.map_or(0, |least| least.value),
        holidays,
    };
    Some(Spot { value: Due::Calendar(rule), at: node.at() })
}

/// The weekdays that `next` or `every` says, and how to say them.
fn fitting(node: &Node<'_>, weekend: u8, log: &mut Log<'_>) -> Option<(u8, String)> {
    let words =
        [("business day", EVERY_DAY & !weekend), ("weekday", EVERY_DAY & !SATURDAY_AND_SUNDAY), ("day", EVERY_DAY)];
    let (mask, said) = match node.as_text() {
        Some(text) => {
            let all: Vec<(&'static str, u8)> = words.into_iter().chain(WEEKDAYS).collect();
            (node.choice(&all, log)?.value, text.to_owned())
        }
        None => {
            let mask = weekdays(node, log)?;
            let names: Vec<&str> = WEEKDAYS.iter().filter(|(_, bit)| mask & bit != 0).map(|(name, _)| *name).collect();
            (mask, names.join(", "))
        }
    };
    if mask == 0 {
        let message = format!("`{}` has no day: the weekend is the whole week", node.path);
        log.add(Code::BadValue, &node.at(), message, "leave a day of the week out of `weekend`");
        return None;
    }
    Some((mask, said))
}

/// A list of weekdays.
fn weekdays(node: &Node<'_>, log: &mut Log<'_>) -> Option<u8> {
    let Some(items) = node.as_items().filter(|items| !items.is_empty()) else {
        node.wrong("a list of weekdays", "write them in square brackets: [\"sat\", \"sun\"]", log);
        return None;
    };
    // All of them, so that every bad one is reported.
    let found: Vec<_> = items.iter().map(|item| item.choice(&WEEKDAYS, log)).collect();
    found.into_iter().try_fold(0, |mask, day| Some(mask | day?.value))
}

/// The weekend and the holidays of a rule: of a calendar, and of its own.
fn days_off(table: &Table<'_>, calendars: &[Calendar], log: &mut Log<'_>) -> Option<(u8, Vec<Date>)> {
    let own = table.get("holidays").map(|node| holidays(&node, log)).unwrap_or_default();
    let Some(named) = table.get("calendar") else { return Some((SATURDAY_AND_SUNDAY, own)) };
    let named = named.name::<Name>(log)?;
    let Some(found) = calendars.iter().find(|calendar| calendar.name.value == named.value) else {
        let remedy = suggest(named.value.as_str(), calendars.iter().map(|one| one.name.value.as_str()), "");
        let remedy =
            if remedy.starts_with("did") { remedy } else { format!("declare it: [calendars.{}]", named.value) };
        log.add(Code::BadChoice, &named.at, format!("there is no calendar `{}`", named.value), remedy);
        return None;
    };
    found.used.set(true);
    let mut all = [own, found.holidays.clone()].concat();
    all.sort_unstable();
    all.dedup();
    Some((found.weekend, all))
}

fn holidays(node: &Node<'_>, log: &mut Log<'_>) -> Vec<Date> {
    let Some(items) = node.as_items() else {
        node.wrong("a list of days", "write them in square brackets: [\"2026-12-25\"]", log);
        return Vec::new();
    };
    if items.len() > HOLIDAYS_MAX {
        let message = format!("`{}` has {} days", node.path, items.len());
        log.add(Code::TooLarge, &node.key, message, format!("keep at most {HOLIDAYS_MAX}"));
    }
    let mut found: Vec<Date> = items
        .iter()
        .filter_map(|item| {
            let text = item.text(log)?;
            let day = calendar::date(text.value);
            if day.is_none() {
                let message = format!("{:?} is not a day", excerpt(text.value));
                log.add(Code::BadValue, &text.at, message, "write year, month and day: \"2026-12-25\"")
                    .expected("a day of the calendar, YYYY-MM-DD")
                    .got(excerpt(text.value));
            }
            day
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn time_of_day<'a>(node: &Node<'a>, log: &mut Log<'_>) -> Option<Spot<&'a str>> {
    let text = node.text(log)?;
    if seconds(text.value).is_none() {
        let message = format!("`{}` is not a time of day: {:?}", node.path, excerpt(text.value));
        log.add(Code::BadValue, &text.at, message, "write hours and minutes, \"09:00\"; seconds may follow")
            .expected("00:00 to 23:59, or 00:00:00 to 23:59:59")
            .got(excerpt(text.value));
        return None;
    }
    Some(text)
}

/// `09:00` or `09:00:30` in seconds.
fn seconds(text: &str) -> Option<u32> {
    let part = |text: &str, below: u32| {
        let good = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|number| good && *number < below)
    };
    let mut parts = text.split(':');
    let (hours, minutes) = (part(parts.next()?, 24)?, part(parts.next()?, 60)?);
    let seconds = parts.next().map_or(Some(0), |text| part(text, 60))?;
    parts.next().is_none().then_some(hours * 3_600 + minutes * 60 + seconds)
}

pub(crate) fn zone_name(node: &Node<'_>, log: &mut Log<'_>) -> Option<String> {
    let text = node.text(log)?;
    if let Some(zone) = calendar::zones().find(|known| *known == text.value) {
        return Some(zone.to_owned());
    }
    let remedy = suggest(text.value, calendar::zones(), "");
    let remedy = if remedy.starts_with("did") { remedy } else { "write it as in \"Europe/Berlin\"".to_owned() };
    log.add(Code::BadChoice, &text.at, format!("there is no time zone {:?}", excerpt(text.value)), remedy)
        .expected(format!("a zone of the IANA time zone database {}", calendar::time_zones()))
        .got(excerpt(text.value));
    None
}
