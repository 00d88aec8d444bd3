//! Answers that are none: what is no HTTP, what ends early, what never ends. Each is worth another try, since nobody
//! has said no; none takes more memory or time than a try has.

use crate::target::{Act, IMPATIENCE, PATIENCE, Target, Tried, all_of, get, status, tried_for};
use expect_test::{Expect, expect};
use interlock_courier::{Courier, SendError, Sent, Step, Verdict, classify};
use std::time::Duration;

const CHUNKED: &str = "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n";

fn say(text: impl AsRef<[u8]>) -> Act {
    Act::Say(text.as_ref().to_vec())
}

/// The answers to one request each, all at once: what was told of each, and what is to be done.
async fn check(timeout: Duration, answers: Vec<(&str, Vec<Act>)>, told: Expect) -> anyhow::Result<()> {
    let mut tries = Vec::new();
    for (name, acts) in answers {
        let script = [vec![Act::Read], acts].concat();
        tries.push((name.to_owned(), tokio::spawn(tried_for(timeout, script))));
    }
    let mut lines = String::new();
    for (name, tried) in tries {
        lines.push_str(&line(&name, &tried.await??));
    }
    told.assert_eq(&lines);
    Ok(())
}

fn line(name: &str, tried: &Tried) -> String {
    let what = match tried {
        Ok(answer) => format!("{} {} bytes truncated={}", answer.status, answer.body.len(), answer.truncated),
        Err(SendError::Broken { step, fault, sent, .. }) => {
            assert_eq!(*sent, Sent::Maybe, "{name}: the request was read");
            format!("{step:?} {fault:?}")
        }
        Err(other) => other.to_string(),
    };
    let then = match classify(tried, 0) {
        Verdict::Retry { .. } => "retry".to_owned(),
        other => format!("{other:?}"),
    };
    format!("{name:<44}{what:<36}{then}\n")
}

