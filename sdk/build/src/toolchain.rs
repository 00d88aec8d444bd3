//! Which cargo builds for a target, and how the target's standard library gets there.
//!
//! In this order, and each says so on standard error before it takes time:
//! the toolchain has it; `rustup target add` fetches it; the toolchain's own sources are there
//! and it is built from them (`-Zbuild-std`); the same two for the system's toolchain in
//! `/usr/bin`, which is how Debian's `rustc-web`, `cargo-web` and `rust-web-src` come in.

use crate::BuildError;
use crate::tools::run;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A cargo, and how it gets the standard library of the target.
#[derive(Debug)]
pub(crate) struct Toolchain {
    cargo: OsString,
    rustc: OsString,
    from_source: FromSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FromSource {
    No,
    Yes,
}

/// What a cargo started by another cargo, or by somebody with settings for native code, must not
/// hand down to a build for wasm.
const NOT_FOR_WASM: [&str; 6] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_TARGET_DIR",
];

impl Toolchain {
    /// The toolchain that the caller works with.
    pub(crate) fn own() -> Toolchain {
        Toolchain {
            cargo: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            rustc: env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()),
            from_source: FromSource::No,
        }
    }

    /// The one in `/usr/bin`, if there is one.
    fn system() -> Option<Toolchain> {
        let cargo = Path::new("/usr/bin/cargo");
        let rustc = Path::new("/usr/bin/rustc");
        (cargo.exists() && rustc.exists()).then(|| Toolchain {
            cargo: cargo.into(),
            rustc: rustc.into(),
            from_source: FromSource::No,
        })
    }

    /// A toolchain that can build for this target.
    pub(crate) fn with(target: &str) -> Result<Toolchain, BuildError> {
        let own = Toolchain::own();
        if own.has_std(target)? {
            return Ok(own);
        }
        let mut tried = vec![format!("no standard library for {target} is installed")];
        eprintln!("{target} is not installed: rustup target add {target}");
        match run(Command::new("rustup").args(["target", "add", target])) {
            Ok(_) if own.has_std(target)? => return Ok(own),
            Ok(_) => tried.push("`rustup target add` went well, for another toolchain".to_owned()),
            Err(e) => tried.push(e.to_string()),
        }
        for mut toolchain in [Some(own), Toolchain::system()].into_iter().flatten() {
            let name = toolchain.rustc.to_string_lossy().into_owned();
            if toolchain.has_std(target)? {
                eprintln!("{target}: {name} has it");
                return Ok(toolchain);
            }
            if target.ends_with("-unknown-unknown") && toolchain.has_sources()? {
                eprintln!("{target}: its standard library is built from the sources of {name}");
                toolchain.from_source = FromSource::Yes;
                return Ok(toolchain);
            }
            tried.push(format!("{name} has neither the target nor the sources to build it from"));
        }
        Err(BuildError::NoTarget { target: target.to_owned(), tried })
    }

    /// Name and release of its compiler: `rustc 1.95.0`.
    pub(crate) fn release(&self) -> Result<String, BuildError> {
        let told = run(Command::new(&self.rustc).arg("--version"))?;
        Ok(told.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    }

    /// A cargo command for this target.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        for name in NOT_FOR_WASM {
            cargo.env_remove(name);
        }
        if Path::new(&self.rustc).is_absolute() {
            cargo.env("RUSTC", &self.rustc);
        }
        cargo
    }

    /// The arguments and variables that make a `cargo build` one for this target.
    pub(crate) fn aim(&self, cargo: &mut Command, target: &str) {
        cargo.args(["--target", target]);
        if self.from_source == FromSource::Yes {
            // The sources may be a little older than the guests ask for: let the compiler judge.
            cargo.args(["-Zbuild-std=std,panic_abort", "--ignore-rust-version"]).env("RUSTC_BOOTSTRAP", "1");
            if let Some(linker) = self.linker() {
                let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
                cargo.env(variable, linker);
            }
        }
    }

    fn has_std(&self, target: &str) -> Result<bool, BuildError> {
        Ok(self.ask(&["--print", "target-libdir", "--target", target])?.is_dir())
    }

    fn has_sources(&self) -> Result<bool, BuildError> {
        let library = "lib/rustlib/src/rust/library/std/Cargo.toml";
        Ok(self.ask(&["--print", "sysroot"])?.join(library).is_file())
    }

    /// A linker for wasm, if the toolchain does not come with its own, as Debian's does not.
    fn linker(&self) -> Option<PathBuf> {
        let rustlib = self.ask(&["--print", "sysroot"]).ok()?.join("lib/rustlib");
        let hosts = std::fs::read_dir(rustlib).ok()?.flatten();
        if hosts.into_iter().any(|host| host.path().join("bin/rust-lld").exists()) {
            return None;
        }
        let path = env::var_os("PATH")?;
        let found = env::split_paths(&path).filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let fits = |name: &str| name == "rust-lld" || name == "wasm-ld" || name.starts_with("wasm-ld-");
        found.map(|file| file.path()).find(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(fits))
    }

    fn ask(&self, question: &[&str]) -> Result<PathBuf, BuildError> {
        run(Command::new(&self.rustc).args(question)).map(|answer| PathBuf::from(answer.trim()))
    }
}
