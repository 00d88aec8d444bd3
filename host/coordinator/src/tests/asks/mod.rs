//! What may be asked of rows, and what is answered, the same on every engine: a list of cases for each operation, in the
//! texts beside this file. In them, what begins with four spaces is an answer:
//!
//! ```text
//! == what this case is about; each begins with an empty table
//! row KEY VALUE       a row that is there
//! rows N VALUE        N rows k0000, k0001, and so on
//! {...}               a client's request: one operation, {"ops", "require"}, or a query
//! step {...}          the same as a step asks it
//! either {...}        two requests that are on their way at a time: both orders in which they can be decided
//! or {...}
//! next {...}          the query goes on where the last one ended
//! pass MS             time passes
//! save DATA           the step saves its data
//! declare [INDEXES]   the table is declared with these indexes instead of `by-n` and `by-status`
//! left                what the table holds
//! held                what the step has claimed
//! ```
//!
//! In a request `{"#times": N, "of": X}` among a list's elements is X as often, `@` in it the number of each, and
//! `{"#text": N}` a text of N bytes. `UPDATE_EXPECT=1 cargo test -p interlock-coordinator` rewrites the answers.

mod host;
mod say;

use expect_test::{ExpectFile, expect_file};
use host::Host;
use interlock_conformance::{Engine, HostileEngine, MemEngine, RedbEngine};
use std::fmt::Write as _;

#[test]
fn gets_are_answered_the_same_on_every_engine() {
    check(include_str!("get.txt"), expect_file!["get.txt"]);
}

#[test]
fn puts_are_answered_the_same_on_every_engine() {
    check(include_str!("put.txt"), expect_file!["put.txt"]);
}

#[test]
fn updates_are_answered_the_same_on_every_engine() {
    check(include_str!("update.txt"), expect_file!["update.txt"]);
}

#[test]
fn upserts_are_answered_the_same_on_every_engine() {
    check(include_str!("upsert.txt"), expect_file!["upsert.txt"]);
}

#[test]
fn claims_are_answered_the_same_on_every_engine() {
    check(include_str!("claim.txt"), expect_file!["claim.txt"]);
}

#[test]
fn deletes_are_answered_the_same_on_every_engine() {
    check(include_str!("delete.txt"), expect_file!["delete.txt"]);
}

#[test]
fn queries_are_answered_the_same_on_every_engine() {
    check(include_str!("query.txt"), expect_file!["query.txt"]);
}

#[test]
fn transactions_are_answered_the_same_on_every_engine() {
    check(include_str!("transact.txt"), expect_file!["transact.txt"]);
}

/// Every engine tells the same, and what is written down.
fn check(script: &str, expect: ExpectFile) {
    let told = told::<MemEngine>(script);
    expect.assert_eq(&told);
    assert_eq!(self::told::<RedbEngine>(script), told, "redb");
    assert_eq!(self::told::<HostileEngine<MemEngine>>(script), told, "a hostile store");
}

fn told<E: Engine>(script: &str) -> String {
    super::run(async {
        let mut out = String::new();
        let mut case: Vec<&str> = Vec::new();
        let mut host: Option<Host<E>> = None;
        for line in script.lines().filter(|line| !line.starts_with("    ")) {
            let _ = writeln!(out, "{line}");
            if line.starts_with("==") {
                case.clear();
                host = None;
            }
            if line.starts_with("==") || line.starts_with('#') || line.is_empty() {
                continue;
            }
            let here = match &mut host {
                Some(host) => host,
                None => host.insert(Host::new().await),
            };
            if let Some(second) = line.strip_prefix("or ") {
                let first = case.pop().and_then(|line| line.strip_prefix("either "));
                let first = first.unwrap_or_else(|| panic!("no either before {line}"));
                out.push_str(&both::<E>(&case, first, second).await);
            } else if !line.starts_with("either ") {
                for answer in here.play(line).await {
                    let _ = writeln!(out, "    {answer}");
                }
            }
            case.push(line);
        }
        out
    })
}

/// A host on which all of this has happened.
async fn after<E: Engine>(case: &[&str]) -> Host<E> {
    let mut host = Host::new().await;
    for line in case {
        host.play(line).await;
    }
    host
}

/// Two requests in both orders; asked at once, one of the two is what becomes of them.
async fn both<E: Engine>(case: &[&str], first: &str, second: &str) -> String {
    let mut out = String::new();
    let mut orders = Vec::new();
    for (one, other, turned) in [(first, second, false), (second, first, true)] {
        let mut host = after::<E>(case).await;
        let (one, other) = (host.play(one).await, host.play(other).await);
        let (first, second) = if turned { (other, one) } else { (one, other) };
        orders.push((first, second, host.play("left").await));
    }
    for turned in [false, true] {
        let host = after::<E>(case).await;
        let (first, second) = match turned {
            false => tokio::join!(host.ask(first), host.ask(second)),
            true => {
                let (second, first) = tokio::join!(host.ask(second), host.ask(first));
                (first, second)
            }
        };
        let mut host = host;
        let at_once = (first, second, host.play("left").await);
        assert!(orders.contains(&at_once), "asked at once: {at_once:#?}\nneither order: {orders:#?}");
    }
    for (title, (first, second, left)) in ["either first", "or first"].into_iter().zip(&orders) {
        let _ = writeln!(out, "    {title}");
        for answer in [first, second, left].into_iter().flatten() {
            let _ = writeln!(out, "      {answer}");
        }
    }
    out
}
