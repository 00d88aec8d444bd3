//! Leases on one host, by real reports: on the store in memory, on a hostile one, and on redb. Time is moved by hand.

use super::run;
use super::world::{Hands, accepted, command, deploy, entity, parse, rest};
use crate::{Coordinator, Ended, Options, SubmitError};
use interlock_conformance::Hostile;
use interlock_kernel::command::{Acquire, Change, Create, LeaseAsk, OnExisting, Outcome, Verb};
use interlock_kernel::ids::{LeaseName, Principal};
use interlock_kernel::record::{Expect, Key, LeaseWhat, Record, Terms};
use interlock_kernel::rejection::Code;
use interlock_kernel::view::Event;
use interlock_store::{Abort, Fault, Lane, ManualClock, Mem, MemImage, Redb, Store, TransactError, Txn, transact};
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

const CREW: &str = r#"
    machine   = "pool"
    owner     = "platform-team <oncall@example.com>"
    component = "crew.wasm"
    initial   = "idle"
    desired.schema = false
    data.schema    = false
    outputs.schema = false
    events.go = { on_busy = "queue", schema = {} }
    leases.quota = { ttl = "9s", max = "1m", hold_max = "10m" }
    states.idle = { kind = "rest", on.go = { to = "work" } }
    states.work = { step = "work", to = ["idle"], needs = ["quota"], idle = "1h", total = "2h", deadline = "3h" }
"#;

/// A host and what it stands on.
struct Crew {
    host: Arc<Coordinator>,
    hands: Hands,
    clock: ManualClock,
    store: Arc<dyn Store>,
}

impl Crew {
    async fn of(store: Arc<dyn Store>, clock: ManualClock, slots: usize) -> Self {
        let hands = Hands::default();
        let options = Options { executions_max: slots, ..Options::default() };
        let host = match Coordinator::open(store.clone(), Arc::new(hands.clone()), options).await {
            Ok(host) => Arc::new(host),
            Err(error) => panic!("{error}"),
        };
        accepted(host.submit(deploy(CREW, "one")).await);
        Self { host, hands, clock, store }
    }

    async fn go(&self, key: &str) {
        let create = Create {
            entity: entity(key),
            desired: None,
            labels: Default::default(),
            on_existing: OnExisting::Same,
            event: None,
        };
        accepted(self.host.submit(command(Verb::Create(Box::new(create)))).await);
        let event =
            Event { id: parse(key), name: parse("go"), payload: None, expect: Expect::default(), checked: None };
        accepted(self.host.submit(command(Verb::Deliver { entity: entity(key), event: Box::new(event) })).await);
        self.settle().await;
    }

