//! `interlock inspect`: what a component can do, and what keeps it from being deployed.

use crate::args::Inspect;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_runtime::{EngineOptions, Engines, inspect};

/// Runs it.
pub(crate) fn run(args: &Inspect, out: Out) -> Result<(), Failed> {
    let name = args.file.display();
    let bytes = std::fs::read(&args.file).map_err(|why| Failed::Input(format!("{name}: {why}")))?;
    let engines = Engines::new(EngineOptions { executions_max: 1, guest_threads: 1, ..EngineOptions::default() })
        .map_err(anyhow::Error::from)?;
    match inspect(&engines, &bytes) {
        Ok(inspection) => {
            out.result(&inspection, |paint| show::inspection(&name.to_string(), &inspection, paint));
            Ok(())
        }
        Err(problems) => {
            let findings: Vec<_> = problems.iter().map(interlock_daemon::finding_of_component).collect();
            out.result(&findings, |paint| findings.iter().map(|finding| show::finding(finding, paint)).collect());
            Out::over(Code::Input)
        }
    }
}
