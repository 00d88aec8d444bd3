//! Entities and answers.

use super::machine::labels;
use super::{Paint, ago, clock, fields, table};
use crate::client::line;
use interlock_daemon::api::{
    AnswerKind, AnswerView, Document, EntityPage, EntityView, ExecutionOutcome, Kind, LockView, OutboxView, WaitingFor,
};

/// One entity, whole.
pub(crate) fn entity(entity: &EntityView, paint: Paint) -> String {
    let mut text = format!(
        "{}   {} ({})   version {}   revision {}   incarnation {}\n",
        paint.bold(&entity.id),
        entity.state,
        kind(entity.kind),
        entity.version,
        entity.revision,
        entity.incarnation,
    );
    let document = |document: &Option<Document>| document.as_ref().map(line).unwrap_or_default();
    let mut pairs = vec![
        ("locked by", entity.locked_by.as_ref().zip(entity.lock.as_ref()).map(lock).unwrap_or_default()),
        ("failure", entity.lock.as_ref().filter(|_| entity.parked.is_none()).map(failure).unwrap_or_default()),
        ("parked", entity.parked.as_ref().map(|park| because(&park.code, &park.reason)).unwrap_or_default()),
        ("leases", entity.leases.join(", ")),
        ("awaits", entity.awaits.as_ref().map(|lease| format!("lease {lease}")).unwrap_or_default()),
        ("desired", document(&entity.desired)),
        ("generation", format!("{}, steps have seen {}", entity.generation, entity.observed_generation)),
        ("data", document(&entity.data)),
        ("outputs", document(&entity.outputs)),
    ];
    let conditions = entity.conditions.iter().map(|condition| {
        let since = clock(&condition.since);
        (
            "condition",
            format!(
                "{}={} {} since {since}: {}",
                condition.kind, condition.status, condition.reason, condition.message
            ),
        )
    });
    pairs.extend(conditions);
    pairs.extend(entity.timers.iter().map(|timer| {
        let rule = timer.rule.as_ref().map(|rule| format!(" ({rule})")).unwrap_or_default();
        ("timer", format!("{} fires {}{rule}", timer.name, clock(&timer.due)))
    }));
    pairs.extend([
        ("inbox", if entity.inbox == 0 { String::new() } else { format!("{} waiting", entity.inbox) }),
        ("outbox", outbox(entity)),
        (
            "last",
            entity.last_execution.as_ref().map_or(String::new(), |last| {
                let how = if last.succeeded { "succeeded" } else { "failed" };
                format!("{} {how} in {} at version {}", last.execution, last.state, last.version)
            }),
        ),
        ("labels", labels(&entity.labels)),
        ("created", clock(&entity.created)),
        ("owner", entity.owner.clone()),
    ]);
    text.push_str(&fields("", &pairs));
    text
}

/// What is not settled of its effects, and what of it an execution has left that is over.
fn outbox(entity: &EntityView) -> String {
    let OutboxView { unsettled, dead } = entity.outbox;
    if unsettled == 0 && dead == 0 {
        return String::new();
    }
    let late = entity.outstanding.len();
    let late = if late == 0 { String::new() } else { format!(", {late} of executions that are over") };
    format!("{unsettled} to settle, {dead} given up{late}")
}

fn lock((execution, lock): (&String, &LockView)) -> String {
    let attempt = lock.attempt.map(|attempt| format!(", attempt {attempt}")).unwrap_or_default();
    let token = lock.token.map(|token| format!(", token {token}")).unwrap_or_default();
    let until = lock.until.as_ref().map(|until| format!(", until {} at the latest", clock(until))).unwrap_or_default();
    format!("{execution} for {}, {}{attempt}{token}{until}", ago(&lock.since), waiting(lock.waiting_for))
}

/// Why the last attempt of this visit failed.
fn failure(lock: &LockView) -> String {
    lock.failure.as_ref().map(|failure| because(&failure.code, &failure.reason)).unwrap_or_default()
}

/// A code and its reason in one line: without the code a second time, and without the frames of a trap, which
/// `--json` has.
fn because(code: &str, reason: &str) -> String {
    let reason = reason.split("\n  at ").next().unwrap_or(reason).replace('\n', " ");
    if reason.starts_with(&format!("{code}: ")) { reason } else { format!("{code}: {reason}") }
}

const fn waiting(waiting: WaitingFor) -> &'static str {
    match waiting {
        WaitingFor::Step => "a step runs",
        WaitingFor::Timer => "waiting for a timer",
        WaitingFor::Effect => "waiting for the result of an effect",
        WaitingFor::Event => "waiting for an event",
        WaitingFor::BackOff => "waiting for the next attempt",
        WaitingFor::Slot => "waiting for a free slot",
        WaitingFor::Memory => "waiting for memory that other steps hold",
        WaitingFor::Lease => "waiting for a lease",
        WaitingFor::Operator => "waiting for an operator",
    }
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Rest => "rest",
        Kind::Working => "working",
        Kind::Succeeded => "over, succeeded",
        Kind::Failed => "over, failed",
    }
}

