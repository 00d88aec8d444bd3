//! `interlock build`: the smallest step of each language, what is wrong in it with file and line, and what is missing.
//!
//! A language whose tools are missing is told and passed over, but fails where `INTERLOCK_TOOLS` is `required`.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A step's folder `pool`, in a folder of its own.
struct Step(TempDir);

/// What a command said.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Step {
    /// With these files, and the tools of this repository where a step would look for its own.
    fn new(files: &[(&str, &str)]) -> Result<Self> {
        let step = Self::bare(files)?;
        for (tools, link) in [("sdk/js/node_modules", "node_modules"), ("sdk/python/.venv", ".venv")] {
            let tools = repository().join(tools);
            if tools.exists() {
                symlink(tools, step.path().join(link))?;
            }
        }
        Ok(step)
    }

    /// With these files and nothing else.
    fn bare(files: &[(&str, &str)]) -> Result<Self> {
        let step = Self(tempfile::tempdir()?);
        for (path, text) in files {
            let path = step.0.path().join(path);
            std::fs::create_dir_all(path.parent().context("a folder")?)?;
            std::fs::write(path, text)?;
        }
        Ok(step)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("pool")
    }

    /// `interlock build pool`, from the folder above, with more arguments.
    fn build(&self, more: &[&str]) -> Result<Said> {
        self.run(self.command(more))
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = crate::program();
        command.args(["build", "pool", "--quiet"]).args(more).current_dir(self.0.path());
        command.env_remove("VIRTUAL_ENV").env_remove("WASI_SDK_PATH").env("NO_COLOR", "1");
        command
    }

    fn run(&self, mut command: Command) -> Result<Said> {
        let Output { status, stdout, stderr } = command.output()?;
        Ok(Said { code: status.code(), out: String::from_utf8(stdout)?, err: String::from_utf8(stderr)? })
    }
}

