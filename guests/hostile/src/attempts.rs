//! One function per attempt. The name says what must stop it.

use crate::bindings::interlock::step::transition::{Change, Checkpoint};
use crate::bindings::interlock::step::types::{
    Appending, Assignment, Condition, ConditionStatus, Mutation, Rejection, Value,
};
use crate::bindings::interlock::step::{effects, fencing, lease, log, timers};
use crate::bindings::{Entity, Failure};
use crate::{Went, change, heard, permanent, rows};
use std::hint::black_box;

type Attempt = fn(&Entity) -> Went;

pub(crate) fn find(name: &str) -> Option<Attempt> {
    ATTEMPTS.iter().find(|(known, _)| *known == name).map(|(_, attempt)| *attempt)
}

/// Every attempt by name; README.md says what becomes of each.
const ATTEMPTS: &[(&str, Attempt)] = &[
    // the right to move
    ("spent", spent),
    ("spent-then-trap", spent_then_trap),
    ("after-the-end-loop", after_the_end_loop),
    ("after-the-end-panic", after_the_end_panic),
    ("after-the-end-failure", after_the_end_failure),
    ("refusal-limit", refusal_limit),
    ("not-allowed", not_allowed),
    ("no-transition", |_| Went::Over(Ok(()))),
    ("fence-loop", |_| loop_for_ever()),
    ("fence-calls", fence_calls),
    ("lease-not-granted", lease_not_granted),
    ("lease-every-import", lease_every_import),
    ("lease-names", lease_names),
    ("lease-times", lease_times),
    ("lease-busy", lease_busy),
    ("lease-refusals", lease_refusals),
    ("lease-lost-loop", lease_lost_loop),
    ("lease-lost-calls", lease_lost_calls),
    ("timer-set", timer_set),
    ("timer-names", timer_names),
    ("timer-not-declared", timer_not_declared),
    ("timer-count", timer_count),
    ("timer-times", timer_times),
    ("effect-names", effect_names),
    ("effect-headers", effect_headers),
    ("effect-params", effect_params),
    ("effect-body", effect_body),
    ("effect-count", effect_count),
    ("effect-not-declared", effect_not_declared),
    ("rows-not-granted", rows::not_granted),
    ("rows-names", rows::names),
    ("rows-filters", rows::filters),
    ("rows-changes", rows::changes),
    ("rows-counts", rows::counts),
    ("rows-refusals", rows::refusals),
    ("rows-after-the-end", rows::after_the_end),
    // what is not a step's to write
    ("desired-is-for-clients", desired_is_for_clients),
    ("version-is-for-the-host", version_is_for_the_host),
    ("condition-of-the-host", condition_of_the_host),
    // documents
    ("not-json", not_json),
    ("schema", schema),
    ("numbers", numbers),
    ("increment-overflow", increment_overflow),
    ("document-size", document_size),
    ("document-depth", document_depth),
    ("hostcall-size", hostcall_size),
    ("control-characters", control_characters),
    ("failure-size", failure_size),
    ("list-size", list_size),
    // time and space
    ("idle-deadline", |_| loop_for_ever()),
    ("idle-deadline-calls", idle_deadline_calls),
    ("total-deadline", total_deadline),
    ("save-limit", save_limit),
    ("log-budget", log_budget),
    ("memory-limit", memory_limit),
    ("stack-limit", stack_limit),
    ("panic", |_| panic!("a step may panic, and only its attempt fails")),
];

// --- The right to move -------------------------------------------------------

fn spent(entity: &Entity) -> Went {
    if let Err(e) = entity.transition(&change("calm")) {
        return Went::Over(Err(permanent(heard(&e))));
    }
    match entity.transition(&change("alarm")) {
        Ok(()) => say("a second transition was accepted"),
        Err(e) => say(&heard(&e)),
    }
    Went::Over(Ok(()))
}

fn spent_then_trap(entity: &Entity) -> Went {
    let _ = spent(entity);
    let _ = entity.transition(&change("alarm"));
    say("a third call was answered");
    Went::Over(Ok(()))
}

fn after_the_end_loop(entity: &Entity) -> Went {
    let _ = entity.transition(&change("calm"));
    loop_for_ever()
}

fn after_the_end_panic(entity: &Entity) -> Went {
    let _ = entity.transition(&change("calm"));
    panic!("after an accepted transition this changes nothing")
}

