//! What a component can do, read from its imports; and why one cannot run here, all reasons at once.

use crate::component;
use crate::engine::{Engines, Place};
use crate::limits::{TABLE_ELEMENTS_MAX_ON_DEMAND, TABLES_MAX_ON_DEMAND};
use crate::linkers::{Import, Linkers, judge};
use crate::weights::table_bytes;
use interlock_kernel::doc::Digest;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

/// One reason why a component cannot run here, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A short stable name.
    pub code: &'static str,
    /// What it is about: an import, an export, the whole.
    pub subject: String,
    /// What would run.
    pub expected: String,
    /// What is there.
    pub got: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, subject, expected, got, remedy } = self;
        write!(f, "{code}: {subject}: expected {expected}, got {got}; {remedy}")
    }
}

impl std::error::Error for Problem {}

/// What a component is and all that it can ever do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// blake3 of the component's bytes.
    pub digest: String,
    /// Its length.
    pub bytes: u64,
    /// The powers it imports.
    pub can: Vec<Power>,
    /// What nothing of it can reach, whatever it computes.
    pub cannot: Vec<Power>,
    /// WASI interfaces it imports; linked and inert.
    pub wasi: Vec<String>,
    /// Linear memory at its start, in bytes.
    pub memory_bytes: u64,
    /// Tables of all its modules.
    pub tables: u32,
    /// Elements of the largest of them at its start.
    pub table_elements: u64,
    /// Where its memory comes from.
    pub place: Place,
}

/// One thing that a component can, or cannot, do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Power {
    /// One word.
    pub name: Cow<'static, str>,
    /// One sentence.
    pub what: Cow<'static, str>,
    /// The functions it imports for it.
    pub functions: Vec<String>,
}

impl Power {
    const fn new(name: &'static str, what: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), what: Cow::Borrowed(what), functions: Vec::new() }
    }
}

/// What a component can do, told from the names of its imports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Powers {
    /// The powers it imports.
    pub can: Vec<Power>,
    /// What nothing of it can reach.
    pub cannot: Vec<Power>,
    /// WASI interfaces it imports; linked and inert.
    pub wasi: Vec<String>,
}

/// What a component with these imports, interfaces with the functions taken from each, can do. Nothing is compiled,
/// so types are not compared: [`inspect`] does that.
///
/// # Errors
/// Every import that is not linked here.
pub fn powers_of(imports: &BTreeMap<String, Vec<String>>) -> Result<Powers, Vec<Problem>> {
    let imports = imports.iter().map(|(name, functions)| (name.clone(), Import::Interface(functions.clone())));
    let imports: BTreeMap<String, Import> = imports.collect();
    let problems: Vec<Problem> = imports.iter().flat_map(|(name, import)| judge(name, import)).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let (can, cannot) = powers(&imports);
    Ok(Powers { can, cannot, wasi: wasi(&imports) })
}

/// What no component can do: nothing that is linked reaches it.
const NEVER: [Power; 5] = [
    Power::new("network", "open a connection or listen for one: wasi:sockets denies, wasi:http is not linked"),
    Power::new("files", "open a file: no folder is handed in"),
    Power::new("environment", "read variables or arguments: there are none"),
    Power::new("clock", "read this machine's clock, or wait: time starts with the attempt and a sleep moves it"),
    Power::new("processes", "start one, or a thread"),
];

/// A component that has been compiled and judged.
pub(crate) struct Checked {
    pub(crate) digest: Digest,
    pub(crate) component: Component,
    pub(crate) inspection: Inspection,
}

/// Compiles a component, without keeping it, and reads what it can do.
///
/// Compiling takes milliseconds for a Rust step and seconds for an interpreter's: not for an
/// asynchronous task.
///
/// # Errors
/// Every [`Problem`] found.
pub fn inspect(engines: &Engines, bytes: &[u8]) -> Result<Inspection, Vec<Problem>> {
    let linkers = Linkers::new(engines).map_err(|why| vec![no_linker(&why)])?;
    let component = component::component(bytes).map_err(|problem| vec![problem])?;
    check(engines, &linkers, &component).map(|checked| checked.inspection)
}

pub(crate) fn no_linker(why: &wasmtime::Error) -> Problem {
    Problem {
        code: "host",
        subject: "linker".to_owned(),
        expected: "a host that links its own interfaces".to_owned(),
        got: format!("{why:#}"),
        remedy: "this is a defect of the host: report it".to_owned(),
    }
}

/// Compiles and judges the bytes of a component.
pub(crate) fn check(engines: &Engines, linkers: &Linkers, bytes: &[u8]) -> Result<Checked, Vec<Problem>> {
    let (place, component) = compile(engines, bytes).map_err(|problem| vec![problem])?;
    judged(linkers, bytes, place, component)
}

/// Judges a component that was made of these bytes.
pub(crate) fn judged(
    linkers: &Linkers,
    bytes: &[u8],
    place: Place,
    component: Component,
) -> Result<Checked, Vec<Problem>> {
    let imports = imports(&component);
    let mut problems: Vec<Problem> = imports.iter().flat_map(|(name, functions)| judge(name, functions)).collect();
    let size = component.resources_required();
    problems.extend(size.iter().flat_map(oversize));
    if component.get_export(None, "run").is_none() {
        problems.push(Problem {
            code: "no-run",
            subject: "export run".to_owned(),
            expected: "the export run of world interlock:step/step".to_owned(),
            got: "a component without it".to_owned(),
            remedy: "export the step: `steps!` in Rust, or build for world interlock:step/step".to_owned(),
        });
    }
    if problems.is_empty() {
        // Names are right; types are the linker's to compare. It stops at the first.
        problems.extend(linkers.prepare(place, &component).err().map(|why| wrong_type(&why)));
    }
    if !problems.is_empty() {
        return Err(problems);
    }

    let digest = Digest::of(&[bytes]);
    let (can, cannot) = powers(&imports);
    let inspection = Inspection {
        digest: digest.to_string(),
        bytes: bytes.len() as u64,
        can,
        cannot,
        wasi: wasi(&imports),
        memory_bytes: size.as_ref().and_then(|size| size.max_initial_memory_size).unwrap_or(0) * WASM_PAGE_BYTES,
        tables: size.as_ref().map_or(0, |size| size.num_tables),
        table_elements: size.as_ref().and_then(|size| size.max_initial_table_size).unwrap_or(0),
        place,
    };
    Ok(Checked { digest, component, inspection })
}

