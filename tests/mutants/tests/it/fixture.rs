//! A small crate of its own: what its tests notice, what they do not, and how a mutant may end.

use interlock_mutants::copy::{Subject, build};
use interlock_mutants::publish::{figures, list};
use interlock_mutants::reasons::Reason;
use interlock_mutants::score::{Against, Fate, score};
use interlock_mutants::suite::{End, tests};
use std::collections::BTreeMap;
use std::path::Path;

const SOURCE: &str = r#"
/// Tested on both sides of its bound.
pub fn tested(n: u8) -> bool {
    n < 3
}

/// Tested on one side.
pub fn half_tested(n: u8) -> u8 {
    if n > 3 { 3 } else { n }
}

/// Not tested.
pub fn untested(n: u8) -> u8 {
    if n == 0 { 1 } else { n }
}

/// Ends because it counts.
pub fn counts(mut n: u32) -> u32 {
    while n > 0 {
        n -= 1;
    }
    n
}

/// Stops the process when it is asked for what it refuses.
pub fn stops(n: u8) -> u8 {
    if n == 7 {
        return 0;
    }
    std::process::abort()
}
"#;

const TESTS: &str = r#"
use fixture::*;
#[test]
fn both_sides() {
    assert!(tested(2) && !tested(3));
}
#[test]
fn one_side() {
    assert_eq!(half_tested(2), 2);
}
#[test]
fn counting() {
    assert_eq!(counts(9), 0);
}
#[test]
fn stopping() {
    assert_eq!(stops(7), 0);
}
"#;

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_check_without_a_test_survives_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"one\"]\n");
    let manifest =
        "[package]\nname = \"fixture\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lints]\nworkspace = true\n";
    write(folder.path(), "one/Cargo.toml", manifest);
    write(folder.path(), "one/src/lib.rs", SOURCE);
    write(folder.path(), "one/tests/it.rs", TESTS);
    let subject = Subject {
        workspace: folder.path().to_owned(),
        folder: "one".to_owned(),
        package: "fixture".to_owned(),
        test: "it".to_owned(),
    };
    let copy = build(&subject, &folder.path().join("copy"), &folder.path().join("target")).unwrap();
    let suite = tests(&copy).unwrap();
    let fates = score(&copy, &copy.mutants, &suite, &BTreeMap::new(), Against::Every).unwrap();
    let of = |function: &str| -> Vec<(String, &Fate)> {
        let found = copy.mutants.iter().zip(&fates).filter(|(mutant, _)| mutant.function == function);
        found.map(|(mutant, fate)| (mutant.change.to_string(), fate)).collect()
    };
    assert!(of("tested").iter().all(|(_, fate)| matches!(fate, Fate::Noticed { by, .. } if by == "both_sides")));
    let survived: Vec<String> = of("half_tested")
        .into_iter()
        .filter_map(|(change, fate)| (*fate == Fate::Survived(1)).then_some(change))
        .collect();
    assert_eq!(survived, ["> becomes >=", "never"]);
    assert!(of("untested").iter().all(|(_, fate)| **fate == Fate::Survived(0)), "no test reaches it");
    let how = |function: &str, change: &str| match of(function).into_iter().find(|(at, _)| at == change).unwrap().1 {
        Fate::Noticed { how, .. } => Some(*how),
        Fate::Survived(_) => None,
    };
    assert_eq!(how("counts", "> becomes >="), Some(End::Failed), "it counts below nothing");
    assert_eq!(how("stops", "never"), Some(End::Crashed));
    assert_eq!(how("stops", "always"), None);
    let reason = Reason {
        file: "lib.rs".to_owned(),
        function: "untested".to_owned(),
        check: "if n == 0".to_owned(),
        changes: vec!["never".to_owned(), "always".to_owned()],
        why: "as an example".to_owned(),
        owed: false,
    };
    let found = figures(&copy.mutants, &fates, std::slice::from_ref(&reason));
    assert_eq!((found.reasoned, found.crashed), (2, 2));
    assert_eq!(found.noticed + found.reasoned + found.unexplained, copy.mutants.len());
    let list = list(&copy.mutants, &fates, &[reason]);
    assert!(list.contains("| untested | `if n == 0` | never | nobody: as an example |"), "{list}");
    assert!(list.contains("| untested | `n == 0` | == becomes != | nobody: no reason is known |"), "{list}");
}

#[test]
fn a_loop_without_end_is_stopped_by_what_it_evaluates() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"one\"]\n");
    let manifest =
        "[package]\nname = \"fixture\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lints]\nworkspace = true\n";
    write(folder.path(), "one/Cargo.toml", manifest);
    write(folder.path(), "one/src/lib.rs", "pub fn f(mut n: u32) { while n != 0 { n = n.saturating_sub(1); } }");
    write(folder.path(), "one/tests/it.rs", "#[test]\nfn ends() {\n    fixture::f(9);\n}\n");
    let (workspace, folder_name, package, test) =
        (folder.path().to_owned(), "one".to_owned(), "fixture".to_owned(), "it".to_owned());
    let subject = Subject { workspace, folder: folder_name, package, test };
    let copy = build(&subject, &folder.path().join("copy"), &folder.path().join("target")).unwrap();
    let suite = tests(&copy).unwrap();
    let fates = score(&copy, &copy.mutants, &suite, &BTreeMap::new(), Against::Every).unwrap();
    let ends: Vec<_> =
        copy.mutants.iter().zip(&fates).map(|(mutant, fate)| (mutant.change.to_string(), fate.clone())).collect();
    let endless = Fate::Noticed { by: "ends".to_owned(), how: End::Endless };
    assert_eq!(
        ends,
        [
            ("!= becomes ==".to_owned(), Fate::Survived(1)),
            ("never".to_owned(), Fate::Survived(1)),
            ("always".to_owned(), endless)
        ]
    );
}
