//! Requests, read strictly: what a route does not know is refused by name, with the nearest one it knows.

use crate::limits::{BODY_BYTES_MAX, BODY_WITHIN, DISCARDED_BYTES_MAX};
use crate::problem::{Problem, Reason};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use futures_util::StreamExt;
use interlock_kernel::ids::{EntityId, EventId, LeaseName, MachineName, RowKey, ScheduleName, TableName, nearest};
use interlock_kernel::rejection::Code;
use interlock_kernel::value::parse_ms;
use interlock_manifest::rows;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::str::FromStr;
use std::time::Duration;

/// A JSON body of at most `MAX` bytes.
pub(crate) struct Body<T, const MAX: usize = BODY_BYTES_MAX>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync, const MAX: usize> FromRequest<S> for Body<T, MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        says_json(&request)?;
        let bytes = whole(request, MAX, BODY_WITHIN).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body of any shape, integers exactly.
pub(crate) struct AnyJson(pub(crate) serde_json::Value);

impl<S: Send + Sync> FromRequest<S> for AnyJson {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        says_json(&request)?;
        let bytes = whole(request, BODY_BYTES_MAX, BODY_WITHIN).await?;
        let text = std::str::from_utf8(&bytes).map_err(|why| Problem::invalid("body", "JSON in UTF-8", why))?;
        rows::text(text).map(Self).map_err(|why| Problem::invalid("body", why.expected, why.got))
    }
}

fn says_json(request: &Request) -> Result<(), Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("none");
    if kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(Problem::new(Reason::MediaType, "Content-Type", "application/json", kind))
}

/// A body that arrives in time: one that never ends would hold its connection for ever.
async fn whole(request: Request, max: usize, within: Duration) -> Result<Vec<u8>, Problem> {
    let late = |_| Problem::invalid("body", format_args!("a whole body within {within:?}"), "a part of one");
    tokio::time::timeout(within, collect(request, max)).await.map_err(late)?
}

async fn collect(request: Request, max: usize) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let mut length: usize = 0;
    let mut chunks = request.into_body().into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|why| Problem::invalid("body", "a whole body", why))?;
        length = length.saturating_add(chunk.len());
        if length <= max {
            bytes.extend_from_slice(&chunk);
        } else if length > max.saturating_add(DISCARDED_BYTES_MAX) {
            break;
        }
    }
    if length > max {
        let name = if max == BODY_BYTES_MAX { "body_bytes_max" } else { "deploy_body_bytes_max" };
        return Err(Problem::new(Reason::TooLarge, "body", format!("at most {max} bytes ({name})"), "more"));
    }
    Ok(bytes)
}

/// Reads a body, or says where in it and what is wrong.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // serde would take an array for an object, field by field in their order.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(Problem::invalid("body", "a JSON object", "an array"));
    }
    let rejection = match axum::Json::<T>::from_bytes(bytes) {
        Ok(axum::Json(body)) => return Ok(body),
        Err(rejection) => rejection,
    };
    // The innermost source is the parser's own message, the path of the field before it.
    let mut message = rejection.to_string();
    let mut source = rejection.source();
    while let Some(error) = source {
        message = error.to_string();
        source = error.source();
    }
    Err(judge(&message))
}

/// Takes a parser's message apart: `PATH: MESSAGE at line L column C`.
fn judge(message: &str) -> Problem {
    let (path, rest) = match message.split_once(": ") {
        // A field whose name is empty.
        Some(("", rest)) => ("body", rest),
        Some((path, rest)) if !path.contains([' ', '`']) => (path, rest),
        _ => ("body", message),
    };
    let (what, place) = rest.rfind(" at line ").map_or((rest, ""), |at| rest.split_at(at));
    if let Some((expected, got)) = what.strip_prefix("expected ").and_then(|what| what.split_once(", got ")) {
        // A document's own message.
        let reason = if got.contains("bytes_max") { Reason::TooLarge } else { Reason::Decided(Code::Invalid) };
        return Problem::new(reason, path, expected, format_args!("{got}{place}"));
    }
    if let Some(name) = what.strip_prefix("missing field ") {
        return Problem::invalid(path, format_args!("the field {name}"), format_args!("none{place}"));
    }
    let (got, expected) = what.split_once(", expected ").unwrap_or((what, "JSON of the documented shape"));
    let expected = match quoted(got).filter(|_| got.starts_with("unknown ")) {
        Some(unknown) => with_nearest(expected, unknown, expected.split('`').skip(1).step_by(2)),
        None => expected.to_owned(),
    };
    Problem::invalid(path, expected, format_args!("{got}{place}"))
}

