//! From a host to a connection: resolve once, judge every address, connect to one that was judged. The
//! name is not asked again in between, so it cannot answer otherwise the second time (DNS rebinding).

use crate::deadline::Deadline;
use crate::networks::{Networks, Special};
use crate::outbound::{Fault, Refusal, Rule, SendError, Sent, Step};
use crate::url::{Destination, Host};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long one address is tried before the next one is, if there is one: a dead first address costs no more.
const ADDRESS_WAIT: Duration = Duration::from_secs(3);
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Addresses, as they are resolved.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Who knows a name's addresses.
pub trait Resolve: Send + Sync + fmt::Debug {
    /// Every address of the name. Each is judged before it is used; none needs to be left out here.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// The machine's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) })
    }
}

/// A connection to an address of the destination that may be connected to.
pub(crate) async fn connect(
    url: &Destination,
    networks: &Networks,
    resolver: &dyn Resolve,
    deadline: &mut Deadline<'_>,
) -> Result<TcpStream, SendError> {
    let found = addresses(url, resolver, deadline).await?;
    let admitted = admit(url, found, networks)?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (nth, address) in admitted.iter().enumerate() {
        let at = SocketAddr::new(*address, url.port());
        let wait = if nth + 1 == admitted.len() { deadline.timeout } else { ADDRESS_WAIT };
        match deadline.within(tokio::time::timeout(wait, TcpStream::connect(at))).await {
            None => return Err(deadline.error(Step::Connect, Sent::Never)),
            Some(Err(_)) => last = io::ErrorKind::TimedOut.into(),
            Some(Ok(Err(error))) => last = error,
            Some(Ok(Ok(stream))) => {
                // One small write and then a wait for the answer: nothing to gather.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
        }
    }
    let fault = match last.kind() {
        io::ErrorKind::ConnectionRefused => Fault::ConnectionRefused,
        io::ErrorKind::TimedOut => Fault::Timeout,
        _ => Fault::Unreachable,
    };
    let tried: Vec<String> = admitted.iter().map(ToString::to_string).collect();
    let got = format!("{last} at {} port {}", tried.join(", "), url.port());
    Err(SendError::Broken { step: Step::Connect, fault, got, sent: Sent::Never })
}

async fn addresses(
    url: &Destination,
    resolver: &dyn Resolve,
    deadline: &mut Deadline<'_>,
) -> Result<Vec<IpAddr>, SendError> {
    let name = match url.host() {
        Host::V4(address) => return Ok(vec![IpAddr::V4(*address)]),
        Host::V6(address) => return Ok(vec![IpAddr::V6(*address)]),
        Host::Name(name) => name,
    };
    let got = match deadline.within(resolver.resolve(name)).await {
        None => return Err(deadline.error(Step::Resolve, Sent::Never)),
        Some(Ok(found)) if found.is_empty() => format!("none for {name}"),
        Some(Ok(found)) => return Ok(found),
        Some(Err(error)) => format!("none for {name}: {error}"),
    };
    Err(SendError::Broken { step: Step::Resolve, fault: Fault::NotResolved, got, sent: Sent::Never })
}

fn admit(url: &Destination, found: Vec<IpAddr>, networks: &Networks) -> Result<Vec<IpAddr>, Refusal> {
    let judged: Vec<Result<IpAddr, Special>> =
        found.into_iter().map(|address| networks.admit(address).map(|()| address)).collect();
    let admitted: Vec<IpAddr> = judged.iter().filter_map(|one| one.ok()).take(ADDRESSES_MAX).collect();
    if !admitted.is_empty() {
        return Ok(admitted);
    }
    let refused: Vec<String> = judged.iter().filter_map(|one| one.err()).map(|special| special.to_string()).collect();
    let expected = format!("a public address of {}, or one in `effects.networks`", url.host());
    Err(Refusal::new(Rule::Networks, expected, refused.join(", ")))
}