impl Said {
    /// Whether it failed for a tool that is not installed, and need not be.
    fn passed_over(&self) -> Result<bool> {
        let missing = self.err.contains("\nThis installs what is needed: ");
        let required = std::env::var("INTERLOCK_TOOLS").is_ok_and(|asked| asked == "required");
        ensure!(!(missing && required), "{}", self.err);
        if missing {
            println!("passed over: {}", self.err);
        }
        Ok(missing)
    }
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

const NODE: &str = r#"{"name": "@team/pool", "type": "module", "main": "src/steps.js"}"#;
const NODE_TS: &str = r#"{"name": "@team/pool", "type": "module", "main": "src/steps.ts"}"#;
const PYTHON: &str = "[project]\nname = \"pool\"\n[tool.interlock]\n";
const CARGO: &str = "[package]\nname = \"pool\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
                     [workspace]\n";

const C: &str = r#"#include "interlock.h"

static il_end run(il_entity *pool) {
    return il_transition(pool, "calm");
}
IL_STEPS({"run", run});
"#;

/// The smallest step is built, has no more powers than it uses, and is left alone the next time.
fn is_built(language: &str, tool: &str, can: &str, files: &[(&str, &str)]) -> Result<()> {
    let step = Step::new(files)?;
    let built = step.build(&["--json", "--out", "out.wasm"])?;
    if built.passed_over()? {
        return Ok(());
    }
    ensure!(built.code == Some(0), "{}", built.err);
    let told: Value = serde_json::from_str(&built.out)?;
    assert_eq!(
        (&told["name"], &told["language"], &told["unchanged"]),
        (&"pool".into(), &language.into(), &false.into())
    );
    assert!(told["tool"].as_str().is_some_and(|told| told.starts_with(tool)), "{told}");
    let names = |powers: &Value| -> Vec<String> {
        powers.as_array().into_iter().flatten().filter_map(|power| power["name"].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(names(&told["can"]).join(", "), can);
    assert!(names(&told["cannot"]).contains(&"rows".to_owned()), "{told}");
    assert_eq!(told["wasi"] == Value::Array(Vec::new()), language != "python", "{}", told["wasi"]);

    let component = std::fs::read(step.0.path().join("out.wasm"))?;
    assert_eq!(component, std::fs::read(step.path().join(".interlock/build/pool.wasm"))?);
    assert_eq!(told["bytes"], component.len() as u64);
    assert!(std::fs::read_to_string(step.path().join(".interlock/.gitignore"))?.contains('*'));
    assert!(!step.path().join(".interlock/work").exists());

    let again = step.build(&[])?;
    let lines: Vec<&str> = again.out.lines().collect();
    let [first, powers, .., path] = lines.as_slice() else { anyhow::bail!("{}", again.out) };
    assert!(first.starts_with(&format!("pool   {language}, {tool}")) && first.ends_with("   unchanged"), "{first}");
    assert!(powers.starts_with(&format!("   can: {can}   cannot: ")), "{powers}");
    assert_eq!(*path, "   pool/.interlock/build/pool.wasm");
    Ok(())
}

#[test]
fn the_smallest_step_in_javascript_is_built() -> Result<()> {
    let steps = r#"import { steps, to } from "interlock";
export default steps({ run: (pool) => pool.transition(to("calm")) });
"#;
    let files = [("pool/package.json", NODE), ("pool/src/steps.js", steps)];
    is_built("js", "componentize-js 0.23.", "transition, lease, fencing, log", &files)
}

#[test]
fn the_smallest_step_in_typescript_is_built() -> Result<()> {
    let steps = r#"import { steps, to, type Entity } from "interlock";
export default steps({ run: (pool: Entity) => pool.transition(to("calm")) });
"#;
    let files = [("pool/package.json", NODE_TS), ("pool/src/steps.ts", steps)];
    is_built("ts", "componentize-js 0.23.", "transition, lease, fencing, log", &files)
}

#[test]
fn the_smallest_step_in_python_is_built() -> Result<()> {
    let steps = "from interlock import step, to\n\n\n@step\ndef run(pool):\n    return pool.transition(to(\"calm\"))\n";
    let files = [("pool/pyproject.toml", PYTHON), ("pool/steps.py", steps)];
    is_built("python", "componentize-py 0.25.", "transition, lease, fencing, log", &files)
}

#[test]
fn the_smallest_step_in_c_is_built() -> Result<()> {
    is_built("c", "clang ", "transition, log", &[("pool/steps.c", C)])
}

#[test]
fn what_is_wrong_in_a_source_is_told_with_file_and_line() -> Result<()> {
    let c = C.replace("\"calm\"", "calm");
    let linked = C.replace("\"calm\"", "other()").replace("\n\n", "\nconst char *other(void);\n");
    let clock = C.replace("\"calm\"", "time(0) ? \"calm\" : \"x\"").replace("\n\n", "\n#include <time.h>\n");
    for (files, places) in [
        (
            vec![
                ("pool/package.json", NODE),
                ("pool/src/steps.js", "import { to } from \"interlock\";\nexport default steps({\n"),
            ],
            ["\npool/src/steps.js:3:1: "].as_slice(),
        ),
        (
            vec![
                ("pool/package.json", NODE_TS),
                ("pool/src/steps.ts", "export const text: string = 4;\n\nconst n: number = \"\";\n"),
            ],
            &["\npool/src/steps.ts:1:14: ", "\npool/src/steps.ts:3:7: "],
        ),
        (
            vec![
                ("pool/pyproject.toml", PYTHON),
                ("pool/steps.py", "from interlock import step\n\ndef run(pool)\n    return 1\n"),
            ],
            &["\npool/steps.py:3:14: "],
        ),
        (vec![("pool/steps.c", &*c)], &["\npool/steps.c:4:32: use of undeclared identifier 'calm'\n"]),
        (vec![("pool/src/steps.c", &*linked)], &["\npool/src/steps.c: undefined symbol: other\n"]),
        (
            vec![("pool/steps.c", &clock)],
            &["\nsomething here needs a clock, as time() does: clock_time_get of WASI, which no step has\n"],
        ),
        (
            vec![("pool/Cargo.toml", CARGO), ("pool/src/lib.rs", "pub fn one() {}\n\npub fn two() -> u8 { \"\" }\n")],
            &["--> src/lib.rs:3:22\n", "error: pool does not compile\n"],
        ),
    ] {
        let said = Step::new(&files)?.build(&[])?;
        if said.passed_over()? {
            continue;
        }
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{}", said.err);
        for place in places {
            assert!(said.err.contains(place), "expected {place:?}, got {}", said.err);
        }
    }
    Ok(())
}

#[test]
fn a_missing_tool_is_named_with_the_line_that_installs_it() -> Result<()> {
    let js = [("pool/package.json", NODE), ("pool/src/steps.js", "")];
    let py = [("pool/pyproject.toml", PYTHON), ("pool/steps.py", "")];
    let c = [("pool/steps.c", "")];
    let empty = tempfile::tempdir()?;
    for (files, expected) in [
        (
            js.as_slice(),
            "error: JavaScript steps need node, which runs the build script: got none on PATH\nThis installs what is \
              needed: apt-get install nodejs npm (or https://nodejs.org)\n",
        ),
        (
            &py,
            "error: Python steps need componentize-py 0.25.1, which makes a component of the modules and an interpreter: got none \
               in .venv of the folder or above, in $VIRTUAL_ENV, or on PATH\nThis installs what is needed: python3 -m venv \
               pool/.venv && pool/.venv/bin/pip install componentize-py==0.25.1\n",
        ),
        (
            &c,
            "error: C steps need clang, which compiles for WebAssembly: got none on PATH\nThis installs what is needed: apt-get \
              install clang lld wasi-libc libclang-rt-dev-wasm32 (or set WASI_SDK_PATH)\n",
        ),
    ] {
        let step = Step::bare(files)?;
        let mut command = step.command(&[]);
        command.env("PATH", empty.path());
        let said = step.run(command)?;
        assert_eq!((said.code, said.err.as_str()), (Some(2), expected));
    }
    Ok(())
}

#[test]
fn a_package_that_is_missing_or_too_old_is_named_with_what_was_found() -> Result<()> {
    let tool = "#!/bin/sh\necho componentize-py 0.13.0\n";
    let step = Step::bare(&[
        ("pool/pyproject.toml", PYTHON),
        ("pool/steps.py", ""),
        ("pool/.venv/bin/componentize-py", tool),
    ])?;
    let program = step.path().join(".venv/bin/componentize-py");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let said = step.build(&[])?;
    assert!(
        said.err.contains("need componentize-py 0.25.1, which") && said.err.contains(": got 0.13.0\n"),
        "{}",
        said.err
    );

    let node = "#!/bin/sh\necho v20.0.0\n";
    let package = |version| format!(r#"{{"name": "x", "version": "{version}"}}"#);
    let componentize = ("pool/node_modules/@bytecodealliance/componentize-js/package.json", &*package("0.23.1"));
    let shim = ("pool/node_modules/@bytecodealliance/preview2-shim/package.json", &*package("0.25.0"));
    let esbuild = ("pool/node_modules/esbuild/package.json", &*package("0.20.0"));
    let main = ("pool/src/steps.js", "");
    for (packages, expected) in [
        (
            vec![],
            "need @bytecodealliance/componentize-js 0.23.0, which makes a component of the bundle: got none in node_modules",
        ),
        (
            vec![componentize, shim],
            "need esbuild 0.28.2, which bundles the step with what it imports: got none in node_modules",
        ),
        (
            vec![componentize, shim, esbuild],
            "need esbuild 0.28.2, which bundles the step with what it imports: got 0.20.0\n",
        ),
    ] {
        let step =
            Step::bare(&[&[("pool/package.json", NODE), main, ("bin/node", node)], packages.as_slice()].concat())?;
        let bin = step.0.path().join("bin");
        std::fs::set_permissions(bin.join("node"), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let mut command = step.command(&[]);
        command.env("PATH", std::env::join_paths([bin.as_path(), Path::new("/bin"), Path::new("/usr/bin")])?);
        let said = step.run(command)?;
        assert!(said.err.contains(expected), "expected {expected:?}, got {}", said.err);
        let install = "npm install --prefix pool --save-dev --save-exact @bytecodealliance/componentize-js@0.23.0 \
                   @bytecodealliance/preview2-shim@0.25.0 esbuild@0.28.2\n";
        assert!(said.err.ends_with(install), "{}", said.err);
    }
    Ok(())
}

#[test]
fn a_step_is_built_again_if_its_source_changes_or_somebody_says_so() -> Result<()> {
    let step =
        Step::new(&[("pool/steps.c", C), ("pool/limits.h", "#define MOST 4\n"), ("shared.h", "#define LEAST 1\n")])?;
    std::fs::write(step.path().join("steps.c"), format!("#include \"limits.h\"\n#include \"../shared.h\"\n{C}"))?;
    let unchanged = |more: &[&str]| -> Result<Option<Value>> {
        let said = step.build(&[&["--json"], more].concat())?;
        if said.passed_over()? {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str::<Value>(&said.out).context(said.err)?["unchanged"].clone()))
    };
    if unchanged(&[])?.is_none() {
        return Ok(());
    }
    assert_eq!(unchanged(&[])?, Some(true.into()));
    for changed in ["pool/limits.h", "shared.h", "pool/compile_flags.txt"] {
        std::fs::write(step.0.path().join(changed), "\n")?;
        assert_eq!(unchanged(&[])?, Some(false.into()), "{changed}");
        assert_eq!(unchanged(&[])?, Some(true.into()), "{changed}");
    }
    assert_eq!(unchanged(&["--force"])?, Some(false.into()));
    Ok(())
}

#[test]
fn two_builds_of_one_folder_take_turns() -> Result<()> {
    let step = Step::new(&[("pool/steps.c", C)])?;
    let both = [step.command(&["--json"]).spawn_piped()?, step.command(&["--json"]).spawn_piped()?];
    let mut unchanged = Vec::new();
    for child in both {
        let Output { stdout, stderr, .. } = child.wait_with_output()?;
        let said = Said { code: None, out: String::from_utf8(stdout)?, err: String::from_utf8(stderr)? };
        if said.passed_over()? {
            return Ok(());
        }
        unchanged.push(serde_json::from_str::<Value>(&said.out).context(said.err)?["unchanged"] == true);
    }
    unchanged.sort_unstable();
    assert_eq!(unchanged, [false, true], "one of them builds, the other finds it built");
    Ok(())
}

/// Starting a command whose output is read later.
trait SpawnPiped {
    fn spawn_piped(&mut self) -> std::io::Result<std::process::Child>;
}

impl SpawnPiped for Command {
    fn spawn_piped(&mut self) -> std::io::Result<std::process::Child> {
        self.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn()
    }
}

/// `interlock` with the example machines at hand.
fn interlock(args: &[&str]) -> Result<Said> {
    let mut command = crate::program();
    let Output { status, stdout, stderr } = command.args(args).current_dir(repository()).output()?;
    Ok(Said { code: status.code(), out: String::from_utf8(stdout)?, err: String::from_utf8(stderr)? })
}

#[test]
fn a_component_that_is_given_is_played_instead_of_the_manifests() -> Result<()> {
    let (own, other) = (interlock_support::guest("resource")?, interlock_support::guest("noop")?);
    let play = |component: &Path| {
        let component = component.display().to_string();
        interlock(&["test", "guests/resource", "--filter", "plan", "--component", &component])
    };
    let said = play(&own)?;
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let said = play(&other)?;
    assert!(said.code == Some(3) && said.out.contains("unknown-step"), "{}\n{}", said.out, said.err);

    let faulty = interlock_support::guest("faulty")?.display().to_string();
    let said = interlock(&["explore", "guests/faulty/lost-update", "--component", &faulty])?;
    let replay = format!("interlock explore guests/faulty/lost-update --component {faulty} --replay lost-update:");
    assert!(said.code == Some(3) && said.out.contains(&replay), "expected {replay}, got {}\n{}", said.out, said.err);
    Ok(())
}

#[test]
fn a_component_that_nothing_can_be_done_with_is_refused() -> Result<()> {
    let refused = |args: &[&str]| -> Result<String> {
        let said = interlock(args)?;
        ensure!(said.code == Some(2), "{:?} {}{}", said.code, said.out, said.err);
        Ok(said.err)
    };
    let several = refused(&["test", "guests", "--component", "x.wasm"])?;
    assert!(several.starts_with("error: --component: expected one machine's folder, got "), "{several}");
    let nowhere = refused(&["test", "guests/resource", "--component", "x.wasm"])?;
    assert!(nowhere.ends_with("error: x.wasm: No such file or directory (os error 2)\n"), "{nowhere}");
    let machine = Step::bare(&[
        ("pool/machine.toml", crate::DOOR),
        ("pool/first.scenario.toml", "scenario = \"s\"\n[then]\nstate = \"shut\"\n"),
    ])?;
    let folder = machine.path().display().to_string();
    let none = refused(&["test", &folder, "--component", "x.wasm"])?;
    let expected = "error: --component x.wasm: expected a machine with steps, got door, which names no component\n";
    assert!(none.ends_with(expected), "{none}");
    Ok(())
}

#[test]
fn what_cannot_be_meant_is_refused() -> Result<()> {
    let step = Step::bare(&[("pool/machine.toml", ""), ("other/machine.toml", "")])?;
    let said = step.build(&["other", "--out", "x.wasm"])?;
    assert_eq!(
        (said.code, said.err.as_str()),
        (Some(2), "error: --out: expected one folder, since it names one file, got 2\n")
    );
    let said = step.build(&[])?;
    assert!(said.err.starts_with("error: pool: expected the source of a step: a Cargo.toml, "), "{}", said.err);
    let said = Step::bare(&[("pools/machine.toml", "")])?.build(&[])?;
    assert!(said.err.starts_with("error: cannot read or write pool: "), "{}", said.err);
    Ok(())
}
