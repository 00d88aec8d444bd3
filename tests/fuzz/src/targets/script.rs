//! Words of the small scripts that the targets read: values, comparisons, mutations. A line that is none is skipped.

use interlock_kernel::doc::Doc;
use interlock_kernel::value::{Comparison, Mutation, Operation, Value};

/// JSON, or else a source: `4`, `"text"`, `event.size`, `now+5m`.
pub(super) fn value(text: &str) -> Option<Value> {
    Doc::parse(text).map(Value::Json).ok().or_else(|| text.parse().map(Value::From).ok())
}

/// `event.size ne data.size`.
pub(super) fn comparison(text: &str) -> Option<Comparison> {
    let mut words = text.splitn(3, ' ');
    Some(Comparison {
        field: words.next()?.parse().ok()?,
        operator: words.next()?.parse().ok()?,
        value: value(words.next()?)?,
    })
}

/// `data.x = 1`, `data.n += 1`, `data.log << event.x`, `data.log <<7 1`, `data.m max 3`, `data.m min 3`, `data.x remove`.
pub(super) fn mutation(text: &str) -> Option<Mutation> {
    let mut words = text.splitn(3, ' ');
    let (field, operation) = (words.next()?.parse().ok()?, words.next()?);
    let operation = match operation {
        "=" => Operation::Set,
        "+=" => Operation::Increment,
        "max" => Operation::Max,
        "min" => Operation::Min,
        "remove" => Operation::Remove,
        "<<" => Operation::Append { max: 3 },
        other => Operation::Append { max: other.strip_prefix("<<")?.parse().ok()? },
    };
    let value = match operation {
        Operation::Remove => Value::Json(Doc::new(serde_json::Value::Null)),
        _ => value(words.next()?)?,
    };
    Some(Mutation { field, operation, value })
}
