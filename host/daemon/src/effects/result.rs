//! From an answer, or its absence, to what the kernel settles an effect with.
//!
//! Results reach steps and clients: they name rules and faults, never an address that a name resolved to.

use interlock_courier::{Answer, Fault, Rule, SendError, Sent, Step, Verdict, classify};
use interlock_kernel::command::{Said, Tried};
use interlock_kernel::doc::Doc;
use interlock_kernel::limits::DEPTH_MAX;

/// What came of one try.
pub(super) fn tried(made: &Result<Answer, SendError>, wall_ms: i64, bytes_max: usize) -> Tried {
    let verdict = classify(made, wall_ms);
    let after_ms = match verdict {
        Verdict::Retry { after } => after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
        Verdict::Delivered | Verdict::Fenced | Verdict::Failed | Verdict::Refused(_) => None,
    };
    match (made, verdict) {
        (Ok(answer), Verdict::Delivered) => Tried::Done(said(answer, bytes_max)),
        (Ok(answer), Verdict::Fenced) => Tried::Fenced(said(answer, bytes_max)),
        (Ok(answer), Verdict::Retry { .. }) => {
            Tried::Again { after_ms, reason: format!("status {}", answer.status), maybe_sent: true }
        }
        (Ok(answer), Verdict::Failed | Verdict::Refused(_)) => Tried::Failed(said(answer, bytes_max)),
        (Err(SendError::Refused(refusal)), _) => refused(refusal.rule),
        (Err(SendError::Redirected { status, .. }), _) => {
            Tried::Failed(Said { status: *status, body: None, truncated: false })
        }
        (Err(error @ SendError::Broken { step, fault, .. }), _) => {
            Tried::Again { after_ms, reason: broken(*step, fault), maybe_sent: error.sent() == Sent::Maybe }
        }
    }
}

/// By which rule a request may not be sent.
pub(super) fn refused(rule: Rule) -> Tried {
    let (expected, got) = match rule {
        Rule::Declared => ("a URL that its target declares", "another"),
        Rule::Allow => ("an `effects.allow` of the operator for its URL", "none"),
        Rule::Method => ("its method in the operator's `effects.allow`", "others"),
        Rule::Networks => ("a public address or one of `effects.networks`", "another"),
        Rule::Secret => ("its secret, which may go there, in the operator's configuration", "none"),
        Rule::Header => ("headers that a step may set", "another"),
    };
    Tried::Refused { reason: format!("by the rule `{rule}`: expected {expected}, got {got}") }
}

fn broken(step: Step, fault: &Fault) -> String {
    let got = match fault {
        Fault::Timeout => "none in time",
        Fault::NotResolved => "none",
        Fault::ConnectionRefused => "a refusal",
        Fault::Unreachable => "no way there",
        Fault::Tls => "one that is not trusted",
        Fault::NotTls => "what is not TLS",
        Fault::Reset => "an end of the connection",
        Fault::NotHttp => "what is not HTTP",
        Fault::TooLarge => "one whose status and headers are too large",
    };
    format!("expected {step}, got {got}")
}

fn said(answer: &Answer, bytes_max: usize) -> Said {
    let (body, cut) = body(answer, bytes_max);
    Said { status: answer.status, body, truncated: answer.truncated || cut }
}

/// The body as a document, within so many bytes of JSON, and whether something of it had to go: JSON by its own
/// account as it is, everything else as text.
fn body(answer: &Answer, bytes_max: usize) -> (Option<Doc>, bool) {
    if answer.body.is_empty() {
        return (None, false);
    }
    let text = String::from_utf8_lossy(&answer.body);
    if !answer.truncated && is_json(answer.header("content-type")) {
        let read = Doc::parse(&text).ok().filter(|doc| doc.text().len() <= bytes_max && doc.depth() <= DEPTH_MAX);
        if let Some(doc) = read {
            return (Some(doc), false);
        }
    }
    let kept = within(&text, bytes_max);
    (Some(Doc::new(kept.into())), kept.len() < text.len())
}

