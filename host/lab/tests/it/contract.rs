//! The contract with steps where it takes a host, but no step's code: its bounds, and an attempt that is lost
//! between two things that the host does for one call.

use crate::world::{lab_with, send, stands};
use interlock_coordinator::contract::{Handle, RELOADS_MAX, Refusal, Stopped, Wish};
use interlock_coordinator::{Attempt, Ended, Executor};
use interlock_kernel::limits::SAVES_MAX;
use interlock_kernel::rejection::{Code, Rejection};
use interlock_lab::{Asked, Fault, Lab, Turn};
use std::sync::{Arc, Mutex};

/// Has something done with the handle of the first attempt, and keeps what came of it.
struct Does<T, F> {
    what: F,
    came: Arc<Mutex<Option<T>>>,
}

/// A handle, used until it is refused or ended; how often it was not.
type Use = fn(Handle) -> interlock_store::BoxFuture<'static, (Handle, u32, Refusal)>;

impl Executor for Does<(u32, Refusal), Use> {
    fn start(&self, attempt: Attempt) {
        let (handle, came, what) = (Handle::new(attempt), Arc::clone(&self.came), self.what);
        tokio::spawn(async move {
            let (handle, times, refusal) = what(handle).await;
            came.lock().unwrap().get_or_insert((times, refusal));
            let (attempt, ended, _) = handle.over(Ended::Returned);
            attempt.finish(ended);
        });
    }
}

/// Runs it as the step of `job/a`.
fn used(what: Use, turn: &mut dyn FnMut(&interlock_lab::Held) -> Turn) -> (Lab, u32, Refusal) {
    let came = Arc::default();
    let mut lab = lab_with(Arc::new(Does { what, came: Arc::clone(&came) }));
    send(&mut lab, "run", "e1").unwrap();
    lab.settle(turn).unwrap();
    let (times, refusal) = came.lock().unwrap().take().unwrap();
    (lab, times, refusal)
}

fn no(refusal: &Refusal) -> &Rejection {
    match refusal {
        Refusal::No(no) => no,
        Refusal::Stop(stopped) => panic!("{stopped}"),
    }
}

#[test]
fn reloads_have_a_limit() {
    let reload: Use = |mut handle| {
        Box::pin(async move {
            let mut times = 0;
            loop {
                match handle.reload().await {
                    Ok(()) => times += 1,
                    Err(refusal) => return (handle, times, refusal),
                }
            }
        })
    };
    let (_, times, refusal) = used(reload, &mut |_| Turn::Go);
    assert_eq!((times, no(&refusal).code), (RELOADS_MAX, Code::Limit));
    assert_eq!(no(&refusal).expected, "at most 1000 reloads in an attempt (reloads_max)");
}

const SAVE: Use = |mut handle| {
    Box::pin(async move {
        let mut times = 0;
        loop {
            let saved = match handle.checkpoint(Wish::default()) {
                Ok(checkpoint) => handle.save(checkpoint).await,
                Err(refusal) => Err(refusal),
            };
            match saved {
                Ok(_) => times += 1,
                Err(refusal) => return (handle, times, refusal),
            }
        }
    })
};

#[test]
fn saves_have_a_limit() {
    let (_, times, refusal) = used(SAVE, &mut |_| Turn::Go);
    assert_eq!((times, no(&refusal).code), (SAVES_MAX, Code::Limit));
}

/// The save is on record, so its answer is yes; that the entity is lost is said at the next call.
#[test]
fn a_save_whose_attempt_is_lost_before_it_is_read_again_was_made() {
    let mut left = Some(Fault::Fenced);
    let (lab, times, refusal) = used(SAVE, &mut |held| match held.asked {
        Asked::LookAgain => left.take().map_or(Turn::Go, Turn::Fault),
        _ => Turn::Go,
    });
    assert_eq!((times, no(&refusal).code), (1, Code::Fenced));
    assert_eq!(stands(&lab), r#"first v3 {"runs":0} attempt None failed 1 lost 0"#);
}

/// A step that asks again after it heard that it is fenced.
#[test]
fn a_fenced_handle_says_so_once() {
    let insist: Use = |mut handle| {
        Box::pin(async move {
            assert!(matches!(handle.reload().await, Err(Refusal::No(_))));
            assert!(handle.is_told_lost());
            let refusal = handle.reload().await.unwrap_err();
            (handle, 1, refusal)
        })
    };
    let mut left = Some(Fault::Fenced);
    let (_, _, refusal) = used(insist, &mut |_| left.take().map_or(Turn::Go, Turn::Fault));
    assert!(matches!(refusal, Refusal::Stop(Stopped::Fenced(_))), "{refusal:?}");
}
