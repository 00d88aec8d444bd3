//! Conditions and changes as they are typed: `status=pending`, `claimed_at<now-5m`, `count+=1`.

use crate::failed::Failed;
use interlock_kernel::doc::exact;
use interlock_kernel::value::Source;
use serde_json::{Number, Value, json};

/// How a comparison is typed, the longer first, and its name.
const COMPARISONS: [(&str, &str); 6] =
    [("!=", "ne"), ("<=", "le"), (">=", "ge"), ("=", "eq"), ("<", "lt"), (">", "gt")];

/// Conditions that must all hold; none if there is none.
///
/// # Errors
/// [`Failed::Input`] with the one that cannot be read.
pub(super) fn filter(conditions: &[String]) -> Result<Option<Value>, Failed> {
    let all = conditions.iter().map(|text| condition(text)).collect::<Result<Vec<_>, _>>()?;
    Ok((!all.is_empty()).then(|| all.into()))
}

/// Changes, in order; none if there is none.
///
/// # Errors
/// [`Failed::Input`] with the one that cannot be read.
pub(super) fn changes(option: &str, changes: &[String]) -> Result<Option<Value>, Failed> {
    let all = changes.iter().map(|text| change(option, text)).collect::<Result<Vec<_>, _>>()?;
    Ok((!all.is_empty()).then(|| all.into()))
}

fn condition(text: &str) -> Result<Value, Failed> {
    if let Some(written) = written("--where", text)? {
        return Ok(written);
    }
    // The first of them: what stands behind it is the value, whatever is in it.
    let first = text.find(['!', '=', '<', '>']).map(|at| text.split_at(at));
    let found = first.and_then(|(field, rest)| {
        COMPARISONS.iter().find_map(|(sign, name)| Some((field.trim(), *name, rest.strip_prefix(sign)?)))
    });
    match found {
        Some((field, operator, value)) if !field.is_empty() => {
            Ok(json!({ "field": field, "operator": operator, "value": self::value(value) }))
        }
        Some(_) | None => Err(Failed::Input(format!(
            "--where: expected FIELD=VALUE (or !=, <, <=, >, >=) or a condition as JSON, got {text:?}"
        ))),
    }
}

fn change(option: &str, text: &str) -> Result<Value, Failed> {
    if let Some(written) = written(option, text)? {
        return Ok(written);
    }
    let bad = || {
        let expected = "FIELD=VALUE, FIELD+=N, FIELD-=N or a change as JSON";
        Failed::Input(format!("{option}: expected {expected}, got {text:?}"))
    };
    let (field, value) = text.split_once('=').ok_or_else(bad)?;
    let (name, operation, value) = match (field.strip_suffix('+'), field.strip_suffix('-')) {
        (Some(field), _) => (field, "increment", number(value).map(Value::Number)),
        (None, Some(field)) => {
            (field, "increment", number(value).and_then(|number| negative(&number)).map(Value::Number))
        }
        (None, None) => (field, "set", Some(self::value(value))),
    };
    let value = value.ok_or_else(|| Failed::Input(format!("{option}: expected a number to add, got {text:?}")))?;
    match name.trim() {
        "" => Err(bad()),
        field => Ok(json!({ "field": field, "operation": operation, "value": value })),
    }
}

/// What is written as it goes over the wire: an object.
fn written(option: &str, text: &str) -> Result<Option<Value>, Failed> {
    if !text.trim_start().starts_with('{') {
        return Ok(None);
    }
    exact(text).map(Some).map_err(|why| Failed::Input(format!("{option}: {why}")))
}

/// JSON where it can be read as such, a source of the host's, or text.
fn value(text: &str) -> Value {
    let text = text.trim();
    match exact(text) {
        // `{"from": "x"}` is what it says; the short words are for what is typed often.
        Ok(json) => json,
        Err(_) => match text.parse::<Source>() {
            Ok(Source::Now(_) | Source::Execution) => json!({ "from": text }),
            Ok(Source::Field(_)) | Err(_) => text.into(),
        },
    }
}