    /// Everything that can happen now has happened.
    async fn settle(&self) {
        for _ in 0..20 {
            rest().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
        self.settle().await;
    }

    async fn holder(&self) -> Option<(String, u64)> {
        let view = accepted(self.host.lease(&lease("quota")).await.map_err(SubmitError::from))?;
        view.lease.held(view.at).map(|held| (held.owner.shown(&held.label), held.token.get()))
    }

    async fn held_by(&self) -> String {
        self.holder().await.map_or("nobody".to_owned(), |(owner, _)| owner)
    }
}

fn lease(name: &str) -> LeaseName {
    parse(name)
}

fn ask(label: &str, wait_ms: Option<u64>) -> Acquire {
    let terms = Terms { ttl_ms: 5_000, hold_ms: 600_000, delay_ms: 0 };
    Acquire { lease: lease("quota"), grant: parse(label), label: label.to_owned(), terms, wait_ms }
}

/// The same in memory, on a hostile store, and on redb.
fn each<F: Future<Output = ()>>(test: impl Fn(Arc<dyn Store>, ManualClock) -> F) {
    let mem = |clock: &ManualClock| match Mem::open(MemImage::new(), Arc::new(clock.clone())) {
        Ok(mem) => Arc::new(mem),
        Err(error) => panic!("{error}"),
    };
    let clock = ManualClock::new();
    run(test(mem(&clock), clock));
    let clock = ManualClock::new();
    run(test(Arc::new(Hostile::over(mem(&clock))), clock));
    let (clock, dir) = (ManualClock::new(), tempfile::tempdir());
    let Ok(dir) = dir else { panic!("{dir:?}") };
    let options =
        interlock_store::Options { clock: Arc::new(clock.clone()), ..interlock_store::Options::new(dir.path()) };
    match Redb::open(options) {
        Ok(redb) => run(test(Arc::new(redb), clock)),
        Err(error) => panic!("{error}"),
    }
}

/// In memory, where commits can be made to fail.
fn in_memory<F: Future<Output = ()>>(test: impl Fn(Mem, ManualClock) -> F) {
    let clock = ManualClock::new();
    match Mem::open(MemImage::new(), Arc::new(clock.clone())) {
        Ok(mem) => run(test(mem, clock)),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn etcd_10811_a_late_owners_token_is_below_that_of_whoever_has_it_now() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        crew.go("a").await;
        crew.go("b").await;
        let (first, stale) = (crew.hands.last("a"), crew.holder().await);
        assert!(stale.as_ref().is_some_and(|(owner, _)| owner.starts_with("pool/a")));
        crew.advance(9_000).await;
        let now = crew.holder().await;
        assert!(now.as_ref().is_some_and(|(owner, _)| owner.starts_with("pool/b")), "{now:?}");
        assert!(now.map(|(_, token)| token) > stale.map(|(_, token)| token));
        let late = first.transition(parse("idle"), Change::default()).await;
        assert!(matches!(&late, Err(SubmitError::Rejected(no)) if no.code == Code::Fenced), "{late:?}");
        assert!(first.gate().check().is_err(), "and it was stopped");
    });
}

#[test]
fn etcd_12528_a_renewal_between_an_expiry_and_its_turn_keeps_the_lease() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        crew.go("a").await;
        let held = crew.holder().await;
        for _ in 0..4 {
            crew.advance(8_000).await;
            let saved = crew.hands.last("a").save(Change::default()).await;
            assert!(saved.is_ok(), "{saved:?}");
            accepted(crew.host.submit(command(Verb::Lapse(lease("quota")))).await); // queued before the renewal
        }
        assert_eq!(crew.holder().await, held);
    });
}

#[test]
fn etcd_6127_an_owner_whose_renewals_do_not_arrive_is_stopped_within_its_time() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        crew.go("a").await;
        let attempt = crew.hands.last("a");
        crew.advance(8_999).await;
        assert!(attempt.gate().check().is_ok());
        crew.advance(1).await;
        assert!(attempt.gate().check().is_err(), "told by the host, not by its next call");
    });
}

#[test]
fn consul_1843_nothing_a_step_does_after_the_loss_is_committed() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        crew.go("a").await;
        let attempt = crew.hands.last("a");
        crew.advance(9_000).await;
        for _ in 0..3 {
            assert!(attempt.save(Change::default()).await.is_err());
            assert!(attempt.lease(LeaseAsk::Acquire(lease("quota"), None)).await.is_err());
        }
        assert_eq!(attempt.still_holds().await, Ok(false));
        let view = accepted(crew.host.lease(&lease("quota")).await.map_err(SubmitError::from));
        let whats: Vec<_> = view.into_iter().flat_map(|view| view.entries).map(|entry| entry.what).collect();
        assert_eq!(whats, [LeaseWhat::Expired, LeaseWhat::Acquired], "newest first");
    });
}

