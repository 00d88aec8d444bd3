//! The recipes run their own tests, on tables that this crate has filled; then this crate reads what they left.

use crate::cluster::Cluster;
use crate::requests::{effect, fence};
use crate::tools::{find, missing};
use interlock_fence::{Admission, Answer, postgres, sqlite};
use rusqlite::Connection;
use std::path::Path;
use std::process::Command;

fn recipe(program: &Path, folder: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes").join(folder));
    command
}

/// Runs it to its end and gives back what it said.
fn passes(mut command: Command) -> String {
    let ran = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{command:?}: {}\n{said}", ran.status);
    said
}

fn answered(status: u16, body: &str) -> Answer {
    Answer { status, body: body.as_bytes().to_vec() }
}

#[test]
fn python_on_sqlite() {
    let Some(python) = find("python3", &[]) else { return missing("python3", "apt-get install python3") };
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("shared.db");
    let mut db = Connection::open(&file).unwrap();
    sqlite::create_tables(&db).unwrap();
    let tx = sqlite::begin(&mut db).unwrap();
    sqlite::raise(&tx, &fence(7)).unwrap();
    sqlite::remember(&tx, &effect("done", 6, "4"), &answered(201, "{}")).unwrap();
    tx.commit().unwrap();

    let mut tests = recipe(&python, "python");
    tests.args(["-B", "-m", "unittest", "-v"]).env("FENCE_DB", &file);
    let said = passes(tests);
    assert!(said.contains("Ran 8 tests") && !said.contains("skipped"), "{said}");

    let tx = sqlite::begin(&mut db).unwrap();
    let here = sqlite::admit(&tx, &effect("here", 8, "8")).unwrap();
    assert_eq!(here, Admission::Replay(answered(202, "[]")));
    let late = sqlite::raise(&tx, &fence(7)).unwrap_err();
    assert_eq!(late.to_string(), "fenced: pool/gpu-7: expected a token of at least 8, got 7");
}

#[tokio::test]
async fn node_on_postgres() {
    let Some(node) = find("node", &[]) else { return missing("node", "apt-get install nodejs") };
    let Some(cluster) = Cluster::shared() else { return };
    for database in ["node", "shared"] {
        cluster.database(database).await;
    }
    let mut db = cluster.connect("shared").await.unwrap();
    postgres::create_tables(&db).await.unwrap();
    let tx = db.transaction().await.unwrap();
    postgres::raise(&tx, &fence(7)).await.unwrap();
    postgres::remember(&tx, &effect("done", 6, "4"), &answered(201, "{}")).await.unwrap();
    tx.commit().await.unwrap();

    let mut tests = recipe(&node, "node");
    tests.args(["--test", "--test-reporter=tap", "fence.test.mjs"]).env("FENCE_PG", cluster.folder());
    let said = passes(tests);
    assert!(said.contains("# pass 7"), "{said}");

    let tx = db.transaction().await.unwrap();
    let here = postgres::admit(&tx, &effect("here", 8, "8")).await.unwrap();
    assert_eq!(here, Admission::Replay(answered(202, "[]")));
    let late = postgres::raise(&tx, &fence(7)).await.unwrap_err();
    assert_eq!(late.to_string(), "fenced: pool/gpu-7: expected a token of at least 8, got 7");
}
