//! `interlock build`: from the source of steps, in any language, to components.

use super::component::{build, read_component};
use crate::args::Build;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show;
use interlock_build::{Again, Built};
use interlock_runtime::{Powers, powers_of};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A component, as it is told.
#[derive(Debug, Serialize)]
pub(crate) struct Component {
    pub(crate) folder: String,
    pub(crate) name: String,
    pub(crate) language: &'static str,
    /// What made it: name and release.
    pub(crate) tool: String,
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) digest: String,
    /// Whether it was there already.
    pub(crate) unchanged: bool,
    pub(crate) took_ms: u64,
    /// What it can and cannot do.
    #[serde(flatten)]
    pub(crate) powers: Powers,
}

/// Runs it: one folder after the other, up to the first that does not build.
pub(crate) async fn run(args: Build, out: Out) -> Result<(), Failed> {
    if let (Some(_), [_, _, ..]) = (&args.out, args.folders.as_slice()) {
        let got = args.folders.len();
        return Err(Failed::Input(format!("--out: expected one folder, since it names one file, got {got}")));
    }
    let again = if args.force { Again::Always } else { Again::IfChanged };
    let mut fit = true;
    for folder in &args.folders {
        let built = build(folder, again, out).await?;
        let component = read_component(&built.path)?;
        let imports = interlock_build::imports(&component).map_err(|why| Failed::Input(why.to_string()))?;
        let path = match &args.out {
            Some(file) => copy(&component, file)?,
            None => built.path.clone(),
        };
        match powers_of(&imports) {
            Ok(powers) => {
                let told = Component::of(folder, &built, &path, powers);
                out.result(&told, |paint| show::built(&told, paint));
            }
            Err(problems) => {
                fit = false;
                let findings: Vec<_> = problems.iter().map(interlock_daemon::finding_of_component).collect();
                out.result(&findings, |paint| findings.iter().map(|finding| show::finding(finding, paint)).collect());
            }
        }
    }
    if fit { Ok(()) } else { Out::over(Code::Input) }
}

impl Component {
    fn of(folder: &Path, built: &Built, path: &Path, powers: Powers) -> Self {
        Self {
            folder: folder.display().to_string(),
            name: built.name.clone(),
            language: built.language.name(),
            tool: built.tool.clone(),
            path: path.display().to_string(),
            bytes: built.bytes,
            digest: built.digest.clone(),
            unchanged: built.cached,
            took_ms: u64::try_from(built.took.as_millis()).unwrap_or(u64::MAX),
            powers,
        }
    }
}

/// Puts the component where it was asked for, whole or not at all.
fn copy(component: &[u8], file: &Path) -> Result<PathBuf, Failed> {
    let mut whole = file.as_os_str().to_owned();
    whole.push(".new");
    let failed = |why: std::io::Error| Failed::Input(format!("--out {}: {why}", file.display()));
    std::fs::write(&whole, component).and_then(|()| std::fs::rename(&whole, file)).map_err(failed)?;
    Ok(file.to_owned())
}
