//! `interlock check`: every problem of every manifest, at once.

use super::input::manifest;
use crate::args::Check;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_daemon::effects::{Configuration, not_admitted};
use interlock_kernel::machine::Machine;
use interlock_kernel::time::WallTime;
use interlock_manifest::{Report, Severity, parse_as_of, unshared_fences};
use interlock_store::{Clock as _, SystemClock};

/// Runs it: warnings are no failure, errors are.
pub(crate) fn run(args: &Check, out: Out) -> Result<(), Failed> {
    let today = WallTime(SystemClock::new().wall_ms());
    let configuration = args.config.as_deref().map(Configuration::read_whole).transpose();
    let configuration = configuration.map_err(|why| Failed::Input(format!("{why:#}")))?;
    let mut reports: Vec<Report> = Vec::new();
    for file in &args.files {
        let (path, text) = manifest(file)?;
        let mut report = parse_as_of(today, &path.display().to_string(), &text);
        if let (Some(configuration), Some(manifest)) = (&configuration, &report.manifest) {
            report.problems.extend(not_admitted(&text, &manifest.machine, configuration));
        }
        reports.push(report);
    }
    together(&mut reports);
    out.result(&reports, |paint| reports.iter().map(|report| show::report(report, paint)).collect());
    let errors: usize = reports.iter().map(|report| report.count(Severity::Error)).sum();
    if errors > 0 { Out::over(Code::Input) } else { Ok(()) }
}

/// What is wrong between machines that are each sound.
fn together(reports: &mut [Report]) {
    let sound = reports.iter().filter_map(|report| report.manifest.as_ref());
    let machines: Vec<Machine> = sound.map(|manifest| manifest.machine.clone()).collect();
    for report in reports {
        if let Some(manifest) = &report.manifest {
            report.problems.extend(unshared_fences(manifest, &machines));
        }
    }
}
