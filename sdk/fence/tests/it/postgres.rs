//! The check in a PostgreSQL transaction. Who waits for whom is read from the server, so that every interleaving is
//! the planned one.

use crate::cluster::Cluster;
use crate::requests::{POOL, effect, fence};
use interlock_fence::postgres::{Error, admit, create_tables, forget, raise, remember};
use interlock_fence::{Admission, Answer, Problem, Refusal, Stale, sql};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{Client, GenericClient, IsolationLevel, Transaction};

const WRITERS: u64 = 8;

/// A database with a ledger: the tokens of those who wrote, each by reading all of it and writing all of it back.
struct Receiver {
    cluster: Arc<Cluster>,
    database: &'static str,
}

impl Receiver {
    async fn new(database: &'static str) -> Option<Self> {
        let receiver = Self { cluster: Cluster::shared()?, database };
        receiver.cluster.database(database).await;
        let db = receiver.connect().await;
        create_tables(&db).await.unwrap();
        let ledger = "CREATE TABLE ledger (entries text NOT NULL); INSERT INTO ledger VALUES ('')";
        db.batch_execute(ledger).await.unwrap();
        Some(receiver)
    }

    async fn connect(&self) -> Client {
        self.cluster.connect(self.database).await.unwrap()
    }

    async fn ledger(&self) -> String {
        read(&self.connect().await).await
    }