fn quoted(text: &str) -> Option<&str> {
    text.split('`').nth(1)
}

fn with_nearest<'a>(expected: &str, got: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(got, valid) {
        Some(near) => format!("{expected} (did you mean {near}?)"),
        None => expected.to_owned(),
    }
}

/// A query's parameters; only those that the route knows.
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Reads them. `label` may stand more than once.
    pub(crate) fn read(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|why| Problem::invalid("query", "name=value pairs", why.body_text()))?;
        for (index, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let expected = match known {
                    [] => "no parameters".to_owned(),
                    known => format!("only {}", known.join(", ")),
                };
                let expected = with_nearest(&expected, name, known.iter().copied());
                return Err(Problem::invalid(format_args!("query.{name}"), expected, format_args!("{name:?}")));
            }
            if name != "label" && pairs.iter().skip(index + 1).any(|(other, _)| other == name) {
                return Err(Problem::invalid(format_args!("query.{name}"), "one value", "several"));
            }
        }
        Ok(Self(pairs))
    }

    /// A parameter's text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A whole number from 1 to `max`.
    pub(crate) fn count(&self, name: &str, default: usize, max: usize) -> Result<usize, Problem> {
        let Some(text) = self.text(name) else { return Ok(default) };
        digits(text).filter(|count| (1..=max).contains(count)).ok_or_else(|| {
            Problem::invalid(format_args!("query.{name}"), format_args!("1 to {max}"), format_args!("{text:?}"))
        })
    }

    /// `true` or `false`; false if it is not there.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                Err(Problem::invalid(format_args!("query.{name}"), "true or false", format_args!("{other:?}")))
            }
        }
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let bad =
            |text: &str| Problem::invalid(format_args!("query.{name}"), "a whole number", format_args!("{text:?}"));
        self.text(name).map(|text| digits(text).ok_or_else(|| bad(text))).transpose()
    }

    /// A length of time such as `30s`, cut to `max`.
    pub(crate) fn span(&self, name: &str, max: Duration) -> Result<Option<Duration>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let expected = "a duration such as 500ms, 30s or 5m";
        let ms = parse_ms(text)
            .map_err(|_| Problem::invalid(format_args!("query.{name}"), expected, format_args!("{text:?}")))?;
        Ok(Some(Duration::from_millis(ms).min(max)))
    }

    /// A parsed name.
    pub(crate) fn name<T>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T: std::str::FromStr<Err = interlock_kernel::ids::BadName>,
    {
        let text = self.text(name);
        text.map(|text| text.parse().map_err(|bad| Problem::bad_name(format_args!("query.{name}"), bad))).transpose()
    }
}

/// The machine that a path names.
pub(crate) struct MachinePath(pub(crate) MachineName);

impl<S: Send + Sync> FromRequestParts<S> for MachinePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(bad_path)?;
        Ok(Self(name.parse()?))
    }
}

/// The lease that a path names, in one segment: a `/` in it is percent-encoded, as in an entity's key.
pub(crate) struct LeasePath(pub(crate) LeaseName);

impl<S: Send + Sync> FromRequestParts<S> for LeasePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(bad_path)?;
        Ok(Self(name.parse()?))
    }
}

/// The table that a path names.
pub(crate) struct TablePath(pub(crate) TableName);

impl<S: Send + Sync> FromRequestParts<S> for TablePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(bad_path)?;
        Ok(Self(name.parse()?))
    }
}

/// The schedule that a path names.
pub(crate) struct SchedulePath(pub(crate) ScheduleName);

impl<S: Send + Sync> FromRequestParts<S> for SchedulePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(bad_path)?;
        Ok(Self(name.parse()?))
    }
}

