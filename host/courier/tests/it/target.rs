//! A target on loopback that says exactly what a test wants, and the requests that go to it.

use interlock_courier::{
    ANSWER_BYTES_MAX, Allowed, Answer, Courier, Destination, Method, Outbound, Pattern, Resolve, Resolving, SendError,
};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Far beyond what any answer takes that comes at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// For a try that is meant to end by its timeout: long enough to get as far as the test says.
pub(crate) const IMPATIENCE: Duration = Duration::from_millis(700);

/// What a target does with a connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Reads a request, head and body.
    Read,
    /// Writes, the target's own port in place of `PORT`.
    Say(Vec<u8>),
    /// Writes the same for ever.
    Repeat(Vec<u8>),
    /// Writes a byte at a time, for ever.
    Drip(u8),
    /// Does nothing until the other side goes away.
    Hang,
}

/// Reads the request, answers, and closes.
pub(crate) fn say(text: impl AsRef<[u8]>) -> Vec<Act> {
    vec![Act::Read, Act::Say(text.as_ref().to_vec())]
}

/// A whole answer without more headers.
pub(crate) fn status(status: u16) -> Vec<Act> {
    say(format!("HTTP/1.1 {status} x\r\ncontent-length: 2\r\n\r\nok"))
}

/// A redirect.
pub(crate) fn redirect(status: u16, location: &str) -> Vec<Act> {
    say(format!("HTTP/1.1 {status} x\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"))
}

/// A target that does one thing with its first connection, another with the next, and the last with all others.
pub(crate) struct Target {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    gone: Arc<tokio::sync::Semaphore>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Target {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Target {
    pub(crate) async fn new(script: Vec<Vec<Act>>) -> anyhow::Result<Self> {
        Self::with_tls(script, None).await
    }

    pub(crate) async fn with_tls(script: Vec<Vec<Act>>, tls: Option<TlsAcceptor>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let script: Vec<Vec<Act>> = script.into_iter().map(|acts| with_port(acts, port)).collect();
        let (seen, gone) = (Arc::default(), Arc::new(tokio::sync::Semaphore::new(0)));
        let (keep, left) = (Arc::clone(&seen), Arc::clone(&gone));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            for nth in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let acts = script.get(nth).or(script.last()).cloned().unwrap_or_default();
                let (keep, left, tls) = (Arc::clone(&keep), Arc::clone(&left), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => play(stream, acts, &keep).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => play(stream, acts, &keep).await,
                            Err(_) => return,
                        },
                    }
                    left.add_permits(1);
                });
            }
        });
        Ok(Self { port, seen, gone, task })
    }

    /// The requests it has read.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Completes when so many of its connections have ended.
    pub(crate) async fn left(&self, connections: u32) -> anyhow::Result<()> {
        let _ended = tokio::time::timeout(PATIENCE, self.gone.acquire_many(connections)).await??;
        Ok(())
    }
}

fn with_port(acts: Vec<Act>, port: u16) -> Vec<Act> {
    let told = |act| match act {
        Act::Say(text) => match String::from_utf8(text) {
            Ok(text) => Act::Say(text.replace("PORT", &port.to_string()).into()),
            Err(binary) => Act::Say(binary.into_bytes()),
        },
        other => other,
    };
    acts.into_iter().map(told).collect()
}

async fn play(mut stream: impl AsyncRead + AsyncWrite + Unpin, acts: Vec<Act>, seen: &Mutex<Vec<String>>) {
    for act in acts {
        let goes_on = match act {
            Act::Read => match read_request(&mut stream).await {
                Some(request) => {
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                    true
                }
                None => false,
            },
            Act::Say(text) => stream.write_all(&text).await.is_ok(),
            Act::Repeat(text) => {
                while stream.write_all(&text).await.is_ok() {}
                false
            }
            Act::Drip(byte) => {
                while stream.write_all(&[byte]).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                false
            }
            Act::Hang => {
                while stream.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {}
                false
            }
        };
        if !goes_on {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let read = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = read.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map(str::parse::<usize>);
            if body.len() >= length.and_then(Result::ok).unwrap_or(0) {
                return Some(read);
            }
        }
        let mut more = [0; 4096];
        match stream.read(&mut more).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => text.extend_from_slice(more.get(..count)?),
        }
    }
}

/// Names that resolve to what a test says; each call takes the next answer, the last one stays.
#[derive(Debug)]
pub(crate) struct Names {
    answers: Vec<Vec<IpAddr>>,
    calls: AtomicUsize,
}

impl Names {
    pub(crate) fn new(answers: &[&[&str]]) -> anyhow::Result<Arc<Self>> {
        let parse = |addresses: &&[&str]| addresses.iter().map(|text| text.parse()).collect::<Result<Vec<IpAddr>, _>>();
        let answers = answers.iter().map(parse).collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { answers, calls: AtomicUsize::new(0) }))
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        let nth = self.calls.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
        Box::pin(async move { Ok(self.answers[nth].clone()) })
    }
}

pub(crate) fn allowed(text: &str) -> anyhow::Result<Allowed> {
    Ok(Allowed::parse(Path::new("host.toml"), text, &[])?)
}

/// Everything on one origin, and loopback with it.
pub(crate) fn all_of(origin: &str) -> anyhow::Result<Allowed> {
    allowed(&format!(
        "[effects]\nnetworks = [\"127.0.0.0/8\"]\n\
         [[effects.allow]]\nurl = \"{origin}/*\"\nmethods = [\"GET\", \"HEAD\", \"POST\"]"
    ))
}

pub(crate) fn get(url: &str) -> anyhow::Result<Outbound> {
    let url = Destination::parse(url)?;
    Ok(Outbound {
        target: "tickets".to_owned(),
        declared: Pattern::parse(&format!("{}/*", url.origin()))?,
        method: Method::Get,
        url,
        headers: Vec::new(),
        body: None,
        secret: None,
        timeout: PATIENCE,
        answer_bytes_max: ANSWER_BYTES_MAX,
    })
}

pub(crate) type Tried = Result<Answer, SendError>;

/// What comes of one GET.
pub(crate) async fn tried(script: Vec<Act>) -> anyhow::Result<Tried> {
    tried_for(PATIENCE, script).await
}

/// The same, with so much time.
pub(crate) async fn tried_for(timeout: Duration, script: Vec<Act>) -> anyhow::Result<Tried> {
    let target = Target::new(vec![script]).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let courier = Courier::new(all_of(&origin)?)?;
    Ok(courier.send(&Outbound { timeout, ..get(&format!("{origin}/a"))? }).await)
}
