//! The layer around an axum router. Requests are polled by hand where it matters who waits.

use crate::requests::{POOL, request};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::any;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use interlock_fence::layer::FenceLayer;
use interlock_fence::{Fence, Highest, InMemory, InSqlite};
use rusqlite::Connection;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, mpsc};
use tower_service::Service as _;

fn send(router: &Router, request: Request<Body>) -> BoxFuture<'static, Response> {
    let mut router = router.clone();
    async move { router.call(request).await.unwrap_or_else(|never| match never {}) }.boxed()
}

async fn problem(response: Response) -> Value {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

/// A service that adds one by reading, letting others go first, and writing.
fn counter(value: &Arc<AtomicU64>) -> Router {
    let value = value.clone();
    let add = move || async move {
        let seen = value.load(SeqCst);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        value.store(seen + 1, SeqCst);
    };
    Router::new().fallback(any(add))
}

#[tokio::test]
async fn without_the_layer_all_updates_but_one_are_lost_and_with_it_none() {
    let value = Arc::new(AtomicU64::new(0));
    let bare = counter(&value);
    join_all((0..8).map(|_| send(&bare, request(POOL, 5)))).await;
    assert_eq!(value.swap(0, SeqCst), 1);

    let fenced = bare.layer(FenceLayer::new(InMemory::new(8)));
    let answers = join_all((0..8).map(|token| send(&fenced, request(POOL, token)))).await;
    assert!(answers.iter().all(|answer| answer.status() == StatusCode::OK));
    assert_eq!(value.load(SeqCst), 8);
}

/// A service that says which token began, and ends when it is let.
struct Held {
    router: Router,
    began: Arc<Mutex<Vec<u64>>>,
    go: Arc<Semaphore>,
}

impl Held {
    fn behind(layer: FenceLayer<impl Highest>) -> Self {
        let (began, go) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
        let (begins, may) = (began.clone(), go.clone());
        let work = move |request: Request<Body>| async move {
            let fence = request.extensions().get::<Fence>().expect("the layer leaves it there").clone();
            begins.lock().unwrap().push(fence.token.get());
            may.acquire().await.unwrap().forget();
        };
        Self { router: Router::new().fallback(any(work)).layer(layer), began, go }
    }

    fn began(&self) -> Vec<u64> {
        self.began.lock().unwrap().clone()
    }
}

fn in_memory() -> FenceLayer<InMemory> {
    FenceLayer::new(InMemory::new(8))
}

#[tokio::test]
async fn one_request_of_a_resource_at_a_time_and_others_beside_it() {
    let held = Held::behind(in_memory());
    let mut first = send(&held.router, request(POOL, 1));
    let mut second = send(&held.router, request(POOL, 2));
    let mut other = send(&held.router, request("pool/other", 3));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    assert!(other.as_mut().now_or_never().is_none());
    assert_eq!(held.began(), [1, 3], "the second waits for the first");
    held.go.add_permits(3);
    join_all([first, second, other]).await;
    assert_eq!(held.began(), [1, 3, 2]);
}

#[tokio::test]
async fn a_late_owner_that_waited_is_judged_when_its_turn_comes() {
    let held = Held::behind(in_memory());
    let mut newer = send(&held.router, request(POOL, 7));
    let mut older = send(&held.router, request(POOL, 6));
    assert!(newer.as_mut().now_or_never().is_none());
    assert!(older.as_mut().now_or_never().is_none());
    held.go.add_permits(1);
    assert_eq!(newer.await.status(), StatusCode::OK);
    let problem = problem(older.await).await;
    assert_eq!((&problem["status"], &problem["code"]), (&412.into(), &"fenced".into()));
    assert_eq!(problem["detail"], "pool/gpu-7: expected a token of at least 7, got 6");
    assert_eq!(held.began(), [7]);
}

#[tokio::test]
async fn the_turn_is_held_until_the_body_is_complete_or_dropped() {
    let (chunks, sent) = mpsc::unbounded_channel::<&str>();
    let sent = Arc::new(Mutex::new(Some(sent)));
    let stream_or_nothing = move || async move {
        let Some(sent) = sent.lock().unwrap().take() else { return Body::empty() };
        let chunk = |mut sent: mpsc::UnboundedReceiver<&'static str>| async { Some((sent.recv().await?, sent)) };
        Body::from_stream(stream::unfold(sent, chunk).map(Ok::<_, Infallible>))
    };
    let router = Router::new().fallback(any(stream_or_nothing)).layer(in_memory());

    let head = send(&router, request(POOL, 1)).now_or_never().expect("the head does not wait for the body");
    let mut next = send(&router, request(POOL, 2));
    let mut body = head.into_body().into_data_stream();
    chunks.send("so far").unwrap();
    assert_eq!(body.next().await.unwrap().unwrap(), "so far");
    assert!(next.as_mut().now_or_never().is_none());
    drop(chunks);
    assert!(body.next().await.is_none());
    assert_eq!(next.now_or_never().expect("the body is complete").status(), StatusCode::OK);

    let unread = Router::new().fallback(any(async || "unread")).layer(in_memory());
    let head = send(&unread, request(POOL, 1)).await;
    let mut next = send(&unread, request(POOL, 2));
    assert!(next.as_mut().now_or_never().is_none());
    drop(head);
    assert!(next.now_or_never().is_some());
}

#[tokio::test]
async fn a_sender_that_leaves_gives_its_turn_back() {
    let held = Held::behind(in_memory());
    let mut leaves = send(&held.router, request(POOL, 1));
    let mut stays = send(&held.router, request(POOL, 1));
    assert!(leaves.as_mut().now_or_never().is_none());
    assert!(stays.as_mut().now_or_never().is_none());
    drop(leaves);
    held.go.add_permits(1);
    assert_eq!(stays.await.status(), StatusCode::OK);
    assert_eq!(held.began(), [1, 1]);
}

#[tokio::test]
async fn a_panic_gives_its_turn_back_and_keeps_the_token() {
    let fails = async |request: Request<Body>| {
        let token = request.extensions().get::<Fence>().unwrap().token.get();
        assert!(token != 7, "as planned");
    };
    let router = Router::new().fallback(any(fails)).layer(in_memory());
    assert!(tokio::spawn(send(&router, request(POOL, 7))).await.unwrap_err().is_panic());
    assert_eq!(send(&router, request(POOL, 6)).await.status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(send(&router, request(POOL, 8)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_request_without_a_fence_does_not_get_through() {
    let held = Held::behind(in_memory());
    let mut bare = request(POOL, 1);
    bare.headers_mut().remove("interlock-fencing-token");
    let problem = problem(send(&held.router, bare).await).await;
    assert_eq!((&problem["status"], &problem["code"]), (&400.into(), &"invalid".into()));
    assert_eq!(problem["subject"], "interlock-fencing-token");
    assert!(held.began().is_empty());
}

#[tokio::test]
async fn a_full_memory_refuses_and_forgets_nothing() {
    let router = counter(&Arc::default()).layer(FenceLayer::new(InMemory::new(2)));
    for resource in ["pool/a", "pool/b"] {
        assert_eq!(send(&router, request(resource, 5)).await.status(), StatusCode::OK);
    }
    let third = send(&router, request("pool/c", 5)).await;
    assert_eq!(third.headers()["retry-after"], "1");
    let problem = problem(third).await;
    assert_eq!((&problem["status"], &problem["code"]), (&503.into(), &"unavailable".into()));
    assert_eq!(problem["detail"], "fence.resources: expected at most 2, got one more");
    for resource in ["pool/a", "pool/b"] {
        assert_eq!(send(&router, request(resource, 4)).await.status(), StatusCode::PRECONDITION_FAILED);
        assert_eq!(send(&router, request(resource, 6)).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn more_requests_than_may_wait_are_told_to_come_again() {
    let held = Held::behind(in_memory().requests_max(2));
    let mut first = send(&held.router, request(POOL, 1));
    let mut second = send(&held.router, request(POOL, 1));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    let third = problem(send(&held.router, request(POOL, 1)).await).await;
    assert_eq!((&third["status"], &third["subject"]), (&503.into(), &"fence.requests".into()));
    held.go.add_permits(3);
    join_all([first, second]).await;
    assert_eq!(send(&held.router, request(POOL, 1)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn memory_forgets_at_a_restart_and_a_file_does_not() {
    let folder = tempfile::TempDir::new().unwrap();
    let in_file = || InSqlite::new(Connection::open(folder.path().join("fences.db")).unwrap()).unwrap();
    let (mut memory, mut file) = (Vec::new(), Vec::new());
    for token in [7, 6] {
        let started = counter(&Arc::default());
        memory.push(send(&started.clone().layer(in_memory()), request(POOL, token)).await.status().as_u16());
        file.push(send(&started.layer(FenceLayer::new(in_file())), request(POOL, token)).await.status().as_u16());
    }
    assert_eq!(memory, [200, 200], "the late owner got through");
    assert_eq!(file, [200, 412]);
}

#[tokio::test]
async fn nobody_writes_while_the_highest_token_cannot_be_known() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("fences.db");
    let held = Held::behind(FenceLayer::new(InSqlite::new(Connection::open(&file).unwrap()).unwrap()));
    Connection::open(&file).unwrap().execute_batch("DROP TABLE interlock_fences").unwrap();
    let problem = problem(send(&held.router, request(POOL, 5)).await).await;
    assert_eq!((&problem["status"], &problem["code"]), (&503.into(), &"unavailable".into()));
    assert!(held.began().is_empty());
}
