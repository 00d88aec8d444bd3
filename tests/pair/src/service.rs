//! The service: a set in SQLite, read and replaced as a whole over HTTP.

use crate::Fence;
use anyhow::{Context as _, Result};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Router, routing::get};
use http::{HeaderMap, StatusCode};
use interlock_fence::{Problem, sqlite};
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// A service that listens on loopback. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

struct Set {
    db: Mutex<Connection>,
    fence: Fence,
}

impl Service {
    pub(crate) async fn start(file: &Path, fence: Fence) -> Result<Self> {
        let db = Connection::open(file).context("the service's database")?;
        sqlite::create_tables(&db).context("the tables of the fence")?;
        db.execute_batch(
            "CREATE TABLE kept (id INTEGER PRIMARY KEY CHECK (id = 1), elements TEXT NOT NULL);
            INSERT INTO kept VALUES (1, '[]');",
        )?;
        let set = Arc::new(Set { db: Mutex::new(db), fence });
        let app = Router::new().route("/set", get(read).put(write)).with_state(set);
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/set", listener.local_addr()?);
        let task = tokio::spawn(async move {
            // It ends with its task.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { url, task })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(State(set): State<Arc<Set>>) -> Response {
    let db = set.db.lock().unwrap_or_else(PoisonError::into_inner);
    match db.query_row("SELECT elements FROM kept", [], |row| row.get::<_, String>(0)) {
        Ok(elements) => elements.into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn write(State(set): State<Arc<Set>>, headers: HeaderMap, elements: Bytes) -> Response {
    let mut db = set.db.lock().unwrap_or_else(PoisonError::into_inner);
    match replace(&mut db, set.fence, &headers, &elements) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(problem) => problem.response(),
    }
}

/// The check and the write are one transaction.
fn replace(db: &mut Connection, fence: Fence, headers: &HeaderMap, elements: &[u8]) -> Result<(), Box<Problem>> {
    let boxed = |error: sqlite::Error| Box::new(Problem::from(error));
    let tx = sqlite::begin(db).map_err(boxed)?;
    if fence == Fence::Present {
        let fence = interlock_fence::Fence::read(headers).map_err(|bad| Box::new(bad.into()))?;
        sqlite::raise(&tx, &fence).map_err(boxed)?;
    }
    let text = String::from_utf8_lossy(elements);
    tx.execute("UPDATE kept SET elements = ?1", [text.as_ref()]).map_err(|error| boxed(error.into()))?;
    tx.commit().map_err(|error| boxed(error.into()))
}
