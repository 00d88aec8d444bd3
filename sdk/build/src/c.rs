//! C: clang for WASI's C library.
//!
//! The SDK has bindings of all that a step can import. What a step does not call is not linked, so its component imports
//! no more than it uses.
//!
//! Each file is compiled by itself with the flags that the SDK has in `clang.flags`. A `compile_flags.txt` in the
//! folder, as editors read it, has more flags for the step's files, one a line.

use crate::build::Recipe;
use crate::cache::sdk_key;
use crate::detect::c_files;
use crate::place::{Place, Work, at};
use crate::script::Made;
use crate::tools::{self, Needed, line};
use crate::{BuildError, Language, Options, Problem, Progress, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const CLANG: Needed = Needed { name: "clang", version: "", purpose: "compiles for WebAssembly" };
const LINKER: Needed = Needed { name: "wasm-ld", version: "", purpose: "links what clang compiled" };
const LIBC: Needed = Needed { name: "wasi-libc", version: "", purpose: "is the C library" };
const BUILTINS: Needed =
    Needed { name: "libclang_rt.builtins-wasm32.a", version: "", purpose: "is clang's own library" };

const TARGET: &str = "--target=wasm32-wasi";

/// What builds a step.
#[derive(Debug)]
pub(crate) struct Tools {
    clang: PathBuf,
    /// Each with its release, for the cache.
    versions: Vec<String>,
}

impl Tools {
    /// Finds them, or says which is not there. `WASI_SDK_PATH` names a wasi-sdk, which has all of them.
    pub(crate) fn find() -> Result<Self, BuildError> {
        let missing = |needed: Needed, got: &str| {
            let install = "apt-get install clang lld wasi-libc libclang-rt-dev-wasm32 (or set WASI_SDK_PATH)";
            needed.missing(Language::C, got, install.to_owned())
        };
        let sdk = env::var_os("WASI_SDK_PATH").map(|sdk| Path::new(&sdk).join("bin/clang"));
        let own = sdk.is_some();
        let clang = sdk.or_else(|| tools::on_path("clang")).ok_or_else(|| missing(CLANG, "none on PATH"))?;
        if own && !clang.is_file() {
            return Err(missing(CLANG, &format!("no {}", clang.display())));
        }
        let ask = |question: &str| -> Result<PathBuf, BuildError> {
            tools::run(Command::new(&clang).args([TARGET, question])).map(|answer| PathBuf::from(answer.trim()))
        };
        // clang answers with the bare name of what it does not find.
        if !ask("--print-prog-name=wasm-ld")?.is_absolute() {
            return Err(missing(LINKER, "none that clang finds"));
        }
        if !ask("--print-file-name=crt1-reactor.o")?.is_absolute() {
            return Err(missing(LIBC, "no crt1-reactor.o that clang finds"));
        }
        if !ask("--print-libgcc-file-name")?.is_file() {
            return Err(missing(BUILTINS, "none where clang looks"));
        }
        let version = tools::run(Command::new(&clang).arg("--version"))?;
        Ok(Self { clang, versions: vec![version] })
    }
}

impl Recipe for Tools {
    fn versions(&self) -> &[String] {
        &self.versions
    }

    fn make(&self, source: &Source, place: &Place, options: Options) -> Result<Made, BuildError> {
        let folder = fs::canonicalize(&source.folder).map_err(at(&source.folder))?;
        let work = place.work()?;
        let clang = Clang { program: &self.clang, folder: &folder, sdk: place.sdk(), options };
        let flags = author_flags(&folder)?;
        let mut objects = self.sdk_objects(place, &clang, &work)?;
        let (mut sources, mut inputs, mut problems) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (nth, file) in c_files(&folder)?.iter().enumerate() {
            let object = work.path().join(format!("{nth}.o"));
            problems.extend(clang.compile(file, &object, &flags)?);
            inputs.extend(depends(&object.with_extension("d"), &folder)?);
            sources.insert(object.clone(), file.strip_prefix(&folder).unwrap_or(file).to_owned());
            objects.push(object);
        }
        let module = work.path().join("module.wasm");
        if problems.is_empty() {
            problems.extend(clang.link(&objects, &module)?.into_iter().map(|problem| problem.of(&sources)));
        }
        if !problems.is_empty() {
            return Err(BuildError::Problems { folder: source.folder.clone(), problems });
        }
        let module = fs::read(&module).map_err(at(&module))?;
        let problems = beyond(&module)?;
        if !problems.is_empty() {
            return Err(BuildError::Problems { folder: source.folder.clone(), problems });
        }
        Ok(Made { module, tool: format!("clang {}", tools::version(&self.clang)?), inputs })
    }
}

impl Tools {
    /// The SDK's sources, compiled once for each of its releases and clang's; and its object with the component type,
    /// for which C has no words.
    fn sdk_objects(&self, place: &Place, clang: &Clang<'_>, work: &Work) -> Result<Vec<PathBuf>, BuildError> {
        let kept = place.objects(&sdk_key(Language::C, &self.versions));
        if !kept.is_dir() {
            let new = work.path().join("objects");
            fs::create_dir(&new).map_err(at(&new))?;
            // Its warnings are not the author's to mend.
            let flags = ["-w".to_owned()];
            for (nth, file) in place.sdk_files("c").enumerate() {
                let problems = clang.compile(&file, &new.join(format!("{nth}.o")), &flags)?;
                if !problems.is_empty() {
                    return Err(BuildError::Problems { folder: place.sdk(), problems });
                }
            }
            place.keep_objects(&new, &kept)?;
        }
        let mut objects: Vec<PathBuf> = place.sdk_files("o").collect();
        for entry in fs::read_dir(&kept).map_err(at(&kept))? {
            let path = entry.map_err(at(&kept))?.path();
            objects.extend(path.extension().is_some_and(|end| end == "o").then_some(path));
        }
        objects.sort();
        Ok(objects)
    }
}

/// The compiler, as it is run for one step.
struct Clang<'a> {
    program: &'a Path,
    folder: &'a Path,
    sdk: PathBuf,
    options: Options,
}

