//! Names, ids, paths, sources and durations: what is read is shown as it was written, and read again the same.

use super::holds;
use crate::target::{Broken, Seen, Target};
use interlock_kernel::ids::{EntityId, EntityKey, EventId, ExecutionRef, MachineName, Name};
use interlock_kernel::limits::{DEPTH_MAX, EVENT_ID_BYTES_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX};
use interlock_kernel::value::{Operator, Path, Segment, Source, parse_ms};
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// See the module.
pub(crate) struct Names;

const WORDS: &str = "\
    event¦desired¦data¦outputs¦row¦now¦execution¦now+¦now-¦.¦[¦]¦[0]¦\\¦\\.¦\\[¦\\\\¦ms¦s¦m¦h¦d¦5m¦500ms¦7d¦/¦@¦\
    .1¦-¦a¦é¦\u{0}¦\u{7f}¦\u{85}¦eq¦not-in¦starts-with¦[4294967296]¦now+106751991167d¦9223372036854775807ms";

impl Target for Names {
    fn name(&self) -> &'static str {
        "names"
    }

    fn words(&self) -> &'static str {
        WORDS
    }

    fn run(&self, input: &[u8]) -> Result<Seen, Broken> {
        let text = &*String::from_utf8_lossy(input);
        let mut seen = Seen::default();
        as_written::<MachineName>(text, &mut seen)?;
        as_written::<EntityId>(text, &mut seen)?;
        names(text, &mut seen)?;
        execution(text, &mut seen)?;
        path(text, &mut seen)?;
        source(text, &mut seen)?;
        if let Ok(operator) = text.parse::<Operator>() {
            holds!(operator.name() == text, "{text:?} is {}", operator.name());
        }
        match parse_ms(text) {
            Ok(ms) => {
                let again = parse_ms(&format!("{ms}ms"));
                holds!(again == Ok(ms), "{text:?} is {ms} ms, and that is {again:?}");
                let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
                holds!(digits.parse::<u64>().is_ok_and(|count| count <= ms), "{text:?} is only {ms} ms");
                seen.size("duration", usize::try_from(ms).unwrap_or(usize::MAX));
            }
            Err(why) => seen.say(&why),
        }
        Ok(seen)
    }
}

/// What is read shows itself as it was written; what is refused says why in bounded words.
fn as_written<T>(text: &str, seen: &mut Seen) -> Result<Option<T>, Broken>
where
    T: FromStr<Err: Display> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(read) => {
            holds!(read.to_string() == text, "{text:?} is shown as {read}");
            holds!(read.to_string().parse().ok().as_ref() == Some(&read), "{read:?} is not read again");
            seen.note(&(std::any::type_name::<T>(), true));
            Ok(Some(read))
        }
        Err(why) => {
            let why = why.to_string();
            holds!(why.len() < 2_000, "a refusal of {} bytes", why.len());
            seen.say(&why);
            Ok(None)
        }
    }
}

fn names(text: &str, seen: &mut Seen) -> Result<(), Broken> {
    let slug = |text: &str| {
        let mut bytes = text.bytes();
        bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && text.len() <= NAME_BYTES_MAX
    };
    let plain = |most: usize| (1..=most).contains(&text.len()) && !text.chars().any(char::is_control);
    let name = as_written::<Name>(text, seen)?.is_some();
    holds!(name == slug(text), "{text:?} is a name: {name}");
    let key = as_written::<EntityKey>(text, seen)?.is_some();
    holds!(key == (plain(KEY_BYTES_MAX) && !text.contains('@')), "{text:?} is a key: {key}");
    let id = as_written::<EventId>(text, seen)?.is_some();
    holds!(id == plain(EVENT_ID_BYTES_MAX), "{text:?} is an event id: {id}");
    Ok(())
}

/// An execution's id is its entity's, its incarnation's and its own number; the key may hold any of its signs but `@`.
fn execution(text: &str, seen: &mut Seen) -> Result<(), Broken> {
    let Ok(ExecutionRef { entity, incarnation, ordinal }) = text.parse() else { return Ok(()) };
    let shown = format!("{entity}@{incarnation}.{ordinal}");
    let again = shown.parse::<ExecutionRef>();
    holds!(again == Ok(ExecutionRef { entity, incarnation, ordinal }), "{text:?} is {shown}, and that is {again:?}");
    seen.note(&"execution");
    Ok(())
}

fn path(text: &str, seen: &mut Seen) -> Result<(), Broken> {
    let Some(path) = as_written::<Path>(text, seen)? else { return Ok(()) };
    holds!(path.segments.len() <= DEPTH_MAX, "{} segments", path.segments.len());
    holds!(path.segments.iter().all(|one| *one != Segment::Field(String::new())), "an empty field: {path:?}");
    // Written anew from its parts it leads the same way.
    let written = Path::new(path.root, path.segments.clone()).to_string();
    let again = written.parse::<Path>()?;
    holds!(again.root == path.root && again.segments == path.segments, "{text:?} and {written:?} lead apart");
    seen.size("segments", path.segments.len());
    Ok(())
}

fn source(text: &str, seen: &mut Seen) -> Result<(), Broken> {
    match text.parse::<Source>() {
        Ok(source) => {
            let shown = source.to_string();
            let again = shown.parse::<Source>();
            holds!(again.as_ref() == Ok(&source), "{text:?} is shown as {shown}, and that is {again:?}");
            seen.note(&("source", std::mem::discriminant(&source)));
        }
        Err(why) => {
            holds!(why.len() < 2_000, "a refusal of {} bytes", why.len());
            seen.say(&why);
        }
    }
    Ok(())
}
