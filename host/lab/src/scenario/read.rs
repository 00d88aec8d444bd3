//! From text to a scenario, or to everything that is wrong with it.
//!
//! Reading is the manifest's own: the same places, words and remedies. What is written here is looked up in
//! the machine at once: a state, an event, a step or a field that the machine does not have is a mistake of
//! the scenario's, and not something to find out by playing it.

mod act;
mod lease;
mod requests;
mod rows;
mod then;

use super::keys;
use super::{Bounds, Deed, Given, Promise, Scenario, Test, When};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{EntityId, EntityKey, GrantId, Name};
use interlock_kernel::machine::{KILLED, Machine};
use interlock_kernel::view::Schema;
use interlock_manifest::reading::{Code, Kind, Log, Node, Schemas, Span, Spot, Table, filter, list, suggest};
use interlock_manifest::{CompiledMachine, Report, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// The key of an entity that nobody named.
const KEY: &str = "it";
/// Bounds of a search: what no machine here could finish is refused as a slip of the pen.
const DEPTH_MAX: u64 = 1_000;
const FAULTS_MAX: u64 = 16;
const STATES_MAX: u64 = 1_000_000_000;

const UNKNOWN_ENTITY: Kind = Kind { code: "unknown-entity", severity: Severity::Error };
const UNKNOWN_STEP: Kind = Kind { code: "unknown-step", severity: Severity::Error };
const UNKNOWN_ID: Kind = Kind { code: "unknown-id", severity: Severity::Error };
const DUPLICATE_ENTITY: Kind = Kind { code: "duplicate-entity", severity: Severity::Error };
const SCHEMA: Kind = Kind { code: "breaks-schema", severity: Severity::Error };
const REUSED_ID: Kind = Kind { code: "id-of-another", severity: Severity::Error };
const NOTHING: Kind = Kind { code: "says-nothing", severity: Severity::Error };

/// Reads a scenario of a machine. `file` is shown with every problem, and kept; nothing is opened.
///
/// # Errors
/// Everything that is wrong with it, to be shown as a manifest's problems are.
pub fn read(file: &str, text: &str, machine: &Machine) -> Result<Scenario, Box<Report>> {
    interlock_manifest::reading::read(file, text, &keys::SCENARIO, |table, log| scenario(file, table, machine, log))
}

fn scenario(file: &str, table: &Table<'_>, machine: &Machine, log: &mut Log<'_>) -> Option<Scenario> {
    let mut reader = Reader::new(machine);
    let name =
        table.need("scenario", "say what it shows, in a sentence: scenario = \"a resize comes back ready\"", log);
    let name = name.and_then(|node| sentence(&node, log));
    let filled = reader.filled(table, log);
    let (given, held) = reader.given(table, log);
    let items = |key: &str| table.get(key).map(|node| node.one_or_more()).unwrap_or_default();
    let replies = items("replies").iter().filter_map(|item| reader.replies(item, log)).collect();
    let acts = items("when");
    reader.names(&acts);
    let when: Vec<When> = acts.iter().flat_map(|item| reader.when(item, log)).collect();
    let then = items("then").iter().filter_map(|item| reader.then(item, log)).collect();
    let always = items("always").iter().filter_map(|item| reader.promise(item, log)).collect();
    let eventually = items("eventually").iter().filter_map(|item| reader.promise(item, log)).collect();
    let explore = table.get("explore").map(|node| bounds(&node, log)).unwrap_or_default();
    Some(Scenario {
        name: name?,
        file: file.to_owned(),
        given,
        filled,
        held,
        replies,
        when,
        then,
        always,
        eventually,
        explore,
    })
}

fn sentence(node: &Node<'_>, log: &mut Log<'_>) -> Option<String> {
    let text = node.text(log)?;
    if text.value.trim().is_empty() {
        log.add(Code::BadValue, &text.at, format!("`{}` is empty", node.path), "say it in a few words");
        return None;
    }
    Some(text.value.trim().to_owned())
}

fn bounds(node: &Node<'_>, log: &mut Log<'_>) -> Bounds {
    let Some(table) = node.table(&keys::EXPLORE, log) else { return Bounds::default() };
    let mut number = |key: &str, least, most| table.get(key).and_then(|node| node.integer(least..=most, log));
    let small = |found: Option<Spot<u64>>| found.and_then(|number| u32::try_from(number.value).ok());
    Bounds {
        depth: small(number("depth", 1, DEPTH_MAX)),
        faults: small(number("faults", 0, FAULTS_MAX)),
        states: number("states", 1, STATES_MAX).map(|number| number.value),
    }
}

/// What is looked up while reading.
struct Reader<'m> {
    machine: &'m Machine,
    schemas: Schemas<'m>,
    /// A parsed manifest's schemas compile.
    compiled: Option<CompiledMachine>,
    steps: BTreeSet<&'m str>,
    /// Every entity that the scenario speaks of, in the order of the file.
    entities: Vec<EntityId>,
    /// Clients that have leases, by what they call themselves.
    clients: BTreeSet<GrantId>,
    /// The ids of all events.
    ids: BTreeSet<String>,
    /// Which events have no id of their own, by number.
    unnamed: BTreeSet<usize>,
    /// Events read so far.
    sends: usize,
}

