//! One request and its answer on a connection of their own. Nothing is pooled: an idle connection that
//! the target has just closed cannot be told from one that it closes on us, and then nobody knows whether
//! the request arrived.

use crate::deadline::Deadline;
use crate::outbound::{Fault, SendError, Sent, Step};
use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::pin::pin;
use tokio::io::{AsyncRead, AsyncWrite};

/// Status line and headers of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Headers of an answer.
const HEADERS_MAX: usize = 100;

/// What a request is sent on.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The answer as it came, its body cut.
pub(crate) struct Raw {
    pub(crate) head: http::response::Parts,
    pub(crate) body: BytesMut,
    pub(crate) truncated: bool,
}

/// Sends the request and reads the answer, of its body at most `keep` bytes.
pub(crate) async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    keep: usize,
    deadline: &mut Deadline<'_>,
) -> Result<Raw, SendError> {
    let mut http = http1::Builder::new();
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let opened = http.handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await;
    let (sender, connection) = opened.map_err(|error| broken(Step::Head, &error, Sent::Never))?;
    // The connection does the reading and writing; it is polled here, so that dropping a try ends it.
    let mut connection = pin!(connection);
    let mut talk = pin!(talk(sender, request, keep, deadline));
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            // What it ends with, the talk hears, too.
            _ = &mut connection, if open => open = false,
            done = &mut talk => return done,
        }
    }
}

async fn talk(
    mut sender: http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    keep: usize,
    deadline: &mut Deadline<'_>,
) -> Result<Raw, SendError> {
    let answer: Response<Incoming> = match deadline.within(sender.try_send_request(request)).await {
        None => return Err(deadline.error(Step::Head, Sent::Maybe)),
        Some(Ok(answer)) => answer,
        Some(Err(mut error)) => {
            // The request comes back if not a byte of it was written.
            let sent = if error.take_message().is_some() { Sent::Never } else { Sent::Maybe };
            return Err(broken(Step::Head, &error.into_error(), sent));
        }
    };
    let (head, mut incoming) = answer.into_parts();
    let mut body = BytesMut::new();
    let end = match deadline.within(read(&mut incoming, &mut body, keep)).await {
        None => Err(deadline.error(Step::Body, Sent::Maybe)),
        Some(Err(error)) => Err(broken(Step::Body, &error, Sent::Maybe)),
        Some(Ok(truncated)) => Ok(truncated),
    };
    match end {
        Ok(truncated) => Ok(Raw { head, body, truncated }),
        // Any other status has said all that decides; a success without its result is worth asking again.
        Err(_) if !head.status.is_success() => Ok(Raw { head, body, truncated: true }),
        Err(error) => Err(after(head.status, error)),
    }
}

/// Reads to the end or to more than `keep` bytes, and says which.
async fn read(incoming: &mut Incoming, body: &mut BytesMut, keep: usize) -> hyper::Result<bool> {
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room = keep - body.len();
        body.extend_from_slice(data.get(..room).unwrap_or(&data));
        if data.len() > room {
            return Ok(true);
        }
    }
    Ok(false)
}

fn broken(step: Step, error: &hyper::Error, sent: Sent) -> SendError {
    let fault = match () {
        () if error.is_parse_too_large() => Fault::TooLarge,
        () if error.is_parse() || is_misframed(error) => Fault::NotHttp,
        () => Fault::Reset,
    };
    let got = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    SendError::Broken { step, fault, got, sent }
}

/// A body whose chunks cannot be read; hyper tells it from an end by the kind of an I/O error alone.
fn is_misframed(error: &hyper::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| matches!(source.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

fn after(status: StatusCode, error: SendError) -> SendError {
    match error {
        SendError::Broken { step, fault, got, sent } => {
            let got = format!("{got}, after status {}", status.as_u16());
            SendError::Broken { step, fault, got, sent }
        }
        other => other,
    }
}
