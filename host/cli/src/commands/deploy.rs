//! `interlock deploy`: a folder or manifest in, an active revision out.

use super::input::manifest;
use crate::args::Deploy;
use crate::client::Client;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_daemon::api::DeployRequest;
use interlock_daemon::base64;
use interlock_manifest::{Severity, parse};
use std::path::{Path, PathBuf};

/// Runs it.
pub(crate) async fn run(args: Deploy, client: &Client, out: Out) -> Result<(), Failed> {
    let (path, text) = manifest(&args.path)?;
    // The daemon runs the same check; here the problems are shown with their lines, before anything is built.
    let report = parse(&path.display().to_string(), &text);
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
    let component = match &parsed.component {
        None => None,
        Some(file) => Some(component(folder, file, args.build, out).await?),
    };
    let bytes = component.as_ref().map(|path| read_component(path)).transpose()?;
    if let Some(bytes) = &bytes {
        out.hint(&format!("sending {} for the daemon to compile and check", show::bytes(bytes.len() as u64)));
    }
    let request = DeployRequest { manifest: text, component: bytes.as_deref().map(base64::encode) };
    let deployed = client.deploy(&request).await?;
    out.result(&deployed, |paint| show::deployed(&deployed, paint));
    Ok(())
}

fn read_component(path: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(path).map_err(|why| Failed::Input(format!("{}: {why}", path.display())))
}

/// The component's file: the one that the manifest names, or the one that the crate in its folder builds.
pub(crate) async fn component(folder: &Path, file: &str, build: bool, out: Out) -> Result<PathBuf, Failed> {
    let named = folder.join(file);
    let source = named.parent().unwrap_or(folder);
    match (named.is_file(), build, source.join("Cargo.toml").is_file()) {
        (true, false, _) => Ok(named),
        (_, _, true) => self::build(source.to_owned(), out).await,
        (true, true, false) => {
            Err(Failed::Input(format!("--build: expected a Rust crate in {}, got no Cargo.toml", source.display())))
        }
        (false, _, false) => Err(Failed::Input(format!(
            "{}: no such component, and no Cargo.toml in {} to build it from",
            named.display(),
            source.display()
        ))),
    }
}

/// Builds the Rust step in a folder.
pub(crate) async fn build(folder: PathBuf, out: Out) -> Result<PathBuf, Failed> {
    out.hint(&format!("building the step in {}", folder.display()));
    let built = tokio::task::spawn_blocking(move || interlock_build::build_rust(&folder)).await;
    let built = built.map_err(anyhow::Error::from)?.map_err(|why| Failed::Input(why.to_string()))?;
    out.hint(&format!("built {} in {:.1} s", built.path.display(), built.took.as_secs_f64()));
    Ok(built.path)
}
