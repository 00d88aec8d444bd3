//! Guards: total, and what the rules say, which are written here a second time.
//!
//! ```text
//! data {"n": 1}
//! event {"size": 4}
//! event.size ne data.n
//! or
//! data.n in [1, 2]
//! ```

use super::{holds, script};
use crate::target::{Broken, Seen, Target};
use interlock_kernel::doc::Doc;
use interlock_kernel::time::WallTime;
use interlock_kernel::value::{Comparison, Filter, Operator, Path, Root, Roots, Source, Value, Verdict};
use serde_json::Value as Json;
use std::cmp::Ordering;

/// See the module.
pub(crate) struct Guard;

const WORDS: &str = "\
    event¦desired¦data¦outputs¦row¦\nor\n¦now¦now+5m¦execution¦event.a¦data.a¦data.b¦data.a[0]¦ eq ¦ ne ¦ lt ¦ le ¦ gt ¦ ge ¦ in ¦ not-in ¦ exists ¦ contains ¦ starts-with ¦\
    true¦false¦null¦{}¦[]¦{\"a\": 1}¦[1, 2.0, \"x\"]¦\"x\"¦\"\"¦1.0¦0.5¦-0.0¦1e19¦-1e19¦1.8446744073709552e19¦\
    9007199254740992.0¦9007199254740993¦5e-324¦\n";

/// Comparisons judged of one input: more only repeat.
const COMPARISONS_MAX: usize = 64;

#[derive(Default)]
struct Scene {
    event: Option<Json>,
    desired: Option<Json>,
    data: Option<Json>,
    outputs: Option<Json>,
    row: Option<Json>,
    any: Vec<Vec<Comparison>>,
}

impl Scene {
    fn read(text: &str) -> Self {
        let mut scene = Self { any: vec![Vec::new()], ..Self::default() };
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let slot = match word {
                "event" => &mut scene.event,
                "desired" => &mut scene.desired,
                "data" => &mut scene.data,
                "outputs" => &mut scene.outputs,
                "row" => &mut scene.row,
                "or" => {
                    scene.any.push(Vec::new());
                    continue;
                }
                _ => {
                    let room = scene.any.iter().map(Vec::len).sum::<usize>() < COMPARISONS_MAX;
                    let one = script::comparison(line).filter(|_| room);
                    scene.any.last_mut().into_iter().for_each(|all| all.extend(one.clone()));
                    continue;
                }
            };
            *slot = Doc::parse(rest).ok().map(|doc| doc.value().clone());
        }
        scene
    }

    fn roots(&self) -> Roots<'_> {
        Roots {
            event: self.event.as_ref(),
            desired: self.desired.as_ref(),
            data: self.data.as_ref(),
            outputs: self.outputs.as_ref(),
            row: self.row.as_ref(),
            execution: Some("m/k@1.1"),
            now: Some(WallTime(1_000)),
        }
    }

    fn find(&self, path: &Path) -> Option<&Json> {
        path.find(match path.root {
            Root::Event => self.event.as_ref(),
            Root::Desired => self.desired.as_ref(),
            Root::Data => self.data.as_ref(),
            Root::Outputs => self.outputs.as_ref(),
            Root::Row => self.row.as_ref(),
        }?)
    }

    fn value(&self, value: &Value) -> Option<Json> {
        match value {
            Value::Json(doc) => Some(doc.value().clone()),
            Value::From(Source::Now(ms)) => Some(Json::from(1_000_i64.saturating_add(*ms))),
            Value::From(Source::Execution) => Some(Json::from("m/k@1.1")),
            Value::From(Source::Field(path)) => self.find(path).cloned(),
        }
    }
}

impl Target for Guard {
    fn name(&self) -> &'static str {
        "guard"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let scene = Scene::read(&String::from_utf8_lossy(input));
        let mut seen = Seen::default();
        let mut any = false;
        for all in &scene.any {
            let mut every = true;
            for one in all {
                every &= judged(&scene, one, &mut seen)?;
            }
            any |= every;
        }
        let filter = Filter { any: scene.any.clone() };
        let verdict = filter.judge(&scene.roots(), &mut 0);
        holds!((verdict == Verdict::Holds) == any, "any of its alternatives holds: {any}, and yet {verdict:?}");
        let empty = Filter::default().judge(&scene.roots(), &mut 0);
        holds!(empty == Verdict::Holds, "a guard without comparisons: {empty:?}");
        seen.note(&("alternatives", scene.any.len().min(3), any));
        Ok(seen)
    }
}

