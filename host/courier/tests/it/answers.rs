//! What comes of one try, whatever the target does.

use crate::target::{Act, IMPATIENCE, Names, Target, Tried, all_of, get, say, status, tried, tried_for};
use bytes::Bytes;
use expect_test::expect;
use interlock_courier::{
    ANSWER_BYTES_MAX, Answer, Courier, Fault, Method, Outbound, RETRY_AFTER_MAX, Refusal, Rule, SendError, Sent, Step,
    Verdict, classify,
};
use std::time::Duration;

/// 2026-11-30 07:00:00 UTC.
const NOW_MS: i64 = 1_796_022_000_000;

fn verdict(tried: &Tried) -> Verdict {
    classify(tried, NOW_MS)
}

fn retry() -> Verdict {
    Verdict::Retry { after: None }
}

#[tokio::test]
async fn a_status_says_what_came_of_it() -> anyhow::Result<()> {
    for (statuses, expected) in [
        (&[200, 201, 202, 204, 299][..], Verdict::Delivered),
        (&[412], Verdict::Fenced),
        (&[408, 425, 429, 500, 501, 502, 503, 504, 599], retry()),
        (
            &[300, 304, 305, 307, 308, 399, 400, 401, 403, 404, 405, 409, 410, 411, 413, 422, 423, 451, 499],
            Verdict::Failed,
        ),
    ] {
        for code in statuses {
            let tried = tried(status(*code)).await?;
            assert_eq!(tried.as_ref().map(|answer| answer.status), Ok(*code));
            assert_eq!(verdict(&tried), expected, "{code}");
        }
    }
    Ok(())
}

#[test]
fn a_target_says_when_to_come_again() {
    for (value, after_s) in [
        ("0", Some(0)),
        ("120", Some(120)),
        (" 7 ", Some(7)),
        ("3600", Some(3600)),
        ("3601", Some(3600)),
        ("99999999999999999999999999", Some(3600)),
        ("Mon, 30 Nov 2026 07:01:30 GMT", Some(90)),
        ("Monday, 30-Nov-26 07:01:30 GMT", Some(90)),
        ("Mon Nov 30 07:01:30 2026", Some(90)),
        ("Mon, 30 Nov 2026 06:00:00 GMT", Some(0)),
        ("Tue, 30 Nov 2027 07:00:00 GMT", Some(3600)),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("Mon, 30 Nov 2026 07:01:30 CET", None),
    ] {
        let headers = vec![("retry-after".to_owned(), value.to_owned())];
        for status in [429, 503] {
            let answer = Answer { status, headers: headers.clone(), body: Bytes::new(), truncated: false };
            let after = after_s.map(Duration::from_secs);
            assert_eq!(verdict(&Ok(answer)), Verdict::Retry { after }, "{status} {value:?}");
            assert!(after.is_none_or(|after| after <= RETRY_AFTER_MAX));
        }
        let fenced = Answer { status: 412, headers, body: Bytes::new(), truncated: false };
        assert_eq!(verdict(&Ok(fenced)), Verdict::Fenced, "only a retry waits");
    }
}

#[test]
fn no_answer_is_judged_too() {
    let broken = |fault| Err(SendError::Broken { step: Step::Head, fault, got: String::new(), sent: Sent::Maybe });
    for fault in [
        Fault::Timeout,
        Fault::NotResolved,
        Fault::ConnectionRefused,
        Fault::Unreachable,
        Fault::Tls,
        Fault::NotTls,
        Fault::Reset,
        Fault::NotHttp,
        Fault::TooLarge,
    ] {
        assert_eq!(verdict(&broken(fault.clone())), retry(), "{fault:?}");
    }
    let redirected = SendError::Redirected { status: 302, location: "/".to_owned(), why: String::new() };
    assert_eq!(verdict(&Err(redirected)), Verdict::Failed);
    let refusal = Refusal { rule: Rule::Allow, expected: String::new(), got: String::new() };
    assert_eq!(verdict(&Err(SendError::Refused(refusal.clone()))), Verdict::Refused(refusal));
}

#[tokio::test]
async fn retry_after_arrives() -> anyhow::Result<()> {
    let tried = tried(say("HTTP/1.1 503 x\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n")).await?;
    assert_eq!(verdict(&tried), Verdict::Retry { after: Some(Duration::from_secs(7)) });
    Ok(())
}

/// How a try ended, in one line.
fn told(tried: &Tried) -> String {
    match tried {
        Ok(Answer { status, body, truncated, .. }) => format!("{status} {} bytes truncated={truncated}", body.len()),
        Err(SendError::Broken { step, fault, sent, .. }) => format!("{step:?} {fault:?} sent={sent:?}"),
        Err(other) => other.to_string(),
    }
}

