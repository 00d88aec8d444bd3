//! Building guests on a machine that lacks the WebAssembly target: what it says, and that it says all of it.

use crate::host::{folder, run};
use anyhow::{Result, ensure};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A program that does one thing.
fn stub(folder: &Path, name: &str, script: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

#[test]
fn a_toolchain_without_the_target_is_told_every_way_to_get_it() -> Result<()> {
    run(async {
        let folder = folder()?;
        let here = folder.path();
        let source = here.join("step");
        std::fs::create_dir_all(source.join("src"))?;
        std::fs::write(source.join("src/lib.rs"), "")?;
        let package = "[package]\nname = \"step\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
        std::fs::write(source.join("Cargo.toml"), package)?;
        // A compiler that knows where it would keep the target, and keeps nothing there.
        let rustc = stub(here, "rustc", &format!("echo {}/nowhere", here.display()))?;
        stub(here, "rustup", "echo 'error: no network' >&2; exit 1")?;
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_interlock-e2e"))
            .arg("build")
            .arg(&source)
            .env("RUSTC", rustc)
            .env("PATH", here)
            .env("CARGO", env!("CARGO"))
            .output()
            .await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success(), "{said}");
        for line in [
            "wasm32-unknown-unknown is not installed: rustup target add wasm32-unknown-unknown",
            "cannot build for wasm32-unknown-unknown",
            "`rustup target add wasm32-unknown-unknown`: error: no network",
            "rustup target add wasm32-unknown-unknown",
            "rustup component add rust-src",
        ] {
            ensure!(said.contains(line), "{line:?} is missing:\n{said}");
        }
        Ok(())
    })
}
