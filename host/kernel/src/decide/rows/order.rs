//! Values as bytes that have their order: what an index of a table is sorted by.
//!
//! ```text
//! 01                    nothing there
//! 02                    null
//! 03, 04                false, true
//! 05 <f64> <i32>        a number: the nearest float in its total order, then how far the integer is above it
//! 06 <text> 00 01       a text, 00 written 00 FF, cut
//! 07 <blake3>           an array or object: only to be equal
//! ```
//! Each says itself where it ends, so that several in a row have the order of their fields.

use crate::doc::Doc;
use crate::limits::INDEX_TEXT_BYTES_MAX;
use crate::rejection::cut_to;
use serde_json::{Number, Value as Json};

const MISSING: u8 = 1;
const NULL: u8 = 2;
const FALSE: u8 = 3;
const TRUE: u8 = 4;
const NUMBER: u8 = 5;
const TEXT: u8 = 6;
const OTHER: u8 = 7;

/// The bytes of what stands in a field.
pub(in crate::decide) fn put(value: Option<&Json>, out: &mut Vec<u8>) {
    match value {
        None => out.push(MISSING),
        Some(Json::Null) => out.push(NULL),
        Some(Json::Bool(false)) => out.push(FALSE),
        Some(Json::Bool(true)) => out.push(TRUE),
        Some(Json::Number(number)) => {
            out.push(NUMBER);
            put_number(number, out);
        }
        Some(Json::String(text)) => {
            out.push(TEXT);
            for byte in cut_to(text, INDEX_TEXT_BYTES_MAX).bytes() {
                out.push(byte);
                if byte == 0 {
                    out.push(0xFF);
                }
            }
            out.extend_from_slice(&[0, 1]);
        }
        Some(value @ (Json::Array(_) | Json::Object(_))) => {
            out.push(OTHER);
            out.extend_from_slice(&Doc::new(value.clone()).digest().0);
        }
    }
}

/// Behind all values of the kind that a value of this kind is compared with: none for one that has no order.
pub(in crate::decide) fn kind(value: &Json) -> Option<(u8, u8)> {
    match value {
        Json::Number(_) => Some((NUMBER, TEXT)),
        Json::String(_) => Some((TEXT, OTHER)),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the nearest float of a 64-bit integer is at most 1,024 away from it"
)]
fn put_number(number: &Number, out: &mut Vec<u8>) {
    let integer = super::super::super::value::integer(number);
    let (float, above) = match integer {
        Some(exact) => {
            let float = exact as f64;
            (float, exact.saturating_sub(float as i128) as i32)
        }
        None => (number.as_f64().unwrap_or_default(), 0),
    };
    let bits = (float + 0.0).to_bits(); // -0 is 0
    let ordered = if bits >> 63 == 1 { bits ^ u64::MAX } else { bits | 1 << 63 };
    out.extend_from_slice(&ordered.to_be_bytes());
    out.extend_from_slice(&(above.cast_unsigned() ^ 1 << 31).to_be_bytes());
}

/// The lowest bytes above everything that begins like this.
pub(in crate::decide) fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::put;
    use serde_json::{Value as Json, json};

    fn bytes(value: &Json) -> Vec<u8> {
        let mut out = Vec::new();
        put(Some(value), &mut out);
        out
    }

    #[test]
    fn bytes_have_the_order_of_the_values() {
        let ordered = [
            json!(null),
            json!(false),
            json!(true),
            json!(-1.5e300),
            json!(i64::MIN),
            json!(i64::MIN + 1),
            json!(-1.5),
            json!(-1),
            json!(0),
            json!(1e-300),
            json!(0.5),
            json!(1),
            json!(1.5),
            json!(9_007_199_254_740_992_u64),
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_994_u64),
            json!(i64::MAX - 1),
            json!(i64::MAX),
            json!(u64::MAX - 1),
            json!(u64::MAX),
            json!(1e300),
            json!(""),
            json!("\0"),
            json!("\0a"),
            json!("a"),
            json!("a\0"),
            json!("ab"),
            json!("b"),
        ];
        for pair in ordered.windows(2) {
            assert!(bytes(&pair[0]) < bytes(&pair[1]), "{} and {}", pair[0], pair[1]);
        }
        assert_eq!(bytes(&json!(1)), bytes(&json!(1.0)));
        assert_eq!(bytes(&json!(0)), bytes(&json!(-0.0)));
        let mut missing = Vec::new();
        put(None, &mut missing);
        assert!(missing < bytes(&json!(null)));
        assert_eq!(super::behind(&[1, 255]), Some(vec![2]));
        assert_eq!(super::behind(&[255]), None);
    }
}