/// The row that a path names; its key in one segment, percent-encoded.
pub(crate) struct RowPath(pub(crate) TableName, pub(crate) RowKey);

impl<S: Send + Sync> FromRequestParts<S> for RowPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((table, key)) = Path::<(String, String)>::from_request_parts(parts, state).await.map_err(bad_path)?;
        Ok(Self(table.parse()?, key.parse()?))
    }
}

/// The entity that a path names.
pub(crate) struct EntityPath(pub(crate) EntityId);

impl<S: Send + Sync> FromRequestParts<S> for EntityPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((machine, key)) =
            Path::<(String, String)>::from_request_parts(parts, state).await.map_err(bad_path)?;
        Ok(Self(EntityId { machine: machine.parse()?, key: key.parse()? }))
    }
}

/// The entity and the event that a path names.
pub(crate) struct EventPath(pub(crate) EntityId, pub(crate) EventId);

impl<S: Send + Sync> FromRequestParts<S> for EventPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((machine, key, event)) =
            Path::<(String, String, String)>::from_request_parts(parts, state).await.map_err(bad_path)?;
        Ok(Self(EntityId { machine: machine.parse()?, key: key.parse()? }, event.parse()?))
    }
}

/// The entity and the number of an effect that a path names.
pub(crate) struct EffectPath(pub(crate) EntityId, pub(crate) u64);

impl<S: Send + Sync> FromRequestParts<S> for EffectPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((machine, key, number)) =
            Path::<(String, String, String)>::from_request_parts(parts, state).await.map_err(bad_path)?;
        let entity = EntityId { machine: machine.parse()?, key: key.parse()? };
        let bad = || Problem::invalid("path", "an effect's number", format_args!("{number:?}"));
        digits(&number).map(|number| Self(entity, number)).ok_or_else(bad)
    }
}

fn bad_path(why: axum::extract::rejection::PathRejection) -> Problem {
    Problem::invalid("path", "percent-encoded UTF-8", why.body_text())
}

/// A header's text, if it is there once.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::invalid(name, "one header", "several"));
    }
    first.to_str().map(Some).map_err(|_| Problem::invalid(name, "visible ASCII", "other bytes"))
}

/// The event id of `Idempotency-Key`, with or without quotes around it.
pub(crate) fn event_id(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(text) = header_text(headers, "idempotency-key")? else { return Ok(None) };
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let id = bare.parse().map_err(|bad| Problem::bad_name("Idempotency-Key", bad))?;
    Ok(Some(id))
}

/// Whether there is `If-None-Match: *`.
pub(crate) fn if_none(headers: &HeaderMap) -> Result<bool, Problem> {
    match header_text(headers, "if-none-match")? {
        None => Ok(false),
        Some("*") => Ok(true),
        Some(other) => Err(Problem::invalid("If-None-Match", "*, for nothing to be there", other)),
    }
}

/// The number of `If-Match: "3"`, which the route calls a generation or a version.
pub(crate) fn if_match(headers: &HeaderMap, number_of: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = header_text(headers, "if-match")? else { return Ok(None) };
    let number = digits(text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text));
    let expected = format_args!("one {number_of}, such as \"3\"");
    number.map(Some).ok_or_else(|| Problem::invalid("If-Match", expected, text))
}