fn is_json(kind: Option<&str>) -> bool {
    let Some(kind) = kind else { return true };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// The longest beginning of a text that is no longer than this as JSON: a control character takes six bytes there.
fn within(text: &str, bytes_max: usize) -> &str {
    let mut left = bytes_max.saturating_sub(2);
    for (at, c) in text.char_indices() {
        let bytes = match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if u32::from(c) < 0x20 => 6,
            c => c.len_utf8(),
        };
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return text.get(..at).unwrap_or_default(),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use interlock_courier::Allowed;

    const MAX: usize = 64;

    fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer, SendError> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Ok(Answer { status, headers, body: body.to_vec().into(), truncated: false })
    }

    fn fails(fault: Fault, sent: Sent) -> Result<Answer, SendError> {
        Err(SendError::Broken { step: Step::Head, fault, got: "10.0.0.7:443 said no".to_owned(), sent })
    }

    #[test]
    fn every_answer_is_one_result() {
        let url = "http://10.0.0.7/a".parse().expect("a URL");
        let denied =
            Allowed::default().admit(interlock_courier::Method::Post, &url, None).expect_err("nothing is allowed");
        let json = [("content-type", "application/problem+json; charset=utf-8")];
        let redirected = |location: &str| {
            Err(SendError::Redirected { status: 307, location: location.to_owned(), why: "10.0.0.7".to_owned() })
        };
        let tries = [
            answer(200, &json, br#"{"id": 7}"#),
            answer(201, &[], br#"[1]"#),
            answer(202, &[("content-type", "text/plain")], b"123"),
            answer(204, &[], b""),
            answer(200, &json, b"{\"id\": 7"),
            answer(200, &[], &[0xff, b'a']),
            answer(412, &[], b"stale"),
            answer(400, &json, br#"{"title":"bad"}"#),
            answer(302, &[], b""),
            answer(408, &[], b""),
            answer(425, &[], b""),
            answer(429, &[("retry-after", "7")], b""),
            answer(503, &[("retry-after", "Thu, 01 Jan 1970 00:01:40 GMT")], b""),
            answer(500, &[("retry-after", "31536000")], b""),
            answer(500, &[("retry-after", "soon")], b""),
            fails(Fault::Timeout, Sent::Maybe),
            fails(Fault::ConnectionRefused, Sent::Never),
            fails(Fault::NotHttp, Sent::Maybe),
            redirected("http://10.0.0.7/"),
            Err(denied.into()),
        ];
        let lines: String = tries.iter().map(|made| format!("{:?}\n", tried(made, 90_000, MAX))).collect();
        assert!(!lines.contains("10.0.0.7"), "no address reaches a step: {lines}");
        expect![[r#"
            Done(Said { status: 200, body: Some({"id":7}), truncated: false })
            Done(Said { status: 201, body: Some([1]), truncated: false })
            Done(Said { status: 202, body: Some("123"), truncated: false })
            Done(Said { status: 204, body: None, truncated: false })
            Done(Said { status: 200, body: Some("{\"id\": 7"), truncated: false })
            Done(Said { status: 200, body: Some("�a"), truncated: false })
            Fenced(Said { status: 412, body: Some("stale"), truncated: false })
            Failed(Said { status: 400, body: Some({"title":"bad"}), truncated: false })
            Failed(Said { status: 302, body: None, truncated: false })
            Again { after_ms: None, reason: "status 408", maybe_sent: true }
            Again { after_ms: None, reason: "status 425", maybe_sent: true }
            Again { after_ms: Some(7000), reason: "status 429", maybe_sent: true }
            Again { after_ms: Some(10000), reason: "status 503", maybe_sent: true }
            Again { after_ms: Some(3600000), reason: "status 500", maybe_sent: true }
            Again { after_ms: None, reason: "status 500", maybe_sent: true }
            Again { after_ms: None, reason: "expected an answer, got none in time", maybe_sent: true }
            Again { after_ms: None, reason: "expected an answer, got a refusal", maybe_sent: false }
            Again { after_ms: None, reason: "expected an answer, got what is not HTTP", maybe_sent: true }
            Failed(Said { status: 307, body: None, truncated: false })
            Refused { reason: "by the rule `allow`: expected an `effects.allow` of the operator for its URL, got none" }
        "#]]
        .assert_eq(&lines);
    }

    #[test]
    fn an_answer_is_bounded_as_it_is_kept() {
        let kept = |body: &[u8]| {
            let Tried::Done(said) = tried(&answer(200, &[], body), 0, MAX) else { return (0, false) };
            (said.body.map_or(0, |body| body.text().len()), said.truncated)
        };
        assert_eq!(kept(&[b'a'; MAX - 2]), (MAX, false));
        assert_eq!(kept(&[b'a'; MAX]), (MAX, true));
        assert_eq!(kept(&[1; MAX]), (2 + 60, true), "ten control characters of six bytes");
        // Numbers grow: what no longer fits as JSON is text.
        let numbers = format!("[{}]", ["1e15"; 10].join(","));
        assert_eq!(kept(numbers.as_bytes()), (numbers.len() + 2, false));
        let deep = "[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1);
        assert!(
            matches!(body(&answer(200, &[], deep.as_bytes()).expect("an answer"), 1_000), (Some(text), false) if text.value().is_string())
        );
    }

    #[test]
    fn every_rule_is_named() {
        for rule in [Rule::Declared, Rule::Allow, Rule::Method, Rule::Networks, Rule::Secret, Rule::Header] {
            let Tried::Refused { reason } = refused(rule) else { panic!("{rule}") };
            assert!(reason.starts_with(&format!("by the rule `{rule}`")), "{reason}");
        }
    }
}
