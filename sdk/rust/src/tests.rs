//! Conversions and dispatch. Rules are the host's and are tested there: this host says yes to
//! everything but what it was told to refuse, and writes down what it was asked.

use crate::*;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

#[derive(Default)]
struct Scripted {
    data: Option<&'static str>,
    desired: Option<&'static str>,
    refusal: Option<Rejection>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl Scripted {
    fn ask(&self, what: String) -> Result<(), Rejection> {
        self.asked.borrow_mut().push(what);
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

impl Host for Scripted {
    fn id(&self) -> String {
        "resource/gpu-7".to_owned()
    }
    fn key(&self) -> String {
        "gpu-7".to_owned()
    }
    fn execution(&self) -> String {
        "resource/gpu-7@3.1".to_owned()
    }
    fn attempt(&self) -> u32 {
        2
    }
    fn state(&self) -> String {
        "planning".to_owned()
    }
    fn version(&self) -> u64 {
        2
    }
    fn desired(&self) -> Option<String> {
        self.desired.map(str::to_owned)
    }
    fn data(&self) -> Option<String> {
        self.data.map(str::to_owned)
    }
    fn outputs(&self) -> Option<String> {
        None
    }
    fn cancel_requested(&self) -> bool {
        false
    }
    fn deadline_ms(&self) -> u64 {
        1_500
    }
    fn reload(&self) -> Result<(), Rejection> {
        self.ask("reload".to_owned())
    }
    fn save(&self, checkpoint: Checkpoint) -> Result<(), Rejection> {
        self.ask(format!("{checkpoint:?}"))
    }
    fn transition(&self, change: Change) -> Result<(), Rejection> {
        self.ask(format!("{change:?}"))
    }
    fn token(&self) -> u64 {
        7
    }
    fn still_holds(&self) -> bool {
        true
    }
    fn acquire(&self, name: &str, ttl_ms: Option<u64>) -> Result<Held, Rejection> {
        self.ask(format!("acquire {name} {ttl_ms:?}"))?;
        let asked = self.asked.clone();
        Ok(Box::new(ScriptedLease { name: name.to_owned(), asked }))
    }
    fn timer_after(&self, name: &str, ms: u64) -> Result<(), Rejection> {
        self.ask(format!("{name} after {ms}"))
    }
    fn timer_at(&self, name: &str, unix_ms: i64) -> Result<(), Rejection> {
        self.ask(format!("{name} at {unix_ms}"))
    }
    fn timer_cancel(&self, name: &str) -> Result<(), Rejection> {
        self.ask(format!("{name} cancelled"))
    }
    fn effect_request(&self, request: Request) -> Result<(), Rejection> {
        self.ask(format!("{request:?}"))
    }
}

struct ScriptedLease {
    name: String,
    asked: Rc<RefCell<Vec<String>>>,
}

impl ScriptedLease {
    fn ask(&self, what: String) -> Result<(), Rejection> {
        self.asked.borrow_mut().push(format!("{} {what}", self.name));
        Ok(())
    }
}

impl HostLease for ScriptedLease {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn left_ms(&self) -> u64 {
        29_999
    }
    fn extend(&self, ttl_ms: Option<u64>) -> Result<(), Rejection> {
        self.ask(format!("extended {ttl_ms:?}"))
    }
    fn release(self: Box<Self>) -> Result<(), Rejection> {
        self.ask("released".to_owned())
    }
    fn token(&self) -> u64 {
        9
    }
    fn still_holds(&self) -> bool {
        self.asked.borrow().last().is_some_and(|last| !last.ends_with("released"))
    }
}

fn signal() -> Event {
    Event {
        id: "e1".to_owned(),
        kind: EventKind::Signal,
        name: "resize".to_owned(),
        payload: Some(r#"{"size":4}"#.to_owned()),
        at_ms: 1,
    }
}

fn rejection(retryable: bool) -> Rejection {
    Rejection {
        kind: RejectionKind::NotAllowed,
        code: "not-allowed".to_owned(),
        subject: "resource/gpu-7".to_owned(),
        expected: "calm or alarm".to_owned(),
        got: "root".to_owned(),
        retryable,
        retry_after: Some(Duration::from_secs(30)),
        detail: None,
    }
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Data {
    size: u32,
}

fn grow(entity: &Entity) -> Result<Done, Failure> {
    let data: Data = entity.data()?;
    Ok(entity.transition(to("ready").data(&Data { size: data.size + 1 }))?)
}

fn check_quota(_: &Entity) -> Result<Done, Failure> {
    Err(Failure::retry("no quota yet").code("quota").after(Duration::from_secs(2)))
}

mod nested {
    pub(super) fn look(_: &crate::Entity) -> Result<crate::Done, crate::Failure> {
        Err(crate::Failure::retry("looked"))
    }
}

steps!(grow, check_quota, nested::look, "move" => grow);

#[test]
fn a_step_is_found_by_the_name_that_the_manifest_spells() {
    let run = |name: &str| {
        let host = Scripted { data: Some(r#"{"size":1}"#), ..Scripted::default() };
        match crate::run(STEPS, name, &Entity::new(host, signal())) {
            Ok(_done) => "done".to_owned(),
            Err(failure) => failure.to_string(),
        }
    };
    assert_eq!(run("grow"), "done");
    assert_eq!(run("move"), "done");
    assert_eq!(run("check-quota"), "quota (retry): no quota yet");
    assert_eq!(run("check_quota"), "quota (retry): no quota yet");
    assert_eq!(run("look"), "failed (retry): looked");
    assert_eq!(
        run("shrink"),
        "unknown-step (permanent): this component has no step \"shrink\"; it has grow, check-quota, look, move"
    );
}

#[test]
fn a_transition_carries_what_the_step_put_into_it() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let draft = to("ready")
        .data(&Data { size: 4 })
        .outputs(&serde_json::json!({ "endpoint": "a" }))
        .set("data.seen", from("now"))
        .set("data.note", "a \"word\"")
        .mutation(Mutation::Increment("data.runs".to_owned(), 1.into()))
        .condition(Condition::new("Placed", Status::True).because("Found", "four nodes"));
    let _done = entity.transition(draft).expect("the host says yes");
    assert_eq!(
        asked.borrow().as_slice(),
        [concat!(
            r#"Change { to: "ready", data: Some("{\"size\":4}"), outputs: Some("{\"endpoint\":\"a\"}"), "#,
            r#"set: [Set("data.seen", From("now")), Set("data.note", Json("\"a \\\"word\\\"\"")), "#,
            r#"Increment("data.runs", Json("1"))], conditions: [Condition { type: "Placed", status: True, "#,
            r#"reason: "Found", message: "four nodes" }] }"#
        )]
    );
}

#[test]
fn a_value_that_is_no_json_is_refused_before_the_host_is_asked() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let keyed_by_lists = std::collections::BTreeMap::from([(vec![1], 1)]);
    let refused = entity.transition(to("ready").data(&keyed_by_lists)).expect_err("no JSON");
    assert_eq!(refused.to_string(), "json: data: expected a value that JSON can hold, got key must be a string");
    let refused = entity.save(checkpoint().outputs(&keyed_by_lists)).expect_err("no JSON");
    assert_eq!(refused.subject, "outputs");
    assert!(asked.borrow().is_empty());
}

#[test]
fn a_rejection_becomes_a_retry_only_if_it_is_retryable() {
    let failure = Failure::from(rejection(true));
    assert!(!failure.is_permanent());
    assert_eq!(failure.retry_after(), Some(Duration::from_secs(30)));
    let failure = Failure::from(rejection(false));
    assert_eq!(
        failure.to_string(),
        "not-allowed (permanent): not-allowed: resource/gpu-7: expected calm or alarm, got root"
    );
}

#[test]
fn a_refused_transition_gives_no_done() {
    let host = Scripted { data: Some(r#"{"size":1}"#), refusal: Some(rejection(false)), ..Scripted::default() };
    let failure = grow(&Entity::new(host, signal())).expect_err("refused");
    assert_eq!(failure.as_code(), "not-allowed");
}

#[test]
fn documents_of_another_shape_are_permanent_failures_that_say_so() {
    let of = |data, desired| Entity::new(Scripted { data, desired, ..Scripted::default() }, signal());
    assert_eq!(of(Some(r#"{"size":1}"#), None).data::<Data>(), Ok(Data { size: 1 }));
    assert_eq!(of(None, None).data::<Option<Data>>(), Ok(None));
    assert_eq!(of(None, None).desired::<Data>(), Ok(None));
    assert_eq!(of(None, Some(r#"{"size":2}"#)).desired::<Data>(), Ok(Some(Data { size: 2 })));
    let failure = of(Some(r#"{"size":"x"}"#), None).data::<Data>().expect_err("not a number");
    assert_eq!((failure.as_code(), failure.is_permanent()), ("data-shape", true));
    let failure = of(None, Some("{}")).desired::<Data>().expect_err("no size");
    assert_eq!(failure.as_code(), "desired-shape");
    assert_eq!(of(None, None).event().payload::<Data>(), Ok(Some(Data { size: 4 })));
    let failure = of(None, None).event().payload::<Vec<u8>>().expect_err("not a list");
    assert_eq!(failure.as_code(), "payload-shape");
}

#[test]
fn a_timer_is_staged_by_saying_when() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    assert_eq!(entity.timer("remind").after(Duration::from_nanos(1_500_000_001)), Ok(()));
    assert_eq!(entity.timer("remind").after(Duration::MAX), Ok(()));
    assert_eq!(entity.timer("renew").at_ms(-5), Ok(()));
    assert_eq!(entity.timer("remind").cancel(), Ok(()));
    let most = format!("remind after {}", u64::MAX);
    assert_eq!(*asked.borrow(), ["remind after 1501", &most, "renew at -5", "remind cancelled"]);
}

#[test]
fn a_lease_is_asked_for_and_given_back_but_not_by_dropping_it() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let disk = entity.lease("disk-7").expect("the host says yes");
    assert_eq!((disk.name(), disk.token()), ("disk-7".to_owned(), 9));
    assert_eq!(disk.time_left(), Duration::from_millis(29_999));
    assert_eq!(disk.extend(), Ok(()));
    assert_eq!(disk.extend_for(Duration::from_nanos(1)), Ok(()));
    assert!(disk.still_holds());
    assert_eq!(format!("{disk:?}"), "Lease(\"disk-7\")");
    drop(disk);
    assert_eq!(entity.lease_for("disk-8", Duration::MAX).expect("the host says yes").release(), Ok(()));
    let longest = format!("acquire disk-8 Some({})", u64::MAX);
    let told = ["acquire disk-7 None", "disk-7 extended None", "disk-7 extended Some(1)", &longest, "disk-8 released"];
    assert_eq!(*asked.borrow(), told);
    let refused = Scripted { refusal: Some(rejection(true)), ..Scripted::default() };
    assert_eq!(Entity::new(refused, signal()).lease("disk-7").expect_err("refused"), rejection(true));
}

#[test]
fn a_request_is_staged_with_what_was_put_into_it() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let request = entity.effect("tickets").param("project", "atlas").param("n", 7).header("X-Note", "a");
    assert_eq!(request.body(&Data { size: 4 }).request(), Ok(()));
    assert_eq!(entity.effect("status").request(), Ok(()));
    assert_eq!(
        *asked.borrow(),
        [
            concat!(
                r#"Request { target: "tickets", params: [("project", "atlas"), ("n", "7")], "#,
                r#"headers: [("X-Note", "a")], body: Some("{\"size\":4}") }"#
            ),
            r#"Request { target: "status", params: [], headers: [], body: None }"#
        ]
    );
}

#[test]
fn a_body_that_is_no_json_is_a_permanent_failure_before_the_host_is_asked() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let keyed_by_lists = std::collections::BTreeMap::from([(vec![1], 1)]);
    let failure = entity.effect("tickets").body(&keyed_by_lists).request().expect_err("no JSON");
    assert_eq!(failure.to_string(), "body (permanent): a body that is no JSON: key must be a string");
    assert!(asked.borrow().is_empty());
}

#[test]
fn a_refused_request_is_the_failure_of_its_refusal() {
    let host = Scripted { refusal: Some(rejection(true)), ..Scripted::default() };
    let failure = Entity::new(host, signal()).effect("tickets").request().expect_err("refused");
    assert_eq!((failure.as_code(), failure.is_permanent()), ("not-allowed", false));
}

#[test]
fn the_result_of_a_request_is_read_from_its_event_and_from_no_other() {
    let event = |kind, payload: &str| Event { kind, payload: Some(payload.to_owned()), ..signal() };
    let done = r#"{"effect":"k","number":2,"target":"tickets","execution":"o/a@1.1","status":201,"body":{"size":4},
        "truncated":false}"#;
    let result = event(EventKind::Effect, done).effect::<Data>().expect("a result");
    assert_eq!((result.effect.as_str(), result.number, result.target.as_str()), ("k", 2, "tickets"));
    assert_eq!((result.status, result.body, result.code), (Some(201), Some(Data { size: 4 }), None));
    let given_up = r#"{"effect":"k","number":2,"target":"tickets","execution":"o/a@1.1","status":null,"body":null,
        "truncated":false,"code":"exhausted","reason":"20 tries"}"#;
    let result = event(EventKind::Effect, given_up).effect::<Data>().expect("a result");
    assert_eq!((result.status, result.body, result.code.as_deref()), (None, None, Some("exhausted")));
    let failure = event(EventKind::Signal, done).effect::<Data>().expect_err("a signal");
    assert_eq!(failure.to_string(), "no-effect (permanent): expected the result of an effect, got Signal resize");
    let failure = event(EventKind::Effect, &done.replace("4", "\"x\"")).effect::<Data>().expect_err("no number");
    assert_eq!(failure.as_code(), "payload-shape");
}

#[test]
fn the_token_is_for_reading() {
    let entity = Entity::new(Scripted::default(), signal());
    assert_eq!(fencing::token(&entity), 7);
    assert!(fencing::still_holds(&entity));
    assert_eq!(entity.time_left(), Duration::from_millis(1_500));
}

#[test]
fn a_host_captures_the_lines_of_the_step_it_runs() {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let kept = lines.clone();
    let sink = move |level: log::Level, message: &str, fields: &[(String, String)]| {
        kept.borrow_mut().push(format!("{level:?} {message} {fields:?}"));
    };
    let answer = log::captured(sink, || {
        log::warn!(nodes = 4, "found {}", "some");
        7
    });
    log::warn!("to standard error");
    assert_eq!(answer, 7);
    assert_eq!(*lines.borrow(), [r#"Warn found some [("nodes", "4")]"#]);
}