impl Clang<'_> {
    /// What is wrong with one file, if anything is.
    fn compile(&self, file: &Path, object: &Path, flags: &[String]) -> Result<Vec<Problem>, BuildError> {
        let mut clang = self.command();
        clang.arg("-I").arg(&self.sdk).args(flags).arg("-c").arg(file).arg("-o").arg(object);
        clang.args(["-MMD", "-MF"]).arg(object.with_extension("d"));
        self.run(clang)
    }

    /// What keeps the files from becoming one module, if anything does.
    fn link(&self, objects: &[PathBuf], module: &Path) -> Result<Vec<Problem>, BuildError> {
        let mut clang = self.command();
        clang.args(objects).arg("-o").arg(module);
        self.run(clang)
    }

    /// Flags for compiling and linking are one file of the SDK: each step ignores the other's.
    fn command(&self) -> Command {
        let mut clang = Command::new(self.program);
        clang.arg(format!("@{}", self.sdk.join("clang.flags").display()));
        clang.args(["-fno-color-diagnostics", "-Wno-unused-command-line-argument"]).current_dir(self.folder);
        // What assert() says names files of the step, wherever it was built.
        clang.arg(format!("-fmacro-prefix-map={}/=", self.folder.display()));
        clang
    }

    fn run(&self, mut clang: Command) -> Result<Vec<Problem>, BuildError> {
        let line = line(&clang);
        let tool = |problem: String| BuildError::Tool { command: line.clone(), problem };
        let output = clang.output().map_err(|why| tool(why.to_string()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            if self.options.progress == Progress::Shown && !said.trim().is_empty() {
                eprintln!("{}", said.trim_end());
            }
            return Ok(Vec::new());
        }
        let problems: Vec<Problem> = said.lines().filter_map(|line| diagnostic(line, self.folder)).collect();
        if problems.is_empty() { Err(tool(said.trim_end().to_owned())) } else { Ok(problems) }
    }
}

/// The flags of a folder's `compile_flags.txt`.
fn author_flags(folder: &Path) -> Result<Vec<String>, BuildError> {
    let file = folder.join("compile_flags.txt");
    if !file.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&file).map_err(at(&file))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// `FILE:LINE:COLUMN: error: TEXT`, and `wasm-ld: error: TEXT`.
fn diagnostic(line: &str, folder: &Path) -> Option<Problem> {
    if let Some((linker, text)) = line.split_once(": error: ")
        && linker.rsplit('/').next().is_some_and(|name| name.starts_with("wasm-ld"))
    {
        return Some(Problem { file: None, line: None, column: None, text: text.to_owned() });
    }
    let (place, text) = line.split_once(": error: ").or_else(|| line.split_once(": fatal error: "))?;
    let mut parts = place.rsplitn(3, ':');
    let (column, row, file) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
    let file = Path::new(file).strip_prefix(folder).unwrap_or(Path::new(file)).to_owned();
    Some(Problem { file: Some(file), line: Some(row), column: Some(column), text: text.to_owned() })
}

