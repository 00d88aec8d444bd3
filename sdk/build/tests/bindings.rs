//! The generated C bindings of `sdk/c` are those of `wit/`, as the generator writes them today.
//! `UPDATE_EXPECT=1` writes them anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};
use wit_bindgen_core::{Files, wit_parser::Resolve};

const WORLD: &str = "step-with-everything";

#[test]
fn the_c_bindings_are_those_of_the_contract() {
    let folder = repository().join("sdk/c/bindings");
    let generated = generate();
    if env::var_os("UPDATE_EXPECT").is_some() {
        for (name, bytes) in &generated {
            fs::write(folder.join(name), bytes).expect("written");
        }
    }
    let present = fs::read_dir(&folder).expect("sdk/c/bindings").map(|entry| entry.expect("an entry").path());
    let present: BTreeMap<String, Vec<u8>> =
        present.map(|path| (name(&path), fs::read(&path).expect("read"))).collect();
    assert!(present.keys().eq(generated.keys()), "expected {:?}, got {:?}", generated.keys(), present.keys());
    for (name, bytes) in &generated {
        assert!(
            present.get(name) == Some(bytes),
            "sdk/c/bindings/{name} is not what wit/ gives: UPDATE_EXPECT=1 cargo test -p interlock-build --test bindings"
        );
    }
}

fn generate() -> BTreeMap<String, Vec<u8>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(repository().join("wit")).expect("wit/ is read");
    let world = resolve.select_world(&[package], Some(WORLD)).expect("the world is there");
    let mut files = Files::default();
    wit_bindgen_c::Opts::default().build().generate(&mut resolve, world, &mut files).expect("bindings");
    files.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
