//! Mutations: total, exact, bounded, and nothing beside the field that is named.
//!
//! ```text
//! data {"n": 1, "log": []}
//! event {"by": 2}
//! data.n += event.by
//! data.log << "x"
//! ```

use super::{holds, script};
use crate::target::{Broken, Seen, Target};
use interlock_kernel::doc::Doc;
use interlock_kernel::limits::APPEND_MAX;
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Mutation, Operation, Root, Roots, Segment};
use serde_json::Value as Json;

/// See the module.
pub(crate) struct Changes;

const WORDS: &str = "\
    data¦outputs¦event¦data.a¦data.a.b¦data.a[0]¦outputs.a¦data.a\\.b¦ = ¦ += ¦ << ¦ <<0 ¦ <<1 ¦ max ¦ min ¦ remove¦\
    event.x¦data¦now¦now-5m¦execution¦null¦{}¦[]¦[1,2,3]¦{\"a\": {\"b\": 1}}¦\"x\"¦1¦-1¦0.5¦1e308¦\
    9223372036854775807¦18446744073709551615¦\n";

/// A document that has grown past this is not changed further: bounds are checked where a change is decided.
const GROWN: usize = 16 * 1024;

impl Target for Changes {
    fn name(&self) -> &'static str {
        "change"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let mut seen = Seen::default();
        let (mut data, mut outputs, mut event) = (Json::Null, Json::Null, None);
        for line in String::from_utf8_lossy(input).lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let given = || Doc::parse(rest).ok().map(|doc| doc.value().clone());
            match word {
                "data" if given().is_some() => data = given().unwrap_or_default(),
                "outputs" if given().is_some() => outputs = given().unwrap_or_default(),
                "event" => event = given(),
                _ => {
                    let Some(one) = script::mutation(line) else { continue };
                    let (before, others) = ((data.clone(), outputs.clone()), event.as_ref());
                    let roots = Roots {
                        event: others,
                        data: Some(&before.0),
                        outputs: Some(&before.1),
                        execution: Some("m/k@1.1"),
                        now: Some(WallTime(1_000)),
                        ..Roots::default()
                    };
                    let document = match one.field.root {
                        Root::Data => &mut data,
                        Root::Outputs => &mut outputs,
                        Root::Event | Root::Desired | Root::Row => continue,
                    };
                    if !applied(&one, document, &roots, &mut seen)? || document.to_string().len() > GROWN {
                        break;
                    }
                }
            }
        }
        Ok(seen)
    }
}

/// Whether a mutation was applied; a refused one leaves the document unusable.
fn applied(one: &Mutation, document: &mut Json, roots: &Roots<'_>, seen: &mut Seen) -> Result<bool, Broken> {
    let before = document.clone();
    let result = one.apply(document, roots);
    let kind = |value: Option<&Json>| value.map(std::mem::discriminant);
    let value = roots.value(&one.value);
    seen.note(&(
        std::mem::discriminant(&one.operation),
        kind(one.field.find(&before)),
        kind(value.as_ref()),
        one.field.segments.len().min(3),
        result.is_ok(),
    ));
    if let Err(why) = result {
        // Without the path, which is the input's own.
        seen.say(why.rsplit("expected ").next().unwrap_or_default());
        return Ok(false);
    }
    let (old, new) = (one.field.find(&before), one.field.find(document));
    let said = || format!("{one:?} of {before} gave {document}");
    let added = value.as_ref();
    match one.operation {
        Operation::Set => holds!(new == added, "not what was set: {}", said()),
        Operation::Increment => {
            let zero = Json::from(0);
            let whole = |number: &Json| number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            if let (Some(a), Some(b)) = (whole(old.unwrap_or(&zero)), added.and_then(whole)) {
                holds!(new.and_then(whole) == Some(a + b), "not the sum: {}", said());
            } else {
                holds!(new.and_then(Json::as_f64).is_some_and(f64::is_finite), "no finite sum: {}", said());
            }
        }
        Operation::Remove => {
            let gone = !matches!(one.field.segments.last(), Some(Segment::Field(_))) || new.is_none();
            holds!(gone, "still there: {}", said());
        }
        Operation::Append { max } => {
            let items = new.and_then(Json::as_array).ok_or_else(said)?;
            holds!(items.len() <= max.min(APPEND_MAX), "{} elements: {}", items.len(), said());
            holds!(max == 0 || items.last() == added, "not at its end: {}", said());
        }
        Operation::Max | Operation::Min => {
            holds!(new == added || new == old, "neither of both: {}", said());
        }
    }
    beside(one, &before, document)?;
    let canonical = Doc::new(document.clone());
    holds!(serde_json::from_str::<Json>(canonical.text()).is_ok() || canonical.depth() > 127, "no JSON: {canonical}");
    Ok(true)
}

/// What stands beside the field's way is as it was.
fn beside(one: &Mutation, before: &Json, after: &Json) -> Result<(), Broken> {
    let (Some(Segment::Field(first)), Some(before), Some(after)) =
        (one.field.segments.first(), before.as_object(), after.as_object())
    else {
        return Ok(());
    };
    let rest = |fields: &serde_json::Map<String, Json>| {
        let mut fields = fields.clone();
        fields.remove(first);
        fields
    };
    holds!(rest(before) == rest(after), "{one:?} changed what stands beside {first}: {before:?}, {after:?}");
    Ok(())
}
