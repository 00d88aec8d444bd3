//! One try: judged, connected, asked, and its redirects judged again.

use crate::allowed::Allowed;
use crate::connect::{Resolve, System, connect};
use crate::deadline::Deadline;
use crate::exchange::{Raw, Stream, exchange};
use crate::outbound::{Answer, Outbound, Refusal, Rule, SendError, Sent, Step};
use crate::request;
use crate::secret::{self, MissingSecret, Secret};
use crate::tls::{self, BadRoots};
use crate::url::{Destination, Scheme, excerpt};
use bytes::{Bytes, BytesMut};
use rustls::ClientConfig;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};

/// Redirects that are followed, one after the other.
pub const REDIRECTS_MAX: usize = 3;
/// The headers of an answer that are handed on: what the body is, what to do next, and how to ask about it.
const HANDED_ON: &[&str] = &[
    "content-type",
    "content-encoding",
    "etag",
    "last-modified",
    "location",
    "retry-after",
    "request-id",
    "x-request-id",
];
/// A header's value that is handed on, in bytes.
const VALUE_BYTES_MAX: usize = 1 << 10;

/// Sends requests. Knows no order and no retries: each [`send`](Courier::send) is one try, on a connection
/// of its own, and none waits for another.
#[derive(Debug)]
pub struct Courier {
    resolver: Arc<dyn Resolve>,
    setup: RwLock<Setup>,
}

#[derive(Clone, Debug)]
struct Setup {
    allowed: Arc<Allowed>,
    tls: Arc<ClientConfig>,
}

impl Setup {
    fn new(allowed: Allowed) -> Result<Self, BadRoots> {
        Ok(Self { tls: tls::config(&allowed)?, allowed: Arc::new(allowed) })
    }
}

impl Courier {
    /// A courier that goes where the operator allows. Reads the file with the roots, if there is one.
    ///
    /// # Errors
    /// [`BadRoots`]: that file cannot be used.
    pub fn new(allowed: Allowed) -> Result<Self, BadRoots> {
        Ok(Self { resolver: Arc::new(System), setup: RwLock::new(Setup::new(allowed)?) })
    }

    /// The same, asking somebody else for addresses.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Goes by another configuration from the next try on.
    ///
    /// # Errors
    /// [`BadRoots`]; what was allowed before stays.
    pub fn replace(&self, allowed: Allowed) -> Result<(), BadRoots> {
        let setup = Setup::new(allowed)?;
        *self.setup.write().unwrap_or_else(PoisonError::into_inner) = setup;
        Ok(())
    }

    /// What it goes by.
    #[must_use]
    pub fn allowed(&self) -> Arc<Allowed> {
        self.setup().allowed
    }