fn after_the_end_failure(entity: &Entity) -> Went {
    let _ = entity.transition(&change("calm"));
    Went::Over(Err(permanent("after an accepted transition this changes nothing".to_owned())))
}

fn refusal_limit(entity: &Entity) -> Went {
    let mut codes = Vec::new();
    for _ in 0..40 {
        match entity.transition(&change("root")) {
            Ok(()) => return Went::Through("root was entered".to_owned()),
            Err(e) => codes.push(e.code),
        }
    }
    Went::Through(format!("{} refusals were answered", codes.len()))
}

fn not_allowed(entity: &Entity) -> Went {
    all_refused(["root", "attempting", "stopped", "Calm", "", "calm\0"].map(|to| entity.transition(&change(to))))
}

/// For a test that takes the entity away meanwhile: the next call hears `fenced` or traps.
fn fence_calls(entity: &Entity) -> Went {
    while fencing::still_holds(entity) {
        black_box(entity.version());
    }
    match entity.transition(&change("alarm")) {
        Ok(()) => say("a fenced transition was accepted"),
        Err(e) => say(&heard(&e)),
    }
    Went::Over(Ok(()))
}

fn lease_not_granted(entity: &Entity) -> Went {
    all_refused(["master", "", "../x", "a\0b"].map(|name| lease::acquire(entity, name, Some(u64::MAX)).map(drop)))
}

/// What it may, every function of it: what it saw on the way.
fn lease_every_import(entity: &Entity) -> Went {
    match lease_by_lease(entity) {
        Ok(said) => Went::Refused(said),
        Err(e) => Went::Through(heard(&e)),
    }
}

fn lease_by_lease(entity: &Entity) -> Result<Vec<String>, Rejection> {
    let mut said = Vec::new();
    let mut see = |what: &str, is: bool| said.push(format!("{what}: {is}"));
    let desk = lease::acquire(entity, "desk", None)?;
    let token = fencing::lease_token(&desk);
    see("named", desk.name() == "desk");
    see("above the attempt's token", token > fencing::token(entity));
    see("the declared time", (1..=2_000).contains(&desk.left_ms()));
    let again = lease::acquire(entity, "desk", Some(5_000))?;
    see("the same token", fencing::lease_token(&again) == token);
    see("the time it asked for", (2_001..=5_000).contains(&again.left_ms()));
    drop(again);
    see("dropped and held", fencing::still_holds_lease(&desk));
    desk.extend(Some(10_000))?;
    see("extended", (5_001..=10_000).contains(&desk.left_ms()));
    desk.extend(None)?;
    see("as declared again", (1..=2_000).contains(&desk.left_ms()));
    let other = lease::acquire(entity, "desk", None)?;
    lease::Lease::release(desk)?;
    see("held after its release", fencing::still_holds_lease(&other));
    let stale = lease::Lease::release(other).err().map(|no| no.code);
    see("fenced by another release", stale.as_deref() == Some("fenced"));
    let anew = lease::acquire(entity, "desk", None)?;
    see("a higher token", fencing::lease_token(&anew) > token);
    Ok(said)
}

/// Names that are none, and one of a mebibyte.
fn lease_names(entity: &Entity) -> Went {
    let (long, longer) = ("x".repeat(201), "x".repeat(1 << 20));
    all_refused(
        ["", "room-*", "room-\0", "\u{7f}", &long, &longer].map(|name| lease::acquire(entity, name, None).map(drop)),
    )
}

/// Times beyond every bound, of a lease that it may have, and of one that it has.
fn lease_times(entity: &Entity) -> Went {
    let times = [0, 999, 10_001, u64::MAX];
    let taken = times.map(|ttl_ms| lease::acquire(entity, "desk", Some(ttl_ms)).map(drop));
    let Ok(desk) = lease::acquire(entity, "desk", None) else { return Went::Through("it had no desk".to_owned()) };
    let extended = times.map(|ttl_ms| desk.extend(Some(ttl_ms)));
    match (all_refused(taken), all_refused(extended)) {
        (Went::Refused(mut codes), Went::Refused(more)) => {
            codes.extend(more);
            Went::Refused(codes)
        }
        (Went::Refused(_), through) | (through, _) => through,
    }
}

/// One that somebody else has.
fn lease_busy(entity: &Entity) -> Went {
    all_refused([lease::acquire(entity, "room-1", None).map(drop)])
}

