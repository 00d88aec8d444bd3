//! What a step may ask to be requested outside.

use super::{Handle, Refusal, words};
use interlock_courier::guest_may_set;
use interlock_kernel::command::StagedEffect;
use interlock_kernel::ids::BadName;
use interlock_kernel::limits::{EFFECT_BYTES_MAX, EFFECT_HEADERS_MAX, EFFECTS_STAGED_MAX};
use interlock_kernel::rejection::{Code, Rejection};
use std::collections::BTreeMap;

/// A request in a step's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The target.
    pub target: String,
    /// What the placeholders of its URL stand for.
    pub params: Vec<(String, String)>,
    /// Headers to add.
    pub headers: Vec<(String, String)>,
    /// The body, as JSON text.
    pub body: Option<String>,
}

impl Handle {
    /// Stages a request for the next save or transition: whether there is such a target, and room, is judged by
    /// then.
    ///
    /// # Errors
    /// [`Refusal`]. What was staged before stays.
    pub fn stage_effect(&mut self, asked: Asked) -> Result<(), Refusal> {
        self.may_ask()?;
        let staged = read(asked).map_err(|no| self.refuse(no))?;
        let effects = &mut self.stage.effects;
        if effects.len() >= EFFECTS_STAGED_MAX {
            let expected = format!("at most {EFFECTS_STAGED_MAX} effects of one commit (effects_staged_max)");
            return Err(self.refuse(Rejection::new(Code::Limit, "effects", expected, "one more")));
        }
        effects.push(staged);
        Ok(())
    }
}

fn read(asked: Asked) -> Result<StagedEffect, Rejection> {
    // Before anything of it is kept: the commit would refuse it anyway.
    let pairs = asked.params.iter().chain(&asked.headers);
    let bytes = pairs.fold(0_usize, |sum, (name, value)| sum.saturating_add(name.len()).saturating_add(value.len()));
    if bytes > EFFECT_BYTES_MAX {
        let expected = format!("at most {EFFECT_BYTES_MAX} bytes of params and headers (effect_bytes_max)");
        return Err(Rejection::new(Code::Limit, "params", expected, format!("{bytes} bytes")));
    }
    let target =
        asked.target.parse().map_err(|bad: BadName| Rejection::new(Code::Invalid, "target", bad.expected, bad.got))?;
    let mut fill = BTreeMap::new();
    for (name, value) in asked.params {
        if let Some(first) = fill.insert(name.clone(), value) {
            let subject = format!("params.{name}");
            return Err(Rejection::new(
                Code::Invalid,
                subject,
                "one value of a name",
                format!("a second, after {first:?}"),
            ));
        }
    }
    if asked.headers.len() > EFFECT_HEADERS_MAX {
        let expected = format!("at most {EFFECT_HEADERS_MAX} headers (effect_headers_max)");
        return Err(Rejection::new(Code::Limit, "headers", expected, asked.headers.len()));
    }
    for (name, value) in &asked.headers {
        let subject = format!("headers.{}", name.escape_debug());
        guest_may_set(name)
            .map_err(|why| Rejection::new(Code::Denied, &subject, "a header that a step may set", why))?;
        if value.chars().any(|letter| letter.is_control() || !letter.is_ascii()) {
            let (expected, got) = ("printable ASCII", format!("{value:?}"));
            return Err(Rejection::new(Code::Invalid, subject, expected, got));
        }
    }
    let body = asked.body.map(|text| words::document(&text, "body")).transpose()?;
    Ok(StagedEffect { target, fill, headers: asked.headers, body })
}
