//! From what the outbox hands out to one request: the host's headers, the body, the secret by reference.

use interlock_courier::{Destination, Method, Outbound, Pattern, Rule, SecretUse, guest_may_set};
use interlock_kernel::command::Sending;
use interlock_kernel::doc::Digest;
use interlock_kernel::limits::EFFECT_TIMEOUT_MS_MAX;
use interlock_kernel::record::Effect;
use std::fmt::Write as _;
use std::time::Duration;

/// What is kept of an answer's body: the target's own bound, within the kernel's.
pub(super) fn answer_bytes_max(sending: &Sending) -> usize {
    let max = sending.target.answer_bytes_max.min(interlock_kernel::limits::ANSWER_BYTES_MAX);
    usize::try_from(max).unwrap_or(usize::MAX)
}

/// The request of one try.
///
/// # Errors
/// By which rule it cannot be one, and why, for the operator.
pub(super) fn outbound(sending: &Sending) -> Result<Outbound, (Rule, String)> {
    let Sending { effect, target, .. } = sending;
    let declared = Pattern::parse(&target.url).map_err(|why| (Rule::Declared, why.to_string()))?;
    let method: Method = target.method.parse().map_err(|why| (Rule::Declared, format!("{why}")))?;
    let url = Destination::parse(&effect.url).map_err(|why| (Rule::Declared, why.to_string()))?;
    let body = effect.body.as_ref().map(|body| body.text().to_owned().into());
    let secret = target.secret.as_ref().map(|secret| SecretUse {
        name: secret.name.clone(),
        header: secret.header.clone(),
        prefix: secret.prefix.clone(),
    });
    Ok(Outbound {
        target: effect.target.to_string(),
        declared,
        method,
        url,
        headers: headers(sending)?,
        body,
        secret,
        timeout: Duration::from_millis(target.timeout_ms.min(EFFECT_TIMEOUT_MS_MAX)),
        answer_bytes_max: answer_bytes_max(sending),
    })
}

/// The step's headers, and the host's.
fn headers(sending: &Sending) -> Result<Vec<(String, String)>, (Rule, String)> {
    let Sending { entity, effect, .. } = sending;
    for (name, _) in &effect.headers {
        guest_may_set(name).map_err(|why| (Rule::Header, format!("{name:?}: {why}")))?;
    }
    let says = |name: &str| effect.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
    let mut headers = effect.headers.clone();
    let mut set = |name: &str, value: String| headers.push((name.to_owned(), value));
    set("Idempotency-Key", effect.key.clone());
    set("Interlock-Fence-Resource", header_text(&effect.resource));
    set("Interlock-Fencing-Token", effect.token.get().to_string());
    set("Interlock-Entity", header_text(&entity.to_string()));
    set("Interlock-Version", effect.version.get().to_string());
    set("Interlock-Attempt", effect.tries.to_string());
    // A step that carries on a trace names it.
    if !says("traceparent") {
        set("traceparent", traceparent(effect));
    }
    if effect.body.is_some() && !says("content-type") {
        set("Content-Type", "application/json".to_owned());
    }
    Ok(headers)
}

/// A name as a header's value: UTF-8 as it is. What a header cannot hold is percent-encoded: control characters, and
/// a blank at either end, which receivers strip. So is a `%` that two hexadecimal digits follow: no two names are
/// written alike.
fn header_text(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let rest = &name[at + c.len_utf8()..];
        let at_an_end = at == 0 || rest.is_empty();
        let reads_as_encoded = c == '%' && rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
        if c.is_control() || reads_as_encoded || (c.is_whitespace() && at_an_end) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a text cannot fail.
                let _ = write!(text, "%{byte:02X}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// W3C Trace Context, level 1: the trace is the effect, the same over its tries; each try is a span of it.
fn traceparent(effect: &Effect) -> String {
    // A digest of anything is not zero, which the standard forbids, in practice; and the key is 32 hexadecimal digits.
    let trace = Digest::of(&[b"trace", effect.key.as_bytes()]).to_string();
    let span = Digest::of(&[b"span", effect.key.as_bytes(), &effect.tries.to_be_bytes()]).to_string();
    format!("00-{}-{}-01", trace.get(..32).unwrap_or_default(), span.get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::header_text;

    #[test]
    fn names_are_written_as_they_are_unless_a_header_cannot_hold_them() {
        for name in ["pool/gpu-7", "pool/a, b", "pool/größe-λ", "pool/100%", "pool/a%zz", "pool/a  b"] {
            assert_eq!(header_text(name), name);
        }
        assert_eq!(header_text("pool/ "), "pool/%20");
        assert_eq!(header_text(" a"), "%20a");
        assert_eq!(header_text("a\u{a0}"), "a%C2%A0");
        assert_eq!(header_text("a\u{7f}\nb"), "a%7F%0Ab");
    }

    #[test]
    fn no_two_names_are_written_alike() {
        let names = ["a ", "a%20", "a%2520", "a%252520", "a%", "%25", "%", "%%20", "%%", "%2", "% ", "%20", " "];
        for (nth, one) in names.iter().enumerate() {
            for other in &names[nth + 1..] {
                assert_ne!(header_text(one), header_text(other), "{one:?} and {other:?}");
            }
        }
        // The longest name still fits what the receiver's side reads.
        assert!(header_text(&"%00".repeat(66)).len() + 64 <= 512);
    }
}
