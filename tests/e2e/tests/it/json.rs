//! What the whole program takes JSON for. Features of a dependency are one choice for everybody who links it:
//! a crate that asks for another one changes digests and numbers everywhere, and this is where that shows.

use anyhow::{Result, ensure};
use serde_json::Value;

fn read(text: &str) -> Result<Value> {
    Ok(serde_json::from_str(text)?)
}

#[test]
fn keys_are_sorted_so_that_one_document_is_one_text() -> Result<()> {
    let value = read(r#"{"b":1,"a":{"d":2,"c":3}}"#)?;
    let keys: Vec<_> = value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    ensure!(keys == ["a", "b"], "preserve_order is on: {keys:?}");
    ensure!(value.to_string() == r#"{"a":{"c":3,"d":2},"b":1}"#);
    Ok(())
}

#[test]
fn numbers_are_64_bit_integers_or_finite_floats() -> Result<()> {
    ensure!(read("18446744073709551615")?.as_u64() == Some(u64::MAX));
    ensure!(read("-9223372036854775808")?.as_i64() == Some(i64::MIN));
    // One more than an integer can be, and digits that a float does not keep: with arbitrary_precision both would
    // come back as they were written.
    let beyond = read("18446744073709551616")?;
    let written = beyond.to_string();
    ensure!(beyond.is_f64() && written == "1.8446744073709552e+19", "{written}");
    ensure!(read("1.10")?.to_string() == "1.1");
    ensure!(read("1e400").is_err(), "a number that is not finite");
    Ok(())
}

#[test]
fn depth_is_bounded() -> Result<()> {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    ensure!(read(&nested(100)).is_ok() && read(&nested(200)).is_err(), "unbounded_depth is on");
    Ok(())
}