/// A number that is digits and nothing else: Rust reads `+3` as well.
fn digits<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{CreateRequest, EventRequest};
    use expect_test::expect;

    fn said<T: DeserializeOwned>(body: &str) -> String {
        let said = match parse::<T>(body.as_bytes()) {
            Ok(_) => "taken".to_owned(),
            Err(problem) => format!("{} {}", problem.status, problem.detail),
        };
        format!("{body}\n    {said}\n")
    }

    #[test]
    fn a_wrong_body_is_refused_with_its_place() {
        let events = [
            r#"{"name": "resize", "payload": {"size": 4}}"#,
            r#"{"name": "resize", "payload": {"size": 4}"#,
            r#"{"name": "resize"} and more"#,
            "",
            "{}",
            r#"{"nam": "resize"}"#,
            r#"{"name": 7}"#,
            r#" ["resize", {"size": 4}]"#,
            r#"{"name": "resize", "expect": {"versoin": 7}}"#,
            r#"{"name": "resize", "payload": 18446744073709551616}"#,
        ];
        let creates = [
            r#"{"machine": "m", "key": "k", "on_existing": "recraete"}"#,
            r#"{"machine": "m", "key": "k", "labels": {"a": 1}}"#,
        ];
        let mut all: String = events.iter().map(|body| said::<EventRequest>(body)).collect();
        all.extend(creates.iter().map(|body| said::<CreateRequest>(body)));
        expect![[r#"
            {"name": "resize", "payload": {"size": 4}}
                taken
            {"name": "resize", "payload": {"size": 4}
                400 body: expected JSON of the documented shape, got EOF while parsing an object at line 1 column 41
            {"name": "resize"} and more
                400 body: expected JSON of the documented shape, got trailing characters at line 1 column 20

                400 body: expected JSON of the documented shape, got EOF while parsing a value at line 1 column 0
            {}
                400 body: expected the field `name`, got none at line 1 column 2
            {"nam": "resize"}
                400 nam: expected one of `name`, `payload`, `expect` (did you mean name?), got unknown field `nam` at line 1 column 6
            {"name": 7}
                400 name: expected a string, got invalid type: integer `7` at line 1 column 10
             ["resize", {"size": 4}]
                400 body: expected a JSON object, got an array
            {"name": "resize", "expect": {"versoin": 7}}
                400 expect.versoin: expected one of `incarnation`, `execution`, `visit`, `generation`, `version` (did you mean version?), got unknown field `versoin` at line 1 column 39
            {"name": "resize", "payload": 18446744073709551616}
                400 payload: expected integers of at most 64 bits, got 18446744073709551616 at line 1 column 51
            {"machine": "m", "key": "k", "on_existing": "recraete"}
                400 on_existing: expected one of `same`, `fail`, `use`, `recreate` (did you mean recreate?), got unknown variant `recraete` at line 1 column 54
            {"machine": "m", "key": "k", "labels": {"a": 1}}
                400 labels.a: expected a string, got invalid type: integer `1` at line 1 column 46
        "#]].assert_eq(&all);
    }

    #[test]
    fn unknown_and_doubled_parameters_are_refused() {
        let read = |query: &str| {
            let uri: Uri = query.parse().map_err(|_| "uri".to_owned())?;
            Params::read(&uri, &["machine", "label", "limit"])
                .and_then(|params| params.count("limit", 100, 1_000))
                .map_err(|problem| problem.detail)
        };
        assert_eq!(read("/?machine=a&label=x%3Dy&label=z&limit=7"), Ok(7));
        assert_eq!(
            read("/?machin=a"),
            Err("query.machin: expected only machine, label, limit (did you mean machine?), got \"machin\"".to_owned())
        );
        assert_eq!(read("/?limit=1&limit=2"), Err("query.limit: expected one value, got several".to_owned()));
        assert_eq!(read("/?limit=0"), Err("query.limit: expected 1 to 1000, got \"0\"".to_owned()));
        assert_eq!(read("/?limit=-1"), Err("query.limit: expected 1 to 1000, got \"-1\"".to_owned()));
        assert_eq!(read("/?limit=%2B1"), Err("query.limit: expected 1 to 1000, got \"+1\"".to_owned()));
    }

    #[test]
    fn one_generation_and_nothing_like_it_is_a_precondition() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_MATCH, header::HeaderValue::from_static(text));
            if_match(&headers, "version").ok().flatten()
        };
        assert_eq!(["\"3\"", "3", "\"0\""].map(read), [Some(3), Some(3), Some(0)]);
        for other in ["", "\"\"", "*", "W/\"3\"", "+3", "\"+3\"", "-1", "\"3", "\"3\", \"4\"", "18446744073709551616"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_refused_after_a_while() {
        let never = axum::body::Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>());
        let refused = whole(Request::new(never), 1, Duration::from_millis(1)).await.map_err(|problem| problem.detail);
        assert_eq!(refused, Err("body: expected a whole body within 1ms, got a part of one".to_owned()));
    }
}
