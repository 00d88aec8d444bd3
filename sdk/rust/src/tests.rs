//! Conversions and dispatch. Rules are the host's and are tested there: this host says yes to
//! everything but what it was told to refuse, and writes down what it was asked.

use crate::row::{
    Action, Answer, Claimed, Claiming, Deleted, Deleting, EntityRequirement, Expected, Getting, Got, Operation, Order,
    OrderBy, Page, Putting, Querying, Requirement, Row, RowRequirement, Updated, Updating, Upserting, Written,
};
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
    fn row_get(&self, table: &str, getting: Getting) -> Result<Got, Rejection> {
        self.ask(format!("{table} {getting:?}"))?;
        Ok(Got { key: "a".to_owned(), row: None })
    }
    fn row_query(&self, table: &str, querying: Querying) -> Result<Page, Rejection> {
        self.ask(format!("{table} {querying:?}"))?;
        Ok(Page { rows: vec![row()], next: Some("behind a".to_owned()) })
    }
    fn row_put(&self, table: &str, putting: Putting, op: Option<&str>) -> Result<Written, Rejection> {
        self.ask(format!("{table} {putting:?} {op:?}"))?;
        Ok(Written { inserted: true, row: row() })
    }
    fn row_update(&self, table: &str, updating: Updating, op: Option<&str>) -> Result<Updated, Rejection> {
        self.ask(format!("{table} {updating:?} {op:?}"))?;
        Ok(Updated::Changed(row()))
    }
    fn row_upsert(&self, table: &str, upserting: Upserting, op: Option<&str>) -> Result<Written, Rejection> {
        self.ask(format!("{table} {upserting:?} {op:?}"))?;
        Ok(Written { inserted: false, row: row() })
    }
    fn row_claim(&self, table: &str, claiming: Claiming, op: Option<&str>) -> Result<Claimed, Rejection> {
        self.ask(format!("{table} {claiming:?} {op:?}"))?;
        Ok(Claimed { rows: vec![row()], ..Claimed::default() })
    }
    fn row_delete(&self, table: &str, deleting: Deleting, op: Option<&str>) -> Result<Deleted, Rejection> {
        self.ask(format!("{table} {deleting:?} {op:?}"))?;
        Ok(Deleted::Gone("a".to_owned()))
    }
    fn row_transact(
        &self,
        operations: Vec<Operation>,
        requirements: Vec<Requirement>,
        op: Option<&str>,
    ) -> Result<Vec<Answer>, Rejection> {
        self.ask(format!("{operations:?} {requirements:?} {op:?}"))?;
        Ok(Vec::new())
    }
    fn row_stage(&self, operation: Operation) -> Result<(), Rejection> {
        self.ask(format!("{operation:?}"))
    }
    fn row_require(&self, requirement: RowRequirement) -> Result<(), Rejection> {
        self.ask(format!("{requirement:?}"))
    }
    fn entity_require(&self, requirement: EntityRequirement) -> Result<(), Rejection> {
        self.ask(format!("{requirement:?}"))
    }
    fn row_answers(&self) -> Vec<Answer> {
        vec![Answer::Deleted(Deleted::Gone("a".to_owned()))]
    }
}