#[test]
fn consul_912_a_renewal_that_fails_once_is_tried_again_and_the_lease_survives() {
    in_memory(|mem, clock| async move {
        let crew = Crew::of(Arc::new(mem.clone()), clock, 4).await;
        crew.go("a").await;
        let (attempt, held) = (crew.hands.last("a"), crew.holder().await);
        crew.advance(5_000).await;
        mem.fail_next(Fault::Unavailable);
        let ask = || LeaseAsk::Acquire(lease("quota"), None);
        assert!(matches!(attempt.lease(ask()).await, Err(SubmitError::Store(_))));
        crew.advance(3_999).await;
        assert!(attempt.lease(ask()).await.is_ok());
        crew.advance(8_999).await;
        assert_eq!(crew.holder().await, held);
    });
}

#[test]
fn oban_1488_after_a_renewal_of_unknown_fate_only_the_record_says_who_has_it() {
    for kept in [true, false] {
        in_memory(|mem, clock| async move {
            let crew = Crew::of(Arc::new(mem.clone()), clock, 4).await;
            crew.go("a").await;
            let attempt = crew.hands.last("a");
            let first = accepted(attempt.lease(LeaseAsk::Acquire(lease("quota"), None)).await);
            let Some(first) = first else { panic!("taken") };
            crew.advance(5_000).await;
            mem.fail_next(Fault::Indeterminate { kept });
            let renewed = attempt.lease(LeaseAsk::Extend(first.claim.clone(), None)).await;
            assert!(renewed.is_err(), "nobody can say: {renewed:?}");
            assert_eq!(attempt.lease_left_ms(&first), 4_000, "what was granted before counts, and no more");
            crew.advance(4_000).await;
            assert_eq!(attempt.lease_left_ms(&first), 0);
            assert_eq!(attempt.still_holds_lease(&first.claim).await, Ok(kept), "the record says");
        });
    }
}

#[test]
fn kubernetes_23731_a_rival_begins_only_after_the_owner_was_stopped() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        crew.go("a").await;
        let attempt = crew.hands.last("a");
        let host = crew.host.clone();
        let rival = tokio::spawn(async move { host.acquire(Principal::local(), ask("rival", Some(60_000))).await });
        crew.advance(8_999).await;
        assert!(attempt.gate().check().is_ok() && !rival.is_finished());
        crew.advance(1).await;
        assert!(attempt.gate().check().is_err());
        assert!(matches!(rival.await, Ok(Ok(Outcome::Leased { new: true, .. }))));
    });
}

#[test]
fn inngest_4766_a_late_dispatch_renews_first_and_no_two_overlap() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 1).await;
        let busy = Verb::Acquire(Box::new(ask("one", None)));
        accepted(crew.host.submit(command(busy)).await);
        crew.go("a").await; // waits for the lease
        accepted(crew.host.submit(deploy(&CREW.replace("needs = [\"quota\"], ", ""), "two")).await);
        crew.go("b").await; // has the only slot, and needs nothing
        accepted(crew.host.submit(deploy(CREW, "one")).await);
        crew.advance(5_000).await; // the lease comes to `a`, which has no slot
        let granted = crew.holder().await;
        assert!(granted.as_ref().is_some_and(|(owner, _)| owner.starts_with("pool/a")), "{granted:?}");
        crew.advance(8_000).await;
        let done = crew.hands.last("b").transition(parse("idle"), Change::default()).await;
        assert!(done.is_ok(), "{done:?}");
        crew.hands.take_last("b").finish(Ended::Returned);
        crew.settle().await;
        let attempt = crew.hands.last("a");
        assert_eq!(crew.holder().await, granted);
        crew.advance(8_999).await;
        assert!(attempt.gate().check().is_ok(), "its time ran anew when it was handed out");
        assert!(attempt.save(Change::default()).await.is_ok());
    });
}

#[test]
fn oban_862_a_boot_under_the_same_name_takes_up_what_the_former_life_held() {
    in_memory(|mem, clock| async move {
        let crew = Crew::of(Arc::new(mem.clone()), clock.clone(), 4).await;
        crew.go("a").await;
        let (old, held) = (crew.hands.last("a"), crew.holder().await);
        crew.host.halt();
        rest().await;
        let next = Crew::of(Arc::new(mem), clock, 4).await;
        next.settle().await;
        let attempt = next.hands.last("a");
        assert!(attempt.token() > old.token(), "another attempt");
        assert_eq!(next.holder().await, held, "of the same execution, which has it still");
    });
}

