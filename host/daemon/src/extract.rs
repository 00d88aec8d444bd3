//! Requests, read strictly: what a route does not know is refused by name, with the nearest one it knows.

use crate::limits::BODY_BYTES_MAX;
use crate::problem::{Problem, Reason};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use futures_util::StreamExt;
use interlock_kernel::ids::{EntityId, EventId, MachineName, nearest};
use interlock_kernel::value::parse_ms;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::time::Duration;

/// A JSON body of at most `MAX` bytes.
pub(crate) struct Body<T, const MAX: usize = BODY_BYTES_MAX>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync, const MAX: usize> FromRequest<S> for Body<T, MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("none");
        if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
            return Err(Problem::new(Reason::MediaType, "Content-Type", "application/json", kind));
        }
        let bytes = collect(request, MAX).await?;
        parse(&bytes).map(Self)
    }
}

async fn collect(request: Request, max: usize) -> Result<Vec<u8>, Problem> {
    let name = if max == BODY_BYTES_MAX { "body_bytes_max" } else { "deploy_body_bytes_max" };
    let too_large = |got: String| Problem::new(Reason::TooLarge, name, format!("at most {max} bytes"), got);
    let announced = request.headers().get(header::CONTENT_LENGTH);
    if let Some(length) = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok())
        && length > max as u64
    {
        return Err(too_large(format!("{length} bytes")));
    }
    let mut bytes = Vec::new();
    let mut chunks = request.into_body().into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|why| Problem::invalid("body", "a whole body", why))?;
        if bytes.len() + chunk.len() > max {
            return Err(too_large("more".to_owned()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Reads a body, or says where in it and what is wrong.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let rejection = match axum::Json::<T>::from_bytes(bytes) {
        Ok(axum::Json(body)) => return Ok(body),
        Err(rejection) => rejection,
    };
    // The innermost source is serde_json's own message; the one around it has the path before it.
    let mut messages = Vec::new();
    let mut source = rejection.source();
    while let Some(error) = source {
        messages.push(error.to_string());
        source = error.source();
    }
    let message = messages.last().cloned().unwrap_or_else(|| rejection.to_string());
    let path = messages
        .iter()
        .find_map(|outer| outer.strip_suffix(&message)?.strip_suffix(": "))
        .filter(|path| !matches!(*path, "." | "?"))
        .unwrap_or("body");
    let (problem, place) = match message.rfind(" at line ") {
        Some(at) => message.split_at(at),
        None => (message.as_str(), ""),
    };
    let (got, expected) = problem.split_once(", expected ").unwrap_or((problem, "JSON of the documented shape"));
    let expected = match quoted(got).zip(got.starts_with("unknown").then_some(expected)) {
        Some((unknown, _)) => with_nearest(expected, unknown, expected.split('`').skip(1).step_by(2)),
        None => expected.to_owned(),
    };
    Err(Problem::invalid(path, expected, format_args!("{got}{place}")))
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
        text.parse().ok().filter(|count| (1..=max).contains(count)).ok_or_else(|| {
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
        self.text(name).map(|text| text.parse().map_err(|_| bad(text))).transpose()
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
        text.map(|text| text.parse().map_err(|bad| Problem { subject: format!("query.{name}"), ..Problem::from(bad) }))
            .transpose()
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
    let id = bare.parse().map_err(|bad| Problem { subject: "Idempotency-Key".to_owned(), ..Problem::from(bad) })?;
    Ok(Some(id))
}

/// The generation of `If-Match: "3"`.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(text) = header_text(headers, "if-match")? else { return Ok(None) };
    let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).parse();
    number.map(Some).map_err(|_| Problem::invalid("If-Match", "one generation, such as \"3\"", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{CreateRequest, EventRequest};
    use expect_test::{Expect, expect};

    fn check<T: DeserializeOwned>(body: &str, expected: Expect) {
        let said = match parse::<T>(body.as_bytes()) {
            Ok(_) => "taken".to_owned(),
            Err(problem) => format!("{} {}", problem.status, problem.detail),
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn a_wrong_body_is_refused_with_its_place() {
        check::<EventRequest>(r#"{"name": "resize", "payload": {"size": 4}}"#, expect!["taken"]);
        check::<EventRequest>(r#"{"name": "resize", "payload": {"size": 4}"#, expect![[r#""#]]);
        check::<EventRequest>(r#"{"nam": "resize"}"#, expect![[r#""#]]);
        check::<EventRequest>("{}", expect![[r#""#]]);
        check::<EventRequest>(r#"{"name": 7}"#, expect![[r#""#]]);
        check::<EventRequest>("{\"name\": \"resize\",\n \"expect\": {\"versoin\": 7}}", expect![[r#""#]]);
        check::<EventRequest>(r#"{"name": "resize", "payload": 18446744073709551616}"#, expect![[r#""#]]);
        check::<CreateRequest>(r#"{"machine": "m", "key": "k", "on_existing": "recraete"}"#, expect![[r#""#]]);
        check::<EventRequest>(r#"{"name": "resize"} and more"#, expect![[r#""#]]);
        check::<EventRequest>("", expect![[r#""#]]);
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
    }
}
