//! One script, two hosts: the steps of `survey` and `resource` as functions of this program, as the mock host runs
//! them, and as the components that they are. What they ask, what they are told and what is on record is the same.

use anyhow::{Context as _, Result, ensure};
use interlock_coordinator::{Ended, Executor};
use interlock_kernel::command::{Create, OnExisting, Verb};
use interlock_kernel::doc::{Digest, Doc};
use interlock_kernel::ids::{EntityId, Principal};
use interlock_kernel::record::Expect;
use interlock_kernel::view::Event;
use interlock_lab::{Asked, Fault, Lab, Seen, Told, Turn};
use interlock_mock::Native;
use interlock_runtime::{EngineOptions, Engines, Library, Wasm};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

#[path = "../../../../guests/resource/src/lib.rs"]
mod resource;
#[path = "../../../../guests/survey/src/lib.rs"]
mod survey;

/// What a script does to one entity, and what happens at the calls of its steps.
struct Script {
    guest: &'static str,
    acts: Vec<Act>,
    /// Before this call of this attempt's, counted over all attempts: its number in the attempt, and what.
    fault: Option<(u32, Fault)>,
}

enum Act {
    Apply(Value),
    Send(&'static str, Value),
    Pass(u64),
}

/// Both hosts, with what stands for the component on each.
struct Hosts {
    native: (Native, Digest),
    wasm: (Wasm, Digest),
    manifest: String,
    _folder: tempfile::TempDir,
}

impl Hosts {
    async fn of(guest: &str, steps: &'static [interlock::Step]) -> Result<Self> {
        let options = EngineOptions { executions_max: 4, guest_threads: 0, ..EngineOptions::default() };
        let folder = tempfile::tempdir()?;
        let library = Library::open(&Engines::new(options)?, folder.path())?;
        let component = std::fs::read(interlock_support::guest(guest)?)?;
        let added = library.add(component).await?;
        let native = Native::new();
        let stands_for_it = native.add(steps);
        let path = interlock_support::guest_folder(guest).join("machine.toml");
        let manifest = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(Self {
            native: (native, stands_for_it),
            wasm: (Wasm::new(library), added.digest),
            manifest,
            _folder: folder,
        })
    }

