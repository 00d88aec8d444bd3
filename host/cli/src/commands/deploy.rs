//! `interlock deploy`: a folder or manifest in, its tables declared, a revision active, its schedules declared.

use super::component::{component, no_steps, read_component};
use super::input::{SCHEDULE_ENDING, TABLE_ENDING, manifest, manifests};
use super::{schedule, table};
use crate::args::Deploy;
use crate::client::Client;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_daemon::api::DeployRequest;
use interlock_daemon::base64;
use interlock_kernel::time::WallTime;
use interlock_manifest::{Severity, parse_as_of};
use interlock_store::{Clock as _, SystemClock};
use std::path::Path;

/// Runs it.
pub(crate) async fn run(args: Deploy, client: &Client, out: Out) -> Result<(), Failed> {
    let (path, text) = manifest(&args.path)?;
    // The daemon runs the same check; here the problems are shown with their lines, before anything is built.
    let today = WallTime(SystemClock::new().wall_ms());
    let report = parse_as_of(today, &path.display().to_string(), &text);
    out.findings_of(&report);
    let Some(parsed) = &report.manifest else {
        debug_assert!(report.count(Severity::Error) > 0);
        return Out::over(Code::Input);
    };
    // A build may take a minute: whether anybody listens is asked before.
    if let Err(silent @ Failed::Unreachable { .. }) = client.alive().await {
        return Err(silent);
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let component = match (&parsed.component, &args.component) {
        (None, None) => None,
        (Some(file), given) => Some(component(folder, file, given.as_deref(), out).await?),
        (None, Some(given)) => return Err(no_steps(&parsed.machine.name, given)),
    };
    let bytes = component.as_ref().map(|path| read_component(path)).transpose()?;
    if let Some(bytes) = &bytes {
        out.hint(&format!("sending {} for the daemon to compile and check", show::bytes(bytes.len() as u64)));
    }
    let request = DeployRequest { manifest: text, component: bytes.as_deref().map(base64::encode) };
    // First, so that no step asks for a table that is not there. What one file names is that file alone.
    if args.path.is_dir() {
        table::declare(&manifests(&args.path, TABLE_ENDING)?, false, client, out).await?;
    }
    let deployed = client.deploy(&request).await?;
    out.result(&deployed, |paint| show::deployed(&deployed, paint));
    // What only the daemon knows: its operator's configuration.
    let here = |code: &str| report.problems.iter().any(|problem| problem.code == code);
    out.warnings(deployed.warnings.iter().filter(|finding| !here(&finding.code)));
    // Last, since a schedule is checked against the revision in force.
    if args.path.is_dir() {
        schedule::declare(&manifests(&args.path, SCHEDULE_ENDING)?, false, client, out).await?;
    }
    Ok(())
}
