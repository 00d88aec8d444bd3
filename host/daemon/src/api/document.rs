//! A JSON document inside a body.

use interlock_kernel::doc::Doc;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Any JSON value, at most 252 KiB; integers of up to 64 bits are kept exactly, larger ones are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document(pub Doc);

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.text().to_owned()).map_err(S::Error::custom)?.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        Doc::parse(raw.get()).map(Self).map_err(D::Error::custom)
    }
}

impl PartialSchema for Document {
    fn schema() -> RefOr<Schema> {
        serde_json::Value::schema()
    }
}

impl ToSchema for Document {
    fn name() -> Cow<'static, str> {
        "Document".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_integers_survive_and_larger_ones_are_refused() {
        let read = |text: &str| serde_json::from_str::<Document>(text).map_err(|why| why.to_string());
        let kept = read(r#"{"n": 18446744073709551615, "m": -9223372036854775808}"#);
        let text = kept.map(|document| serde_json::to_string(&document).unwrap_or_default());
        assert_eq!(text, Ok(r#"{"m":-9223372036854775808,"n":18446744073709551615}"#.to_owned()));
        let refused = read("[18446744073709551616]").err().unwrap_or_default();
        assert!(refused.contains("18446744073709551616"), "{refused}");
    }
}
