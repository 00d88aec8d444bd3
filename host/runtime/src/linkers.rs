//! What is linked, for each engine; and by name, what is not, with what to do instead.

use crate::bindings::{StepWithEverything as Step, StepWithEverythingPre as StepPre};
use crate::check::Problem;
use crate::engine::{Engines, Place};
use crate::guest::Guest;
use crate::wasi;
use wasmtime::Engine;
use wasmtime::component::{Component, HasSelf, Linker};

/// Interlock's interfaces and what each lets a step do.
pub(crate) const POWERS: [(&str, &str); 7] = [
    ("transition", "read the entity it was handed, save checkpoints, ask for a guarded transition"),
    ("lease", "take, extend and give back leases that the machine was granted"),
    ("fencing", "read its fencing tokens and ask whether they hold"),
    ("timers", "say when timers are due that its states leave to steps"),
    ("effects", "have requests made to the targets that its machine declares"),
    ("rows", "read and change rows of the tables that its machine names, as far as they grant it"),
    ("log", "write lines into the host's log"),
];

/// Every function of them. A test compares this with `wit/`.
const FUNCTIONS: [(&str, &[&str]); 7] = [
    (
        "transition",
        &[
            "[method]entity.id",
            "[method]entity.key",
            "[method]entity.execution",
            "[method]entity.attempt",
            "[method]entity.state",
            "[method]entity.version",
            "[method]entity.desired",
            "[method]entity.data",
            "[method]entity.outputs",
            "[method]entity.cancel-requested",
            "[method]entity.deadline-ms",
            "[method]entity.reload",
            "[method]entity.save",
            "[method]entity.transition",
        ],
    ),
    (
        "lease",
        &["[method]lease.name", "[method]lease.left-ms", "[method]lease.extend", "[static]lease.release", "acquire"],
    ),
    ("fencing", &["token", "still-holds", "lease-token", "still-holds-lease"]),
    ("timers", &["after", "at", "cancel"]),
    ("effects", &["request"]),
    (
        "rows",
        &[
            "get",
            "query",
            "put",
            "update",
            "upsert",
            "claim",
            "delete",
            "transact",
            "stage",
            "require-row",
            "require-entity",
            "answers",
        ],
    ),
    ("log", &["write"]),
];

/// Interfaces of WASI 0.2 that are linked, all of them inert.
const WASI: [&str; 27] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// The release of the contract that this host links.
const STEP_VERSION: &str = "0.1.0";

/// What a component asks for under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Import {
    /// An interface, and the functions of it that are used; none where it only names types.
    Interface(Vec<String>),
    /// Anything else.
    Other(&'static str),
}

/// One linker for each engine.
pub(crate) struct Linkers {
    pooled: Linker<Guest>,
    on_demand: Linker<Guest>,
}

impl Linkers {
    pub(crate) fn new(engines: &Engines) -> wasmtime::Result<Self> {
        Ok(Self { pooled: linker(engines.engine(Place::Pooled))?, on_demand: linker(engines.engine(Place::OnDemand))? })
    }

    /// A component with its imports resolved, compared type by type.
    pub(crate) fn prepare(&self, place: Place, component: &Component) -> wasmtime::Result<StepPre<Guest>> {
        let linker = match place {
            Place::Pooled => &self.pooled,
            Place::OnDemand => &self.on_demand,
        };
        StepPre::new(linker.instantiate_pre(component)?)
    }
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasi::add_to_linker(&mut linker)?;
    Step::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest)?;
    Ok(linker)
}

/// What is wrong with an import, by its name and the names in it.
pub(crate) fn judge(name: &str, import: &Import) -> Vec<Problem> {
    let functions = match import {
        Import::Interface(functions) => functions,
        Import::Other(what) => return vec![unknown(name, what)],
    };
    let (interface, version) = name.split_once('@').unwrap_or((name, ""));
    if let Some(own) = interface.strip_prefix("interlock:step/") {
        let Some((_, known)) = FUNCTIONS.iter().find(|(known, _)| *known == own) else {
            return if functions.is_empty() { Vec::new() } else { vec![newer(name, "an interface")] };
        };
        if !version.starts_with("0.1.") {
            return vec![other_version(name, version)];
        }
        let unknown = functions.iter().filter(|function| !known.contains(&function.as_str()));
        return unknown.map(|function| newer(&format!("{name} {function}"), "a function")).collect();
    }
    if functions.is_empty() || (is_wasi(interface) && is_wasi_02(version)) {
        return Vec::new();
    }
    vec![unknown(name, "an interface")]
}