#[test]
fn clients_are_served_in_the_order_they_came_and_who_went_away_is_passed() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        accepted(crew.host.acquire(Principal::local(), ask("one", None)).await);
        let mut waiting = Vec::new();
        for label in ["two", "three", "four"] {
            let host = crew.host.clone();
            let waits = ask(label, Some(60_000));
            waiting.push(tokio::spawn(async move { host.acquire(Principal::local(), waits).await }));
            crew.settle().await;
        }
        waiting.remove(1).abort(); // three
        crew.settle().await;
        crew.advance(5_000).await;
        assert_eq!(crew.held_by().await, "two");
        crew.advance(5_000).await;
        assert_eq!(crew.held_by().await, "four");
        for waiter in waiting {
            assert!(matches!(waiter.await, Ok(Ok(Outcome::Leased { new: true, .. }))));
        }
    });
}

#[test]
fn who_goes_away_before_the_first_answer_leaves_no_place() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        accepted(crew.host.acquire(Principal::local(), ask("one", None)).await);
        let host = crew.host.clone();
        let mut going = Box::pin(async move { host.acquire(Principal::local(), ask("two", Some(60_000))).await });
        let waits = std::future::poll_fn(|cx| Poll::Ready(going.as_mut().poll(cx).is_pending())).await;
        assert!(waits);
        drop(going);
        crew.settle().await;
        let view = accepted(crew.host.lease(&lease("quota")).await.map_err(SubmitError::from));
        assert!(view.is_some_and(|view| view.lease.line.is_empty()));
    });
}

/// Found by the simulator: a client was cut off in line and asked again under its grant; then the broken connection was
/// found, and what it stood for, or had been granted by then, was given back behind its back.
#[test]
fn who_asked_again_keeps_its_place_when_its_first_connection_is_found_broken() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        accepted(crew.host.acquire(Principal::local(), ask("one", None)).await);
        let wait = |label: &'static str| {
            let host = crew.host.clone();
            tokio::spawn(async move { host.acquire(Principal::local(), ask(label, Some(60_000))).await })
        };
        let cut_off = wait("two");
        crew.settle().await;
        let again = wait("two");
        crew.settle().await;
        // Its place is that of both, and stays.
        cut_off.abort();
        crew.settle().await;
        let line = |view: Option<crate::LeaseView>| view.map(|view| view.lease.line.len());
        assert_eq!(line(accepted(crew.host.lease(&lease("quota")).await.map_err(SubmitError::from))), Some(1));
        crew.advance(5_000).await;
        let told = again.await;
        assert!(matches!(told, Ok(Ok(Outcome::Leased { .. }))), "{told:?}");
        assert_eq!(crew.held_by().await, "two");
        // Nobody is left and nobody was told: it goes back.
        let third = wait("three");
        crew.settle().await;
        third.abort();
        crew.settle().await;
        assert_eq!(line(accepted(crew.host.lease(&lease("quota")).await.map_err(SubmitError::from))), Some(0));
    });
}

#[test]
fn patience_ends_with_who_has_it() {
    each(|store, clock| async {
        let crew = Crew::of(store, clock, 4).await;
        accepted(crew.host.acquire(Principal::local(), ask("one", None)).await);
        let host = crew.host.clone();
        let waiting = tokio::spawn(async move { host.acquire(Principal::local(), ask("two", Some(2_000))).await });
        crew.settle().await;
        crew.advance(1_999).await;
        assert!(!waiting.is_finished());
        crew.advance(1).await;
        let refused = waiting.await;
        let Ok(Err(SubmitError::Rejected(refused))) = refused else { panic!("{refused:?}") };
        assert!(refused.code == Code::Busy && refused.got.contains("held by one"), "{refused}");
    });
}

