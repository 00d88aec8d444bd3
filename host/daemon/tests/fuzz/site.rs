//! One daemon for the process, and requests to it as bytes on a socket.

use anyhow::{Context as _, Result, ensure};
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use interlock_daemon::{Daemon, Options, Running};
use interlock_runtime::{EngineOptions, Engines};
use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An answer takes ms; one that takes this long will not come.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// How long a request that asks to wait is waited for.
const WAITED: Duration = Duration::from_millis(50);
/// A head longer than this is none of the daemon's.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Panics of this process, whichever thread they end.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// The daemon of this process.
pub(crate) fn site() -> &'static Site {
    static SITE: LazyLock<Site> = LazyLock::new(|| Site::start().expect("a daemon"));
    &SITE
}

/// A daemon with a door and an entity.
pub(crate) struct Site {
    addr: SocketAddr,
    _folder: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
    _running: Running,
}

/// A request as it is written in an input: `METHOD TARGET`, headers, an empty line, the body. Its length is the
/// client's business and so no header of an input; `Chunked: 7` sends the body in parts of 7 bytes.
pub(crate) struct Request<'i> {
    line: &'i [u8],
    headers: Vec<&'i [u8]>,
    body: &'i [u8],
}

/// What came back: the head's status, its headers in lower case, the body if it has an end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body.as_ref().map(|body| String::from_utf8_lossy(&body[..body.len().min(1_000)]));
        write!(f, "{} {:?} {}", self.status, self.headers, body.as_deref().unwrap_or("without a body"))
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl<'i> Request<'i> {
    pub(crate) fn parse(text: &'i [u8]) -> Self {
        let (mut line, mut headers) = (None, Vec::new());
        let mut at = 0;
        for part in text.split_inclusive(|byte| *byte == b'\n') {
            at += part.len();
            let part = part.strip_suffix(b"\n").unwrap_or(part);
            match line {
                None => line = Some(part),
                Some(_) if part.is_empty() => break,
                Some(_) => headers.push(part),
            }
        }
        let length = |header: &&[u8]| {
            let name = header.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
            !name.eq_ignore_ascii_case(b"content-length") && !name.eq_ignore_ascii_case(b"transfer-encoding")
        };
        headers.retain(length);
        Self { line: line.unwrap_or_default(), headers, body: text.get(at..).unwrap_or_default() }
    }

    pub(crate) fn method(&self) -> &'i [u8] {
        self.line.split(|byte| *byte == b' ').next().unwrap_or_default()
    }

    fn target(&self) -> &'i [u8] {
        let at = self.method().len() + 1;
        self.line.get(at..).unwrap_or_default()
    }

    /// Whether it may be answered late, or by a stream: it says `wait` or `watch`, however that is written.
    fn may_wait(&self) -> bool {
        let target = self.target();
        let has = |word: &[u8]| target.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
        has(b"wait") || has(b"watch") || has(b"%")
    }

    /// Whether it is HTTP at all: if not, it never comes to the daemon's own code, and the answer has no body.
    pub(crate) fn is_http(&self) -> bool {
        let header = |header: &&[u8]| {
            let Some(colon) = header.iter().position(|byte| *byte == b':') else { return false };
            let (name, value) = header.split_at(colon);
            HeaderName::from_bytes(name).is_ok() && HeaderValue::from_bytes(&value[1..]).is_ok()
        };
        let target = self.target();
        Method::from_bytes(self.method()).is_ok_and(|method| method != Method::CONNECT)
            && target.starts_with(b"/")
            && Uri::try_from(target).is_ok()
            && self.headers.iter().all(header)
    }

    fn chunk(&self) -> Option<usize> {
        let of = self.headers.iter().find_map(|header| header.strip_prefix(b"Chunked: "))?;
        std::str::from_utf8(of).ok()?.trim().parse().ok().filter(|bytes| *bytes > 0)
    }

    fn head(&self, framing: &str) -> Vec<u8> {
        let mut head = [self.line, b" HTTP/1.1\r\n"].concat();
        if !self.headers.iter().any(|header| header.len() >= 5 && header[..5].eq_ignore_ascii_case(b"host:")) {
            head.extend_from_slice(b"Host: 127.0.0.1\r\n");
        }
        for header in &self.headers {
            head.extend_from_slice(header);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(framing.as_bytes());
        head.extend_from_slice(b"\r\n");
        head
    }

    fn bytes(&self) -> Vec<u8> {
        let Some(chunk) = self.chunk() else {
            let head = self.head(&format!("Content-Length: {}\r\n", self.body.len()));
            return [&head, self.body].concat();
        };
        let mut all = self.head("Transfer-Encoding: chunked\r\n");
        for part in self.body.chunks(chunk) {
            all.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            all.extend_from_slice(part);
            all.extend_from_slice(b"\r\n");
        }
        all.extend_from_slice(b"0\r\n\r\n");
        all
    }
}

