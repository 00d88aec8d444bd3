//! A schedule's manifest: read where each value stands, and turned into the kernel's [`Schedule`].

use crate::log::{Log, Spot, excerpt};
use crate::node::{Node, Table};
use crate::parse::{Report, walk};
use crate::problem::Code;
use crate::read::{labels, owner_text, zone_name};
use crate::{cron, keys};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{BadName, EntityId, Name, ScheduleName};
use interlock_kernel::limits::{DOCUMENT_BYTES_MAX, LABEL_BYTES_MAX, ON_TIME_MS};
use interlock_kernel::schedule::{CatchUp, Creation, Overlap, Recurrence, Schedule};
use interlock_kernel::time::WallTime;

/// The longest time that is made up for in order, in ms: a year. Whoever wants more has a backlog, not a schedule.
const CATCH_UP_MS_MAX: u64 = 366 * 86_400_000;

/// Reads and checks the manifest of a schedule. `name` is shown with every problem and nothing else; no file is read.
/// What comes with a schedule is its warnings.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_schedule(name: &str, text: &str) -> Result<(Schedule, Report), Box<Report>> {
    let (found, report) = walk(name, text, &keys::SCHEDULE, |root, _, log| schedule(root, log));
    match found {
        Some(schedule) => Ok((schedule, report)),
        None => Err(Box::new(report)),
    }
}

/// When a rule comes, the first few times after an instant; fewer if it ends.
#[must_use]
pub fn times(rule: &Recurrence, after: WallTime, count: usize) -> Vec<WallTime> {
    let next = |at: &WallTime| cron::following(rule, *at).ok();
    std::iter::successors(next(&after), next).take(count).collect()
}

fn schedule(root: &Table<'_>, log: &mut Log<'_>) -> Option<Schedule> {
    let name = root.need("schedule", "name it: schedule = \"nightly\"", log);
    let name = name.and_then(|node| node.name::<ScheduleName>(log));
    let owner = root.need("owner", "say who answers for it: owner = \"team <mail@example.com>\"", log);
    let owner = owner.and_then(|node| owner_text(&node, "schedule", log));
    let rule = rule(root, log);
    let entity = root.need("entity", "say at whom it raises its event: entity = \"queue/mail\"", log);
    let entity = entity.and_then(|node| entity_id(&node, log));
    let event = root.need("event", "say what it raises: event = \"drain\"", log);
    let event = event.and_then(|node| node.name::<Name>(log));
    let payload = root.get("payload").and_then(|node| Some((document(&node, log)?, node)));
    let due_field = root.get("due_field").and_then(|node| due_field(&node, payload.as_ref(), log));
    let create = root.get("create").and_then(|node| creation(&node, log));
    let overlap = root.get("overlap").and_then(|node| {
        node.choice(&[("skip", Overlap::Skip), ("queue", Overlap::Queue), ("deliver", Overlap::Deliver)], log)
    });
    let catch_up = root.get("catch_up").and_then(|node| catch_up(&node, log));
    Some(Schedule {
        name: name?.value,
        owner: owner?,
        rule: rule?,
        entity: entity?,
        create,
        event: event?.value,
        payload: payload.map(|(doc, _)| doc),
        due_field,
        overlap: overlap.map(|overlap| overlap.value).unwrap_or_default(),
        catch_up: catch_up.unwrap_or_default(),
    })
}

fn rule(root: &Table<'_>, log: &mut Log<'_>) -> Option<Recurrence> {
    let text = root.need("cron", "say when: cron = \"30 9 * * MON-FRI\"", log).and_then(|node| node.text(log));
    let zone = root.need("zone", "say by whose clocks: zone = \"Europe/Berlin\", or \"UTC\"", log);
    let zone = zone.and_then(|node| zone_name(&node, log));
    let text = text?;
    if let Err(why) = cron::parse(text.value) {
        let message = format!("{:?} is no rule of cron: {why}", excerpt(text.value));
        log.add(Code::BadValue, &text.at, message, format!("write {}", cron::FIELDS))
            .expected(cron::FIELDS)
            .got(excerpt(text.value));
        return None;
    }
    let named = zone.clone().unwrap_or_else(|| "UTC".to_owned());
    let rule = Recurrence { cron: text.value.to_owned(), zone: named };
    // Leap days come every eight years at the longest; looked for from where the calendar of today began.
    if cron::following(&rule, WallTime(0)).is_err() {
        let message = format!("{:?} never comes", text.value);
        log.add(Code::BadValue, &text.at, message, "name a day that there is").got(excerpt(text.value));
        return None;
    }
    zone.map(|_| rule)
}

fn entity_id(node: &Node<'_>, log: &mut Log<'_>) -> Option<EntityId> {
    let text = node.text(log)?;
    match text.value.parse() {
        Ok(entity) => Some(entity),
        Err(BadName { kind, expected, got }) => {
            let message = format!("{got:?} is not an entity: bad {kind}");
            log.add(Code::BadName, &text.at, message, "write machine/key").expected(expected).got(got);
            None
        }
    }
}

fn document(node: &Node<'_>, log: &mut Log<'_>) -> Option<Doc> {
    let doc = Doc::new(node.json(log)?);
    let size = doc.text().len();
    if size > DOCUMENT_BYTES_MAX {
        let message = format!("`{}` is {size} bytes", node.path);
        log.add(Code::TooLarge, &node.key, message, format!("keep it at most {DOCUMENT_BYTES_MAX} bytes"));
        return None;
    }
    Some(doc)
}

/// The field of the payload in which the due time stands: of an object, and not written there.
fn due_field(node: &Node<'_>, payload: Option<&(Doc, Node<'_>)>, log: &mut Log<'_>) -> Option<String> {
    let text: Spot<&str> = node.text(log)?;
    if text.value.is_empty() || text.value.len() > LABEL_BYTES_MAX {
        let message = format!("`{}` is empty or too long", node.path);
        log.add(Code::TooLarge, &text.at, message, format!("keep it at 1 to {LABEL_BYTES_MAX} bytes"));
        return None;
    }
    if let Some((doc, at)) = payload {
        let Some(fields) = doc.value().as_object() else {
            at.wrong("a table", "a payload with a due time is a table of fields", log);
            return None;
        };
        if fields.contains_key(text.value) {
            let message = format!("the payload has a field `{}` already", excerpt(text.value));
            log.add(Code::BadValue, &text.at, message, "take it out of the payload, or name another field");
            return None;
        }
    }
    Some(text.value.to_owned())
}

fn creation(node: &Node<'_>, log: &mut Log<'_>) -> Option<Creation> {
    let table = node.table(&keys::CREATION, log)?;
    Some(Creation {
        desired: table.get("desired").and_then(|node| document(&node, log)),
        labels: table.get("labels").map(|node| labels(&node, log)).unwrap_or_default(),
    })
}

fn catch_up(node: &Node<'_>, log: &mut Log<'_>) -> Option<CatchUp> {
    if node.is_table() {
        let table = node.table(&keys::CATCH_UP, log)?;
        let within = table.need("all", "say how long ago at most: { all = \"1d\" }", log)?;
        return within.duration(ON_TIME_MS..=CATCH_UP_MS_MAX, log).map(|within| CatchUp::All(within.value));
    }
    if node.as_text().is_none() {
        node.wrong("a policy", "write \"none\", \"latest\" or { all = \"1d\" }", log);
        return None;
    }
    node.choice(&[("none", CatchUp::None), ("latest", CatchUp::Latest)], log).map(|choice| choice.value)
}