/// The living outnumber the due by a thousand, and none of them is looked at.
#[test]
fn many_leases_end_without_a_look_at_the_living() {
    const LIVING: u64 = 10_000;
    const DUE: u64 = 10;
    in_memory(|mem, clock| async move {
        let crew = Crew::of(Arc::new(mem), clock, 4).await;
        for (count, ttl_ms) in [(LIVING, 600_000), (DUE, 5_000)] {
            let all = (0..count).map(|nth| {
                let terms = Terms { ttl_ms, hold_ms: 600_000, delay_ms: 0 };
                let label = format!("{ttl_ms}-{nth}");
                let ask = Acquire { lease: lease(&label), grant: parse(&label), label, terms, wait_ms: None };
                crew.host.submit(command(Verb::Acquire(Box::new(ask))))
            });
            for one in futures_util::future::join_all(all).await {
                accepted(one);
            }
        }
        crew.settle().await;
        let before = crew.host.stats();
        crew.advance(5_000).await;
        let after = crew.host.stats();
        let expired = |stats: &crate::Stats| {
            stats.leases.iter().find(|(what, _)| *what == LeaseWhat::Expired).map(|(_, count)| *count)
        };
        assert_eq!(expired(&after), Some(DUE));
        let scanned = after.scanned - before.scanned;
        assert!((DUE..DUE * 4).contains(&scanned), "{scanned} entries looked at");
    });
}

#[test]
fn a_planted_mismatch_of_a_lease_is_found_and_repaired_by_one_command() {
    in_memory(|mem, clock| async move {
        let crew = Crew::of(Arc::new(mem), clock, 4).await;
        crew.go("a").await;
        crew.go("b").await;
        assert_eq!(crew.host.reconcile().await, Ok(Vec::new()));
        let view = accepted(crew.host.lease(&lease("quota")).await.map_err(SubmitError::from));
        let Some(planted) = view.map(|view| view.lease) else { panic!("nobody has it") };
        let done = crew.hands.last("a").transition(parse("idle"), Change::default()).await;
        assert!(done.is_ok());
        crew.settle().await;
        // As it was while `a` worked: held by an execution that is over, `b` without it and in line. No index entry.
        let current = accepted(crew.host.lease(&lease("quota")).await.map_err(SubmitError::from));
        let Some(current) = current.map(|view| view.lease) else { panic!("nobody has it") };
        let wrong = interlock_kernel::record::Lease { line: Vec::new(), ..planted };
        let wrong = interlock_kernel::record::Lease { first: current.first, last: current.last, ..wrong };
        let key = Key::Lease(lease("quota"));
        let bytes = Record::Lease(Box::new(wrong)).encode(&key);
        let lapse = current.due.map(|due| crate::codec::encode(&Key::Lapse(due, lease("quota"))));
        let written: Result<_, TransactError<&str>> =
            transact(&*crew.store, Lane::Admission, move |txn: &mut dyn Txn| {
                txn.put(&crate::codec::encode(&key), bytes.clone().into())?;
                if let Some(lapse) = &lapse {
                    txn.delete(lapse)?;
                }
                Ok::<_, Abort<&str>>(())
            })
            .await;
        assert!(written.is_ok());
        let repaired = crew.host.reconcile().await;
        let Ok(words) = &repaired else { panic!("{repaired:?}") };
        assert!(words.iter().any(|word| word.contains("which does not have it")), "{words:?}");
        assert!(words.iter().any(|word| word.contains("names it and does not have it")), "{words:?}");
        assert!(words.iter().any(|word| word.starts_with("missing index entry")), "{words:?}");
        crew.settle().await;
        assert_eq!(crew.host.reconcile().await, Ok(Vec::new()));
        assert_eq!(crew.host.stats().repaired, 1, "one command, one record, one counter");
        crew.advance(60_000).await;
        assert!(crew.held_by().await.starts_with("pool/b"), "and it goes on");
    });
}