fn row() -> Row {
    Row {
        key: "a".to_owned(),
        value: r#"{"size":3}"#.to_owned(),
        etag: "7".to_owned(),
        created_ms: 1,
        updated_ms: 2,
        claims: 1,
        claimed_by: None,
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
fn a_body_that_is_no_json_is_refused_before_the_host_is_asked() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let keyed_by_lists = std::collections::BTreeMap::from([(vec![1], 1)]);
    let refused = entity.effect("tickets").body(&keyed_by_lists).request().expect_err("no JSON");
    assert_eq!(refused.to_string(), "json: body: expected a value that JSON can hold, got key must be a string");
    assert!(asked.borrow().is_empty());
}

#[test]
fn a_refused_request_is_the_failure_of_its_refusal() {
    let host = Scripted { refusal: Some(rejection(true)), ..Scripted::default() };
    let refused = Entity::new(host, signal()).effect("tickets").request().expect_err("refused");
    assert_eq!(refused, rejection(true));
    let failure = Failure::from(refused);
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
fn an_operation_on_a_row_asks_for_what_was_put_into_it() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let jobs = entity.rows("jobs");
    assert_eq!(jobs.get("a").fields(["size"]).now(), Ok(None));
    assert!(jobs.put(7, &Data { size: 1 }).fill("at", from("now")).if_absent().named("first").now().is_ok());
    assert!(jobs.put("a", &Data { size: 1 }).if_still(&row()).now().is_ok());
    let mine = field("claimed_by").eq(from("execution"));
    let changed = jobs.update("a").only_if(mine).set("status", "done").increment("n", 2).remove("x").now();
    assert_eq!(changed.map(Updated::row), Ok(Some(row())));
    assert!(jobs.upsert(from("event.id"), &Data { size: 2 }).increment("n", 1).now().is_ok_and(|done| !done.inserted));
    let taken = jobs.claim().matching(field("n").gt(1)).limit(3).order(Order::index("by-n").descending()).now();
    assert_eq!(taken.map(|taken| taken.rows.len()), Ok(1));
    assert!(jobs.claim().now().is_ok());
    assert!(jobs.delete("a").only_if(field("status").eq("done")).must().now().is_ok_and(|gone| gone.is_gone()));
    let page = jobs.query().matching(field("n").exists()).order(Order::updated()).after("b").limit(2).now();
    assert_eq!(page.map(|page| page.next), Ok(Some("behind a".to_owned())));
    let test = |field: &str, operator: Operator, value: &str| {
        let value = if value == "execution" { from(value) } else { Value::Json(value.to_owned()) };
        Filter(vec![vec![Comparison { field: field.to_owned(), operator, value }]])
    };
    let json = |text: &str| Value::Json(text.to_owned());
    let fields = Vec::new;
    let expected = [
        format!("jobs {:?}", Getting { key: "a".into(), fields: vec!["size".to_owned()] }),
        format!(
            "jobs {:?} Some(\"first\")",
            Putting {
                key: 7.into(),
                value: r#"{"size":1}"#.to_owned(),
                fill: vec![Mutation::Set("at".to_owned(), from("now"))],
                expect: Some(Expected::Absent),
                fields: fields(),
            }
        ),
        format!(
            "jobs {:?} None",
            Putting {
                key: "a".into(),
                value: r#"{"size":1}"#.to_owned(),
                fill: Vec::new(),
                expect: Some(Expected::Etag("7".to_owned())),
                fields: fields(),
            }
        ),
        format!(
            "jobs {:?} None",
            Updating {
                key: "a".into(),
                filter: test("claimed_by", Operator::Eq, "execution"),
                set: vec![
                    Mutation::Set("status".to_owned(), "done".into()),
                    Mutation::Increment("n".to_owned(), json("2")),
                    Mutation::Remove("x".to_owned()),
                ],
                fields: fields(),
                must: false,
            }
        ),
        format!(
            "jobs {:?} None",
            Upserting {
                key: from("event.id"),
                insert: r#"{"size":2}"#.to_owned(),
                fill: Vec::new(),
                set: vec![Mutation::Increment("n".to_owned(), json("1"))],
                fields: fields(),
            }
        ),
        format!(
            "jobs {:?} None",
            Claiming {
                filter: Some(test("n", Operator::Gt, "1")),
                limit: Some(3),
                order: Some(Order { by: OrderBy::Index("by-n".to_owned()), descending: true }),
                ..Claiming::default()
            }
        ),
        format!("jobs {:?} None", Claiming::default()),
        format!(
            "jobs {:?} None",
            Deleting { key: "a".into(), filter: test("status", Operator::Eq, r#""done""#), must: true }
        ),
        format!(
            "jobs {:?}",
            Querying {
                filter: test("n", Operator::Exists, "true"),
                order: Some(Order::updated()),
                limit: Some(2),
                after: Some("b".to_owned()),
                fields: fields(),
            }
        ),
    ];
    assert_eq!(*asked.borrow(), expected);
}

#[test]
fn what_is_staged_or_asked_together_is_handed_over_whole() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let jobs = entity.rows("jobs");
    assert_eq!(jobs.update("a").set("n", 1).must().stage(), Ok(()));
    assert_eq!(jobs.require("b").absent().stage(), Ok(()));
    assert_eq!(entity.require("cluster/eu").state("ready").only_if(field("data.free").ge(4)).stage(), Ok(()));
    let both = entity.transact().and(jobs.delete("a")).and(jobs.get("b")).require(jobs.require("c")).named("both");
    assert_eq!(both.now(), Ok(Vec::new()));
    assert_eq!(entity.row_answers(), [Answer::Deleted(Deleted::Gone("a".to_owned()))]);
    let update = Updating {
        key: "a".into(),
        filter: Filter::default(),
        set: vec![Mutation::Set("n".to_owned(), 1.into())],
        fields: Vec::new(),
        must: true,
    };
    let of_row = |key: &str, present| {
        let (table, key) = ("jobs".to_owned(), key.into());
        RowRequirement { table, key, present, filter: Filter::default() }
    };
    let of_entity = EntityRequirement {
        entity: "cluster/eu".to_owned(),
        states: vec!["ready".to_owned()],
        filter: field("data.free").ge(4),
    };
    let operation = |what: Action| Operation { table: "jobs".to_owned(), what };
    let delete = Deleting { key: "a".into(), filter: Filter::default(), must: false };
    let get = Getting { key: "b".into(), fields: Vec::new() };
    let together = [operation(Action::Delete(delete)), operation(Action::Get(get))];
    let expected = [
        format!("{:?}", operation(Action::Update(update))),
        format!("{:?}", of_row("b", false)),
        format!("{of_entity:?}"),
        format!("{together:?} {:?} Some(\"both\")", [Requirement::Row(of_row("c", true))]),
    ];
    assert_eq!(*asked.borrow(), expected);
}

#[test]
fn a_row_that_is_no_json_is_refused_before_the_host_is_asked() {
    let host = Scripted::default();
    let asked = host.asked.clone();
    let entity = Entity::new(host, signal());
    let keyed_by_lists = std::collections::BTreeMap::from([(vec![1], 1)]);
    let jobs = entity.rows("jobs");
    let refused = jobs.put("a", &keyed_by_lists).now().expect_err("no JSON");
    assert_eq!(refused.to_string(), "json: value: expected a value that JSON can hold, got key must be a string");
    assert_eq!(jobs.upsert("a", &keyed_by_lists).stage().expect_err("no JSON").subject, "insert");
    let both = entity.transact().and(jobs.put("a", &keyed_by_lists)).and(jobs.delete("b")).now();
    assert_eq!(both.expect_err("no JSON").subject, "value");
    assert!(asked.borrow().is_empty());
}

#[test]
fn filters_are_put_together_as_any_of_all() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| field(name).exists());
    let names = |filter: &Filter| -> Vec<String> {
        filter.0.iter().map(|all| all.iter().map(|one| one.field.as_str()).collect()).collect()
    };
    let both = a.clone().or(b.clone()).and(c.clone().or(d.clone()));
    assert_eq!(names(&both), ["ac", "ad", "bc", "bd"]);
    assert_eq!(names(&a.clone().and(b.clone()).or(c.and(d))), ["ab", "cd"]);
    // What holds always adds nothing to `and`, and leaves nothing of `or`.
    assert_eq!(names(&Filter::default().and(a.clone())), ["a"]);
    assert_eq!(names(&a.clone().and(Filter::default())), ["a"]);
    assert_eq!(a.or(Filter::default()), Filter::default());
    assert_eq!(Filter::default().or(b), Filter::default());
}

#[test]
fn a_row_of_another_shape_is_a_permanent_failure_that_says_so() {
    assert_eq!(row().value::<Data>(), Ok(Data { size: 3 }));
    let failure = row().value::<Vec<u8>>().expect_err("no list");
    assert_eq!((failure.as_code(), failure.is_permanent()), ("row-shape", true));
    assert!(failure.reason().starts_with("row a is not what the step expects"), "{failure}");
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
