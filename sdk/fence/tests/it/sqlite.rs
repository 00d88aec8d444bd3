//! The check in a SQLite transaction. Every interleaving is written down: as many connections as writers, one thread.

use crate::requests::{POOL, effect, fence, token};
use interlock_fence::sqlite::{Error, admit, begin, create_tables, forget, raise, remember};
use interlock_fence::{Admission, Answer, Problem, Refusal, Stale, sql};
use rusqlite::{Connection, Transaction};
use std::time::Duration;
use tempfile::TempDir;

const WRITERS: u64 = 8;

/// A database with a ledger: the tokens of those who wrote, each by reading all of it and writing all of it back.
struct Receiver(TempDir);

impl Receiver {
    fn new() -> Self {
        let receiver = Self(TempDir::new().unwrap());
        let db = receiver.connect();
        create_tables(&db).unwrap();
        db.execute_batch("CREATE TABLE ledger (entries TEXT NOT NULL); INSERT INTO ledger VALUES ('')").unwrap();
        receiver
    }

    /// A connection that never waits: who meets another writer hears `busy` at once.
    fn connect(&self) -> Connection {
        let db = Connection::open(self.0.path().join("receiver.db")).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        db.busy_timeout(Duration::ZERO).unwrap();
        db
    }

    fn ledger(&self) -> String {
        read(&self.connect())
    }
}

fn read(db: &Connection) -> String {
    db.query_row("SELECT entries FROM ledger", (), |row| row.get(0)).unwrap()
}

fn write(db: &Connection, seen: &str, token: u64) {
    db.execute("UPDATE ledger SET entries = ?1", [format!("{seen}{token};")]).unwrap();
}

fn append(tx: &Transaction<'_>, token: u64) {
    write(tx, &read(tx), token);
}

fn is_busy(error: Error) -> bool {
    let problem = Problem::from(error);
    (problem.status, problem.code, problem.retryable) == (503, "unavailable", true)
}

fn stale(error: &Error) -> (u64, u64) {
    match error {
        Error::Refused(Refusal::Stale(Stale { expected, got, .. })) => (expected.get(), got.get()),
        other => panic!("{other}"),
    }
}

/// Everybody checks and reads, in the order of the tokens; then everybody writes, the newest owner first.
#[test]
fn outside_of_the_transaction_all_updates_but_one_are_lost() {
    let receiver = Receiver::new();
    let paused: Vec<(u64, Connection, String)> = (1..=WRITERS)
        .map(|token| {
            let mut db = receiver.connect();
            let tx = begin(&mut db).unwrap();
            raise(&tx, &fence(token)).unwrap();
            tx.commit().unwrap(); // the check is over, and nothing holds anybody back
            let seen = read(&db);
            (token, db, seen)
        })
        .collect();
    paused.iter().rev().for_each(|(token, db, seen)| write(db, seen, *token));
    assert_eq!(receiver.ledger(), "1;", "the latest owner of all wrote last, over the work of {}", WRITERS - 1);
}

/// The same plan. A writer that cannot begin yet tries again when another has committed.
#[test]
fn inside_the_transaction_no_update_is_lost() {
    let receiver = Receiver::new();
    let mut connections: Vec<(u64, Connection)> = (1..=WRITERS).map(|token| (token, receiver.connect())).collect();
    let mut busy = 0;
    while let Some((mine, mut db)) = (!connections.is_empty()).then(|| connections.remove(0)) {
        let tx = begin(&mut db).unwrap();
        raise(&tx, &fence(mine)).unwrap();
        let seen = read(&tx);
        for (_, other) in &mut connections {
            assert!(is_busy(begin(other).expect_err("one writer at a time")));
            busy += 1;
        }
        write(&tx, &seen, mine);
        tx.commit().unwrap();
    }
    assert_eq!(busy, WRITERS * (WRITERS - 1) / 2, "everybody met everybody");
    assert_eq!(receiver.ledger(), "1;2;3;4;5;6;7;8;");
}

#[test]
fn a_late_owner_is_refused_and_nothing_of_it_is_written() {
    let receiver = Receiver::new();
    let mut db = receiver.connect();
    for (mine, refused) in [(5, None), (7, None), (6, Some((7, 6))), (7, None), (1, Some((7, 1))), (8, None)] {
        let tx = begin(&mut db).unwrap();
        let raised = raise(&tx, &fence(mine));
        assert_eq!(raised.as_ref().err().map(stale), refused, "token {mine}");
        if raised.is_ok() {
            append(&tx, mine);
            tx.commit().unwrap();
        }
    }
    assert_eq!(receiver.ledger(), "5;7;7;8;");
    let highest: i64 = db.query_row(sql::HIGHEST, [POOL], |row| row.get(0)).unwrap();
    assert_eq!(highest, 8);
}

