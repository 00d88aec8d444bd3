//! Where a target may send a request on to.

use crate::target::{Act, IMPATIENCE, Names, Target, Tried, all_of, allowed, get, redirect, status};
use bytes::Bytes;
use interlock_courier::{
    Courier, Fault, Method, Outbound, REDIRECTS_MAX, SecretUse, SendError, Sent, Verdict, classify,
};
use std::io::Write;

/// Where it pointed, and why nobody went there.
fn not_followed(tried: &Tried) -> Option<(u16, &str, &str)> {
    match tried {
        Err(SendError::Redirected { status, location, why }) => Some((*status, location, why)),
        _ => None,
    }
}

#[tokio::test]
async fn method_and_body_go_where_307_and_308_point() -> anyhow::Result<()> {
    for code in [307, 308] {
        for location in ["/b?c=d", "b?c=d", "../x/../b?c=d"] {
            let target = Target::new(vec![redirect(code, location), status(201)]).await?;
            let origin = format!("http://127.0.0.1:{}", target.port);
            let post = Outbound {
                method: Method::Post,
                body: Some(Bytes::from_static(b"hello")),
                ..get(&format!("{origin}/a"))?
            };
            assert_eq!(Courier::new(all_of(&origin)?)?.send(&post).await?.status, 201);
            let seen = target.seen();
            assert!(seen[0].starts_with("POST /a HTTP/1.1\r\n") && seen[0].ends_with("hello"), "{seen:?}");
            assert!(seen[1].starts_with("POST /b?c=d HTTP/1.1\r\n") && seen[1].ends_with("hello"), "{seen:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn other_redirects_name_where_they_point() -> anyhow::Result<()> {
    for code in [301, 302, 303] {
        let target = Target::new(vec![redirect(code, "/b?token=1#c"), status(200)]).await?;
        let origin = format!("http://127.0.0.1:{}", target.port);
        let tried = Courier::new(all_of(&origin)?)?.send(&get(&format!("{origin}/a"))?).await;
        assert_eq!(not_followed(&tried), Some((code, "/b", "only 307 and 308 keep method and body")));
        assert_eq!((classify(&tried, 0), target.seen().len()), (Verdict::Failed, 1));
    }
    Ok(())
}

#[tokio::test]
async fn redirects_come_to_an_end() -> anyhow::Result<()> {
    let hops = |count: usize| (1..=count).map(|hop| redirect(307, &format!("/{hop}"))).chain([status(200)]).collect();
    for (script, requests, ended) in [
        (hops(REDIRECTS_MAX), 4, None),
        (hops(REDIRECTS_MAX + 1), 4, Some((307, "/4", "more than 3 redirects"))),
        (vec![redirect(308, "/a")], 4, Some((308, "/a", "more than 3 redirects"))),
    ] {
        let target = Target::new(script).await?;
        let origin = format!("http://127.0.0.1:{}", target.port);
        let tried = Courier::new(all_of(&origin)?)?.send(&get(&format!("{origin}/a"))?).await;
        assert_eq!(not_followed(&tried), ended, "{tried:?}");
        assert_eq!((tried.is_ok(), target.seen().len()), (ended.is_none(), requests));
    }
    Ok(())
}

#[tokio::test]
async fn a_redirect_widens_neither_manifest_nor_operator() -> anyhow::Result<()> {
    for (location, why) in [
        ("/declared/not-allowed", "refused by allow: expected an `effects.allow`"),
        ("/allowed/not-declared", "refused by declared: expected a URL of `tickets`"),
        ("/declared/../allowed/x", "refused by declared"),
        ("http://127.0.0.1:1/declared/allowed/", "refused by declared"),
        ("http://169.254.169.254/latest/meta-data/", "refused by declared"),
        ("https://127.0.0.1:PORT/declared/allowed/x", "refused by declared"),
        ("//evil.example/declared/allowed/x", "refused by declared"),
        ("http://user:pw@127.0.0.1:PORT/declared/allowed/x", "not a URL to send to: expected no user name or password"),
        ("/declared/allowed/x#y", "not a URL to send to: expected no fragment"),
        ("/declared/allowed/%2f..", "not a URL to send to: expected no encoded slash"),
        ("javascript:alert(1)", "not a URL to send to: expected `http://` or `https://`"),
        ("file:///etc/passwd", "not a URL to send to: expected `http://` or `https://`"),
        ("http://[", "invalid"),
    ] {
        let target = Target::new(vec![redirect(307, location), status(200)]).await?;
        let origin = format!("http://127.0.0.1:{}", target.port);
        let courier = Courier::new(allowed(&format!(
            "[effects]\nnetworks = [\"127.0.0.0/8\"]\n\
             [[effects.allow]]\nurl = \"{origin}/declared/allowed/*\"\nmethods = [\"GET\"]\n\
             [[effects.allow]]\nurl = \"{origin}/allowed/*\"\nmethods = [\"GET\"]"
        ))?)?;
        let outbound = Outbound {
            declared: format!("{origin}/declared/*").parse()?,
            ..get(&format!("{origin}/declared/allowed/a"))?
        };
        let tried = courier.send(&outbound).await;
        let Some((307, _, got)) = not_followed(&tried) else { panic!("{location}: {tried:?}") };
        assert!(got.starts_with(why), "{location}: {got}");
        assert_eq!((classify(&tried, 0), target.seen().len()), (Verdict::Failed, 1), "{location}");
    }
    Ok(())
}

/// A target behind two names, both allowed and declared.
async fn two_names(location: &str, secret: bool, resolves: &[&[&str]]) -> anyhow::Result<(Tried, Vec<String>)> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(b"hunter2-hunter2")?;
    let target = Target::new(vec![redirect(307, location), status(200)]).await?;
    let port = target.port;
    let courier = Courier::new(allowed(&format!(
        "[effects]\nnetworks = [\"127.0.0.0/8\"]\nsecrets.key.file = {:?}\n\
         [[effects.allow]]\nurl = \"http://*.t.example:{port}/*\"\nmethods = [\"GET\"]\nsecrets = [\"key\"]",
        file.path()
    ))?)?
    .with_resolver(Names::new(resolves)?);
    let usage = SecretUse { name: "key".to_owned(), header: "Authorization".to_owned(), prefix: "Bearer ".to_owned() };
    let outbound = Outbound {
        declared: format!("http://*.t.example:{port}/*").parse()?,
        secret: secret.then_some(usage),
        ..get(&format!("http://a.t.example:{port}/a"))?
    };
    Ok((courier.send(&outbound).await, target.seen()))
}

#[tokio::test]
async fn a_secret_stays_with_its_origin() -> anyhow::Result<()> {
    let (tried, seen) = two_names("/b", true, &[&["127.0.0.1"]]).await?;
    assert_eq!(tried?.status, 200);
    assert!(seen.iter().all(|request| request.contains("authorization: Bearer hunter2-hunter2\r\n")), "{seen:?}");
    assert_eq!(seen.len(), 2);

    let (tried, seen) = two_names("http://b.t.example:PORT/b", true, &[&["127.0.0.1"]]).await?;
    let Some((307, _, why)) = not_followed(&tried) else { panic!("{tried:?}") };
    assert_eq!((why, seen.len()), ("the secret `key` is not sent to another origin", 1));
    Ok(())
}

#[tokio::test]
async fn without_a_secret_another_origin_is_as_good_as_its_rules() -> anyhow::Result<()> {
    let (tried, seen) = two_names("http://b.t.example:PORT/b", false, &[&["127.0.0.1"]]).await?;
    assert_eq!(tried?.status, 200);
    assert!(seen[1].contains("\r\nhost: b.t.example:"), "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn the_address_behind_a_redirect_is_judged() -> anyhow::Result<()> {
    let (tried, seen) = two_names("http://b.t.example:PORT/b", false, &[&["127.0.0.1"], &["169.254.169.254"]]).await?;
    let Some((307, location, why)) = not_followed(&tried) else { panic!("{tried:?}") };
    assert!(location.starts_with("http://b.t.example:"), "{location}");
    assert!(why.starts_with("refused by networks") && why.ends_with("169.254.169.254 (link-local)"), "{why}");
    assert_eq!((classify(&tried, 0), seen.len()), (Verdict::Failed, 1));

    // Even for the same name: it may have been given another address meanwhile.
    let (tried, seen) = two_names("/b", false, &[&["127.0.0.1"], &["::1"]]).await?;
    assert!(not_followed(&tried).is_some_and(|(_, _, why)| why.ends_with("::1 (loopback)")), "{tried:?}");
    assert_eq!(seen.len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_breaks_behind_a_redirect_may_have_been_seen() -> anyhow::Result<()> {
    let (tried, _) = two_names("http://b.t.example:PORT/b", false, &[&["127.0.0.1"], &[]]).await?;
    assert_eq!(tried.as_ref().err().map(SendError::sent), Some(Sent::Maybe), "{tried:?}");
    assert_eq!(classify(&tried, 0), Verdict::Retry { after: None });

    // One timeout for all of it.
    let target = Target::new(vec![redirect(307, "/b"), vec![Act::Read, Act::Hang]]).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let outbound = Outbound { timeout: IMPATIENCE, ..get(&format!("{origin}/a"))? };
    let tried = Courier::new(all_of(&origin)?)?.send(&outbound).await;
    assert!(matches!(&tried, Err(SendError::Broken { fault: Fault::Timeout, .. })), "{tried:?}");
    assert_eq!(target.seen().len(), 2);
    Ok(())
}