fn lease_refusals(entity: &Entity) -> Went {
    for _ in 0..40 {
        let _ = lease::acquire(entity, "nothing", None);
    }
    Went::Through("40 refusals were answered".to_owned())
}

/// For a test that lets its lease run out: it computes on, and asks for nothing.
fn lease_lost_loop(entity: &Entity) -> Went {
    let _desk = lease::acquire(entity, "desk", Some(1_000));
    loop_for_ever()
}

/// The same, and it asks once it has seen that it lost it.
fn lease_lost_calls(entity: &Entity) -> Went {
    let Ok(desk) = lease::acquire(entity, "desk", Some(1_000)) else { return Went::Through("no desk".to_owned()) };
    while desk.left_ms() > 0 {
        black_box(entity.version());
    }
    match save(entity) {
        Ok(()) => say("a save without its lease was accepted"),
        Err(e) => say(&heard(&e)),
    }
    match entity.transition(&change("alarm")) {
        Ok(()) => say("a transition without its lease was accepted"),
        Err(e) => say(&heard(&e)),
    }
    Went::Over(Ok(()))
}

/// What it may: the transition to `calm` carries the timer.
fn timer_set(entity: &Entity) -> Went {
    match timers::after(entity, "bell", 60_000) {
        Ok(()) => Went::Refused(vec!["staged".to_owned()]),
        Err(e) => Went::Through(heard(&e)),
    }
}

/// Names that are none, and one of a mebibyte.
fn timer_names(entity: &Entity) -> Went {
    let long = "x".repeat(1 << 20);
    all_refused(["", "Bell", "../bell", "bell\0", long.as_str()].map(|name| timers::after(entity, name, 1)))
}

/// Names that are good, of timers that the state it enters does not leave to steps.
fn timer_not_declared(entity: &Entity) -> Went {
    all_refused(
        ["alarm", "after"].map(|name| timers::after(entity, name, 1).and_then(|()| entity.transition(&change("calm")))),
    )
}

/// One name more than a commit carries; those before are carried, and judged by the commit.
fn timer_count(entity: &Entity) -> Went {
    let staged: Vec<_> = (0..17).map(|nth| timers::cancel(entity, &format!("bell-{nth}"))).collect();
    let refused = staged.into_iter().filter_map(Result::err).collect::<Vec<_>>();
    let committed = entity.transition(&change("calm"));
    all_refused([refused.into_iter().next().map_or(Ok(()), Err), committed])
}

/// Times beyond every bound.
fn timer_times(entity: &Entity) -> Went {
    let after = timers::after(entity, "bell", u64::MAX).and_then(|()| entity.transition(&change("calm")));
    let at = timers::at(entity, "bell", i64::MAX).and_then(|()| entity.transition(&change("calm")));
    all_refused([after, at])
}

fn outbound(target: &str) -> effects::Outbound {
    effects::Outbound { target: target.to_owned(), params: Vec::new(), headers: Vec::new(), body: None }
}

/// Targets under names that are none, one of them a mebibyte.
fn effect_names(entity: &Entity) -> Went {
    let long = "x".repeat(1 << 20);
    let names = ["", "Tickets", "../tickets", "https://evil.example.com/", "tickets\0", long.as_str()];
    all_refused(names.map(|name| effects::request(entity, &outbound(name))))
}

/// Headers that are the host's, the connection's or the target's secret, and those that would end a header.
fn effect_headers(entity: &Entity) -> Went {
    let set = |name: &str, value: &str| {
        let headers = vec![(name.to_owned(), value.to_owned())];
        effects::request(entity, &effects::Outbound { headers, ..outbound("tickets") })
    };
    all_refused([
        set("Authorization", "Bearer stolen"),
        set("HOST", "evil.example.com"),
        set("idempotency_key", "of another"),
        set("Interlock-Fencing-Token", "9007199254740991"),
        set("Transfer-Encoding", "chunked"),
        set("Cookie", "session=1"),
        set("", "x"),
        set("x\r\nHost", "evil.example.com"),
        set("X-Note", "one\r\nHost: evil.example.com"),
        set("X-Note", "caf\u{e9}"),
        effects::request(
            entity,
            &effects::Outbound {
                headers: (0..17).map(|nth| (format!("x-{nth}"), String::new())).collect(),
                ..outbound("tickets")
            },
        ),
    ])
}