impl<'m> Reader<'m> {
    fn new(machine: &'m Machine) -> Self {
        Self {
            machine,
            schemas: Schemas::of(machine),
            compiled: CompiledMachine::compile(machine).ok(),
            steps: machine.states.values().filter_map(|state| state.step.as_ref()).map(Name::as_str).collect(),
            entities: Vec::new(),
            clients: BTreeSet::new(),
            ids: BTreeSet::new(),
            unnamed: BTreeSet::new(),
            sends: 0,
        }
    }

    fn id(&self, key: EntityKey) -> EntityId {
        EntityId { machine: self.machine.name.clone(), key }
    }

    /// The given entities; one with nothing special if the scenario says nothing of them.
    fn given(&mut self, table: &Table<'_>, log: &mut Log<'_>) -> (Vec<Given>, Vec<(usize, Deed)>) {
        let Some(node) = table.get("given") else {
            let given = self.nothing_special(1);
            self.entities.extend(given.iter().map(|one| one.entity.clone()));
            return (given, Vec::new());
        };
        let (rows, items): (Vec<_>, Vec<_>) = node.one_or_more().into_iter().partition(rows::is_filled);
        let (leases, items): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.part("lease").is_some());
        let held: Vec<_> = leases.iter().filter_map(|item| self.held(item, log)).collect();
        if items.is_empty() && !(leases.is_empty() && rows.is_empty()) {
            let given = self.nothing_special(1);
            self.entities.extend(given.iter().map(|one| one.entity.clone()));
            return (given, held);
        }
        let mut found: Vec<Given> = Vec::new();
        for item in items {
            let Some(table) = item.table(&keys::GIVEN, log) else { continue };
            let written = table.get("key");
            let key = match &written {
                Some(node) => self.key(node, log),
                None => KEY.parse().ok().map(|key| Spot { value: key, at: table.at.clone() }),
            };
            let desired = table.get("desired").and_then(|node| self.document(&node, Some(Schema::Desired), log));
            let labels = table.get("labels").map(|node| texts(&node, log)).unwrap_or_default();
            let Some(key) = key else { continue };
            let entity = self.id(key.value);
            if found.iter().any(|one| one.entity == entity) {
                let message = format!("there are two given entities with the key `{}`", entity.key);
                log.add(DUPLICATE_ENTITY, &key.at, message, "give each a key of its own: key = \"other\"");
                continue;
            }
            self.entities.push(entity.clone());
            found.push(Given { entity, desired, labels, line: log.line(item.key.start) });
        }
        (found, held)
    }

    fn nothing_special(&self, line: usize) -> Vec<Given> {
        let key = KEY.parse::<EntityKey>().ok();
        let given = |key| Given { entity: self.id(key), desired: None, labels: BTreeMap::new(), line };
        key.map(given).into_iter().collect()
    }

    /// Takes note of entities that are made on the way, of clients with leases, and of event ids.
    fn names(&mut self, acts: &[Node<'_>]) {
        for act in acts {
            if let Some(key) = act.part("create").and_then(|node| node.as_text()) {
                let id = key.rsplit_once('/').map_or(key, |(_, key)| key).parse().ok().map(|key| self.id(key));
                self.entities.extend(id.filter(|id| !self.entities.contains(id)));
            }
        }
        let by = acts.iter().filter(|act| act.part("acquire").is_some());
        self.clients.extend(by.filter_map(lease::named));
        let sends = acts.iter().filter(|act| act.part("send").is_some());
        for (before, act) in sends.enumerate() {
            let id = act.part("id").and_then(|node| node.as_text()).map(str::to_owned);
            if id.is_none() {
                self.unnamed.insert(before + 1);
            }
            self.ids.insert(id.unwrap_or_else(|| nth_id(before + 1)));
        }
    }

    /// A key, or a whole `machine/key`.
    fn key(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Spot<EntityKey>> {
        let text = node.text(log)?;
        let prefix = format!("{}/", self.machine.name);
        let key = text.value.strip_prefix(&prefix).unwrap_or(text.value);
        match key.parse() {
            Ok(key) => Some(Spot { value: key, at: text.at }),
            Err(why) => {
                let message = format!("{key:?} is no key of an entity");
                log.add(Code::BadName, &text.at, message, "use printable text without `@`").expected(why.expected);
                None
            }
        }
    }

    /// The entity that a table speaks of: the one it names, or the only one there is.
    fn entity(&self, table: &Table<'_>, log: &mut Log<'_>) -> Option<EntityId> {
        let known = || self.entities.iter().map(|entity| entity.key.as_str());
        let Some(node) = table.get("entity") else {
            if let [only] = self.entities.as_slice() {
                return Some(only.clone());
            }
            let names: Vec<&str> = known().collect();
            let message = format!("`{}` does not say which entity it is about", table.path);
            let remedy = match names.first() {
                Some(first) => format!("name it: entity = \"{first}\""),
                None => "give one, [given], or make one: create = \"it\"".to_owned(),
            };
            log.add(Code::MissingKey, &table.at, message, remedy).expected(match names.as_slice() {
                [] => "an entity".to_owned(),
                names => list(names),
            });
            return None;
        };
        let key = self.key(&node, log)?;
        let id = self.id(key.value);
        if self.entities.contains(&id) {
            return Some(id);
        }
        let message = format!("the scenario has no entity `{}`", id.key);
        log.add(UNKNOWN_ENTITY, &key.at, message, suggest(id.key.as_str(), known(), "add it to [[given]]"));
        None
    }

    /// A literal, which must keep to its schema if one is named.
    fn document(&self, node: &Node<'_>, schema: Option<Schema<'_>>, log: &mut Log<'_>) -> Option<Doc> {
        let doc = Doc::new(node.json(log)?);
        let breach = match (&self.compiled, schema) {
            (Some(compiled), Some(schema)) => compiled.check(schema, &doc).err().map(|breach| (schema, breach)),
            _ => None,
        };
        if let Some((schema, breach)) = breach {
            let at = node.place(&breach.path);
            let message = format!("`{}` breaks the schema of {schema}", node.path);
            let remedy = if node.path.starts_with("given") {
                "correct it"
            } else {
                "correct it; to see it refused, write answer = \"refused invalid\""
            };
            log.add(SCHEMA, &at, message, remedy).expected(breach.expected).got(breach.got);
            return None;
        }
        Some(doc)
    }

    /// One state, or several.
    fn states(&self, node: &Node<'_>, log: &mut Log<'_>) -> Vec<Name> {
        let known = || self.machine.states.keys().map(Name::as_str).chain([KILLED.as_str()]);
        let mut found = Vec::new();
        for item in node.one_or_more() {
            let Some(text) = item.text(log) else { continue };
            match known().find(|name| *name == text.value).and_then(|name| name.parse().ok()) {
                Some(name) => found.push(name),
                None => {
                    let message = format!("the machine has no state `{}`", text.value);
                    log.add(Code::UnknownState, &text.at, message, suggest(text.value, known(), ""));
                }
            }
        }
        found
    }

    fn promise(&self, node: &Node<'_>, log: &mut Log<'_>) -> Option<Promise> {
        let table = node.table(&keys::PROMISE, log)?;
        let name = table.need("name", "say what is promised: name = \"never more nodes than asked for\"", log);
        let name = name.and_then(|node| sentence(&node, log));
        let entity = match table.get("entity") {
            Some(_) => Some(self.entity(&table, log)?),
            None => None,
        };
        let when = match table.get("when") {
            Some(node) => Some(self.test(&node.table(&keys::TEST, log)?, log)?),
            None => None,
        };
        if let Some(node) = table.get("counts") {
            return self.promise_of_rows(name?, log.line(table.at.start), &node, &table, log);
        }
        let made = table.get("made").map(|node| self.at_most(&node, log));
        let only_made = made.is_some()
            && table.written().iter().all(|key| matches!(key.value, "name" | "entity" | "when" | "made"));
        let hold = if only_made { Test::default() } else { self.test(&table, log)? };
        let made = made.map_or(Some(None), |read| read.map(Some))?;
        Some(Promise { name: name?, line: log.line(node.key.start), entity, when, hold, made, counts: Vec::new() })
    }

    fn test(&self, table: &Table<'_>, log: &mut Log<'_>) -> Option<Test> {
        let said = ["state", "parked", "locked", "outcome", "holds", "all", "any", "field", "op", "value"];
        if said.iter().all(|key| table.get(key).is_none()) {
            let message = format!("`{}` says nothing of an entity", table.path);
            let remedy = "say what must be so: state = \"ready\", or field = \"data.size\", op = \"le\", value = 64";
            log.add(NOTHING, &table.at, message, remedy).expected(list(&said));
            return None;
        }
        let has_filter = said[5..].iter().any(|key| table.get(key).is_some());
        let filter = filter(table, &self.schemas, log);
        Some(Test {
            states: table.get("state").map(|node| self.states(&node, log)).unwrap_or_default(),
            parked: table.get("parked").and_then(|node| then::parked(&node, log)),
            locked: table.get("locked").and_then(|node| node.boolean(log)).map(|truth| truth.value),
            outcome: table.get("outcome").and_then(|node| then::outcome(&node, log)),
            holds: table.get("holds").and_then(|node| self.lease(&node, log)),
            filter: if has_filter { filter? } else { filter.unwrap_or_default() },
        })
    }
}

/// The id of an event that names none, by its number among the events of the file.
fn nth_id(number: usize) -> String {
    format!("e{number}")
}

fn literal_text(node: &Node<'_>, log: &mut Log<'_>) -> Option<String> {
    node.text(log).map(|text| text.value.to_owned())
}

/// A table of texts, by name.
fn texts(node: &Node<'_>, log: &mut Log<'_>) -> BTreeMap<String, String> {
    let entries = node.entries(log).into_iter();
    entries.filter_map(|(name, node)| Some((name.value.to_owned(), node.text(log)?.value.to_owned()))).collect()
}

fn unknown_step(steps: &BTreeSet<&str>, got: &Spot<Name>, log: &mut Log<'_>) {
    let message = format!("the machine has no step `{}`", got.value);
    let remedy = suggest(got.value.as_str(), steps.iter().copied(), "this machine has no steps");
    log.add(UNKNOWN_STEP, &got.at, message, remedy);
}

fn unknown_id(ids: &BTreeSet<String>, got: &str, at: &Span, log: &mut Log<'_>) {
    let remedy = suggest(got, ids.iter().map(String::as_str), "no event of this scenario has an id");
    log.add(UNKNOWN_ID, at, format!("no event of this scenario has the id `{got}`"), remedy);
}
