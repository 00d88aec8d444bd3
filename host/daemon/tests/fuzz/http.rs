//! The target: requests in, what was answered out.

use crate::site::{Answer, Request, site};
use interlock_daemon::{Problem, Reason};
use interlock_fuzz::{Broken, Seen, Target};

/// See the module.
pub(crate) struct Http;

/// Between the requests of an input.
const BETWEEN: &[u8] = b"\n===\n";
/// Requests of an input that are sent.
const REQUESTS_MAX: usize = 8;

const WORDS: &str = "\
    GET ¦POST ¦PUT ¦DELETE ¦HEAD ¦OPTIONS ¦PATCH ¦QUERY ¦/v1/¦machines¦/door¦/a¦entities¦/events¦/desired¦/history¦\
    /kill¦/unpark¦/rollback¦/watch¦/v1/stats¦/v1/ready¦/v1/health¦/v1/openapi.json¦?wait=1ms¦?limit=1000¦&after=a¦\
    &label=a%3Db¦?machine=door¦?state=shut¦?before=0¦?after=0.0¦&entity=door/a¦%00¦%2F¦%2e%2e¦%ff¦%F0%9F%98%80¦..¦//¦*¦\
    Idempotency-Key: e1\n¦Idempotency-Key: \"e2\"\n¦If-Match: \"0\"\n¦If-Match: *\n¦Content-Type: application/json\n¦\
    Content-Type: text/plain\n¦Content-Encoding: gzip\n¦Accept: text/event-stream\n¦Last-Event-ID: 1.0\n¦\
    Origin: http://127.0.0.1\n¦Host: evil.example\n¦Expect: 100-continue\n¦Chunked: 1\n¦Chunked: 100000\n¦\
    Connection: upgrade\nUpgrade: websocket\n¦\n===\n¦{\"name\": ¦\"push\"¦\"knock\"¦\"slam\"¦\"stop\"¦\"payload\": ¦\
    {\"force\": 7}¦\"expect\": {\"version\": 1}¦\"visit\"¦\"generation\"¦\"machine\": \"door\"¦\"key\": \"b\"¦\
    \"on_existing\": \"use\"¦\"labels\": {\"a\": \"b\"}¦\"desired\": {\"colour\": \"red\"}¦\"reason\": \"x\"¦\
    tables¦/jobs¦/rows/¦/claim¦/update¦/upsert¦/query¦/v1/transact¦?as=¦?table=jobs¦If-None-Match: *\n¦\"where\": ¦\
    \"set\": ¦\"ops\": ¦\"require\": ¦\"insert\": {}¦{\"from\": \"now-5m\"}¦{\"increment\": -1}¦\"limit\": 1001¦\
    \"manifest\": \"\"¦\"component\": \"AGFzbQ==\"¦\"to\": 1¦null¦true¦[]¦{}¦1e400¦-0¦\\ud800¦\\u0000¦é¦[[[[[[[[¦\
    {\"a\":{\"a\":{\"a\":¦\"\"¦,¦:¦}¦ ¦\r\n¦\u{0}";

impl Target for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let mut seen = Seen::default();
        for text in requests(input).into_iter().take(REQUESTS_MAX) {
            let request = Request::parse(text);
            let panics = site().panics();
            let answer = site().ask(&request).map_err(|why| Broken(format!("{why:#}: {}", shown(text))))?;
            if site().panics() > panics {
                return Err(Broken(format!("something panicked: {}", shown(text))));
            }
            match answer {
                None => seen.note("waits"),
                Some(answer) => {
                    judge(&request, &answer, &mut seen)
                        .map_err(|why| Broken(format!("{why}, got {answer:?}: {}", shown(text))))?;
                }
            }
        }
        Ok(seen)
    }
}

fn requests(input: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        all.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    all.push(rest);
    all
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(400)]).into_owned()
}

/// What is wrong with an answer.
fn judge(request: &Request<'_>, answer: &Answer, seen: &mut Seen) -> Result<(), String> {
    seen.note(&answer.status);
    let kind = answer.header("content-type").unwrap_or_default();
    match answer.status {
        200..=299 => success(request, answer, kind),
        // The HTTP library's own answers: to what is no HTTP, and to heads past its bounds (100 headers).
        400 | 405 | 505 if kind.is_empty() && !request.is_http() => Ok(()),
        414 | 431 if kind.is_empty() => Ok(()),
        // Readiness is the state of the host and no problem.
        503 if kind == "application/json" => Ok(()),
        _ => problem(request, answer, kind, seen),
    }
}

fn success(request: &Request<'_>, answer: &Answer, kind: &str) -> Result<(), String> {
    let Some(body) = &answer.body else {
        let stream = kind == "text/event-stream" || request.method() == b"HEAD";
        return if stream { Ok(()) } else { Err("a success without a body".to_owned()) };
    };
    if kind != "application/json" {
        return Err(format!("a success as {kind}"));
    }
    let value: Result<serde_json::Value, _> = serde_json::from_slice(body);
    value.map(drop).map_err(|why| format!("a success that is no JSON: {why}"))
}

fn problem(request: &Request<'_>, answer: &Answer, kind: &str, seen: &mut Seen) -> Result<(), String> {
    if kind != "application/problem+json" {
        return Err(format!("a refusal as {kind:?}"));
    }
    let Some(body) = &answer.body else {
        return if request.method() == b"HEAD" { Ok(()) } else { Err("a refusal without a body".to_owned()) };
    };
    let problem: Problem =
        serde_json::from_slice(body).map_err(|why| format!("a refusal that is no problem: {why}"))?;
    let rows = Reason::all().map(Reason::row).any(|(code, status, title)| {
        (code, status, title) == (problem.code.as_str(), problem.status, problem.title.as_str())
    });
    if !rows || problem.status != answer.status || problem.status == 500 {
        return Err("a refusal that is no row of the table, or a fault of the host".to_owned());
    }
    if [&problem.detail, &problem.subject, &problem.expected, &problem.got].iter().any(|text| text.is_empty()) {
        return Err("a refusal without its words".to_owned());
    }
    if problem.retry_after_ms.is_some() != answer.header("retry-after").is_some() {
        return Err("a header Retry-After that the problem does not have, or the other way round".to_owned());
    }
    seen.note(&problem.code);
    seen.say(&problem.expected);
    seen.say(&problem.got);
    Ok(())
}
