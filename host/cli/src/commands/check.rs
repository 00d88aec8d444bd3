//! `interlock check`: every problem of every manifest, at once.

use super::input::manifest;
use crate::args::Check;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_kernel::time::WallTime;
use interlock_manifest::{Report, Severity, parse_as_of};
use interlock_store::{Clock as _, SystemClock};

/// Runs it: warnings are no failure, errors are.
pub(crate) fn run(args: &Check, out: Out) -> Result<(), Failed> {
    let today = WallTime(SystemClock::new().wall_ms());
    let mut reports: Vec<Report> = Vec::new();
    for file in &args.files {
        let (path, text) = manifest(file)?;
        reports.push(parse_as_of(today, &path.display().to_string(), &text));
    }
    out.result(&reports, |paint| reports.iter().map(|report| show::report(report, paint)).collect());
    let errors: usize = reports.iter().map(|report| report.count(Severity::Error)).sum();
    if errors > 0 { Out::over(Code::Input) } else { Ok(()) }
}