#[tokio::test]
async fn what_is_no_http() -> anyhow::Result<()> {
    let answers = vec![
        ("another protocol's greeting", vec![say("SSH-2.0-OpenSSH_9.6\r\n")]),
        ("bytes", vec![say([0, 1, 2, 255, 254, 13, 10, 13, 10])]),
        ("an alert of TLS", vec![say([0x15, 3, 1, 0, 2, 2, 70])]),
        ("HTTP/2, as frames", vec![say(b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x04\0\x01\0\0\0\x05\0\xff\xff\xff")]),
        ("HTTP/2, by its version", vec![say("HTTP/2 200 x\r\n\r\n")]),
        ("a body without a head", vec![say("{\"id\": 7}\r\n\r\n")]),
        ("a status that is a word", vec![say("HTTP/1.1 fine x\r\n\r\n")]),
        ("a status of four digits", vec![say("HTTP/1.1 2000 x\r\n\r\n")]),
        ("a status below 100", vec![say("HTTP/1.1 099 x\r\n\r\n")]),
        ("a header without a colon", vec![say("HTTP/1.1 200 x\r\nnothing\r\n\r\n")]),
        ("a header with a control character", vec![say("HTTP/1.1 200 x\r\na: \0\r\n\r\n")]),
        ("two lengths", vec![say("HTTP/1.1 200 x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab")]),
        ("a negative length", vec![say("HTTP/1.1 200 x\r\ncontent-length: -1\r\n\r\n")]),
        ("a length beyond numbers", vec![say("HTTP/1.1 200 x\r\ncontent-length: 99999999999999999999\r\n\r\n")]),
        (
            "a coding that is not the last",
            vec![say("HTTP/1.1 200 x\r\ntransfer-encoding: chunked, gzip\r\n\r\n2\r\nab\r\n")],
        ),
        ("a chunk without a size", vec![say("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")]),
        (
            "a chunk beyond numbers",
            vec![say("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\nf0000000000000003\r\n")],
        ),
        (
            "a chunk longer than its size",
            vec![say("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n")],
        ),
        ("another protocol from now on", vec![say("HTTP/1.1 101 x\r\nupgrade: a\r\nconnection: upgrade\r\n\r\n")]),
        ("HTTP/1.0 without a length", vec![say("HTTP/1.0 200 x\r\n\r\nab")]),
    ];
    check(
        PATIENCE,
        answers,
        expect![[r#"
        another protocol's greeting                 Head NotHttp                        retry
        bytes                                       Head NotHttp                        retry
        an alert of TLS                             Head NotHttp                        retry
        HTTP/2, as frames                           Head NotHttp                        retry
        HTTP/2, by its version                      Head NotHttp                        retry
        a body without a head                       Head NotHttp                        retry
        a status that is a word                     Head NotHttp                        retry
        a status of four digits                     Head NotHttp                        retry
        a status below 100                          Head NotHttp                        retry
        a header without a colon                    Head NotHttp                        retry
        a header with a control character           Head NotHttp                        retry
        two lengths                                 Head NotHttp                        retry
        a negative length                           Head NotHttp                        retry
        a length beyond numbers                     Head NotHttp                        retry
        a coding that is not the last               200 7 bytes truncated=false         Delivered
        a chunk without a size                      Body NotHttp                        retry
        a chunk beyond numbers                      Body NotHttp                        retry
        a chunk longer than its size                Body NotHttp                        retry
        another protocol from now on                101 0 bytes truncated=false         Failed
        HTTP/1.0 without a length                   200 2 bytes truncated=false         Delivered
    "#]],
    )
    .await
}

#[tokio::test]
async fn what_ends_too_early() -> anyhow::Result<()> {
    let answers = vec![
        ("nothing", vec![]),
        ("in the status line", vec![say("HTTP/1.1 20")]),
        ("in the headers", vec![say("HTTP/1.1 200 x\r\ncontent-le")]),
        ("after a status for the meantime", vec![say("HTTP/1.1 102 x\r\n\r\n")]),
        ("in a body with a length", vec![say("HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\nabc")]),
        ("in a chunk", vec![say("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab")]),
        ("between chunks", vec![say("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n")]),
        ("in the body of a no", vec![say("HTTP/1.1 404 x\r\ncontent-length: 9\r\n\r\nabc")]),
    ];
    check(
        PATIENCE,
        answers,
        expect![[r#"
        nothing                                     Head Reset                          retry
        in the status line                          Head Reset                          retry
        in the headers                              Head Reset                          retry
        after a status for the meantime             Head Reset                          retry
        in a body with a length                     Body Reset                          retry
        in a chunk                                  Body Reset                          retry
        between chunks                              Body Reset                          retry
        in the body of a no                         404 3 bytes truncated=true          Failed
    "#]],
    )
    .await
}

#[tokio::test]
async fn what_never_ends_is_read_up_to_its_bound() -> anyhow::Result<()> {
    let repeat = |text: &str| Act::Repeat(text.as_bytes().to_vec());
    let answers = vec![
        ("a status line", vec![say("HTTP/1.1 200 "), repeat("x")]),
        ("a header", vec![say("HTTP/1.1 200 x\r\na: "), repeat("xxxx")]),
        ("headers", vec![say("HTTP/1.1 200 x\r\n"), repeat("a: b\r\n")]),
        ("empty lines before the status", vec![repeat("\r\n")]),
        ("a body", vec![say("HTTP/1.1 200 x\r\n\r\n"), repeat("xxxx")]),
        ("chunks", vec![say(CHUNKED), repeat("3\r\nabc\r\n")]),
        ("what is said of a chunk", vec![say(CHUNKED), say("1;"), repeat("aaaa")]),
        ("trailers", vec![say(CHUNKED), say("0\r\n"), repeat("a: b\r\n")]),
        ("the body of a no", vec![say("HTTP/1.1 422 x\r\n\r\n"), repeat("xxxx")]),
    ];
    check(
        PATIENCE,
        answers,
        expect![[r#"
        a status line                               Head TooLarge                       retry
        a header                                    Head TooLarge                       retry
        headers                                     Head TooLarge                       retry
        empty lines before the status               Head TooLarge                       retry
        a body                                      200 65536 bytes truncated=true      Delivered
        chunks                                      200 65536 bytes truncated=true      Delivered
        what is said of a chunk                     Body NotHttp                        retry
        trailers                                    Body NotHttp                        retry
        the body of a no                            422 65536 bytes truncated=true      Failed
    "#]],
    )
    .await
}

#[tokio::test]
async fn what_comes_too_slowly_or_not_at_all_ends_with_the_try() -> anyhow::Result<()> {
    let drip = |text: &str| vec![say(text), Act::Drip(b'1')];
    let hang = |text: &str| vec![say(text), Act::Hang];
    let answers = vec![
        ("nothing", vec![Act::Hang]),
        ("a status for the meantime, again and again", vec![Act::Repeat(b"HTTP/1.1 102 x\r\n\r\n".to_vec())]),
        ("the size of a chunk, without an end", vec![say(CHUNKED), Act::Repeat(b"0".to_vec())]),
        ("a status line, by the byte", drip("HTTP/1.1 200 ")),
        ("a header, by the byte", drip("HTTP/1.1 200 x\r\na: ")),
        ("a body, by the byte", drip("HTTP/1.1 200 x\r\n\r\n")),
        ("half a status line", hang("HTTP/1.1 20")),
        ("half a body", hang("HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\nabc")),
        ("half a chunk", hang("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab")),
        ("half the body of a no", hang("HTTP/1.1 422 x\r\ncontent-length: 9\r\n\r\nabc")),
    ];
    check(
        IMPATIENCE,
        answers,
        expect![[r#"
        nothing                                     Head Timeout                        retry
        a status for the meantime, again and again  Head Timeout                        retry
        the size of a chunk, without an end         Body Timeout                        retry
        a status line, by the byte                  Head Timeout                        retry
        a header, by the byte                       Head Timeout                        retry
        a body, by the byte                         Body Timeout                        retry
        half a status line                          Head Timeout                        retry
        half a body                                 Body Timeout                        retry
        half a chunk                                Body Timeout                        retry
        half the body of a no                       422 3 bytes truncated=true          Failed
    "#]],
    )
    .await
}

#[tokio::test]
async fn closed_or_greeted_at_once_the_request_may_have_been_faster() -> anyhow::Result<()> {
    for script in [vec![], vec![say("SSH-2.0-OpenSSH_9.6\r\n")]] {
        let tried = tried_for(PATIENCE, script).await?;
        assert!(matches!(&tried, Err(SendError::Broken { step: Step::Head, .. })), "{tried:?}");
        assert_eq!(classify(&tried, 0), Verdict::Retry { after: None });
    }
    Ok(())
}

#[tokio::test]
async fn after_a_strange_answer_the_next_try_is_as_good_as_new() -> anyhow::Result<()> {
    let strange = vec![Act::Read, say("SSH-2.0-OpenSSH_9.6\r\n")];
    let target = Target::new(vec![strange, vec![Act::Read], status(200)]).await?;
    let origin = format!("http://127.0.0.1:{}", target.port);
    let courier = Courier::new(all_of(&origin)?)?;
    for comes in [false, false, true] {
        assert_eq!(courier.send(&get(&format!("{origin}/"))?).await.is_ok(), comes);
    }
    Ok(())
}
