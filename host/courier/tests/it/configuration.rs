//! How the operator's configuration is read.

use expect_test::expect;
use interlock_courier::{Allowed, BadRoots, Courier, Destination, Method, Pattern, Source};
use std::path::{Path, PathBuf};

fn parse(text: &str) -> Result<Allowed, String> {
    Allowed::parse(Path::new("etc/host.toml"), text, &["listen"]).map_err(|bad| bad.to_string())
}

const WHOLE: &str = r#"
    listen = "127.0.0.1:7070"

    [effects]
    networks = ["10.20.0.0/16", "::1"]

    [[effects.allow]]
    url     = "https://tickets.example.com/*"
    methods = ["POST", "GET"]
    secrets = ["tickets"]

    [[effects.allow]]
    url     = "http://10.20.0.7/hook/{id}"
    methods = ["PUT"]

    [effects.secrets]
    tickets.file = "secrets/tickets"
    pager.env    = "PAGER_TOKEN"

    [effects.tls]
    roots  = "/etc/ssl/ours.pem"
    public = false
"#;

#[test]
fn a_whole_configuration_is_read() -> anyhow::Result<()> {
    let allowed = parse(WHOLE).map_err(anyhow::Error::msg)?;
    assert_eq!(allowed.rules.len(), 2);
    assert_eq!(allowed.rules[0].methods, [Method::Post, Method::Get]);
    assert_eq!(allowed.rules[0].secrets, ["tickets"]);
    assert_eq!(allowed.rules[1].url, Pattern::parse("http://10.20.0.7/hook/{id}")?);
    assert_eq!(allowed.secrets["tickets"], Source::File(PathBuf::from("etc/secrets/tickets")));
    assert_eq!(allowed.secrets["pager"], Source::Env("PAGER_TOKEN".to_owned()));
    assert_eq!((allowed.roots, allowed.public_roots), (Some(PathBuf::from("/etc/ssl/ours.pem")), false));
    Ok(())
}

#[test]
fn nothing_written_allows_nothing() -> anyhow::Result<()> {
    for text in ["", "listen = 1", "[effects]"] {
        assert_eq!(parse(text), Ok(Allowed::default()), "{text:?}");
    }
    let url = Destination::parse("https://a.example/")?;
    let refusal = Allowed::default().admit(Method::Get, &url, None).expect_err("nothing is allowed");
    assert_eq!(
        refusal.to_string(),
        "refused by allow: expected an `effects.allow` for https://a.example, got none: neither a manifest nor a \
         redirect can widen it"
    );
    Ok(())
}