impl Site {
    fn start() -> Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            before(info);
        }));
        let folder = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let engines = Engines::new(EngineOptions { executions_max: 2, guest_threads: 1, ..EngineOptions::default() })?;
        let options = Options {
            data_dir: folder.path().to_owned(),
            listen: "127.0.0.1:0".parse()?,
            executions_max: 2,
            stop_within: Duration::from_secs(1),
            config: None,
            ..Options::default()
        };
        let running = runtime.block_on(Daemon::start_on(&engines, options))?;
        let site = Self { addr: running.addr(), _folder: folder, _runtime: runtime, _running: running };
        let deploy = serde_json::json!({ "manifest": include_str!("door.toml") }).to_string();
        let create = r#"{"machine": "door", "key": "a"}"#.to_owned();
        for (path, body) in [("/v1/machines", deploy), ("/v1/entities", create)] {
            let text = format!("POST {path}\nContent-Type: application/json\n\n{body}");
            let answer = site.ask(&Request::parse(text.as_bytes()))?.context("an answer")?;
            ensure!(answer.status == 201, "{answer:?}");
        }
        Ok(site)
    }

    /// Panics so far.
    pub(crate) fn panics(&self) -> usize {
        PANICS.load(Ordering::Relaxed)
    }

    /// Sends a request over a connection of its own; none if it may wait and does.
    pub(crate) fn ask(&self, request: &Request<'_>) -> Result<Option<Answer>> {
        let mut stream = self.connect()?;
        let may_wait = request.may_wait();
        stream.set_read_timeout(Some(if may_wait { WAITED } else { ANSWER_WITHIN }))?;
        // A daemon that has heard enough may close before all of it is sent.
        let sent = stream.write_all(&request.bytes());
        match read(&mut stream, request.method() == b"HEAD") {
            Ok(answer) => Ok(Some(answer)),
            Err(_) if may_wait => Ok(None),
            Err(why) => Err(why.context(format!("no answer; sent: {sent:?}"))),
        }
    }

    /// Sends a body that does not end, up to so many bytes. The answer, and how much of it was taken.
    pub(crate) fn endless(&self, request: &Request<'_>, most: usize) -> Result<(Answer, usize)> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.write_all(&request.head("Transfer-Encoding: chunked\r\n"))?;
        let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
        let mut taken = 0;
        while taken < most && stream.write_all(&chunk).is_ok() {
            taken += 0x10000;
        }
        Ok((read(&mut stream, false)?, taken))
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(self.addr).context("the daemon takes no connection")?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Reads an answer: the head, and the body as far as its length is told.
fn read(stream: &mut TcpStream, bodiless: bool) -> Result<Answer> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            let mut answer = head(&bytes)?;
            bytes = rest;
            if answer.status == 100 {
                continue;
            }
            let length = answer.header("content-length").and_then(|length| length.parse().ok());
            if let Some(length) = length.filter(|_| !bodiless) {
                while bytes.len() < length {
                    let read = stream.read(&mut part)?;
                    ensure!(read > 0, "{} of {length} bytes of a body", bytes.len());
                    bytes.extend_from_slice(&part[..read]);
                }
                answer.body = Some(bytes);
            }
            return Ok(answer);
        }
        ensure!(bytes.len() < HEAD_BYTES_MAX, "a head without an end");
        let read = stream.read(&mut part)?;
        ensure!(read > 0, "the connection was closed after {} bytes", bytes.len());
        bytes.extend_from_slice(&part[..read]);
    }
}

fn head(bytes: &[u8]) -> Result<Answer> {
    let text = std::str::from_utf8(bytes).context("a head of text")?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("a status line")?;
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Ok(Answer { status: status.parse().context("a status")?, headers, body: None })
}
