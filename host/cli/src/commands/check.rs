//! `interlock check`: every problem of every manifest, at once.

use super::input::{SCHEDULE_ENDING, TABLE_ENDING, ends, manifest, manifests, read};
use crate::args::Check;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show::{self, Sound};
use interlock_daemon::effects::{Configuration, not_admitted};
use interlock_kernel::machine::Machine;
use interlock_kernel::time::WallTime;
use interlock_manifest::{Report, Severity, parse_as_of, parse_schedule, parse_table, unshared_fences};
use interlock_store::{Clock as _, SystemClock};

/// Runs it: warnings are no failure, errors are.
pub(crate) fn run(args: &Check, out: Out) -> Result<(), Failed> {
    let today = WallTime(SystemClock::new().wall_ms());
    let configuration = args.config.as_deref().map(Configuration::read_whole).transpose();
    let configuration = configuration.map_err(|why| Failed::Input(format!("{why:#}")))?;
    let mut reports: Vec<Report> = Vec::new();
    let mut sound: Vec<(usize, Sound)> = Vec::new();
    for file in &args.files {
        let of_kind =
            |ending| if file.is_dir() || ends(file, ending) { manifests(file, ending) } else { Ok(Vec::new()) };
        let (of_tables, of_schedules) = (of_kind(TABLE_ENDING)?, of_kind(SCHEDULE_ENDING)?);
        for path in &of_schedules {
            match parse_schedule(&path.display().to_string(), &read(path)?) {
                Ok((schedule, report)) => {
                    sound.push((reports.len(), Sound::Schedule(schedule)));
                    reports.push(report);
                }
                Err(report) => reports.push(*report),
            }
        }
        for path in &of_tables {
            match parse_table(&path.display().to_string(), &read(path)?) {
                Ok((table, report)) => {
                    sound.push((reports.len(), Sound::Table(table)));
                    reports.push(report);
                }
                Err(report) => reports.push(*report),
            }
        }
        // A folder may have tables or schedules and no machine.
        let others = of_tables.len() + of_schedules.len();
        if others > 0 && !file.join("machine.toml").is_file() {
            continue;
        }
        let (path, text) = manifest(file)?;
        let mut report = parse_as_of(today, &path.display().to_string(), &text);
        if let (Some(configuration), Some(manifest)) = (&configuration, &report.manifest) {
            report.problems.extend(not_admitted(&text, &manifest.machine, configuration));
        }
        reports.push(report);
    }
    together(&mut reports);
    out.result(&reports, |paint| {
        let sound = |nth| sound.iter().find(|(at, _)| *at == nth).map(|(_, sound)| sound);
        reports.iter().enumerate().map(|(nth, report)| show::report(report, sound(nth), paint)).collect()
    });
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
