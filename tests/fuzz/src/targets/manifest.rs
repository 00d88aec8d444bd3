//! Manifests: every problem has a place, and what is accepted is a machine.

use super::holds;
use crate::target::{Broken, Seen, Target};
use interlock_kernel::doc::Doc;
use interlock_kernel::machine::{Contract, FailurePath, Machine, StateKind};
use interlock_kernel::record::{Key, Record};
use interlock_kernel::view::Schema;
use interlock_manifest::{CompiledMachine, MANIFEST_SCHEMA, Problem, Report, Severity, parse, render};
use std::sync::{Arc, LazyLock};

/// See the module.
pub(crate) struct Manifest;

const WORDS: &str = "\
    machine¦owner¦component¦initial¦revisions¦apply¦labels¦desired¦data¦outputs¦events¦states¦limits¦schema¦\
    default¦on_busy¦dedup¦kind¦outcome¦step¦to¦on¦after¦deadline¦wait¦idle¦total¦retry¦on_failure¦on_permanent¦\
    on_exhausted¦guard¦set¦name¦attempts¦first¦factor¦max¦jitter¦memory¦transitions¦execution¦history¦field¦op¦\
    value¦all¦any¦from¦json¦increment¦append¦min¦remove¦rest¦final¦working¦succeeded¦failed¦forever¦park¦queue¦\
    reject¦pinned¦newest¦if-match¦last-writer¦killed¦desired-changed¦eq¦ne¦lt¦in¦not-in¦exists¦contains¦\
    starts-with¦now+5m¦event.size¦data.size¦data.nodes[0]¦outputs.x¦row.x¦execution¦1ms¦90s¦30d¦64MiB¦4GiB¦true¦\
    false¦{}¦[]¦{ ¦ }¦[[¦]]¦[states.ready]\n¦kind = \"rest\"\n¦\"\"¦\"\"\"¦'''¦$ref¦#/$defs/a¦$defs¦$id¦$anchor¦\
    $dynamicRef¦type¦object¦string¦integer¦properties¦patternProperties¦additionalProperties¦required¦anyOf¦allOf¦\
    oneOf¦not¦if¦then¦else¦enum¦const¦pattern¦format¦date-time¦items¦prefixItems¦contains¦minimum¦maxLength¦\
    (a{1000}){1000}¦(a+)+$¦1979-05-27T07:32:00Z¦inf¦nan¦0x7fffffffffffffff¦1_000¦= ¦.¦\n¦\u{0}¦\u{85}¦é¦𝄞¦# ";

/// The schema for editors, compiled as any author's schema is.
static FOR_EDITORS: LazyLock<Option<CompiledMachine>> = LazyLock::new(|| {
    let report = parse("editors", "machine = \"m\"\nowner = \"o\"\ninitial = \"r\"\nstates.r = { kind = \"rest\" }\n");
    let schema = Doc::parse(MANIFEST_SCHEMA).ok();
    let machine = Machine { data: Contract { schema, default: None }, ..report.manifest?.machine };
    CompiledMachine::compile(&machine).ok()
});

impl Target for Manifest {
    fn name(&self) -> &'static str {
        "manifest"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let text = String::from_utf8_lossy(input);
        let report = parse("machine.toml", &text);
        let mut seen = Seen::default();
        for problem in &report.problems {
            place(problem, &text)?;
            seen.note(&problem.code);
            problem.message.split(": ").for_each(|part| seen.say(part));
            seen.say(&problem.remedy);
        }
        shown(&report)?;
        let errors = report.count(Severity::Error);
        holds!(
            report.manifest.is_some() == (errors == 0 && !report.incomplete),
            "{errors} errors, incomplete {}, and a manifest: {}",
            report.incomplete,
            report.manifest.is_some()
        );
        let Some(manifest) = report.manifest else { return Ok(seen) };
        seen.note(&"accepted");
        let again = parse("another name", &manifest.source).manifest;
        holds!(again.as_ref() == Some(&manifest), "the same text is another manifest the second time");
        machine(&manifest.machine, &mut seen)?;
        for_editors(&text)?;
        Ok(seen)
    }
}

