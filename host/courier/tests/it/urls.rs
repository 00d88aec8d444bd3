//! Which texts are URLs to send to.

use interlock_courier::{Destination, Host, URL_BYTES_MAX};

#[test]
fn a_url_is_taken_as_it_is_written() {
    for (text, origin, port, path, query) in [
        ("https://a.example/", "https://a.example", 443, "/", None),
        ("http://a.example:8080/b/c?d=e/f?", "http://a.example:8080", 8080, "/b/c", Some("d=e/f?")),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example", 443, "/", None),
        ("http://a_b-c.1a/%C3%A9%20/;x=1,2/@:", "http://a_b-c.1a", 80, "/%C3%A9%20/;x=1,2/@:", None),
        ("http://127.0.0.1:65535//", "http://127.0.0.1:65535", 65535, "//", None),
        ("http://[::1]/?", "http://[::1]", 80, "/", Some("")),
        ("http://[::ffff:7f00:1]/.../.a/a../..b", "http://[::ffff:7f00:1]", 80, "/.../.a/a../..b", None),
        ("http://a/?%2F%00=..", "http://a", 80, "/", Some("%2F%00=..")),
    ] {
        let url = Destination::parse(text).expect(text);
        assert_eq!((url.origin(), url.port(), url.path(), url.query()), (origin, port, path, query), "{text}");
        assert_eq!(url.as_str(), text);
        let standard = url::Url::parse(text).expect(text);
        assert_eq!(standard.as_str(), text, "the URL standard writes it in another way");
        assert_eq!(standard.port_or_known_default(), Some(port));
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_no_url() {
    for (expected, texts) in [
        (
            "`http://` or `https://`",
            &["", "a", "ftp://a/", "HTTP://a/", "https:/a/", "//a/", "javascript:1", " http://a/", "file:///a"][..],
        ),
        ("a path, at least `/`", &["https://a.example", "https://a.example?b", "https://a.example#b"]),
        (
            "no user name or password",
            &["https://user:hunter2@a.example/", "https://@a/", "https://a.example@b.example/"],
        ),
        (
            "a port from 1 to 65535",
            &["http://a:/", "http://a:0/", "http://a:080/", "http://a:65536/", "http://a:+1/", "http://[::1]:x/"],
        ),
        ("no port where it is the scheme's own", &["http://a:80/", "https://a:443/", "https://[::1]:443/"]),
        (
            "a host name in small ASCII letters, digits, `-` and `_`, without a dot at its end",
            &[
                "http:///",
                "http://A.example/",
                "http://a..b/",
                "http://a.example./",
                "http://-a/",
                "http://a-/",
                "http://b\u{fc}cher.example/",
                "http://a%2eb/",
                "http://a b/",
                "http://a\\b/",
                "http://a\tb/",
                "http://127.0.0.1./",
                "http://a:b:1/",
                "http://[::1/]",
            ],
        ),
        (
            "an IPv4 address as four decimal numbers",
            &[
                "http://\u{ff11}27.0.0.1/",
                "http://2130706433/",
                "http://0x7f000001/",
                "http://127.1/",
                "http://0177.0.0.1/",
                "http://127.0.0.01/",
                "http://1.2.3.4.5/",
                "http://256.0.0.1/",
                "http://a.0x7f/",
                "http://127.0.0.0x1/",
                "http://0/",
            ],
        ),
        (
            "an IPv6 address without a zone",
            &[
                "http://[fe80::1%25eth0]/",
                "http://[fe80::1%eth0]/",
                "http://[]/",
                "http://[v1.a]/",
                "http://[1.2.3.4]/",
            ],
        ),
        (
            "an IPv6 address in its short spelling",
            &[
                "http://[::ffff:127.0.0.1]/",
                "http://[0:0:0:0:0:0:0:1]/",
                "http://[::0001]/",
                "http://[FE80::1]/",
                "http://[::127.0.0.1]/",
            ],
        ),
        ("no fragment", &["http://a/#", "http://a/b#c", "http://a/?b#c"]),
        (
            "characters of RFC 3986, every other one percent-encoded",
            &[
                "http://a/b c",
                "http://a/\u{e9}",
                "http://a/\r\nHost: b",
                "http://a/b\\c",
                "http://a/\0",
                "http://a/{b}",
                "http://a/[",
                "http://a/?'",
                "http://a/?a b",
                "http://a/\"",
                "http://a/|",
                "http://a/^",
                "http://a/`",
            ],
        ),
        (
            "two hexadecimal digits after every `%`",
            &["http://a/%", "http://a/%2", "http://a/%zz", "http://a/?%g0", "http://a/%%20"],
        ),
        (
            "percent-encoded UTF-8",
            &["http://a/%c0%af", "http://a/%ff", "http://a/%C0%AE%C0%AE/b", "http://a/%e0%80%af"],
        ),
        (
            "no encoded slash, backslash or control character in the path",
            &[
                "http://a/b%2fc",
                "http://a/b%2Fc",
                "http://a/%5c",
                "http://a/%00",
                "http://a/%0d%0aX",
                "http://a/%7F",
                "http://a/%C2%85",
            ],
        ),
        ("nothing percent-encoded twice", &["http://a/%252e%252e/b", "http://a/%2541", "http://a/b%252fc"]),
        (
            "no dot segment",
            &[
                "http://a/..",
                "http://a/./b",
                "http://a/b/../c",
                "http://a/%2e%2e/b",
                "http://a/.%2E",
                "http://a/%2e",
                "http://a/..;x=1/b",
                "http://a/.;/b",
                "http://a/%2e%2e%3bx",
            ],
        ),
    ] {
        for text in texts {
            match Destination::parse(text) {
                Ok(url) => panic!("{text:?} is taken as {url:?}"),
                Err(why) => assert_eq!(why.expected, expected, "{text:?}: {why}"),
            }
        }
    }
}

#[test]
fn a_password_is_not_repeated() {
    let why = Destination::parse("https://user:hunter2@a.example/").expect_err("a password");
    assert_eq!(why.to_string(), "not a URL to send to: expected no user name or password, got an `@`");
}

#[test]
fn a_url_is_bounded() {
    let fits = format!("http://a/{}", "x".repeat(URL_BYTES_MAX - "http://a/".len()));
    assert!(Destination::parse(&fits).is_ok());
    let why = Destination::parse(&format!("{fits}x")).expect_err("too long");
    assert_eq!(why.to_string(), "not a URL to send to: expected at most 8 KiB, got 8193 bytes");
}

#[test]
fn a_query_is_not_shown() -> anyhow::Result<()> {
    assert_eq!(format!("{:?}", Destination::parse("http://a/b?token=1")?), "http://a/b?..");
    Ok(())
}

#[test]
fn addresses_are_told_from_names() -> anyhow::Result<()> {
    assert_eq!(Destination::parse("http://10.0.0.1/")?.host(), &Host::V4([10, 0, 0, 1].into()));
    assert_eq!(Destination::parse("http://[64:ff9b::1]/")?.host(), &Host::V6("64:ff9b::1".parse()?));
    assert_eq!(Destination::parse("http://10.0.0.a/")?.host(), &Host::Name("10.0.0.a".to_owned()));
    Ok(())
}

fn shown_host(url: &Destination) -> String {
    url.authority().strip_suffix(&format!(":{}", url.port())).unwrap_or(url.authority()).to_owned()
}

/// Three parsers read every URL that is let through: ours, the URL standard's, and the one that writes the
/// request line. What they do not agree on would be a way around the rules.
#[test]
fn three_parsers_agree_on_whatever_is_taken() {
    const PARTS: &[&str] = &[
        "http://",
        "https://",
        "a",
        "b.example",
        "x",
        "1",
        "0",
        "0x",
        "127.0.0.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "[fe80::1%25a]",
        ".",
        "..",
        "/",
        "//",
        "\\",
        "?",
        "#",
        "@",
        ":",
        ":80",
        ":443",
        ":8080",
        ";",
        "%",
        "%2e",
        "%2F",
        "%5c",
        "%25",
        "%C3%A9",
        "%ff",
        "%00",
        "\t",
        "\n",
        " ",
        "\u{e9}",
        "\u{3002}",
        "\u{ff0f}",
        "\u{ad}",
        "*",
        "'",
        "\"",
        "<",
        "{x}",
        "|",
        "^",
        "`",
        "[",
        "]",
        "~",
        "-",
        "_",
        "+",
        "&",
        "=",
        "A",
        "xn--",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap_or(0)
    };
    let mut taken = 0;
    for _ in 0..400_000 {
        // Begun well, or hardly any would be taken.
        let begun =
            ["", "http://a/", "https://b.example/", "http://127.0.0.1:8080/x?", "http://", "https://a"][next(6)];
        let text: String = std::iter::once(begun).chain((0..next(7)).map(|_| PARTS[next(PARTS.len())])).collect();
        let Ok(ours) = Destination::parse(&text) else { continue };
        // A label that only looks like punycode is refused later, by the second opinion before a send.
        if text.contains("xn--") {
            continue;
        }
        taken += 1;
        let standard = url::Url::parse(&text).unwrap_or_else(|why| panic!("{text:?}: {why}"));
        assert_eq!(standard.as_str(), text);
        assert_eq!(standard.host_str(), Some(shown_host(&ours).as_str()), "{text:?}");
        assert_eq!(standard.port_or_known_default(), Some(ours.port()), "{text:?}");
        assert_eq!((standard.path(), standard.query()), (ours.path(), ours.query()), "{text:?}");
        let line: http::Uri = ours.path_and_query().parse().unwrap_or_else(|why| panic!("{text:?}: {why}"));
        assert_eq!((line.path(), line.query()), (ours.path(), ours.query()), "{text:?}");
    }
    assert!(taken > 10_000, "only {taken} were taken");
}
