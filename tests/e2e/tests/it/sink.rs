//! A receiver of effects on loopback that keeps what it was sent and answers as it is told.

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn key(&self) -> &str {
        self.header("idempotency-key")
    }
}

/// What it answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Says(u16, Vec<(&'static str, String)>, Value),
    /// Nothing, until it is told to let go; then as ever.
    Held,
}

/// A status and nothing else.
pub(crate) fn status(status: u16) -> Answer {
    Answer::Says(status, Vec::new(), Value::Null)
}

/// A status and one header.
pub(crate) fn with_header(status: u16, name: &'static str, value: &str) -> Answer {
    Answer::Says(status, vec![(name, value.to_owned())], Value::Null)
}

#[derive(Default)]
struct Book {
    seen: Vec<Seen>,
    /// By path, in turn; then `{"ok": true}`.
    answers: BTreeMap<String, VecDeque<Answer>>,
    /// What nobody said an answer for is held.
    holds: bool,
    /// Of a receiver that fences: the highest token of each resource under which something was done.
    highest: Option<BTreeMap<String, u64>>,
}

#[derive(Clone)]
struct Desk {
    book: Arc<Mutex<Book>>,
    /// Counts how often held requests were let go.
    let_go: watch::Sender<u64>,
}

/// What an operator writes who allows a port of this machine, with this secret.
pub(crate) fn allowed(port: u16, secrets: &str) -> String {
    format!(
        "[effects]\nnetworks = [\"127.0.0.1\"]\n\n[[effects.allow]]\nurl = \"http://127.0.0.1:{port}/*\"\n\
         methods = [\"POST\"]\nsecrets = [{secrets}]\n"
    )
}

/// A receiver; gone when it is dropped.
pub(crate) struct Sink {
    port: u16,
    desk: Desk,
    serving: JoinHandle<()>,
}

impl Sink {
    pub(crate) async fn start() -> Result<Sink> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let desk = Desk { book: Arc::default(), let_go: watch::Sender::new(0) };
        let router = Router::new().fallback(take).with_state(desk.clone());
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Sink { port, desk, serving })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What it answers to the next requests of a path.
    pub(crate) fn answers(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        let mut book = self.desk.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.answers.entry(path.to_owned()).or_default().extend(answers);
    }

    /// Whether requests that nobody said an answer for are held from now on.
    pub(crate) fn hold(&self, holds: bool) {
        self.desk.book.lock().unwrap_or_else(PoisonError::into_inner).holds = holds;
    }

    /// From now on it refuses what comes under a lower token than something that was done.
    pub(crate) fn fences(&self) {
        self.desk.book.lock().unwrap_or_else(PoisonError::into_inner).highest = Some(BTreeMap::new());
    }

    /// Answers whatever is held.
    pub(crate) fn let_go(&self) {
        self.desk.let_go.send_modify(|count| *count += 1);
    }

    /// Everything that came, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.desk.book.lock().unwrap_or_else(PoisonError::into_inner).seen.clone()
    }

    /// What came for a path.
    pub(crate) fn at(&self, path: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path == path).collect()
    }

    /// Waits until this often something came for a path. The bound of the test is the bound of the wait.
    pub(crate) async fn until(&self, path: &str, count: usize) -> Vec<Seen> {
        loop {
            let seen = self.at(path);
            if seen.len() >= count {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// What an operator writes who allows this receiver, with this secret.
    pub(crate) fn allowed(&self, secrets: &str) -> String {
        allowed(self.port, secrets)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(desk): State<Desk>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: BTreeMap<_, _> = headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let resource = headers.get("interlock-fence-resource").cloned().unwrap_or_default();
    let token = headers.get("interlock-fencing-token").and_then(|token| token.parse().ok()).unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = uri.path().to_owned();
    // Told before it is kept: who sees it may let it go at once.
    let mut let_go = desk.let_go.subscribe();
    let answer = {
        let mut book = desk.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.seen.push(Seen { path: path.clone(), headers, body });
        let otherwise = book.holds.then_some(Answer::Held);
        book.answers.get_mut(&path).and_then(VecDeque::pop_front).or(otherwise)
    };
    match answer {
        Some(Answer::Says(status, headers, body)) => {
            said(status, &headers, &body).unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
        }
        Some(Answer::Held) => {
            drop(let_go.changed().await);
            done(&desk, resource, token)
        }
        None => done(&desk, resource, token),
    }
}

/// Looked at where it is done, however long it was held before.
fn done(desk: &Desk, resource: String, token: u64) -> Response {
    let mut book = desk.book.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(highest) = book.highest.as_mut().map(|highest| highest.entry(resource).or_default()) {
        if token < *highest {
            return StatusCode::PRECONDITION_FAILED.into_response();
        }
        *highest = token;
    }
    axum::Json(json!({ "ok": true })).into_response()
}

fn said(status: u16, headers: &[(&'static str, String)], body: &Value) -> Result<Response> {
    let mut response = match body {
        Value::Null => StatusCode::from_u16(status)?.into_response(),
        body => (StatusCode::from_u16(status)?, axum::Json(body.clone())).into_response(),
    };
    for (name, value) in headers {
        response.headers_mut().insert(*name, value.parse().context("a header")?);
    }
    Ok(response)
}