#[test]
fn every_problem_is_told_at_once() {
    let text = r#"
effect = 1
[effects]
network = []
networks = ["10.1.2.3/8", "localhost", 7]
[[effects.allow]]
url = "https://a.example"
methods = ["post", "POST"]
secrets = ["nobody", "twice", "Bad"]
[[effects.allow]]
methods = []
header = "x"
[[effects.allow]]
url = 7
[effects.secrets]
twice = { file = "a", env = "B" }
none = {}
Bad.env = "A"
odd.env = "A=B"
text = "a"
[effects.tls]
public = false
"#;
    expect![[r#"
        etc/host.toml:2:1: the configuration has no key "effect"; use one of `effects`, `listen`
        etc/host.toml:4:1: `effects` has no key "network"; use one of `allow`, `networks`, `secrets`, `tls`
        etc/host.toml:5:13: expected 10.0.0.0/8 or 10.1.2.3, got "10.1.2.3/8"; write the network's first address and its bits
        etc/host.toml:5:27: expected an address or a network, such as `10.0.0.0/8` or `fd00::/8`, got "localhost"; write the network's first address and its bits
        etc/host.toml:5:40: expected `networks` to be text in quotes, got an integer; write text in quotes
        etc/host.toml:7:7: not a URL pattern: expected a path, at least `/`, got "a.example"; write it as the URLs it allows
        etc/host.toml:8:12: expected GET, HEAD, POST, PUT, PATCH or DELETE, got "post"; write it in capitals
        etc/host.toml:9:12: expected a secret of `effects.secrets`, got "nobody"; add [effects.secrets.nobody] with `file` or `env`
        etc/host.toml:10:1: an `effects.allow` has no `url`; add the URLs it allows: url = "https://tickets.example.com/*"
        etc/host.toml:11:11: expected at least one method, got an empty list; or take the rule out
        etc/host.toml:12:1: an `effects.allow` has no key "header"; use one of `url`, `methods`, `secrets`
        etc/host.toml:13:1: an `effects.allow` has no `methods`; add what it allows there: methods = ["POST"]
        etc/host.toml:14:7: expected `url` to be text in quotes, got an integer; write text in quotes
        etc/host.toml:16:9: expected `effects.secrets.twice` to have `file` or `env`, got both; say where it is kept
        etc/host.toml:17:8: expected `effects.secrets.none` to have `file` or `env`, got neither; say where it is kept
        etc/host.toml:18:1: expected a secret's name, got "Bad"; use small letters, digits and hyphens, beginning with a letter
        etc/host.toml:19:11: expected an environment variable, got "A=B"; write its name, without `=`
        etc/host.toml:20:8: expected `effects.secrets.text` to be a table, got text; write a table
        etc/host.toml:22:10: expected somebody to be trusted, got `public = false` without `roots`; add the file with the certificates to trust instead"#]]
    .assert_eq(&parse(text).expect_err("many problems"));
}

#[test]
fn wrong_types_are_told_with_what_was_got() {
    let text = "effects.allow = {}\neffects.networks = \"10.0.0.0/8\"\neffects.secrets = []\neffects.tls = { roots = 1, public = \"no\" }";
    expect![[r#"
        etc/host.toml:1:17: expected `effects.allow` to be a list, got a table; write a list
        etc/host.toml:2:20: expected `effects.networks` to be a list, got text; write a list
        etc/host.toml:3:19: expected `effects.secrets` to be a table, got a list; write a table
        etc/host.toml:4:25: expected `roots` to be text in quotes, got an integer; write text in quotes
        etc/host.toml:4:37: expected `public` to be true or false, got text; write it without quotes"#]]
    .assert_eq(&parse(text).expect_err("wrong types"));
    expect!["etc/host.toml:1:11: expected `effects` to be a table, got an integer; write a table"]
        .assert_eq(&parse("effects = 1").expect_err("wrong type"));
}

#[test]
fn what_is_no_toml_is_told_with_every_place() {
    expect![[r#"
        etc/host.toml:1:20: not TOML: string values must be quoted, expected literal string; correct it as TOML asks
        etc/host.toml:2:9: not TOML: unclosed table, expected `]`; correct it as TOML asks"#]]
    .assert_eq(&parse("effects.networks = \n[effects\nx = 'a\n").expect_err("no TOML"));
}

#[test]
fn a_request_needs_one_rule_that_allows_all_of_it() -> anyhow::Result<()> {
    let allowed = parse(WHOLE).map_err(anyhow::Error::msg)?;
    let tickets = "https://tickets.example.com/7?x=y";
    let nowhere = "refused by allow: expected an `effects.allow` for http://10.20.0.7, got none: neither a manifest \
                   nor a redirect can widen it";
    let not_this_secret = "refused by secret: expected an `effects.allow` that lets the secret `pager` go to \
                           https://tickets.example.com, got none with it among its `secrets`";
    for (method, url, secret, refused) in [
        (Method::Post, tickets, Some("tickets"), None),
        (Method::Get, tickets, None, None),
        (Method::Delete, tickets, None, Some("refused by method: expected DELETE in `effects.allow`, got POST, GET")),
        (Method::Post, tickets, Some("pager"), Some(not_this_secret)),
        (Method::Put, "http://10.20.0.7/hook/1", None, None),
        (Method::Put, "http://10.20.0.7/hook/1?x=y", None, Some(nowhere)),
    ] {
        let got = allowed.admit(method, &Destination::parse(url)?, secret).err().map(|refusal| refusal.to_string());
        assert_eq!(got.as_deref(), refused, "{method} {url} {secret:?}");
    }
    Ok(())
}

#[test]
fn a_target_that_can_never_be_allowed_is_known_when_it_is_deployed() -> anyhow::Result<()> {
    let allowed = parse(WHOLE).map_err(anyhow::Error::msg)?;
    for (method, pattern, secret, expected) in [
        (Method::Post, "https://tickets.example.com/v1/{id}", Some("tickets"), true),
        (Method::Post, "https://tickets.example.com/v1/{id}", Some("pager"), false),
        (Method::Put, "https://tickets.example.com/v1/{id}", None, false),
        (Method::Post, "https://tickets.example.org/v1/{id}", None, false),
    ] {
        assert_eq!(allowed.could_admit(method, &Pattern::parse(pattern)?, secret), expected, "{method} {pattern}");
    }
    Ok(())
}

#[test]
fn roots_that_cannot_be_used_leave_what_was_allowed_before() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let before = Allowed {
        networks: parse("[effects]\nnetworks = [\"::1\"]").map_err(anyhow::Error::msg)?.networks,
        ..Allowed::default()
    };
    let courier = Courier::new(before.clone())?;
    for (content, got) in [
        (None, "No such file or directory (os error 2)"),
        (Some(""), "no certificate in PEM"),
        (Some("hello"), "no certificate in PEM"),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "certificate 1: invalid peer certificate: BadEncoding",
        ),
        (Some(&*"x".repeat((1 << 20) + 1)), "more than 1 MiB"),
    ] {
        let file = folder.path().join("roots.pem");
        if let Some(content) = content {
            std::fs::write(&file, content)?;
        }
        let wrong = Allowed { roots: Some(file.clone()), ..Allowed::default() };
        assert_eq!(courier.replace(wrong), Err(BadRoots { file, got: got.to_owned() }));
        assert_eq!(*courier.allowed(), before);
    }
    courier.replace(Allowed::default())?;
    assert_eq!(*courier.allowed(), Allowed::default());
    Ok(())
}