/// One comparison, judged by the kernel and by the rules as they are written here.
fn judged(scene: &Scene, one: &Comparison, seen: &mut Seen) -> Result<bool, Broken> {
    let (field, value) = (scene.find(&one.field), scene.value(&one.value));
    let (expected, mismatch) = rule(one.operator, field, value.as_ref());
    let mut mismatches = 0;
    let verdict = Filter { any: vec![vec![one.clone()]] }.judge(&scene.roots(), &mut mismatches);
    let got = verdict == Verdict::Holds;
    holds!(got == expected, "{one} of {field:?} and {value:?}: expected {expected}, got {verdict:?}");
    holds!((mismatches == 1) == mismatch, "{one} of {field:?} and {value:?}: {mismatches} mismatches");
    if let Verdict::Fails { expected, got } = &verdict {
        holds!(*expected == one.to_string() && got.len() <= 1_024, "{one}: {} bytes: {got}", got.len());
    }
    let kind = |value: Option<&Json>| value.map(std::mem::discriminant);
    seen.note(&(one.operator.name(), kind(field), kind(value.as_ref()), expected, mismatch));
    Ok(got)
}

/// Whether a comparison holds, and whether it met types that it cannot compare.
fn rule(operator: Operator, field: Option<&Json>, value: Option<&Json>) -> (bool, bool) {
    let plain = |holds: bool| (holds, false);
    let or_mismatch = |known: Option<bool>| (known.unwrap_or(false), known.is_none());
    let (Some(value), field) = (value, field) else { return plain(false) };
    if let (Operator::Exists, Json::Bool(wanted)) = (operator, value) {
        return plain(*wanted == field.is_some());
    }
    let Some(field) = field else { return plain(false) };
    let ordered = |wanted: &[Ordering]| or_mismatch(order(field, value).map(|order| wanted.contains(&order)));
    match operator {
        Operator::Eq => plain(equal(field, value)),
        Operator::Ne => plain(!equal(field, value)),
        Operator::Lt => ordered(&[Ordering::Less]),
        Operator::Le => ordered(&[Ordering::Less, Ordering::Equal]),
        Operator::Gt => ordered(&[Ordering::Greater]),
        Operator::Ge => ordered(&[Ordering::Greater, Ordering::Equal]),
        Operator::In => or_mismatch(value.as_array().map(|items| items.iter().any(|item| equal(item, field)))),
        Operator::NotIn => or_mismatch(value.as_array().map(|items| items.iter().all(|item| !equal(item, field)))),
        Operator::Exists => or_mismatch(None),
        Operator::Contains => or_mismatch(match (field, value) {
            (Json::Array(items), wanted) => Some(items.iter().any(|item| equal(item, wanted))),
            (Json::String(text), Json::String(part)) => Some(text.contains(part.as_str())),
            _ => None,
        }),
        Operator::StartsWith => or_mismatch(match (field, value) {
            (Json::String(text), Json::String(part)) => Some(text.starts_with(part.as_str())),
            _ => None,
        }),
    }
}

fn equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(_), Json::Number(_)) => order(a, b) == Some(Ordering::Equal),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.keys().eq(b.keys()) && a.values().zip(b.values()).all(|(a, b)| equal(a, b))
        }
        _ => a == b,
    }
}

fn order(a: &Json, b: &Json) -> Option<Ordering> {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => {
            let ((minus_a, a), (minus_b, b)) = (decimal(a), decimal(b));
            Some(match (minus_a, minus_b) {
                (false, false) => a.cmp(&b),
                (true, true) => b.cmp(&a),
                (false, true) => Ordering::Greater,
                (true, false) => Ordering::Less,
            })
        }
        (Json::String(a), Json::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// A number's sign and all of its digits, the same count before and behind the point, so that text orders them.
fn decimal(number: &serde_json::Number) -> (bool, String) {
    let text = match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => format!("{float:.1074}"),
        None => format!("{number}."),
    };
    let (minus, text) = text.strip_prefix('-').map_or((false, text.as_str()), |rest| (true, rest));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole:0>310}{part:0<1074}");
    let zero = digits.bytes().all(|digit| digit == b'0');
    (minus && !zero, digits)
}
