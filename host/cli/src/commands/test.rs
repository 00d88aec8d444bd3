//! `interlock test`: plays scenarios on whole hosts in memory, under time that they move.

use super::files::Files;
use super::input;
use super::stage::{Found, Theatre, aside, find, manifest, only, scenarios_of, short};
use crate::args::{Test, Update};
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use futures_util::StreamExt as _;
use interlock_lab::scenario::{Coverage, Miss, Played, Row, Scenario, Stage, play};
use interlock_manifest::Report;
use interlock_store::{Clock as _, SystemClock};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs it, once or each time something changes.
pub(crate) async fn run(args: Test, out: Out) -> Result<(), Failed> {
    let theatre = Theatre::open()?;
    if !args.watch {
        return once(&args, &theatre, out).await?.verdict();
    }
    let watched: Vec<PathBuf> = args.paths.iter().chain(&args.component).cloned().collect();
    loop {
        let before = Files::of(&watched);
        match once(&args, &theatre, out).await {
            Ok(_) => {}
            // What is wrong may be what the next change mends.
            Err(failed) => out.failed(&failed),
        }
        out.hint("\nwatching for changes; Ctrl-C ends it");
        before.changed(&watched).await;
        out.hint("");
    }
}

/// What came of one run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tested {
    /// By machine.
    pub(crate) machines: Vec<OfMachine>,
    /// Scenarios that were as they should be.
    pub(crate) ok: usize,
    /// Those that were not.
    pub(crate) failed: usize,
    /// Those that could not be read.
    pub(crate) unreadable: usize,
    /// Transcripts that were written.
    pub(crate) written: usize,
    /// Virtual time that passed in all of them, in ms.
    pub(crate) virtual_ms: u64,
    /// How long it took, in ms.
    pub(crate) took_ms: u64,
}

/// The scenarios of one machine.
#[derive(Debug, Serialize)]
pub(crate) struct OfMachine {
    pub(crate) folder: String,
    pub(crate) machine: String,
    pub(crate) scenarios: Vec<OfScenario>,
    /// Those that could not be read, with every problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreadable: Vec<Report>,
    /// What all of them together reach; none if some were left out or could not be read.
    pub(crate) coverage: Option<Vec<Row>>,
}

/// One scenario.
#[derive(Debug, Serialize)]
pub(crate) struct OfScenario {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) ok: bool,
    /// Virtual time that passed, in ms.
    pub(crate) virtual_ms: u64,
    /// How long it took, in ms.
    pub(crate) took_ms: u64,
    /// What was not as it should be.
    pub(crate) misses: Vec<MissView>,
    /// How the story differs from the transcript beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<Transcript>,
    /// What happened, if it was not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) story: Option<String>,
    /// Where each entity stands in the end, if it was not as it should be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stands: Vec<Stands>,
}

/// Something that is not as a scenario says.
#[derive(Debug, Serialize)]
pub(crate) struct MissView {
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

/// Where an entity stands.
#[derive(Debug, Serialize)]
pub(crate) struct Stands {
    pub(crate) entity: String,
    pub(crate) stands: String,
}

/// What became of the transcript beside a scenario.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transcript {
    /// The story is as it says.
    Same,
    /// It was written anew.
    Written,
    /// It differs.
    Differs {
        /// Its file.
        file: String,
        /// Line by line.
        how: String,
    },
}

impl Tested {
    fn verdict(&self) -> Result<(), Failed> {
        match (self.unreadable, self.failed) {
            (0, 0) => Ok(()),
            (0, _) => Out::over(Code::Refused),
            (_, _) => Out::over(Code::Input),
        }
    }
}

async fn once(args: &Test, theatre: &Theatre, out: Out) -> Result<Tested, Failed> {
    let clock = SystemClock::new();
    let mut tested = Tested::default();
    let all = find(&args.paths)?;
    if let (Some(_), [_, _, ..]) = (&args.component, all.as_slice()) {
        let got = all.len();
        return Err(Failed::Input(format!("--component: expected one machine's folder, got {got}")));
    }
    for found in &all {
        let of = machine(args, found, theatre, &mut tested, out).await?;
        if let Some(rows) = of.coverage.as_ref().filter(|_| !out.json) {
            out.text(&show::coverage(&of.machine, rows, out.paint));
        }
        tested.machines.push(of);
    }
    tested.took_ms = ms(clock.monotonic());
    out.result(&tested, |paint| show::tested(&tested, paint));
    Ok(tested)
}

