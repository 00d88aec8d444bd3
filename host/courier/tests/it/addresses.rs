//! Which addresses are public.

use interlock_courier::{Allowed, SPECIAL, special};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

/// First and last of each range, what it is, and its neighbours with what they are.
const RANGES: &[(&str, &str, &str, [&str; 2])] = &[
    ("0.0.0.0", "0.255.255.255", "unspecified", ["", "1.0.0.0"]),
    ("10.0.0.0", "10.255.255.255", "private", ["9.255.255.255", "11.0.0.0"]),
    ("100.64.0.0", "100.127.255.255", "carrier-grade NAT", ["100.63.255.255", "100.128.0.0"]),
    ("127.0.0.0", "127.255.255.255", "loopback", ["126.255.255.255", "128.0.0.0"]),
    ("168.63.129.16", "168.63.129.16", "cloud metadata", ["168.63.129.15", "168.63.129.17"]),
    ("169.254.0.0", "169.254.255.255", "link-local", ["169.253.255.255", "169.255.0.0"]),
    ("172.16.0.0", "172.31.255.255", "private", ["172.15.255.255", "172.32.0.0"]),
    ("192.0.0.0", "192.0.0.255", "protocol assignments", ["191.255.255.255", "192.0.1.0"]),
    ("192.0.2.0", "192.0.2.255", "documentation", ["192.0.1.255", "192.0.3.0"]),
    ("192.88.99.0", "192.88.99.255", "6to4 relay", ["192.88.98.255", "192.88.100.0"]),
    ("192.168.0.0", "192.168.255.255", "private", ["192.167.255.255", "192.169.0.0"]),
    ("198.18.0.0", "198.19.255.255", "benchmarking", ["198.17.255.255", "198.20.0.0"]),
    ("198.51.100.0", "198.51.100.255", "documentation", ["198.51.99.255", "198.51.101.0"]),
    ("203.0.113.0", "203.0.113.255", "documentation", ["203.0.112.255", "203.0.114.0"]),
    ("224.0.0.0", "239.255.255.255", "multicast", ["223.255.255.255", ""]),
    ("240.0.0.0", "255.255.255.255", "reserved or broadcast", ["", ""]),
    ("::", "::", "unspecified", ["", ""]),
    ("::1", "::1", "loopback", ["", ""]),
    ("::2", "::ffff:ffff", "IPv4-compatible", ["", ""]),
    ("::ffff:0:0", "::ffff:255.255.255.255", "IPv4-mapped", ["", ""]),
    ("::ffff:0:0:0", "::ffff:0:ffff:ffff", "IPv4-translated", ["", ""]),
    ("64:ff9b::", "64:ff9b::ffff:ffff", "NAT64", ["", ""]),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "local NAT64", ["", ""]),
    ("100::", "100::ffff:ffff:ffff:ffff", "discard-only", ["", ""]),
    ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "Teredo", ["2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""]),
    ("2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "protocol assignments", ["", "2001:200::"]),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation", ["2001:db7:ffff::", "2001:db9::"]),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "6to4", ["2001:ffff:ffff::", "2003::"]),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation", ["3ffe:ffff::", "3fff:1000::"]),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique local", ["", ""]),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local", ["", ""]),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local", ["", ""]),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast", ["", ""]),
    // What is left of IPv6 is handed out to nobody.
    ("0:0:0:1::", "ff:ffff::", "not global unicast", ["", ""]),
    ("64:ff9b:0:0:0:1::", "64:ff9b:0:ffff::", "not global unicast", ["", ""]),
    ("100:0:0:1::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "not global unicast", ["", "2000::"]),
    ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "not global unicast", ["3fff:ffff::", ""]),
    ("fe00::", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "not global unicast", ["", ""]),
];

fn kind(address: &str) -> anyhow::Result<Option<&'static str>> {
    Ok(special(address.parse::<IpAddr>()?))
}

#[test]
fn every_special_range_is_refused_from_its_first_address_to_its_last() -> anyhow::Result<()> {
    for (first, last, what, neighbours) in RANGES {
        assert_eq!(kind(first)?, Some(*what), "{first}");
        assert_eq!(kind(last)?, Some(*what), "{last}");
        for neighbour in neighbours.iter().filter(|neighbour| !neighbour.is_empty()) {
            assert_eq!(kind(neighbour)?, None, "{neighbour}");
        }
    }
    Ok(())
}

#[test]
fn no_range_is_left_out_of_the_table_above() {
    let listed: BTreeSet<&str> = RANGES.iter().map(|(_, _, what, _)| *what).collect();
    let refused: BTreeSet<&str> = SPECIAL.iter().map(|(_, what)| *what).chain(["not global unicast"]).collect();
    assert_eq!(listed, refused);
    for (range, what) in SPECIAL {
        let both = RANGES.iter().filter(|(first, last, listed, _)| {
            let ends = [first, last].map(|end| end.parse::<IpAddr>());
            listed == what && ends.iter().all(|end| end.as_ref().is_ok_and(|end| range.contains(end)))
        });
        assert!(both.count() > 0, "{range} ({what})");
    }
}

#[test]
fn well_known_traps_are_refused() -> anyhow::Result<()> {
    for (address, what) in [
        ("169.254.169.254", "link-local"),
        ("100.100.100.200", "carrier-grade NAT"),
        ("192.0.0.192", "protocol assignments"),
        ("168.63.129.16", "cloud metadata"),
        ("fd00:ec2::254", "unique local"),
        ("::ffff:169.254.169.254", "IPv4-mapped"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("::127.0.0.1", "IPv4-compatible"),
        ("2002:7f00:1::", "6to4"),
        ("64:ff9b::7f00:1", "NAT64"),
    ] {
        assert_eq!(kind(address)?, Some(what), "{address}");
    }
    Ok(())
}

#[test]
fn public_addresses_are_public() -> anyhow::Result<()> {
    for address in
        ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888"]
    {
        assert_eq!(kind(address)?, None, "{address}");
    }
    Ok(())
}

#[test]
fn an_operator_lists_what_is_admitted_besides() -> anyhow::Result<()> {
    let text = "[effects]\nnetworks = [\"127.0.0.0/8\", \"10.1.2.3\", \"fd00::/8\"]";
    let networks = Allowed::parse(Path::new("host.toml"), text, &[])?.networks;
    for (address, refused) in [
        ("127.0.0.1", None),
        ("127.255.255.255", None),
        ("10.1.2.3", None),
        ("10.1.2.4", Some("10.1.2.4 (private)")),
        ("fd12::1", None),
        ("fc00::1", Some("fc00::1 (unique local)")),
        // The IPv4 network is not meant in another spelling.
        ("::ffff:127.0.0.1", Some("::ffff:127.0.0.1 (IPv4-mapped)")),
        ("::1", Some("::1 (loopback)")),
        ("1.1.1.1", None),
    ] {
        let got = networks.admit(address.parse()?).err().map(|special| special.to_string());
        assert_eq!(got.as_deref(), refused, "{address}");
    }
    Ok(())
}
