//! The redb engine in a real data directory.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use interlock_conformance::{block_on, put, value};
use interlock_store::{Options, Redb, Store, StoreError};

#[test]
fn a_directory_in_use_is_refused_by_name_and_process() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("new").join("data");
    let store = Redb::open(Options::new(&dir)).unwrap();
    let Err(error) = Redb::open(Options::new(&dir)) else {
        panic!("two stores in one directory");
    };
    let expected = StoreError::AlreadyOpen { path: dir.clone(), pid: Some(std::process::id()) };
    assert_eq!(error, expected);
    assert!(error.to_string().contains(&dir.display().to_string()));
    put(&store, "k", "v").unwrap();
    drop(store);
    let store = Redb::open(Options::new(&dir)).unwrap();
    assert_eq!(value(&store, "k").unwrap().as_deref(), Some("v"));
}

#[test]
fn a_directory_is_free_as_soon_as_close_returns() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for n in 0..5 {
        let store = Redb::open(Options::new(dir.path())).unwrap();
        put(&store, &format!("k{n}"), "v").unwrap();
        runtime.block_on(store.close(Duration::from_secs(5))).unwrap();
        let next = Redb::open(Options::new(dir.path())).unwrap();
        assert!(value(&next, &format!("k{n}")).unwrap().is_some());
        // The first handle is still alive, and closed.
        assert_eq!(value(&store, "k0"), Err(StoreError::Closed));
    }
}

#[test]
fn an_unclean_end_is_repaired_and_the_reads_of_it_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let store = Redb::open(Options::new(dir.path())).unwrap();
    for n in 0..300 {
        put(&store, &format!("k{n:04}"), &"v".repeat(400)).unwrap();
    }
    // What a killed process leaves: the file as it is while the store is open.
    fs::copy(dir.path().join("store.redb"), copy.path().join("store.redb")).unwrap();
    let clean_reads = store.stats().opening_reads;
    drop(store);
    let store = Redb::open(Options::new(copy.path())).unwrap();
    assert!(value(&store, "k0299").unwrap().is_some());
    let stats = store.stats();
    assert!(stats.opening_reads > clean_reads + 20, "{} reads to repair", stats.opening_reads);
}

#[test]
fn the_reserve_is_kept_in_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = Redb::open(Options::new(dir.path())).unwrap();
    let reserve = fs::metadata(dir.path().join("RESERVE")).unwrap();
    assert!(reserve.len() > 1024 * 1024, "{} bytes", reserve.len());
    block_on(async { drop(store) });
}

#[test]
fn a_file_that_is_no_store_is_corrupt_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.redb");
    fs::write(&file, vec![7; 100_000]).unwrap();
    let Err(error) = Redb::open(Options::new(dir.path())) else {
        panic!("opened what is no store");
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(fs::read(&file).unwrap(), vec![7; 100_000]);
}

#[test]
fn a_store_that_was_cut_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    drop(Redb::open(Options::new(dir.path())).unwrap());
    let file = dir.path().join("store.redb");
    let whole = fs::read(&file).unwrap();
    for length in [0, 1, 100, 4096, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        let Err(error) = Redb::open(Options::new(dir.path())) else {
            panic!("opened {length} bytes of a store");
        };
        assert!(matches!(error, StoreError::Corrupt { .. }), "{length} bytes: {error}");
    }
}

#[test]
fn a_directory_whose_store_is_gone_is_not_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    drop(Redb::open(Options::new(dir.path())).unwrap());
    let file = dir.path().join("store.redb");
    let away = dir.path().join("away");
    fs::rename(&file, &away).unwrap();
    let Err(error) = Redb::open(Options::new(dir.path())) else {
        panic!("began a new store");
    };
    assert!(matches!(&error, StoreError::Corrupt { got, .. } if got.contains("store.redb is gone")), "{error}");
    assert!(!file.exists());
    fs::rename(away, file).unwrap();
    drop(Redb::open(Options::new(dir.path())).unwrap());
}

#[test]
fn a_directory_that_cannot_be_made_is_an_io_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let Err(error) = Redb::open(Options::new(file.join("data"))) else {
        panic!("opened a directory in a file");
    };
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("data"), "{error}");
    let _: PathBuf = file;
}