/// A parameter of a mebibyte, many small ones, and two of one name.
fn effect_params(entity: &Entity) -> Went {
    let fill =
        |params: Vec<(String, String)>| effects::request(entity, &effects::Outbound { params, ..outbound("tickets") });
    all_refused([
        fill(vec![("project".to_owned(), "x".repeat(1 << 20))]),
        fill((0..10_000).map(|nth| (format!("p{nth}"), "x".to_owned())).collect()),
        fill(["atlas", "../admin"].map(|value| ("project".to_owned(), value.to_owned())).to_vec()),
    ])
}

/// Bodies that are no JSON, too long or too deep.
fn effect_body(entity: &Entity) -> Went {
    let send = |body: String| effects::request(entity, &effects::Outbound { body: Some(body), ..outbound("tickets") });
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    all_refused([
        send(String::new()),
        send("{".to_owned()),
        send("{} {}".to_owned()),
        send("1e999".to_owned()),
        send(nested(100_000)),
        send(format!("\"{}\"", "x".repeat(300 << 10))),
    ])
}

/// One request more than a commit carries; those before are carried, and judged by the commit.
fn effect_count(entity: &Entity) -> Went {
    let staged: Vec<_> = (0..17).map(|_| effects::request(entity, &outbound("tickets"))).collect();
    let refused = staged.into_iter().filter_map(Result::err).collect::<Vec<_>>();
    let committed = entity.transition(&change("calm"));
    all_refused([refused.into_iter().next().map_or(Ok(()), Err), committed])
}

/// A good name of a target that the machine does not have.
fn effect_not_declared(entity: &Entity) -> Went {
    all_refused([effects::request(entity, &outbound("tickets")).and_then(|()| entity.transition(&change("calm")))])
}

// --- What is not a step's to write -------------------------------------------

fn desired_is_for_clients(entity: &Entity) -> Went {
    all_refused(["desired.image", "desired", "event.name"].map(|field| put(entity, field, "\"mine\"")))
}

fn version_is_for_the_host(entity: &Entity) -> Went {
    let fields = ["version", "entity.version", "state", "token", "lock", "generation", "execution", "row.x", "", "."];
    all_refused(fields.map(|field| put(entity, field, "99")))
}

fn condition_of_the_host(entity: &Entity) -> Went {
    let condition = Condition {
        type_: "interlock/execution".to_owned(),
        status: ConditionStatus::True,
        reason: "Fine".to_owned(),
        message: "nothing to see here".to_owned(),
    };
    all_refused([entity.transition(&Change { conditions: vec![condition], ..change("alarm") })])
}

// --- Documents ----------------------------------------------------------------

fn not_json(entity: &Entity) -> Went {
    let texts = ["", "{", "{\"name\":}", "nul", "{} {}", "'a'", "NaN", "\u{feff}{}", "\"\\ud800\""];
    all_refused(texts.map(|text| data(entity, text.to_owned())))
}