    /// Until so many of this database wait for another's transaction.
    async fn until_waiting(&self, wanted: i64) {
        let db = self.connect().await;
        let waiting = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let asked = async {
            while db.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) != wanted {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let bound = Duration::from_secs(60);
        tokio::time::timeout(bound, asked).await.unwrap_or_else(|_| panic!("there are never {wanted} waiting"));
    }
}

async fn read(db: &impl GenericClient) -> String {
    db.query_one("SELECT entries FROM ledger", &[]).await.unwrap().get(0)
}

async fn write(db: &impl GenericClient, seen: &str, token: u64) {
    db.execute("UPDATE ledger SET entries = $1", &[&format!("{seen}{token};")]).await.unwrap();
}

async fn append(tx: &Transaction<'_>, token: u64) {
    write(tx, &read(tx).await, token).await;
}

fn stale(error: &Error) -> (u64, u64) {
    match error {
        Error::Refused(Refusal::Stale(Stale { expected, got, .. })) => (expected.get(), got.get()),
        other => panic!("{other}"),
    }
}

/// Everybody checks and reads, in the order of the tokens; then everybody writes, the newest owner first.
#[tokio::test]
async fn outside_of_the_transaction_all_updates_but_one_are_lost() {
    let Some(receiver) = Receiver::new("outside").await else { return };
    let mut paused = Vec::new();
    for token in 1..=WRITERS {
        let mut db = receiver.connect().await;
        let tx = db.transaction().await.unwrap();
        raise(&tx, &fence(token)).await.unwrap();
        tx.commit().await.unwrap(); // the check is over, and nothing holds anybody back
        let seen = read(&db).await;
        paused.push((token, db, seen));
    }
    for (token, db, seen) in paused.iter().rev() {
        write(db, seen, *token).await;
    }
    assert_eq!(receiver.ledger().await, "1;", "the latest owner of all wrote last, over the work of {}", WRITERS - 1);
}

#[derive(Debug, PartialEq)]
enum Said {
    Checked(u64),
    Refused(u64),
}

async fn writer(mut db: Client, token: u64, said: mpsc::UnboundedSender<Said>, go: Arc<Notify>) {
    let tx = db.transaction().await.unwrap();
    if let Err(error) = raise(&tx, &fence(token)).await {
        let (expected, got) = stale(&error);
        assert!(expected > got && got == token);
        return said.send(Said::Refused(token)).unwrap();
    }
    said.send(Said::Checked(token)).unwrap();
    go.notified().await;
    append(&tx, token).await;
    tx.commit().await.unwrap();
}

/// The same plan: everybody begins while the first is between check and write. Nobody gets past the check, so the
/// first goes on, and then whoever is next; the server chooses who.
async fn everybody_meets(receiver: &Receiver) {
    let (said, mut heard) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let mut writers = tokio::task::JoinSet::new();
    for token in 1..=WRITERS {
        writers.spawn(writer(receiver.connect().await, token, said.clone(), go.clone()));
        if token == 1 {
            assert_eq!(heard.recv().await, Some(Said::Checked(1)));
        }
    }
    drop(said);
    receiver.until_waiting(WRITERS.cast_signed() - 1).await;
    assert!(heard.is_empty(), "somebody passed the check while another was before its write");

    let (mut accepted, mut refused) = (vec![1], Vec::new());
    go.notify_one();
    while let Some(what) = heard.recv().await {
        match what {
            Said::Checked(token) => {
                accepted.push(token);
                go.notify_one();
            }
            Said::Refused(token) => refused.push(token),
        }
    }
    writers.join_all().await;
    let written: String = accepted.iter().map(|token| format!("{token};")).collect();
    assert_eq!(receiver.ledger().await, written, "all that was accepted, in its order, and nothing else");
    assert!(accepted.is_sorted() && accepted.last() == Some(&WRITERS), "{accepted:?}");
    assert_eq!(accepted.len() + refused.len(), usize::try_from(WRITERS).unwrap());
}

#[tokio::test]
async fn inside_the_transaction_no_update_is_lost() {
    let Some(receiver) = Receiver::new("inside").await else { return };
    let mut db = receiver.connect().await;
    let tx = db.transaction().await.unwrap();
    raise(&tx, &fence(0)).await.unwrap();
    tx.commit().await.unwrap();
    everybody_meets(&receiver).await;
}

/// There is no row to lock yet: the key's uniqueness keeps them apart.
#[tokio::test]
async fn nor_is_one_of_the_first_writers_of_a_resource() {
    let Some(receiver) = Receiver::new("first").await else { return };
    everybody_meets(&receiver).await;
}

/// The trap inside of the transaction: what was read before the check is of before the wait.
#[tokio::test]
async fn who_reads_before_the_check_loses_an_update() {
    let Some(receiver) = Receiver::new("early").await else { return };
    let (mut first, mut second) = (receiver.connect().await, receiver.connect().await);
    let tx = first.transaction().await.unwrap();
    raise(&tx, &fence(1)).await.unwrap();
    let late = tokio::spawn(async move {
        let tx = second.transaction().await.unwrap();
        let seen = read(&tx).await;
        raise(&tx, &fence(2)).await.unwrap();
        write(&tx, &seen, 2).await;
        tx.commit().await.unwrap();
    });
    receiver.until_waiting(1).await;
    append(&tx, 1).await;
    tx.commit().await.unwrap();
    late.await.unwrap();
    assert_eq!(receiver.ledger().await, "2;");
}

/// The stricter levels turn the trap into a transaction that begins anew.
#[tokio::test]
async fn a_stricter_isolation_loses_nothing_and_begins_anew() {
    let Some(receiver) = Receiver::new("strict").await else { return };
    for (round, level) in [(1, IsolationLevel::RepeatableRead), (3, IsolationLevel::Serializable)] {
        let (mut first, mut second) = (receiver.connect().await, receiver.connect().await);
        let tx = first.transaction().await.unwrap();
        raise(&tx, &fence(round)).await.unwrap();
        let late = tokio::spawn(async move {
            let tx = second.build_transaction().isolation_level(level).start().await.unwrap();
            read(&tx).await;
            raise(&tx, &fence(round + 1)).await.map_err(Problem::from).unwrap_err()
        });
        receiver.until_waiting(1).await;
        append(&tx, round).await;
        tx.commit().await.unwrap();
        let problem = late.await.unwrap();
        assert_eq!((problem.status, problem.code, problem.retryable), (503, "unavailable", true), "{level:?}");
    }
    assert_eq!(receiver.ledger().await, "1;3;");
}

#[tokio::test]
async fn a_late_owner_is_refused_and_nothing_of_it_is_written() {
    let Some(receiver) = Receiver::new("late").await else { return };
    let mut db = receiver.connect().await;
    for (mine, refused) in [(5, None), (7, None), (6, Some((7, 6))), (7, None), (1, Some((7, 1))), (8, None)] {
        let tx = db.transaction().await.unwrap();
        let raised = raise(&tx, &fence(mine)).await;
        assert_eq!(raised.as_ref().err().map(stale), refused, "token {mine}");
        if raised.is_ok() {
            append(&tx, mine).await;
            tx.commit().await.unwrap();
        }
    }
    assert_eq!(receiver.ledger().await, "5;7;7;8;");
    let highest: i64 = db.query_one(sql::HIGHEST, &[&POOL]).await.unwrap().get(0);
    assert_eq!(highest, 8);
}

/// Who never committed has written nothing that a lower token could undo.
#[tokio::test]
async fn a_check_that_is_rolled_back_was_none() {
    let Some(receiver) = Receiver::new("back").await else { return };
    let mut db = receiver.connect().await;
    let tx = db.transaction().await.unwrap();
    raise(&tx, &fence(9)).await.unwrap();
    append(&tx, 9).await;
    tx.rollback().await.unwrap();
    let tx = db.transaction().await.unwrap();
    raise(&tx, &fence(8)).await.unwrap();
    append(&tx, 8).await;
    tx.commit().await.unwrap();
    assert_eq!(receiver.ledger().await, "8;");
}

async fn run(db: &mut Client, key: &str, owner: u64, body: &str) -> Result<Admission, Error> {
    let effect = effect(key, owner, body);
    let tx = db.transaction().await?;
    let admission = admit(&tx, &effect).await?;
    if admission == Admission::Run {
        append(&tx, owner).await;
        remember(&tx, &effect, &answered(201)).await?;
        tx.commit().await?;
    }
    Ok(admission)
}

fn answered(status: u16) -> Answer {
    Answer { status, body: b"{\"size\":4}".to_vec() }
}

#[tokio::test]
async fn an_effect_is_done_once_and_answered_every_time() {
    let Some(receiver) = Receiver::new("once").await else { return };
    let mut db = receiver.connect().await;
    assert_eq!(run(&mut db, "e1", 5, "4").await.unwrap(), Admission::Run);
    assert_eq!(run(&mut db, "e1", 5, "4").await.unwrap(), Admission::Replay(answered(201)));
    assert_eq!(run(&mut db, "e2", 6, "8").await.unwrap(), Admission::Run);
    let again = run(&mut db, "e1", 5, "4").await.unwrap();
    assert_eq!(again, Admission::Replay(answered(201)), "it was done, although its owner is late by now");
    assert_eq!(stale(&run(&mut db, "e3", 5, "4").await.unwrap_err()), (6, 5));
    let problem = Problem::from(run(&mut db, "e1", 5, "8").await.unwrap_err());
    assert_eq!((problem.status, problem.code, problem.retryable), (422, "id_reused", false));
    assert_eq!(receiver.ledger().await, "5;6;");
}

#[tokio::test]
async fn an_effect_in_work_is_not_begun_a_second_time() {
    let Some(receiver) = Receiver::new("work").await else { return };
    let (mut first, mut second) = (receiver.connect().await, receiver.connect().await);
    let mine = effect("e1", 5, "4");
    let tx = first.transaction().await.unwrap();
    assert_eq!(admit(&tx, &mine).await.unwrap(), Admission::Run);
    let problem = Problem::from(run(&mut second, "e1", 5, "4").await.unwrap_err());
    assert_eq!((problem.status, problem.code, problem.retry_after_ms), (409, "busy", Some(1_000)));

    tx.rollback().await.unwrap();
    assert_eq!(run(&mut second, "e1", 5, "4").await.unwrap(), Admission::Run, "the first came to nothing");
    assert_eq!(run(&mut first, "e1", 5, "4").await.unwrap(), Admission::Replay(answered(201)));
    assert_eq!(receiver.ledger().await, "5;");
}

/// A snapshot of before the first delivery's commit does not show its answer; the fence's row ends it all the same.
#[tokio::test]
async fn an_old_snapshot_does_not_do_an_effect_twice() {
    let Some(receiver) = Receiver::new("snapshot").await else { return };
    let (mut first, mut second) = (receiver.connect().await, receiver.connect().await);
    let level = IsolationLevel::RepeatableRead;
    let tx = second.build_transaction().isolation_level(level).start().await.unwrap();
    read(&tx).await;
    assert_eq!(run(&mut first, "e1", 5, "4").await.unwrap(), Admission::Run);
    let problem = Problem::from(admit(&tx, &effect("e1", 5, "4")).await.unwrap_err());
    assert_eq!((problem.status, problem.code, problem.retryable), (503, "unavailable", true));
    assert_eq!(receiver.ledger().await, "5;");
}

#[tokio::test]
async fn answers_are_forgotten_by_age_and_fences_never() {
    let Some(receiver) = Receiver::new("forget").await else { return };
    let mut db = receiver.connect().await;
    for key in ["old", "new"] {
        assert_eq!(run(&mut db, key, 5, "4").await.unwrap(), Admission::Run);
    }
    let aged = "UPDATE interlock_answers SET at = at - interval '2 hours' WHERE key = 'old'";
    assert_eq!(db.execute(aged, &[]).await.unwrap(), 1);
    assert_eq!(forget(&db, Duration::from_secs(3600)).await.unwrap(), 1);
    assert_eq!(run(&mut db, "new", 5, "4").await.unwrap(), Admission::Replay(answered(201)));
    assert_eq!(run(&mut db, "old", 5, "4").await.unwrap(), Admission::Run, "so keep answers longer than a sender asks");
    assert_eq!(forget(&db, Duration::ZERO).await.unwrap(), 2);
    assert_eq!(stale(&run(&mut db, "late", 4, "4").await.unwrap_err()), (5, 4));
}

#[tokio::test]
async fn a_failure_of_the_database_is_not_told_to_the_sender() {
    let Some(receiver) = Receiver::new("failure").await else { return };
    let mut db = receiver.connect().await;
    db.batch_execute("DROP TABLE interlock_fences").await.unwrap();
    let error = run(&mut db, "e1", 5, "4").await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(format!("{source:?}").contains("interlock_fences"), "for the log: {source:?}");
    let problem = Problem::from(error);
    assert_eq!((problem.status, problem.code), (500, "internal"));
    assert!(!problem.detail.contains("interlock_fences"), "{}", problem.detail);
}
