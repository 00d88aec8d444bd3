//! `interlock inspect`: what a component can do, and what keeps it from being deployed.

use super::component::{build, read_component};
use crate::args::Inspect;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_build::Again;
use interlock_runtime::{EngineOptions, Engines, inspect};

/// Runs it.
pub(crate) async fn run(args: &Inspect, out: Out) -> Result<(), Failed> {
    let file = match args.file.is_dir() {
        true => build(&args.file, Again::IfChanged, out).await?.path,
        false => args.file.clone(),
    };
    let (name, bytes) = (file.display(), read_component(&file)?);
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
