//! Listings, revisions, and tasks that die.

use super::run;
use super::world::{Kept, POOL, World, accepted, command, deploy, entity, parse, rest};
use crate::codec;
use crate::core::Core;
use crate::read::look;
use crate::supervise::supervise;
use crate::{Behind, Listing};
use interlock_kernel::command::{Create, OnExisting, Verb};
use interlock_kernel::record::Key;
use interlock_store::{Clock, Span};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

fn create(key: &str, zone: &str) -> interlock_kernel::command::Command {
    command(Verb::Create(Box::new(Create {
        entity: entity(key),
        desired: None,
        labels: BTreeMap::from([("zone".to_owned(), zone.to_owned())]),
        on_existing: OnExisting::Same,
        event: None,
    })))
}

/// Every page of a listing, each with the keys it holds.
async fn pages(world: &World, mut listing: Listing) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = match world.host().entities(listing.clone()).await {
            Ok(page) => page,
            Err(error) => panic!("{error}"),
        };
        pages.push(page.entities.iter().map(|(id, _)| id.key.to_string()).collect());
        match page.next {
            Some(next) => listing.after = Some(next),
            None => return pages,
        }
    }
}

#[test]
fn a_listing_pages_by_key_and_skips_what_was_deleted() {
    run(async {
        let mut world = World::new(Kept::AsItIs).await;
        accepted(world.host().submit(deploy(POOL, "one")).await);
        for nth in 0..10 {
            let zone = if nth % 2 == 0 { "east" } else { "west" };
            accepted(world.host().submit(create(&format!("k{nth}"), zone)).await);
        }
        world.play(r#"send k3 resize {"size":2} id=e1"#).await;
        world.play("kill k4 enough").await;
        world.play("delete k4").await;
        let all = Listing { limit: 4, ..Listing::default() };
        let paged = pages(&world, all.clone()).await;
        assert_eq!(paged, [vec!["k0", "k1", "k2", "k3"], vec!["k5", "k6", "k7", "k8"], vec!["k9"]]);
        let west = Listing { labels: BTreeMap::from([("zone".to_owned(), "west".to_owned())]), ..all.clone() };
        assert_eq!(pages(&world, west).await.concat(), ["k1", "k3", "k5", "k7", "k9"]);
        let busy = Listing { state: Some(parse("planning")), machine: Some(parse("pool")), ..all.clone() };
        assert_eq!(pages(&world, busy).await.concat(), ["k3"]);
        let other = Listing { machine: Some(parse("poo")), ..all.clone() };
        assert_eq!(pages(&world, other).await, [Vec::<String>::new()]);
        let parked = Listing { parked: true, ..all };
        assert_eq!(pages(&world, parked).await.concat(), Vec::<String>::new());
    });
}

#[test]
fn what_cannot_move_to_the_active_revision_is_listed_with_the_reason() {
    run(async {
        let mut world = World::new(Kept::AsItIs).await;
        accepted(world.host().submit(deploy(POOL, "one")).await);
        for key in ["a", "b", "c"] {
            accepted(world.host().submit(create(key, "east")).await);
        }
        world.play(r#"send a resize {"size":9} id=e1"#).await;
        world.play(r#"send b resize {"size":2} id=e1"#).await;
        world.play("step b to provisioning").await;
        let narrow = POOL
            .replace(
                "properties.target = { type = \"integer\", minimum = 1, maximum = 64 }",
                "properties.target = { type = \"integer\", minimum = 1, maximum = 4 }",
            )
            .replace("{ wait = \"90s\", to", "{ name = \"provider\", wait = \"90s\", to");
        accepted(world.host().submit(deploy(&narrow, "one")).await);
        let (behind, next) = match world.host().behind(&parse("pool"), None, 10).await {
            Ok(found) => found,
            Err(error) => panic!("{error}"),
        };
        let of =
            |key: &str, why: Option<&str>| Behind { entity: entity(key), revision: 1, why: why.map(str::to_owned) };
        assert_eq!(next, None);
        assert_eq!(
            behind,
            [
                of("a", Some("data/target: expected at most 4, got 9")),
                of("b", Some("its timer after is not there")),
                of("c", None),
            ]
        );
        let revisions = match world.host().revisions(&parse("pool"), None, 10).await {
            Ok(revisions) => revisions,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(revisions.iter().map(|revision| revision.number).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(world.host().machines().await.map(|machines| machines.len()), Ok(1));
    });
}

#[test]
fn a_run_of_records_is_walked_up_and_down() {
    run(async {
        let world = World::new(Kept::AsItIs).await;
        accepted(world.host().submit(deploy(POOL, "one")).await);
        for key in ["a", "b", "c"] {
            accepted(world.host().submit(create(key, "east")).await);
        }
        let host = world.host();
        let walked = look(host.core(), |view, _| {
            let (from, to) = codec::entities(None);
            let b = codec::encode(&Key::Head(entity("b")));
            let span = Span::between(&from, &to);
            let heads = |of| {
                let mut found = Vec::new();
                view.walk(of, usize::MAX, &mut |key, _| {
                    if let Key::Head(id) = key {
                        found.push(id.key.to_string());
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(found.concat())
            };
            Ok([heads(span.clone())?, heads(span.clone().back())?, heads(span.back().after(&b))?])
        });
        assert_eq!(walked.await, Ok(["abc", "cba", "a"].map(str::to_owned)));
    });
}

#[test]
fn a_revision_of_a_failed_commit_is_forgotten() {
    run(async {
        let mut world = World::new(Kept::AsItIs).await;
        accepted(world.host().submit(deploy(POOL, "one")).await);
        accepted(world.host().submit(create("a", "east")).await);
        world.play("fail-next unavailable").await;
        let loose = POOL.replace("maximum = 64", "maximum = 640");
        assert!(world.host().submit(deploy(&loose, "one")).await.is_err());
        let tight = POOL.replace("maximum = 64", "maximum = 8");
        accepted(world.host().submit(deploy(&tight, "one")).await);
        world.play(r#"send a resize {"size":9} id=e1"#).await;
        let transcript = world.end().await;
        assert!(transcript.contains("REFUSED invalid: expected at most 8, got 9"), "{transcript}");
    });
}

async fn dies(_: Arc<Core>) {
    panic!("as planned");
}

#[test]
fn a_background_task_that_keeps_dying_is_told_and_begun_again() {
    run(async {
        let world = World::new(Kept::AsItIs).await;
        let host = world.host();
        let task = supervise(host.core(), "dies", dies);
        let health = || task.health(world.clock.monotonic());
        assert!(!health().failing);
        while host.stats().panics < 5 {
            world.clock.advance(Duration::from_secs(10));
            rest().await;
        }
        assert!(health().failing);
        assert!(host.health().ready, "the host's own tasks live");
        host.halt();
        task.ended().await;
        rest().await;
        assert_eq!(host.stats().panics, 5);
    });
}

#[test]
fn nobody_writes_once_the_host_stops() {
    run(async {
        let world = World::new(Kept::AsItIs).await;
        let host = world.host();
        accepted(host.submit(deploy(POOL, "one")).await);
        accepted(host.stop(Duration::ZERO).await);
        let refused = host.submit(create("a", "east")).await;
        assert!(refused.is_err_and(|error| error.is_retryable()));
        assert!(!host.health().ready);
        let gone: Result<Option<_>, _> = host.entity(&entity("a")).await.map(|found| found.map(|_| ()));
        assert!(gone.is_err());
    });
}