#[tokio::test]
async fn who_fences_has_said_so_before_the_end() -> anyhow::Result<()> {
    let begun = |status: u16| {
        let text = format!("HTTP/1.1 {status} x\r\ncontent-length: 9\r\n\r\nabc");
        vec![Act::Read, Act::Say(text.into_bytes()), Act::Hang]
    };
    let fenced = tried_for(IMPATIENCE, begun(412)).await?;
    assert_eq!((told(&fenced).as_str(), verdict(&fenced)), ("412 3 bytes truncated=true", Verdict::Fenced));
    let error = tried_for(IMPATIENCE, begun(200)).await?.expect_err("no end");
    assert_eq!(error.to_string(), "expected the rest of the answer, got none within 700 ms, after status 200");
    Ok(())
}

#[tokio::test]
async fn a_body_is_cut_at_its_bound() -> anyhow::Result<()> {
    let sized = |bytes: usize| {
        say([format!("HTTP/1.1 200 x\r\ncontent-length: {bytes}\r\n\r\n").as_bytes(), &vec![b'x'; bytes]].concat())
    };
    for (script, told_so) in [
        (sized(ANSWER_BYTES_MAX), "200 65536 bytes truncated=false"),
        (sized(ANSWER_BYTES_MAX + 1), "200 65536 bytes truncated=true"),
        (sized(8 << 20), "200 65536 bytes truncated=true"),
        (
            vec![Act::Read, Act::Say(b"HTTP/1.1 200 x\r\n\r\n".to_vec()), Act::Repeat(vec![b'x'; 4096])],
            "200 65536 bytes truncated=true",
        ),
        (
            vec![
                Act::Read,
                Act::Say(b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()),
                Act::Repeat(b"3\r\nabc\r\n".to_vec()),
            ],
            "200 65536 bytes truncated=true",
        ),
        (sized(0), "200 0 bytes truncated=false"),
    ] {
        assert_eq!(told(&tried(script).await?), told_so);
    }
    let target = Target::new(vec![sized(3), sized(0)]).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let courier = Courier::new(all_of(&origin)?)?;
    let nothing = Outbound { answer_bytes_max: 0, ..get(&format!("{origin}/"))? };
    assert_eq!(told(&courier.send(&nothing).await), "200 0 bytes truncated=true");
    assert_eq!(told(&courier.send(&nothing).await), "200 0 bytes truncated=false");
    Ok(())
}

#[tokio::test]
async fn only_headers_that_say_something_are_handed_on() -> anyhow::Result<()> {
    let answer = tried(say(format!(
        "HTTP/1.1 200 x\r\nSet-Cookie: a=b\r\nContent-Type: application/json\r\nETag: \"7\"\r\nServer: x\r\n\
         X-Request-Id: r1\r\nlast-modified: {}\r\ncontent-length: 2\r\n\r\n{{}}",
        "x".repeat(2000)
    )))
    .await??;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-type", "etag", "x-request-id"]);
    Ok(())
}

#[tokio::test]
async fn an_answer_to_head_has_no_body_whatever_it_says() -> anyhow::Result<()> {
    let head = Act::Say(b"HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\n".to_vec());
    let target = Target::new(vec![vec![Act::Read, head, Act::Hang]]).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let courier = std::sync::Arc::new(Courier::new(all_of(&origin)?)?);
    let outbound = Outbound { method: Method::Head, ..get(&format!("{origin}/"))? };
    // On a task of its own, as a host does it.
    let tried = tokio::spawn(async move { courier.send(&outbound).await }).await?;
    assert_eq!(told(&tried), "200 0 bytes truncated=false");
    Ok(())
}

#[tokio::test]
async fn nothing_is_decompressed() -> anyhow::Result<()> {
    let answer =
        tried(say(b"HTTP/1.1 200 x\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00")).await??;
    assert_eq!((&*answer.body, answer.header("content-encoding")), (&b"\x1f\x8b\x08\x00"[..], Some("gzip")));
    Ok(())
}