fn number(text: &str) -> Option<Number> {
    match exact(text.trim()) {
        Ok(Value::Number(number)) => Some(number),
        Ok(_) | Err(_) => None,
    }
}

fn negative(number: &Number) -> Option<Number> {
    if let Some(whole) = number.as_i64() {
        return whole.checked_neg().map(Number::from);
    }
    if number.is_u64() {
        return None;
    }
    Number::from_f64(-number.as_f64()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write as _;

    #[test]
    fn what_is_typed_is_what_goes_over_the_wire() {
        let mut said = String::new();
        let conditions = [
            "status=pending",
            "tries<=3",
            "claimed_at<now-5m",
            "claimed_by = execution",
            "note=\"now\"",
            "a\\.b!=a=b",
            "size>18446744073709551615",
            "tags=[\"a\"]",
            "text=",
            "{\"any\": [{\"field\": \"a\", \"operator\": \"exists\"}]}",
            "status",
            "=x",
            "{nonsense",
        ];
        for text in conditions {
            let read = condition(text).map_or_else(|why| why.to_string(), |json| json.to_string());
            let _ = writeln!(said, "--where {text}\n    {read}");
        }
        let changes = [
            "status=done",
            "count+=1",
            "count-=2",
            "count-=9223372036854775808",
            "rate-=0.5",
            "at=now+1m",
            "count+=x",
            "a=",
            "+=1",
            "status",
            "{\"field\": \"a\", \"operation\": \"remove\"}",
        ];
        for text in changes {
            let read = change("--set", text).map_or_else(|why| why.to_string(), |json| json.to_string());
            let _ = writeln!(said, "--set {text}\n    {read}");
        }
        expect![[r#"
            --where status=pending
                {"field":"status","operator":"eq","value":"pending"}
            --where tries<=3
                {"field":"tries","operator":"le","value":3}
            --where claimed_at<now-5m
                {"field":"claimed_at","operator":"lt","value":{"from":"now-5m"}}
            --where claimed_by = execution
                {"field":"claimed_by","operator":"eq","value":{"from":"execution"}}
            --where note="now"
                {"field":"note","operator":"eq","value":"now"}
            --where a\.b!=a=b
                {"field":"a\\.b","operator":"ne","value":"a=b"}
            --where size>18446744073709551615
                {"field":"size","operator":"gt","value":18446744073709551615}
            --where tags=["a"]
                {"field":"tags","operator":"eq","value":["a"]}
            --where text=
                {"field":"text","operator":"eq","value":""}
            --where {"any": [{"field": "a", "operator": "exists"}]}
                {"any":[{"field":"a","operator":"exists"}]}
            --where status
                --where: expected FIELD=VALUE (or !=, <, <=, >, >=) or a condition as JSON, got "status"
            --where =x
                --where: expected FIELD=VALUE (or !=, <, <=, >, >=) or a condition as JSON, got "=x"
            --where {nonsense
                --where: expected JSON, got key must be a string at line 1 column 2
            --set status=done
                {"field":"status","operation":"set","value":"done"}
            --set count+=1
                {"field":"count","operation":"increment","value":1}
            --set count-=2
                {"field":"count","operation":"increment","value":-2}
            --set count-=9223372036854775808
                --set: expected a number to add, got "count-=9223372036854775808"
            --set rate-=0.5
                {"field":"rate","operation":"increment","value":-0.5}
            --set at=now+1m
                {"field":"at","operation":"set","value":{"from":"now+1m"}}
            --set count+=x
                --set: expected a number to add, got "count+=x"
            --set a=
                {"field":"a","operation":"set","value":""}
            --set +=1
                --set: expected FIELD=VALUE, FIELD+=N, FIELD-=N or a change as JSON, got "+=1"
            --set status
                --set: expected FIELD=VALUE, FIELD+=N, FIELD-=N or a change as JSON, got "status"
            --set {"field": "a", "operation": "remove"}
                {"field":"a","operation":"remove"}
        "#]]
        .assert_eq(&said);
    }
}
