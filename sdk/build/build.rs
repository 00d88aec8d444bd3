//! Lists the files of the SDKs and of the contract, so that the crate carries them: a component is always built
//! with the SDK of the host that runs it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What authors are not given: tests, examples, what tools leave behind.
const LEFT_OUT: [&str; 8] =
    ["examples", "node_modules", "package-lock.json", "README.md", "requirements.txt", "test", "tests", "__pycache__"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let root = here.join("../..");
    let mut list = String::new();
    for (name, folder) in [("JS", "sdk/js"), ("PYTHON", "sdk/python"), ("C", "sdk/c"), ("WIT", "wit")] {
        let folder = root.join(folder);
        let mut files = Vec::new();
        if folder.is_dir() {
            collect(&folder.canonicalize()?, &mut files)?;
        } else {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
        let folder = folder.canonicalize().unwrap_or(folder);
        files.sort();
        writeln!(list, "pub(crate) const {name}: &[File] = &[").map_err(io::Error::other)?;
        for file in files {
            let path = file.strip_prefix(&folder).map_err(io::Error::other)?;
            writeln!(list, "    File {{ path: {path:?}, bytes: include_bytes!({file:?}) }},")
                .map_err(io::Error::other)?;
        }
        list.push_str("];\n");
    }
    println!("cargo::rerun-if-changed=build.rs");
    fs::write(PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?).join("embedded.rs"), list)
}

/// Collects the files below a folder and has cargo watch them.
///
/// The folder itself is not watched: cargo would look through `node_modules` and through what examples build. A
/// new file at its top is noticed with the file that begins to use it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || LEFT_OUT.contains(&&*name) || name.contains(".test.") {
            continue;
        }
        println!("cargo::rerun-if-changed={}", path.display());
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