fn schema(entity: &Entity) -> Went {
    let texts = ["null", "{}", "[]", r#"{"name":1,"said":[]}"#, r#"{"name":"x","said":[],"root":true}"#];
    all_refused(texts.map(|text| data(entity, text.to_owned())))
}

fn numbers(entity: &Entity) -> Went {
    let numbers = ["1e999", "-1e999", "18446744073709551616", "-9223372036854775809", "01", "0x1", "1."];
    all_refused(numbers.map(|number| data(entity, format!(r#"{{"name":"x","said":[],"number":{number}}}"#))))
}

fn increment_overflow(entity: &Entity) -> Went {
    let add = |number: &str| Mutation::Increment(assignment("data.number", number));
    let most = "9223372036854775807";
    let sets = [
        vec![add(most), add(most), add(most)],
        vec![Mutation::Remove("data.number".to_owned()), add("18446744073709551615"), add("1")],
        vec![add("\"one\"")],
        vec![add("1e999")],
    ];
    all_refused(sets.map(|set| entity.transition(&Change { set, ..change("alarm") })))
}

fn document_size(entity: &Entity) -> Went {
    let filler = "x".repeat(300 << 10);
    all_refused([data(entity, format!(r#"{{"name":"{filler}","said":[]}}"#))])
}

fn document_depth(entity: &Entity) -> Went {
    let nested = |depth: usize| format!(r#"{{"name":{}{},"said":[]}}"#, "[".repeat(depth), "]".repeat(depth));
    all_refused([1_000, 100_000].map(|depth| data(entity, nested(depth))))
}

fn hostcall_size(entity: &Entity) -> Went {
    let filler = "x".repeat(12 << 20);
    all_refused([data(entity, format!(r#"{{"name":"{filler}","said":[]}}"#))])
}

fn control_characters(entity: &Entity) -> Went {
    let message = "one\nERROR forged line\r\u{1b}[2Jcleared\0\u{202e}reversed";
    log::write(log::Level::Info, message, &[("key\n".to_owned(), message.to_owned())]);
    let raw = format!("{{\"name\":\"{}\",\"said\":[]}}", '\u{1}');
    match data(entity, raw) {
        Ok(()) => Went::Through("a raw control character is no JSON".to_owned()),
        // Escaped it is a text like any other, and must come out escaped wherever it is shown.
        Err(e) => Went::Refused(vec![heard(&e), message.to_owned()]),
    }
}

fn failure_size(_: &Entity) -> Went {
    let code = "c\n".repeat(1 << 10);
    let reason = "r\0".repeat(256 << 10);
    Went::Over(Err(Failure { permanent: false, code, reason, retry_after_ms: Some(u64::MAX) }))
}

fn list_size(entity: &Entity) -> Went {
    let one = || {
        Mutation::Append(Appending {
            field: "data.said".to_owned(),
            value: Value::Json("\"x\"".to_owned()),
            limit: u32::MAX,
        })
    };
    let set = (0..50_000).map(|_| one()).collect();
    all_refused([entity.transition(&Change { set, ..change("alarm") })])
}

// --- Time and space -----------------------------------------------------------

fn loop_for_ever() -> Went {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// Calls that read are no progress.
fn idle_deadline_calls(entity: &Entity) -> Went {
    loop {
        black_box((entity.version(), entity.data()));
    }
}

/// Saving is progress, so that only the total deadline is left.
fn total_deadline(entity: &Entity) -> Went {
    loop {
        let pause = entity.deadline_ms().saturating_sub(500);
        while entity.deadline_ms() > pause {
            black_box(0);
        }
        if let Err(e) = save(entity) {
            return Went::Over(Err(permanent(heard(&e))));
        }
    }
}

fn save_limit(entity: &Entity) -> Went {
    for n in 1..=1_100 {
        if let Err(e) = save(entity) {
            return Went::Refused(vec![format!("save {n}"), heard(&e)]);
        }
    }
    Went::Through("1,100 saves were accepted".to_owned())
}

fn log_budget(_: &Entity) -> Went {
    let line = "x".repeat(64 << 10);
    for _ in 0..10_000 {
        log::write(log::Level::Error, &line, &[]);
    }
    Went::Refused(vec!["600 MiB were logged".to_owned()])
}

fn memory_limit(_: &Entity) -> Went {
    let mut all = Vec::new();
    loop {
        all.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn stack_limit(_: &Entity) -> Went {
    #[expect(unconditional_recursion, reason = "the attempt itself")]
    fn deeper(n: u64) -> u64 {
        let here = black_box([n; 64]);
        deeper(n + 1) + here[7]
    }
    Went::Through(format!("{} levels", deeper(0)))
}

// --- Helpers --------------------------------------------------------------------

/// Each of these must be refused.
pub(crate) fn all_refused<const N: usize>(answers: [Result<(), Rejection>; N]) -> Went {
    let mut codes = Vec::new();
    for (n, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(()) => return Went::Through(format!("number {n} was accepted")),
            Err(e) => codes.push(heard(&e)),
        }
    }
    Went::Refused(codes)
}

fn assignment(field: &str, json: &str) -> Assignment {
    Assignment { field: field.to_owned(), value: Value::Json(json.to_owned()) }
}

fn put(entity: &Entity, field: &str, json: &str) -> Result<(), Rejection> {
    let set = vec![Mutation::Set(assignment(field, json))];
    entity.transition(&Change { set, ..change("alarm") })
}

fn data(entity: &Entity, text: String) -> Result<(), Rejection> {
    entity.transition(&Change { data: Some(text), ..change("alarm") })
}

fn save(entity: &Entity) -> Result<(), Rejection> {
    entity.save(&Checkpoint { data: None, outputs: None, set: Vec::new(), conditions: Vec::new() })
}

pub(crate) fn say(line: &str) {
    log::write(log::Level::Warn, line, &[]);
}