#[tokio::test]
async fn a_request_is_written_as_it_was_asked_for() -> anyhow::Result<()> {
    let target = Target::new(vec![status(200)]).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let courier = Courier::new(all_of(&origin)?)?;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let post = Outbound {
        method: Method::Post,
        headers: vec![
            pair("Content-Type", "application/json"),
            pair("Idempotency-Key", "k1"),
            pair("X-Two", "1"),
            pair("X-Two", "2"),
        ],
        body: Some(Bytes::from_static(b"{\"a\": 1}")),
        ..get(&format!("{origin}/t/a%20b?c=d"))?
    };
    courier.send(&post).await?;
    courier.send(&Outbound { method: Method::Post, body: None, ..post.clone() }).await?;
    courier.send(&Outbound { headers: vec![pair("User-Agent", "mine")], ..get(&format!("{origin}/"))? }).await?;
    let seen = target.seen().join("\n----\n").replace("\r\n", "\n").replace(&target.port.to_string(), "PORT");
    expect![[r#"
        POST /t/a%20b?c=d HTTP/1.1
        content-type: application/json
        idempotency-key: k1
        x-two: 1
        x-two: 2
        user-agent: interlock/VERSION
        host: 127.0.0.1:PORT
        connection: close
        content-length: 8

        {"a": 1}
        ----
        POST /t/a%20b?c=d HTTP/1.1
        content-type: application/json
        idempotency-key: k1
        x-two: 1
        x-two: 2
        user-agent: interlock/VERSION
        host: 127.0.0.1:PORT
        connection: close
        content-length: 0


        ----
        GET / HTTP/1.1
        user-agent: mine
        host: 127.0.0.1:PORT
        connection: close

    "#]]
    .assert_eq(&seen.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    Ok(())
}

#[tokio::test]
async fn what_frames_a_request_is_refused_whoever_sets_it() -> anyhow::Result<()> {
    let target = Target::new(vec![status(200)]).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let courier = Courier::new(all_of(&origin)?)?;
    for (name, value) in [
        ("Host", "b"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive"),
        ("a b", "c"),
        ("X-A", "b\r\nHost: c"),
    ] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        match courier.send(&Outbound { headers, ..get(&format!("{origin}/"))? }).await {
            Err(SendError::Refused(Refusal { rule: Rule::Header, .. })) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(target.seen(), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn nobody_listening_is_told_from_a_try_that_may_have_arrived() -> anyhow::Result<()> {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let origin = format!("http://127.0.0.1:{closed}");
    let tried = Courier::new(all_of(&origin)?)?.send(&get(&format!("{origin}/"))?).await;
    assert_eq!(told(&tried), "Connect ConnectionRefused sent=Never");
    assert_eq!(verdict(&tried), retry());

    let courier = Courier::new(all_of("http://a.example")?)?.with_resolver(Names::new(&[&[]])?);
    let tried = courier.send(&get("http://a.example/")?).await;
    assert_eq!(told(&tried), "Resolve NotResolved sent=Never");
    let error = tried.expect_err("no address");
    assert_eq!(
        (error.to_string().as_str(), error.sent()),
        ("expected an address of the host, got none for a.example", Sent::Never)
    );
    Ok(())
}

#[tokio::test]
async fn a_target_that_hangs_holds_up_nobody_else() -> anyhow::Result<()> {
    let (slow, quick) = (Target::new(vec![vec![Act::Read, Act::Hang]]).await?, Target::new(vec![status(200)]).await?);
    let courier = Courier::new(crate::target::allowed(&format!(
        "[effects]\nnetworks = [\"127.0.0.0/8\"]\n\
         [[effects.allow]]\nurl = \"http://127.0.0.1:{}/*\"\nmethods = [\"GET\"]\n\
         [[effects.allow]]\nurl = \"http://127.0.0.1:{}/*\"\nmethods = [\"GET\"]",
        slow.port, quick.port
    ))?)?;
    let hanging = get(&format!("http://127.0.0.1:{}/", slow.port))?;
    let other = get(&format!("http://127.0.0.1:{}/", quick.port))?;
    let all_hang = async { tokio::join!(courier.send(&hanging), courier.send(&hanging), courier.send(&hanging)) };
    tokio::select! {
        biased;
        ended = all_hang => panic!("they hang: {ended:?}"),
        answered = async {
            for _ in 0..20 {
                courier.send(&other).await?;
            }
            Ok::<(), SendError>(())
        } => answered?,
    }
    assert_eq!(quick.seen().len(), 20);
    // Dropped by the select above, the tries have ended on the wire as well.
    slow.left(u32::try_from(slow.seen().len())?).await?;
    Ok(())
}

/// The courier has no notion of proxies. To show it, this test runs the one above with variables that every
/// common client would follow, to a port where nobody listens.
#[test]
fn proxies_of_the_environment_are_not_used() -> anyhow::Result<()> {
    let mut again = std::process::Command::new(std::env::current_exe()?);
    again.args(["--exact", "answers::a_request_is_written_as_it_was_asked_for"]);
    for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        again.env(variable, "http://127.0.0.1:9/");
    }
    let output = again.env("NO_PROXY", "").output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    Ok(())
}