    fn both(&self, script: &Script) -> Result<[Vec<String>; 2]> {
        let native = play(Arc::new(self.native.0.clone()), self.native.1, &self.manifest, script)?;
        let wasm = play(Arc::new(self.wasm.0.clone()), self.wasm.1, &self.manifest, script)?;
        Ok([native, wasm])
    }
}

/// Plays a script; everything that was seen, in words, and what is on record in the end.
fn play(executor: Arc<dyn Executor>, component: Digest, manifest: &str, script: &Script) -> Result<Vec<String>> {
    let mut lab = Lab::new(executor)?;
    let read = interlock_manifest::parse("machine.toml", manifest).manifest.context("a sound machine")?;
    lab.deploy(&read, manifest, Some(component))?;
    let entity: EntityId = format!("{}/it", script.guest).parse()?;
    let (labels, on_existing) = (BTreeMap::new(), OnExisting::Fail);
    let create = Create { entity: entity.clone(), desired: None, labels, on_existing, event: None };
    lab.submit(Principal::local(), Verb::Create(Box::new(create)))?;
    let mut fault = script.fault;
    let mut turn = move |held: &interlock_lab::Held| match fault {
        Some((call, what)) if held.nth == call && !matches!(held.asked, Asked::LookAgain) => {
            fault = None;
            Turn::Fault(what)
        }
        _ => Turn::Go,
    };
    let mut said = Vec::new();
    for (nth, act) in script.acts.iter().enumerate() {
        match act {
            Act::Apply(desired) => {
                let id = entity.clone();
                let view = lab.read(|host| async move { host.entity(&id).await })?;
                let expect = view.map(|view| view.head.generation);
                let (entity, desired) = (entity.clone(), Doc::new(desired.clone()));
                let verb = Verb::Apply { entity, desired, expect, checked: None };
                said.push(format!("{:?}", lab.submit(Principal::local(), verb)));
            }
            Act::Send(name, payload) => {
                let (id, name) = (format!("e{nth}").parse()?, name.parse()?);
                let payload = Some(Doc::new(payload.clone()));
                let event = Box::new(Event { id, name, payload, expect: Expect::default(), checked: None });
                let verb = Verb::Deliver { entity: entity.clone(), event };
                said.push(format!("{:?}", lab.submit(Principal::local(), verb)));
            }
            Act::Pass(ms) => lab.advance(*ms, &mut turn)?,
        }
        lab.settle(&mut turn)?;
        said.extend(lab.take_seen().iter().map(words));
    }
    said.extend(record(&lab, &entity)?);
    Ok(said)
}

fn record(lab: &Lab, id: &EntityId) -> Result<Vec<String>> {
    let (view, history) = lab.read(|host| {
        let id = id.clone();
        async move { Ok((host.entity(&id).await?, host.history(&id, None, None, 500).await?)) }
    })?;
    let (view, history) = (view.context("an entity")?, history.context("its history")?);
    let entries = history.entries.iter().rev().map(|entry| {
        let token = entry.token.map_or(0, |token| token.get());
        format!("h{} v{} token {token}: {}", entry.number, entry.version, entry.sentence())
    });
    let documents = [&view.documents.data, &view.documents.outputs];
    let documents = documents.map(|document| format!("{:?}", document.as_ref().map(plain)));
    let conditions =
        view.conditions.iter().map(|one| format!("{} {} {} {}", one.kind, one.status, one.reason, one.message));
    Ok(entries
        .chain(documents)
        .chain(conditions)
        .chain([format!("{} {:?}", view.head.state, view.head.park)])
        .collect())
}

fn words(seen: &Seen) -> String {
    match seen {
        Seen::Began { place, start } => {
            let claim = &start.claim;
            format!("{place} begins {} attempt {} token {} {:?}", start.step, claim.attempt, claim.token, start.cause)
        }
        Seen::Told { held, told } => {
            let asked = match &held.asked {
                Asked::Save(change) => format!("save {:?} {:?}", change.data.as_ref().map(plain), change.conditions),
                Asked::Transition(to, change) => {
                    let documents = [&change.data, &change.outputs].map(|document| document.as_ref().map(plain));
                    format!("{to} {documents:?} {:?}", change.conditions)
                }
                Asked::Reload => "reload".to_owned(),
                Asked::LookAgain => "look again".to_owned(),
                Asked::StillHolds => "still holds".to_owned(),
                Asked::Lease(ask) => format!("{ask:?}"),
                Asked::StillHoldsLease(held) => format!("still holds {}", held.lease),
                Asked::Rows(ask) => format!("{ask:?}"),
                Asked::Query(ask) => format!("{ask:?}"),
            };
            let told = match told {
                Told::Written(done) => format!("v{} {:?}", done.version, done.rows),
                Told::Rows(answers, replayed) => format!("{answers:?} {replayed}"),
                Told::Found(found) => format!("{found:?}"),
                Told::Read(snapshot) => {
                    format!("v{} {:?}", snapshot.version, snapshot.documents.data.as_ref().map(plain))
                }
                Told::Holds(holds) => holds.to_string(),
                Told::Leased(held, ttl_ms) => format!("{} token {} for {ttl_ms} ms", held.lease, held.token),
                Told::Released => "released".to_owned(),
                Told::Refused(error) => error.to_string(),
            };
            format!("{} {} asks {asked}: {told}", held.place, held.nth)
        }
        Seen::Over { place, ended } => match ended {
            Some(Ended::Failed(failure)) => format!("{place} failed: {failure:?}"),
            Some(Ended::Returned) => format!("{place} returned"),
            None => format!("{place} vanished"),
        },
    }
}

/// A document without the places that the search found: a build for tests searches less.
fn plain(document: &Doc) -> Value {
    let mut value = document.value().clone();
    if let Some(nodes) = value.get_mut("nodes") {
        *nodes = json!(nodes.as_array().map(Vec::len));
    }
    value
}

fn same(guest: &str, fault: Option<(u32, Fault)>, [native, wasm]: [Vec<String>; 2]) -> Result<()> {
    ensure!(native.len() > 8, "{guest}: something happened: {native:#?}");
    let differs = native.iter().zip(&wasm).position(|(native, wasm)| native != wasm);
    let place = differs.or_else(|| (native.len() != wasm.len()).then(|| native.len().min(wasm.len())));
    if let Some(place) = place {
        let shown = |lines: &[String]| lines.get(place.saturating_sub(3)..).unwrap_or_default().join("\n  ");
        anyhow::bail!("{guest}, {fault:?}: native\n  {}\nwasm\n  {}", shown(&native), shown(&wasm));
    }
    Ok(())
}

fn run<T>(future: impl Future<Output = T>) -> Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(future))
}