const WASM_PAGE_BYTES: u64 = 64 << 10;

/// What a component takes at its start, in bytes: its memory and its tables, as it declares them.
pub(crate) fn declared_bytes(component: &Component) -> u64 {
    let Some(size) = component.resources_required() else { return 0 };
    let memory = size.max_initial_memory_size.unwrap_or(0).saturating_mul(WASM_PAGE_BYTES);
    let elements = u64::from(size.num_tables).saturating_mul(size.max_initial_table_size.unwrap_or(0));
    memory.saturating_add(table_bytes(elements))
}

/// Compiled for the pool if it fits there.
fn compile(engines: &Engines, bytes: &[u8]) -> Result<(Place, Component), Problem> {
    if engines.has_pool()
        && let Ok(component) = Component::from_binary(engines.engine(Place::Pooled), bytes)
    {
        return Ok((Place::Pooled, component));
    }
    match Component::from_binary(engines.engine(Place::OnDemand), bytes) {
        Ok(component) => Ok((Place::OnDemand, component)),
        Err(why) => Err(Problem {
            code: "not-compilable",
            subject: "component".to_owned(),
            expected: "a valid component, without threads, garbage collection, 64-bit memory or asynchronous functions"
                .to_owned(),
            got: format!("{why:#}"),
            remedy: "build it again from clean with a released toolchain".to_owned(),
        }),
    }
}

/// The imports by name, each with the functions and resources it is used for.
fn imports(component: &Component) -> BTreeMap<String, Import> {
    let engine = component.engine();
    let mut found = BTreeMap::new();
    for (name, import) in component.component_type().imports(engine) {
        let import = match import.ty {
            ComponentItem::ComponentInstance(instance) => {
                let named = instance.exports(engine).filter_map(|(name, item)| match item.ty {
                    ComponentItem::ComponentFunc(_) | ComponentItem::CoreFunc(_) => Some(name.to_owned()),
                    // A type says what functions mean; alone it does nothing.
                    ComponentItem::Type(_) | ComponentItem::Resource(_) => None,
                    ComponentItem::Module(_) | ComponentItem::Component(_) | ComponentItem::ComponentInstance(_) => {
                        Some(name.to_owned())
                    }
                });
                Import::Interface(named.collect())
            }
            ComponentItem::Type(_) | ComponentItem::Resource(_) => continue,
            ComponentItem::ComponentFunc(_) | ComponentItem::CoreFunc(_) => Import::Other("a function"),
            ComponentItem::Module(_) => Import::Other("a core module"),
            ComponentItem::Component(_) => Import::Other("a component"),
        };
        found.insert(name.to_owned(), import);
    }
    found
}

fn wasi(imports: &BTreeMap<String, Import>) -> Vec<String> {
    imports.keys().filter(|name| name.starts_with("wasi:")).cloned().collect()
}

fn powers(imports: &BTreeMap<String, Import>) -> (Vec<Power>, Vec<Power>) {
    let mut can = Vec::new();
    let mut cannot = Vec::new();
    for (name, what) in crate::linkers::POWERS {
        let wanted = format!("interlock:step/{name}");
        let functions = imports.iter().find(|(import, _)| import.split('@').next() == Some(wanted.as_str()));
        match functions {
            Some((_, Import::Interface(functions))) if !functions.is_empty() => {
                can.push(Power { functions: functions.clone(), ..Power::new(name, what) });
            }
            _ => cannot.push(Power::new(name, what)),
        }
    }
    cannot.extend(NEVER);
    (can, cannot)
}

/// What not even the engine without a pool gives a component.
fn oversize(size: &wasmtime::ResourcesRequired) -> Vec<Problem> {
    let over = |what: &str, max: u64, got: u64| {
        (got > max).then(|| Problem {
            code: "too-large",
            subject: what.to_owned(),
            expected: format!("at most {max}"),
            got: got.to_string(),
            remedy: "compose fewer components into one, or split the machine".to_owned(),
        })
    };
    let tables_max = u64::from(TABLES_MAX_ON_DEMAND);
    let elements_max = u64::try_from(TABLE_ELEMENTS_MAX_ON_DEMAND).unwrap_or(u64::MAX);
    [
        over("memories", 1, size.num_memories.into()),
        over("tables", tables_max, size.num_tables.into()),
        over("elements of a table", elements_max, size.max_initial_table_size.unwrap_or(0)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn wrong_type(why: &wasmtime::Error) -> Problem {
    let chain: Vec<String> = why.chain().map(ToString::to_string).collect();
    Problem {
        code: "wrong-type",
        subject: chain.first().cloned().unwrap_or_default(),
        expected: "the types of this host's interlock:step 0.1".to_owned(),
        got: chain.get(1..).unwrap_or_default().join(": "),
        remedy: "build it again with the SDK, or the wit/ folder, of this release".to_owned(),
    }
}
