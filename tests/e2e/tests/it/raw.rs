//! A receiver on loopback that writes bytes instead of answers: what is no HTTP, and what is answered to the last byte
//! while nobody reads it.

use anyhow::Result;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The first byte of who speaks TLS, who is answered as soon as that has come.
const TLS_HANDSHAKE: u8 = 22;

/// What it writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bytes {
    Once(&'static [u8]),
    /// Until the other side goes away.
    Forever(&'static [u8]),
}

/// A receiver; gone when it is dropped.
pub(crate) struct Raw {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    holds: watch::Sender<bool>,
    answered: watch::Receiver<usize>,
    serving: JoinHandle<()>,
}

impl Raw {
    /// One that writes the same to everybody; nothing yet if it holds.
    pub(crate) async fn start(bytes: Bytes, holds: bool) -> Result<Raw> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (holds, held) = watch::channel(holds);
        let (told, answered) = watch::channel(0);
        let keep = Arc::clone(&seen);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (keep, held, told) = (Arc::clone(&keep), held.clone(), told.clone());
                tokio::spawn(async move { drop(answer(stream, bytes, &keep, held, &told).await) });
            }
        });
        Ok(Raw { port, seen, holds, answered, serving })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The requests that it has read.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes from now on.
    pub(crate) fn let_go(&self) {
        self.holds.send_replace(false);
    }

    /// Waits until it has written so many answers to the end.
    pub(crate) async fn until_answered(&mut self, count: usize) -> Result<()> {
        self.answered.wait_for(|answered| *answered >= count).await?;
        Ok(())
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    mut stream: TcpStream,
    bytes: Bytes,
    seen: &Mutex<Vec<String>>,
    mut held: watch::Receiver<bool>,
    answered: &watch::Sender<usize>,
) -> Result<()> {
    let mut request = Vec::new();
    // The bodies of these tests are smaller than what one read takes after the head has come.
    let is_whole =
        |read: &[u8]| read.first() == Some(&TLS_HANDSHAKE) || read.windows(4).any(|four| four == b"\r\n\r\n");
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(String::from_utf8_lossy(&request).into_owned());
    held.wait_for(|holds| !holds).await?;
    match bytes {
        Bytes::Once(bytes) => stream.write_all(bytes).await?,
        Bytes::Forever(bytes) => while stream.write_all(bytes).await.is_ok() {},
    }
    stream.shutdown().await?;
    answered.send_modify(|count| *count += 1);
    Ok(())
}