async fn machine(
    args: &Test,
    found: &Found,
    theatre: &Theatre,
    tested: &mut Tested,
    out: Out,
) -> Result<OfMachine, Failed> {
    let manifest = manifest(&found.folder, out)?;
    let mut coverage = Coverage::new(&manifest.machine);
    let mut of = OfMachine {
        folder: found.folder.display().to_string(),
        machine: manifest.machine.name.to_string(),
        scenarios: Vec::new(),
        unreadable: Vec::new(),
        coverage: None,
    };
    let (mut scenarios, unreadable) = scenarios_of(found, &manifest)?;
    tested.unreadable += unreadable.len();
    if !out.json {
        unreadable.iter().for_each(|report| out.findings_of(report));
    }
    of.unreadable = unreadable;
    let left_out = match &args.filter {
        Some(text) => only(&mut scenarios, text, &of.unreadable)?,
        None => 0,
    };
    let stage = theatre.stage(&found.folder, manifest, args.component.as_deref(), out).await?.stage;
    if !out.json && !scenarios.is_empty() {
        out.text(&show::machine_tested(&of.machine, &of.folder, scenarios.len(), out.paint));
    }
    let width = scenarios.iter().map(|scenario| scenario.name.chars().count()).max().unwrap_or_default();
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = futures_util::stream::iter(scenarios.into_iter().map(|scenario| {
        let stage = stage.clone();
        aside(move || performed(scenario, &stage))
    }))
    .buffered(at_once);
    while let Some(performed) = all.next().await {
        let Performed { scenario, played, took } = performed??;
        coverage.add(&played.reached);
        let one = judged(&scenario, &played, took, args.update)?;
        tested.count(&one);
        if !out.json {
            out.text(&show::scenario(&one, width, out.paint));
        }
        of.scenarios.push(one);
    }
    of.coverage = (left_out + of.unreadable.len() == 0).then(|| coverage.rows());
    Ok(of)
}

/// A scenario that was played, and how long that took.
struct Performed {
    scenario: Scenario,
    played: Played,
    took: Duration,
}

fn performed(scenario: Scenario, stage: &Stage) -> Result<Performed, Failed> {
    let clock = SystemClock::new();
    let played = play(&scenario, stage).map_err(anyhow::Error::from)?;
    Ok(Performed { scenario, played, took: clock.monotonic() })
}

fn judged(scenario: &Scenario, played: &Played, took: Duration, update: Option<Update>) -> Result<OfScenario, Failed> {
    let good = played.misses.is_empty();
    // A story that is not as it should be is neither compared nor kept.
    let transcript = if good { transcript(scenario, &played.transcript(scenario), update)? } else { None };
    let ok = good && !matches!(transcript, Some(Transcript::Differs { .. }));
    let stands = |(entity, stands): &(interlock_kernel::ids::EntityId, String)| Stands {
        entity: entity.key.to_string(),
        stands: stands.clone(),
    };
    Ok(OfScenario {
        file: scenario.file.clone(),
        name: scenario.name.clone(),
        ok,
        virtual_ms: played.passed_ms,
        took_ms: ms(took),
        misses: played.misses.iter().map(MissView::of).collect(),
        transcript,
        story: (!good).then(|| played.told("")),
        stands: if good { Vec::new() } else { played.stands.iter().map(stands).collect() },
    })
}

/// Compares the story with the transcript beside the scenario, or writes it there.
fn transcript(scenario: &Scenario, told: &str, update: Option<Update>) -> Result<Option<Transcript>, Failed> {
    let file = Path::new(&scenario.file).with_file_name(format!("{}.transcript", short(scenario)));
    let kept = if file.is_file() { Some(input::read(&file)?) } else { None };
    match (kept, update) {
        (Some(kept), _) if kept == told => Ok(Some(Transcript::Same)),
        (Some(_), Some(_)) | (None, Some(Update::All)) => {
            std::fs::write(&file, told).map_err(|why| Failed::Input(format!("{}: {why}", file.display())))?;
            Ok(Some(Transcript::Written))
        }
        (Some(kept), None) => {
            let file = file.display().to_string();
            Ok(Some(Transcript::Differs { file, how: show::diff(&kept, told) }))
        }
        (None, _) => Ok(None),
    }
}

impl Tested {
    fn count(&mut self, one: &OfScenario) {
        self.ok += usize::from(one.ok);
        self.failed += usize::from(!one.ok);
        self.written += usize::from(one.transcript == Some(Transcript::Written));
        self.virtual_ms = self.virtual_ms.saturating_add(one.virtual_ms);
    }
}

impl MissView {
    fn of(miss: &Miss) -> Self {
        let Miss { line, what, expected, got } = miss.clone();
        Self { line, what, expected, got }
    }
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
