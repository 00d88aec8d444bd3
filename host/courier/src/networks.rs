//! Which addresses may be connected to: the public internet, and what the operator lists.
//!
//! An address is judged by the ranges of the IANA special-purpose registries (RFC 6890 and its updates).
//! In IPv6 only 2000::/3 is public at all. Forms that carry an IPv4 address (mapped, 6to4, NAT64, ...) are
//! refused as such, whatever they carry: a rule for IPv4 must not be walked around by spelling.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits))
}

const fn v6(head: [u16; 4], tail: [u16; 4], bits: u8) -> IpNet {
    let ([a, b, c, d], [e, f, g, h]) = (head, tail);
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits))
}

const NONE: [u16; 4] = [0; 4];

/// Every range that is refused and why; the first that holds an address names it.
pub const SPECIAL: &[(IpNet, &str)] = &[
    (v4(0, 0, 0, 0, 8), "unspecified"),
    (v4(10, 0, 0, 0, 8), "private"),
    (v4(100, 64, 0, 0, 10), "carrier-grade NAT"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    (v4(169, 254, 0, 0, 16), "link-local"),
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 0, 0, 0, 24), "protocol assignments"),
    (v4(192, 0, 2, 0, 24), "documentation"),
    (v4(192, 88, 99, 0, 24), "6to4 relay"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(198, 18, 0, 0, 15), "benchmarking"),
    (v4(198, 51, 100, 0, 24), "documentation"),
    (v4(203, 0, 113, 0, 24), "documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved or broadcast"),
    // Public by its number, yet it answers from inside every Azure machine.
    (v4(168, 63, 129, 16, 32), "cloud metadata"),
    (v6(NONE, [0, 0, 0, 0], 128), "unspecified"),
    (v6(NONE, [0, 0, 0, 1], 128), "loopback"),
    (v6(NONE, [0, 0xffff, 0, 0], 96), "IPv4-mapped"),
    (v6(NONE, [0xffff, 0, 0, 0], 96), "IPv4-translated"),
    (v6(NONE, NONE, 96), "IPv4-compatible"),
    (v6([0x64, 0xff9b, 0, 0], NONE, 96), "NAT64"),
    (v6([0x64, 0xff9b, 1, 0], NONE, 48), "local NAT64"),
    (v6([0x100, 0, 0, 0], NONE, 64), "discard-only"),
    (v6([0x2001, 0, 0, 0], NONE, 32), "Teredo"),
    (v6([0x2001, 0, 0, 0], NONE, 23), "protocol assignments"),
    (v6([0x2001, 0xdb8, 0, 0], NONE, 32), "documentation"),
    (v6([0x2002, 0, 0, 0], NONE, 16), "6to4"),
    (v6([0x3fff, 0, 0, 0], NONE, 20), "documentation"),
    (v6([0xfc00, 0, 0, 0], NONE, 7), "unique local"),
    (v6([0xfe80, 0, 0, 0], NONE, 10), "link-local"),
    (v6([0xfec0, 0, 0, 0], NONE, 10), "site-local"),
    (v6([0xff00, 0, 0, 0], NONE, 8), "multicast"),
];

/// All of IPv6 that is handed out for use on the internet.
const GLOBAL: IpNet = v6([0x2000, 0, 0, 0], NONE, 3);

/// What an address is, if it is not public.
#[must_use]
pub fn special(address: IpAddr) -> Option<&'static str> {
    let named = SPECIAL.iter().find(|(range, _)| range.contains(&address)).map(|(_, name)| *name);
    named.or_else(|| (address.is_ipv6() && !GLOBAL.contains(&address)).then_some("not global unicast"))
}

/// The ranges that an operator allows although they are not public.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub(crate) Vec<IpNet>);

impl Networks {
    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether an address may be connected to.
    ///
    /// # Errors
    /// [`Special`]: what it is instead of public.
    pub fn admit(&self, address: IpAddr) -> Result<(), Special> {
        match special(address) {
            Some(kind) if !self.0.iter().any(|network| network.contains(&address)) => Err(Special { address, kind }),
            _ => Ok(()),
        }
    }
}

/// An address that is not public and that no operator allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    /// The address.
    pub address: IpAddr,
    /// What it is.
    pub kind: &'static str,
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.address, self.kind)
    }
}

/// Reads a network such as `10.0.0.0/8`, or one address.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.into());
    }
    match text.parse::<IpNet>() {
        Ok(network) if network.trunc() == network => Ok(network),
        // Somebody who writes 10.1.2.3/8 means one of two things.
        Ok(network) => Err(format!("{} or {}", network.trunc(), network.addr())),
        Err(_) => Err("an address or a network, such as `10.0.0.0/8` or `fd00::/8`".to_owned()),
    }
}