impl Problem {
    /// What the linker says of an object is said of its source.
    fn of(self, sources: &BTreeMap<PathBuf, PathBuf>) -> Self {
        let source =
            self.text.split_once(": ").and_then(|(object, text)| Some((sources.get(Path::new(object))?, text)));
        match source {
            Some((source, text)) => Self { file: Some(source.clone()), text: text.to_owned(), ..self },
            None => self,
        }
    }
}

/// What the C library asks WASI for, by the beginnings of the functions' names.
const OF_WASI: [(&str, &str); 8] = [
    ("clock_", "a clock, as time() does"),
    ("environ_", "environment variables"),
    ("args_", "arguments"),
    ("path_", "files, as fopen() does"),
    ("fd_", "files, as fopen() does"),
    ("poll_", "to wait, as sleep() does"),
    ("random_", "random numbers, as getentropy() does"),
    ("sock_", "sockets"),
];

/// What a module needs that no step has: each function that it imports of WASI.
fn beyond(module: &[u8]) -> Result<Vec<Problem>, BuildError> {
    let invalid = |why: wasmparser::BinaryReaderError| BuildError::Lift { problem: why.to_string() };
    let mut found = Vec::new();
    for payload in wasmparser::Parser::new(0).parse_all(module) {
        let wasmparser::Payload::ImportSection(imports) = payload.map_err(invalid)? else { continue };
        for import in imports.into_imports() {
            let import = import.map_err(invalid)?;
            if import.module.starts_with("wasi_snapshot") {
                let what = OF_WASI.iter().find(|(begin, _)| import.name.starts_with(begin));
                let what = what.map_or(String::new(), |(_, what)| format!("{what}: "));
                let text = format!("something here needs {what}{} of WASI, which no step has", import.name);
                found.push(Problem { file: None, line: None, column: None, text });
            }
        }
    }
    Ok(found)
}

/// The files outside of the folder that a compiler's list of dependencies names; none if it did not come to write it.
fn depends(list: &Path, folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    if !list.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(list).map_err(at(list))?;
    let names = text.split_once(": ").map_or("", |(_, names)| names).split_whitespace().filter(|name| *name != "\\");
    // `../shared.h` is written as in the folder.
    let files = names.filter_map(|name| fs::canonicalize(folder.join(name)).ok());
    Ok(files.filter(|path| !path.starts_with(folder)).collect())
}

#[cfg(test)]
mod tests {
    use super::diagnostic;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    #[test]
    fn what_clang_and_its_linker_say_becomes_problems_with_their_place() {
        let told = |line: &str| {
            diagnostic(line, Path::new("/home/me/pool")).map(|p| {
                format!(
                    "{:?} {:?} {:?} {}",
                    p.file.unwrap_or_default(),
                    p.line.unwrap_or(0),
                    p.column.unwrap_or(0),
                    p.text
                )
            })
        };
        let read = |line: &str| told(line).unwrap_or_else(|| "nothing".to_owned());
        assert_eq!(
            read("/home/me/pool/src/steps.c:3:5: error: unknown type: x"),
            "\"src/steps.c\" 3 5 unknown type: x"
        );
        assert_eq!(read("steps.c:1:10: fatal error: 'x.h' file not found"), "\"steps.c\" 1 10 'x.h' file not found");
        let linker = "wasm-ld-14: error: /tmp/0.o: undefined symbol: plan";
        assert_eq!(read(linker), "\"\" 0 0 /tmp/0.o: undefined symbol: plan");
        let sources = BTreeMap::from([(PathBuf::from("/tmp/0.o"), PathBuf::from("src/steps.c"))]);
        let of = diagnostic(linker, Path::new("/home/me/pool")).map(|problem| problem.of(&sources));
        let of = of.map(|problem| (problem.file, problem.text));
        assert_eq!(of, Some((Some("src/steps.c".into()), "undefined symbol: plan".to_owned())));
        assert_eq!(read("steps.c:3:5: warning: unused variable"), "nothing");
        assert_eq!(read("clang: error: linker command failed with exit code 1"), "nothing");
    }
}