/// Where a problem says it stands, counted again from the text.
pub(super) fn place(problem: &Problem, text: &str) -> Result<(), Broken> {
    let Problem { code, span, line, column, message, remedy, .. } = problem;
    let before = text.get(..span.start).ok_or(format!("{code}: no place in the file begins at {}", span.start))?;
    holds!(text.get(span.clone()).is_some(), "{code}: no place in the file: {span:?} of {}", text.len());
    let lines = before.matches('\n').count() + 1;
    let characters = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    holds!((*line, *column) == (lines, characters), "{code}: {line}:{column} is {lines}:{characters}");
    holds!(!message.is_empty() && !remedy.is_empty(), "{code}: without words or remedy: {problem:?}");
    holds!(!message.contains('\n'), "{code}: more than a line: {message:?}");
    Ok(())
}

/// In the order of the file, and each shown with its code.
pub(super) fn shown(report: &Report) -> Result<(), Broken> {
    let starts: Vec<usize> = report.problems.iter().map(|problem| problem.span.start).collect();
    holds!(starts.is_sorted(), "not in the order of the file: {starts:?}");
    let rendered = render(report, false);
    holds!(rendered.is_empty() == report.problems.is_empty(), "{} problems: {rendered:?}", report.problems.len());
    for problem in &report.problems {
        holds!(rendered.contains(problem.code), "{} is not shown", problem.code);
    }
    Ok(())
}

/// What the kernel relies on without looking again.
fn machine(machine: &Machine, seen: &mut Seen) -> Result<(), Broken> {
    let compiled = CompiledMachine::compile(machine).map_err(|why| format!("accepted, and yet {why}"))?;
    for (schema, contract) in [(Schema::Desired, &machine.desired), (Schema::Data, &machine.data)] {
        if let Some(default) = &contract.default {
            let judged = compiled.check(schema, default);
            holds!(judged.is_ok(), "a default of {schema} that breaks its schema: {judged:?}");
        }
    }
    let kind = |name| machine.state(name).map(|state| state.kind);
    holds!(kind(&machine.initial) == Some(StateKind::Rest), "it begins in {}, which is no rest", machine.initial);
    for (name, state) in &machine.states {
        let timers = state.after.iter().map(|timer| &timer.then);
        let moves = state.to.iter().chain(state.on.values().flatten()).chain(timers);
        let paths = [&state.on_permanent, &state.on_exhausted].into_iter().filter_map(|path| match path {
            FailurePath::Park => None,
            FailurePath::To { to, .. } => Some(to),
        });
        for target in moves.filter_map(|one| one.to.as_ref()).chain(paths) {
            holds!(machine.states.contains_key(target), "{name} leads to {target}, which is not declared");
        }
        let bounded = state.deadline_ms.is_some() || state.waits_forever || !state.after.is_empty();
        holds!(state.kind != StateKind::Working || bounded, "{name} may last for ever without saying so");
        holds!(state.idle_ms <= state.total_ms, "{name} may be idle for {} of {}", state.idle_ms, state.total_ms);
        seen.size("events", state.on.len());
    }
    seen.size("states", machine.states.len());
    stored(machine)
}

/// A machine comes back from its stored bytes.
fn stored(machine: &Machine) -> Result<(), Broken> {
    let revision = super::world::revision(machine.clone());
    let key = Key::Revision(machine.name.clone(), 1);
    let record = Record::Revision(Arc::new(revision));
    let read = Record::decode(&key, &record.encode(&key)).map_err(|corrupt| corrupt.to_string())?;
    holds!(read == record, "the stored machine is another one: {machine:?}");
    Ok(())
}

/// What the parser takes, an editor does not mark.
fn for_editors(text: &str) -> Result<(), Broken> {
    let schema = FOR_EDITORS.as_ref().ok_or("the schema for editors does not compile")?;
    let Ok(value) = toml::from_str::<serde_json::Value>(text) else { return Ok(()) };
    let judged = schema.check(Schema::Data, &Doc::new(value));
    holds!(judged.is_ok(), "the schema for editors refuses what is accepted: {judged:?}");
    Ok(())
}
