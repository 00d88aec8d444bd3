//! Which URLs a pattern means.

use interlock_courier::{Destination, Pattern, Unfilled};

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn url(text: &str) -> Destination {
    Destination::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

const MATCHES: &[(&str, &[&str], &[&str])] = &[
    (
        "https://a.example/",
        &["https://a.example/"],
        &[
            "http://a.example/",
            "https://a.example:444/",
            "https://b.example/",
            "https://x.a.example/",
            "https://a.example.evil.example/",
            "https://a.example/b",
            "https://a.example//",
            "https://a.example/?",
            "https://a.example/?b=c",
        ],
    ),
    (
        "https://a.example/v1/*",
        &["https://a.example/v1/", "https://a.example/v1/b", "https://a.example/v1/b/c?d=e", "https://a.example/v1//"],
        &[
            "https://a.example/v1",
            "https://a.example/v1?x",
            "https://a.example/v10/b",
            "https://a.example/V1/b",
            "https://a.example/",
            "https://a.example//v1/b",
        ],
    ),
    (
        "http://a.example:8080/*",
        &["http://a.example:8080/", "http://a.example:8080/x?y"],
        &["http://a.example/", "https://a.example:8080/"],
    ),
    (
        "https://*.a.example/hook",
        &["https://b.a.example/hook", "https://c.b.a.example/hook"],
        &[
            "https://a.example/hook",
            "https://ba.example/hook",
            "https://b.a.example.evil.example/hook",
            "https://b.a.example/hook/",
        ],
    ),
    (
        "https://a.example/t/{id}",
        &["https://a.example/t/1", "https://a.example/t/a%20b"],
        &["https://a.example/t/1/2", "https://a.example/t/1?x=1", "https://a.example/t"],
    ),
    (
        "https://a.example/t/v{n}.json/{id}",
        &["https://a.example/t/v1.json/x", "https://a.example/t/v.json.json/x"],
        &[
            "https://a.example/t/v.json/x",
            "https://a.example/t/1.json/x",
            "https://a.example/t/v1.json",
            "https://a.example/t/v1.jso/x",
        ],
    ),
    (
        "https://a.example/find?kind=bug&q={words}",
        &["https://a.example/find?kind=bug&q=a%26b"],
        &[
            "https://a.example/find",
            "https://a.example/find?kind=bug",
            "https://a.example/find?kind=bug&q=",
            "https://a.example/find?q=a&kind=bug",
            "https://a.example/find?kind=bug&q=a&admin=1",
            "https://a.example/find?kind=bugs&q=a",
        ],
    ),
    ("http://127.0.0.1:81/*", &["http://127.0.0.1:81/x"], &["http://localhost:81/x", "http://127.0.0.2:81/x"]),
    ("http://[::1]:81/*", &["http://[::1]:81/x"], &["http://[::2]:81/x"]),
];

#[test]
fn patterns_match_what_they_say() {
    for (text, matching, others) in MATCHES {
        let pattern = pattern(text);
        assert_eq!((pattern.as_str(), pattern.to_string().as_str()), (*text, *text));
        for one in *matching {
            assert!(pattern.matches(&url(one)), "{text} means {one}");
        }
        for other in *others {
            assert!(!pattern.matches(&url(other)), "{text} does not mean {other}");
        }
    }
}

#[test]
fn what_is_no_pattern_says_what_was_expected() {
    for (expected, texts) in [
        (
            "`*` only as the last segment, or as `*.` before a host",
            &[
                "https://a.example/b*",
                "https://a.example/*/b",
                "https://*/",
                "https://a.*/",
                "https://a*.example/",
                "https://a.example/?q=*",
                "*",
                "https://*.*.example/",
            ][..],
        ),
        ("at least two labels after `*.`", &["https://*.example/", "https://*.com/*"]),
        ("`*` in the path, which then allows any query", &["https://a.example/?b/*"]),
        (
            "placeholders such as `{ticket-id}`: small letters, digits, `-` and `_`",
            &[
                "https://a.example/{",
                "https://a.example/}",
                "https://a.example/{}",
                "https://a.example/{A}",
                "https://a.example/{a b}",
                "https://a.example/{{a}}",
                "https://a.example/{1}",
            ],
        ),
        (
            "placeholders only in path and query",
            &["https://{host}/", "https://{tenant}.a.example/", "https://a.example:{port}/", "{scheme}://a/"],
        ),
        (
            "at most one placeholder in a segment or parameter",
            &["https://a.example/{a}{b}", "https://a.example/{a}-{b}", "https://a.example/?{a}={b}"],
        ),
        ("each placeholder once", &["https://a.example/{a}/{a}", "https://a.example/{a}?b={a}"]),
        ("no dot segment", &["https://a.example/../{a}", "https://a.example/./*"]),
        ("no user name or password", &["https://u:p@a.example/*"]),
        ("a path, at least `/`", &["https://a.example", "https://*.a.example"]),
        ("an IPv4 address as four decimal numbers", &["http://127.1/*", "http://*.0.0.1/"]),
        ("`http://` or `https://`", &["", "ftp://a.example/*", "a.example/*"]),
    ] {
        for text in texts {
            let why = Pattern::parse(text).expect_err(text);
            assert_eq!(why.expected, expected, "{text:?}: {why}");
        }
    }
}

#[test]
fn placeholders_are_filled_encoded() {
    let pattern = pattern("https://a.example/t/{id}.json?q={words}&lang=en");
    assert_eq!(pattern.placeholders().collect::<Vec<_>>(), ["id", "words"]);
    for (id, words, filled) in [
        ("7", "x", "https://a.example/t/7.json?q=x&lang=en"),
        ("a b?c#d", "1&admin=1", "https://a.example/t/a%20b%3Fc%23d.json?q=1%26admin%3D1&lang=en"),
        ("\u{e9}-._~", "'/\\\r\n", "https://a.example/t/%C3%A9-._~.json?q=%27%2F%5C%0D%0A&lang=en"),
        ("100%", "%41", "https://a.example/t/100%25.json?q=%2541&lang=en"),
        (".", "*{}", "https://a.example/t/..json?q=%2A%7B%7D&lang=en"),
    ] {
        let url = pattern.fill(|name| Some(if name == "id" { id } else { words })).expect(filled);
        assert_eq!(url.as_str(), filled);
        assert!(pattern.matches(&url), "{filled} is one of {pattern}");
    }
}

#[test]
fn no_value_leaves_its_segment() {
    let pattern = pattern("https://a.example/t/{id}/close");
    for (value, expected) in [
        ("..", "no dot segment"),
        (".", "no dot segment"),
        ("..;x", "no dot segment"),
        ("a/b", "no encoded slash, backslash or control character in the path"),
        ("a\\b", "no encoded slash, backslash or control character in the path"),
        ("a\nb", "no encoded slash, backslash or control character in the path"),
        ("%2e%2e", "nothing percent-encoded twice"),
    ] {
        match pattern.fill(|_| Some(value)) {
            Err(Unfilled::Bad(why)) => assert_eq!(why.expected, expected, "{value:?}"),
            other => panic!("{value:?} gave {other:?}"),
        }
    }
    assert_eq!(pattern.fill(|_| Some("")), Err(Unfilled::Empty("id".to_owned())));
    assert_eq!(pattern.fill(|_| None), Err(Unfilled::Missing("id".to_owned())));
}

#[test]
fn an_open_pattern_is_not_filled() {
    for text in ["https://a.example/*", "https://*.a.example/{id}"] {
        assert!(pattern(text).is_open());
        assert_eq!(pattern(text).fill(|_| Some("x")), Err(Unfilled::Open), "{text}");
    }
}

#[test]
fn patterns_overlap_if_a_url_could_match_both() {
    for (one, other, expected) in [
        ("https://a.example/*", "https://a.example/t/{id}", true),
        ("https://a.example/t/*", "https://a.example/u/{id}", false),
        ("https://a.example/{kind}/*", "https://a.example/u/{id}", true),
        ("https://a.example/t/*", "https://a.example/t", false),
        ("https://a.example/t/*", "https://a.example/*", true),
        ("https://a.example/t/{id}", "https://a.example/t/7", true),
        ("https://a.example/t/{id}", "https://a.example/t/7/8", false),
        ("https://a.example/t", "https://a.example/t?x={y}", false),
        ("https://a.example/t?x={y}", "https://a.example/t?x=1", true),
        ("https://a.example/t?x={y}", "https://a.example/t?z=1", false),
        ("https://a.example/t?x={y}", "https://a.example/t/*", false),
        ("https://a.example/t?x={y}", "https://a.example/*", true),
        ("https://*.a.example/*", "https://b.a.example/x", true),
        ("https://*.a.example/*", "https://*.b.a.example/x", true),
        ("https://*.a.example/*", "https://*.c.example/x", false),
        ("https://*.a.example/*", "https://a.example/x", false),
        ("https://*.a.example/*", "https://10.0.0.1/x", false),
        ("https://a.example/*", "http://a.example/*", false),
        ("https://a.example/*", "https://a.example:444/*", false),
    ] {
        assert_eq!(pattern(one).overlaps(&pattern(other)), expected, "{one} and {other}");
        assert_eq!(pattern(other).overlaps(&pattern(one)), expected, "{other} and {one}");
    }
}

#[test]
fn whatever_both_match_overlaps() {
    for (one, urls, _) in MATCHES {
        for (other, _, _) in MATCHES {
            if urls.iter().any(|text| pattern(other).matches(&url(text))) {
                assert!(pattern(one).overlaps(&pattern(other)), "{one} and {other}");
            }
        }
    }
}