    fn setup(&self) -> Setup {
        self.setup.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends one request, once, and logs one line about it. Dropping the future ends the try.
    ///
    /// # Errors
    /// [`SendError`]: why there is no answer, and whether the target may have seen the request.
    pub async fn send(&self, outbound: &Outbound) -> Result<Answer, SendError> {
        let tried = self.tried(outbound).await;
        let (effect, method, url) = (&outbound.target, outbound.method.as_str(), outbound.url.origin());
        // No path, query, header or body: each may hold what nobody should read in a log.
        match &tried {
            Ok(answer) => {
                tracing::info!(effect, method, url, status = answer.status, "effect answered");
            }
            Err(error) => {
                tracing::warn!(effect, method, url, sent = ?error.sent(), %error, "effect not answered");
            }
        }
        tried
    }

    async fn tried(&self, outbound: &Outbound) -> Result<Answer, SendError> {
        let over = pin!(tokio::time::sleep(outbound.timeout));
        let mut deadline = Deadline { over, timeout: outbound.timeout };
        let setup = self.setup();
        admit(outbound, &outbound.url, &setup.allowed)?;
        let secret = secret_of(outbound, &setup.allowed, &mut deadline).await?;
        // Nothing in front of here has touched the network.
        let mut url = outbound.url.clone();
        let mut behind: Option<(u16, String)> = None;
        let mut followed = 0;
        loop {
            let hop = self.hop(outbound, &url, secret.as_ref(), &setup, &mut deadline).await;
            let raw = match (hop, behind) {
                (Ok(raw), _) => raw,
                (Err(error), None) => return Err(error),
                (Err(error), Some(from)) => return Err(behind_a_redirect(error, from)),
            };
            let status = raw.head.status.as_u16();
            let location = raw.head.headers.get("location").map(|value| String::from_utf8_lossy(value.as_bytes()));
            let location = match (status, location) {
                (301 | 302 | 303 | 307 | 308, Some(location)) => location,
                _ => return Ok(answer(raw, outbound, secret.as_ref())),
            };
            let clean =
                |text: &str| String::from_utf8_lossy(&redacted(text.into(), outbound, secret.as_ref())).into_owned();
            let shown = excerpt(&clean(location.split(['?', '#']).next().unwrap_or_default()));
            match follow(outbound, &url, &location, status, followed, &setup.allowed) {
                Ok(next) => (url, behind) = (next, Some((status, shown))),
                Err(why) => return Err(SendError::Redirected { status, location: shown, why: clean(&why) }),
            }
            followed += 1;
        }
    }

    async fn hop(
        &self,
        outbound: &Outbound,
        url: &Destination,
        secret: Option<&Secret>,
        setup: &Setup,
        deadline: &mut Deadline<'_>,
    ) -> Result<Raw, SendError> {
        let request = request::build(outbound, url, secret)?;
        let stream = connect(url, &setup.allowed.networks, &*self.resolver, deadline).await?;
        let stream: Box<dyn Stream> = match url.scheme() {
            Scheme::Http => Box::new(stream),
            Scheme::Https => Box::new(tls::handshake(url, stream, &setup.tls, deadline).await?),
        };
        // Enough more to recognise a secret that is cut in two.
        let keep = outbound.answer_bytes_max.saturating_add(secret.map_or(0, |secret| secret.reveal().len()));
        exchange(stream, request, keep, deadline).await
    }
}

/// Both have to allow it: the manifest's pattern, and the operator's rules.
fn admit(outbound: &Outbound, url: &Destination, allowed: &Allowed) -> Result<(), Refusal> {
    if !outbound.declared.matches(url) {
        let expected = format!("a URL of `{}`: {}", outbound.target, outbound.declared);
        return Err(Refusal::new(Rule::Declared, expected, url.origin()));
    }
    let second_opinion = url::Url::parse(url.as_str()).is_ok_and(|parsed| parsed.as_str() == url.as_str());
    if !second_opinion {
        let got = "one that the URL standard writes in another way";
        return Err(Refusal::new(Rule::Declared, format!("one way to read the URL of {}", url.origin()), got));
    }
    allowed.admit(outbound.method, url, outbound.secret.as_ref().map(|secret| secret.name.as_str()))
}

async fn secret_of(
    outbound: &Outbound,
    allowed: &Allowed,
    deadline: &mut Deadline<'_>,
) -> Result<Option<Secret>, SendError> {
    let Some(usage) = &outbound.secret else { return Ok(None) };
    let (name, source) = (usage.name.clone(), allowed.secrets.get(&usage.name).cloned());
    // A file system may hang, and then only this try does.
    let reading = tokio::task::spawn_blocking(move || secret::read(&name, source.as_ref()));
    match deadline.within(reading).await {
        None => Err(deadline.error(Step::Secret, Sent::Never)),
        Some(Ok(Ok(secret))) => Ok(Some(secret)),
        Some(Ok(Err(MissingSecret { name, got }))) => {
            Err(Refusal::new(Rule::Secret, format!("the secret `{name}`"), got).into())
        }
        Some(Err(_)) => Err(Refusal::new(Rule::Secret, format!("the secret `{}`", usage.name), "no reader").into()),
    }
}

/// Where to go instead, or why not.
fn follow(
    outbound: &Outbound,
    from: &Destination,
    location: &str,
    status: u16,
    followed: usize,
    allowed: &Allowed,
) -> Result<Destination, String> {
    if !matches!(status, 307 | 308) {
        return Err("only 307 and 308 keep method and body".to_owned());
    }
    if followed == REDIRECTS_MAX {
        return Err(format!("more than {REDIRECTS_MAX} redirects"));
    }
    let joined = url::Url::parse(from.as_str()).and_then(|from| from.join(location));
    let joined = joined.map_err(|error| error.to_string())?;
    let next = Destination::parse(joined.as_str()).map_err(|error| error.to_string())?;
    admit(outbound, &next, allowed).map_err(|refusal| refusal.to_string())?;
    match &outbound.secret {
        Some(secret) if from.origin() != next.origin() => {
            Err(format!("the secret `{}` is not sent to another origin", secret.name))
        }
        _ => Ok(next),
    }
}

/// A refusal behind a redirect is not the sender's fault, and whatever happened there, the first target
/// has seen the request.
fn behind_a_redirect(error: SendError, (status, location): (u16, String)) -> SendError {
    match error {
        SendError::Refused(refusal) => SendError::Redirected { status, location, why: refusal.to_string() },
        SendError::Broken { step, fault, got, .. } => SendError::Broken { step, fault, got, sent: Sent::Maybe },
        redirected @ SendError::Redirected { .. } => redirected,
    }
}

fn answer(raw: Raw, outbound: &Outbound, secret: Option<&Secret>) -> Answer {
    let mut headers = Vec::new();
    for name in HANDED_ON {
        let Some(value) = raw.head.headers.get(*name).filter(|value| value.len() <= VALUE_BYTES_MAX) else { continue };
        let value = redacted(value.as_bytes().into(), outbound, secret);
        if let Ok(value) = String::from_utf8(value.into()) {
            headers.push(((*name).to_owned(), value));
        }
    }
    let mut body = redacted(raw.body, outbound, secret);
    let truncated = raw.truncated || body.len() > outbound.answer_bytes_max;
    body.truncate(outbound.answer_bytes_max);
    Answer { status: raw.head.status.as_u16(), headers, body: Bytes::from(body), truncated }
}

/// Without the secret, should the target echo it: answers are stored and shown to guests. In whatever case,
/// since a host's name is written small.
fn redacted(text: BytesMut, outbound: &Outbound, secret: Option<&Secret>) -> BytesMut {
    let (Some(secret), Some(usage)) = (secret, &outbound.secret) else { return text };
    let value = secret.reveal();
    let mut clean = BytesMut::with_capacity(text.len());
    let mut rest = &text[..];
    while let Some(at) = rest.windows(value.len()).position(|window| window.eq_ignore_ascii_case(value)) {
        clean.extend_from_slice(&rest[..at]);
        clean.extend_from_slice(format!("[secret {}]", usage.name).as_bytes());
        rest = &rest[at + value.len()..];
    }
    clean.extend_from_slice(rest);
    clean
}