/// Who never committed has written nothing that a lower token could undo.
#[test]
fn a_check_that_is_rolled_back_was_none() {
    let receiver = Receiver::new();
    let mut db = receiver.connect();
    let tx = begin(&mut db).unwrap();
    raise(&tx, &fence(9)).unwrap();
    append(&tx, 9);
    drop(tx);
    let tx = begin(&mut db).unwrap();
    raise(&tx, &fence(8)).unwrap();
    append(&tx, 8);
    tx.commit().unwrap();
    assert_eq!(receiver.ledger(), "8;");
}

/// A transaction that read before it checked has to begin anew, and so loses nothing either.
#[test]
fn a_deferred_transaction_that_read_too_early_cannot_check() {
    let receiver = Receiver::new();
    let (mut early, mut other) = (receiver.connect(), receiver.connect());
    let late = early.transaction().unwrap();
    assert_eq!(read(&late), "");
    let tx = begin(&mut other).unwrap();
    raise(&tx, &fence(1)).unwrap();
    append(&tx, 1);
    tx.commit().unwrap();
    assert!(is_busy(raise(&late, &fence(2)).unwrap_err()));
}

fn run(db: &mut Connection, key: &str, owner: u64, body: &str) -> Result<Admission, Error> {
    let effect = effect(key, owner, body);
    let tx = begin(db)?;
    let admission = admit(&tx, &effect)?;
    if admission == Admission::Run {
        append(&tx, owner);
        remember(&tx, &effect, &answered(201))?;
        tx.commit()?;
    }
    Ok(admission)
}

fn answered(status: u16) -> Answer {
    Answer { status, body: b"{\"size\":4}".to_vec() }
}

#[test]
fn an_effect_is_done_once_and_answered_every_time() {
    let receiver = Receiver::new();
    let mut db = receiver.connect();
    assert_eq!(run(&mut db, "e1", 5, "4").unwrap(), Admission::Run);
    assert_eq!(run(&mut db, "e1", 5, "4").unwrap(), Admission::Replay(answered(201)));
    assert_eq!(run(&mut db, "e2", 6, "8").unwrap(), Admission::Run);
    let again = run(&mut db, "e1", 5, "4").unwrap();
    assert_eq!(again, Admission::Replay(answered(201)), "it was done, although its owner is late by now");
    assert_eq!(stale(&run(&mut db, "e3", 5, "4").unwrap_err()), (6, 5));
    assert_eq!(receiver.ledger(), "5;6;");
}

#[test]
fn a_key_is_good_for_one_request() {
    let receiver = Receiver::new();
    let mut db = receiver.connect();
    assert_eq!(run(&mut db, "e1", 5, "4").unwrap(), Admission::Run);
    let problem = Problem::from(run(&mut db, "e1", 5, "8").unwrap_err());
    assert_eq!((problem.status, problem.code, problem.retryable), (422, "id_reused", false));
    assert_eq!(receiver.ledger(), "5;");
}

#[test]
fn answers_are_forgotten_by_age_and_fences_never() {
    let receiver = Receiver::new();
    let mut db = receiver.connect();
    for key in ["old", "new"] {
        assert_eq!(run(&mut db, key, 5, "4").unwrap(), Admission::Run);
    }
    let aged = "UPDATE interlock_answers SET at = at - 7200 WHERE key = 'old'";
    assert_eq!(db.execute(aged, ()).unwrap(), 1);
    assert_eq!(forget(&db, Duration::from_secs(3600)).unwrap(), 1);
    assert_eq!(run(&mut db, "new", 5, "4").unwrap(), Admission::Replay(answered(201)));
    assert_eq!(run(&mut db, "old", 5, "4").unwrap(), Admission::Run, "so keep answers longer than a sender asks");
    assert_eq!(forget(&db, Duration::ZERO).unwrap(), 2);
    assert_eq!(stale(&run(&mut db, "late", 4, "4").unwrap_err()), (5, 4));
}

#[test]
fn the_highest_token_of_all_is_stored_exactly() {
    let receiver = Receiver::new();
    let mut db = receiver.connect();
    let tx = begin(&mut db).unwrap();
    raise(&tx, &fence(interlock_fence::NUMBER_MAX)).unwrap();
    assert_eq!(stale(&raise(&tx, &fence(interlock_fence::NUMBER_MAX - 1)).unwrap_err()).0, interlock_fence::NUMBER_MAX);
    assert_eq!(token(interlock_fence::NUMBER_MAX).to_sql(), 9_007_199_254_740_991);
}

/// What the tables' own checks rule out is a fault, and never a token.
#[test]
fn a_number_that_cannot_be_is_not_taken_for_a_token() {
    let receiver = Receiver::new();
    let mut db = receiver.connect();
    db.execute_batch("PRAGMA ignore_check_constraints = on").unwrap();
    db.execute("INSERT INTO interlock_fences VALUES (?1, ?2)", (POOL, i64::MAX)).unwrap();
    let tx = begin(&mut db).unwrap();
    let error = raise(&tx, &fence(5)).unwrap_err();
    assert_eq!(error.to_string(), "stored token: expected one that fits, got 9223372036854775807");
    assert_eq!(Problem::from(error).status, 500);
}