const FAULTS: [Fault; 5] =
    [Fault::Conflict, Fault::Unavailable, Fault::Unknown { kept: true }, Fault::Unknown { kept: false }, Fault::Crash];

#[test]
fn a_long_step_saves_and_recovers_alike() -> Result<()> {
    let hosts = run(Hosts::of("survey", survey::STEPS))??;
    let faults = FAULTS.into_iter().flat_map(|fault| (1..=3).map(move |call| Some((call, fault))));
    for fault in faults.chain([None]) {
        let acts = vec![Act::Send("go", json!({ "parts": 2 })), Act::Pass(5_000)];
        same("survey", fault, hosts.both(&Script { guest: "survey", acts, fault })?)?;
    }
    Ok(())
}

#[test]
fn a_resize_goes_alike_on_every_path() -> Result<()> {
    let hosts = run(Hosts::of("resource", resource::STEPS))??;
    let images = ["train", "train-512g", "train-slow-start", "train-never-starts", "train-withdrawn"];
    for image in images {
        let acts = vec![
            Act::Apply(json!({ "image": image })),
            Act::Pass(600_000),
            Act::Send("resize", json!({ "size": 3 })),
            Act::Pass(200_000),
        ];
        same(image, None, hosts.both(&Script { guest: "resource", acts, fault: None })?)?;
    }
    for fault in FAULTS {
        let acts = vec![Act::Apply(json!({ "image": "train" })), Act::Pass(600_000)];
        let fault = Some((1, fault));
        same("resource", fault, hosts.both(&Script { guest: "resource", acts, fault })?)?;
    }
    Ok(())
}

/// A component is ended where it waits; a function is told once that it lost its entity, and what it asks then is
/// on record as a fact. Nothing else differs.
#[test]
fn a_lost_attempt_ends_alike_but_for_its_last_words() -> Result<()> {
    let hosts = run(Hosts::of("survey", survey::STEPS))??;
    for call in 1..=3 {
        let acts = vec![Act::Send("go", json!({ "parts": 2 })), Act::Pass(5_000)];
        let script = Script { guest: "survey", acts, fault: Some((call, Fault::Fenced)) };
        let versions = |lines: &[String]| -> Vec<String> {
            let on_record = lines.iter().filter(|line| line.starts_with('h') && !line.contains(": fenced: "));
            // Without their numbers: the fact has one.
            let mut kept: Vec<String> =
                on_record.map(|line| line.split_once(' ').unwrap_or_default().1.to_owned()).collect();
            kept.extend(lines.iter().rev().take(4).cloned());
            kept.iter().map(|line| without_token(line)).collect()
        };
        let [native, wasm] = hosts.both(&script)?.map(|lines| versions(&lines));
        same("survey", script.fault, [native, wasm])?;
    }
    Ok(())
}

/// The fact is a job of its own, so tokens minted after it are higher by one.
fn without_token(line: &str) -> String {
    match line.split_once(" token ") {
        Some((before, after)) => format!("{before}: {}", after.split_once(": ").unwrap_or_default().1),
        None => line.to_owned(),
    }
}