fn is_wasi(interface: &str) -> bool {
    WASI.contains(&interface)
}

/// Released versions are compatible with each other; drafts of 0.2.0 with nothing.
fn is_wasi_02(version: &str) -> bool {
    version.starts_with("0.2.") && !version.contains('-')
}

fn newer(subject: &str, what: &str) -> Problem {
    Problem {
        code: "unknown-import",
        subject: subject.to_owned(),
        expected: format!("interlock:step {STEP_VERSION} as this host links it"),
        got: format!("{what} that it does not have"),
        remedy: "build with the SDK of this host's release, or update the host".to_owned(),
    }
}

fn other_version(name: &str, version: &str) -> Problem {
    Problem {
        code: "unknown-import",
        subject: name.to_owned(),
        expected: format!("interlock:step {STEP_VERSION}"),
        got: format!("version {}", if version.is_empty() { "none" } else { version }),
        remedy: "build with the SDK of this host's release".to_owned(),
    }
}

fn unknown(name: &str, what: &str) -> Problem {
    let package = name.split(['/', '@']).next().unwrap_or(name);
    let (got, remedy) = match package {
        "wasi:http" => (
            "an interface that sends requests by itself".to_owned(),
            "not linked: a request that a step sends cannot be taken back when its transition is refused; declare \
             an effect instead, which is sent after the commit with the fencing token",
        ),
        "wasi:keyvalue" | "wasi:blobstore" | "wasi:sql" => (
            "an interface that writes by itself".to_owned(),
            "not linked: keep it in `data`, or in a table (interlock:step/rows), which commits with the transition",
        ),
        "wasi:messaging" => (
            "an interface that sends by itself".to_owned(),
            "not linked: declare an effect instead, which is sent after the commit with the fencing token",
        ),
        "wasi:config" => (
            "an interface for settings".to_owned(),
            "not linked: put settings into `desired`, which is recorded and has a schema",
        ),
        "wasi:logging" => ("another interface for logs".to_owned(), "use interlock:step/log, or standard output"),
        other if other.starts_with("wasi:") && !is_wasi(name.split('@').next().unwrap_or(name)) => (
            "an interface of WASI that is not linked".to_owned(),
            "build for wasm32-wasip2 without the library that imports it",
        ),
        other if other.starts_with("wasi:") => {
            (format!("{what} of another release of WASI"), "build for WASI 0.2: target wasm32-wasip2")
        }
        "env" => (what.to_owned(), "a function of C was declared and not linked: link the library that defines it"),
        _ => (what.to_owned(), "remove the dependency that imports it, or compose it into the component (`wac plug`)"),
    };
    Problem {
        code: "unknown-import",
        subject: name.to_owned(),
        expected: "interlock:step 0.1 and WASI 0.2, nothing else".to_owned(),
        got,
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::FUNCTIONS;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Functions of an interface, as the component model spells their names.
    fn functions(text: &str) -> BTreeSet<String> {
        let mut resource = None;
        let mut found = BTreeSet::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            if let Some(name) = line.strip_prefix("resource ") {
                resource = name.split([' ', ';']).next();
            } else if line == "}" {
                resource = None;
            } else if let Some((name, rest)) = line.split_once(": ") {
                match (rest.starts_with("static func("), rest.starts_with("func("), resource) {
                    (true, _, Some(resource)) => found.insert(format!("[static]{resource}.{name}")),
                    (_, true, Some(resource)) => found.insert(format!("[method]{resource}.{name}")),
                    (_, true, None) => found.insert(name.to_owned()),
                    _ => false,
                };
            }
        }
        found
    }

    #[test]
    fn every_function_of_the_contract_is_known_by_name() {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        for (interface, known) in FUNCTIONS {
            let text =
                std::fs::read_to_string(wit.join(format!("{interface}.wit"))).expect("an interface has its file");
            let known: BTreeSet<String> = known.iter().map(ToString::to_string).collect();
            assert_eq!(functions(&text), known, "{interface}");
        }
    }
}
