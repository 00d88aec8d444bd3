//! Steps that do not behave: `data.name` says which. README.md has the list, and what stops each.
//!
//! A step that was refused as it should be goes to `calm` and says what it heard; one that got
//! through with something goes to `alarm`; the others are stopped by the host.

#![allow(clippy::result_large_err, reason = "a rejection is as large as the contract makes it")]

mod attempts;
mod rows;

use bindings::interlock::step::transition::Change;
use bindings::interlock::step::types::Rejection;
use bindings::{Entity, Event, Failure, Guest};
use serde_json::{Value, json};

#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "step-with-everything" });
}

/// How an attempt went, as far as it can tell itself.
enum Went {
    /// Everything was refused; these are the codes.
    Refused(Vec<String>),
    /// This was accepted and must not be.
    Through(String),
    /// The step ends here, whatever that means.
    Over(Result<(), Failure>),
}

struct Hostile;

impl Guest for Hostile {
    fn run(_step: String, entity: Entity, _event: Event) -> Result<(), Failure> {
        let data: Value = entity.data().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let name = data["name"].as_str().unwrap_or_default();
        let Some(attempt) = attempts::find(name) else {
            return Err(permanent(format!("there is no attempt {name:?}")));
        };
        let (to, said) = match attempt(&entity) {
            Went::Refused(codes) => ("calm", codes),
            Went::Through(what) => ("alarm", vec![what]),
            Went::Over(end) => return end,
        };
        let data = Some(json!({ "name": name, "said": said }).to_string());
        entity.transition(&Change { data, ..change(to) }).map_err(|e| permanent(heard(&e)))
    }
}

fn change(to: &str) -> Change {
    Change { to: to.to_owned(), data: None, outputs: None, set: Vec::new(), conditions: Vec::new() }
}

/// A rejection in one line: its code, and what it says about it.
fn heard(rejection: &Rejection) -> String {
    let Rejection { code, subject, expected, got, .. } = rejection;
    let line = format!("{code}: {subject}: expected {expected}, got {got}");
    line.chars().take(200).collect()
}

fn permanent(reason: String) -> Failure {
    Failure { permanent: true, code: "hostile".to_owned(), reason, retry_after_ms: None }
}

#[allow(unsafe_code, reason = "the export itself, generated")]
mod export {
    use super::{Hostile, bindings};
    bindings::export!(Hostile with_types_in bindings);
}