/// A page of entities.
pub(crate) fn entities(page: &EntityPage) -> String {
    let row = |entity: &interlock_daemon::api::EntitySummary| {
        let holder = match (&entity.parked, &entity.locked_by) {
            (Some(code), _) => format!("parked: {code}"),
            (None, Some(execution)) => format!("@{}", execution.rsplit('@').next().unwrap_or_default()),
            (None, None) => String::new(),
        };
        vec![
            entity.id.clone(),
            entity.state.clone(),
            entity.version.to_string(),
            entity.revision.to_string(),
            format!("{}/{}", entity.observed_generation, entity.generation),
            holder,
            clock(&entity.entered),
            labels(&entity.labels),
        ]
    };
    let rows: Vec<_> = page.entities.iter().map(row).collect();
    table(&["entity", "state", "version", "revision", "seen", "locked by", "entered", "labels"], &rows)
}

/// The answer to an event.
pub(crate) fn answer(entity: &str, answer: &AnswerView, replayed: bool, paint: Paint) -> String {
    let word = match answer.answer {
        AnswerKind::Accepted | AnswerKind::Queued => paint.green(answer.answer.as_str()),
        AnswerKind::Refused | AnswerKind::Late => paint.red(answer.answer.as_str()),
    };
    let holder = answer.execution.as_deref().unwrap_or(entity);
    let again = if replayed { "   the same answer as before, nothing new" } else { "" };
    let mut text =
        format!("{word}   {holder}   {}   version {}   event {}{again}\n", answer.state, answer.version, answer.event);
    let outcome = answer.outcome.map(|outcome| match outcome {
        ExecutionOutcome::Succeeded => paint.green("succeeded"),
        ExecutionOutcome::Failed => paint.red("failed"),
        ExecutionOutcome::Parked => paint.red("parked"),
        ExecutionOutcome::Running => "still running".to_owned(),
    });
    let rejection = answer.rejection.as_ref();
    text.push_str(&fields(
        "  ",
        &[
            ("outcome", outcome.unwrap_or_default()),
            ("outputs", answer.outputs.as_ref().map(line).unwrap_or_default()),
            ("because", rejection.map(|no| no.code.clone()).unwrap_or_default()),
            ("expected", rejection.map(|no| no.expected.clone()).unwrap_or_default()),
            ("got", rejection.map(|no| no.got.clone()).unwrap_or_default()),
        ],
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use interlock_daemon::api::RejectionView;
    use interlock_kernel::doc::Doc;

    fn taken(kind: AnswerKind) -> AnswerView {
        AnswerView {
            answer: kind,
            event: "e1".to_owned(),
            execution: Some("resource/gpu-7@3.1".to_owned()),
            version: 2,
            state: "planning".to_owned(),
            rejection: None,
            outcome: None,
            outputs: None,
        }
    }

    #[test]
    fn a_reason_is_one_line_and_says_its_code_once() {
        assert_eq!(because("deadline", "deadline: not left within 5 s"), "deadline: not left within 5 s");
        let trap = "trap: panicked at src/lib.rs:3:1: no disk\n  at <wasm function 7>\n  at run";
        assert_eq!(because("exhausted", trap), "exhausted: trap: panicked at src/lib.rs:3:1: no disk");
    }

    #[test]
    fn an_answer_says_what_became_of_the_event() {
        let done = AnswerView {
            version: 5,
            state: "ready".to_owned(),
            outcome: Some(ExecutionOutcome::Succeeded),
            outputs: Doc::parse(r#"{"size": 4}"#).ok().map(Document),
            ..taken(AnswerKind::Accepted)
        };
        let refused = AnswerView {
            execution: None,
            rejection: Some(RejectionView {
                code: "guard".to_owned(),
                subject: "resource/gpu-7".to_owned(),
                expected: "event.size ne data.size".to_owned(),
                got: "4 and 4".to_owned(),
                retryable: false,
                retry_after_ms: None,
            }),
            ..taken(AnswerKind::Refused)
        };
        let show = |view: &AnswerView, replayed| answer("resource/gpu-7", view, replayed, Paint::Off);
        let all = [show(&taken(AnswerKind::Accepted), true), show(&done, false), show(&refused, false)].concat();
        expect![[r#"
            accepted   resource/gpu-7@3.1   planning   version 2   event e1   the same answer as before, nothing new
            accepted   resource/gpu-7@3.1   ready   version 5   event e1
              outcome    succeeded
              outputs    {"size":4}
            refused   resource/gpu-7   planning   version 2   event e1
              because    guard
              expected   event.size ne data.size
              got        4 and 4
        "#]]
        .assert_eq(&all);
    }
}
