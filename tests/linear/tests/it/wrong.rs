//! The wrong histories that matter, each beside the right one that it is one answer away from.

use interlock_linear::checker::check;
use interlock_linear::history::{Answer, Ask, Event, Heard, Operation, View};

/// An operation from `asked` to `heard`.
fn op(asked: u64, until: u64, ask: Ask, heard: Heard) -> Operation {
    Operation { client: 0, asked, heard: Some((until, heard)), ask }
}

/// One whose answer was lost.
fn lost(asked: u64, ask: Ask) -> Operation {
    Operation { client: 1, asked, heard: None, ask }
}

fn event(id: &str, event: Event) -> Ask {
    Ask::Event { id: id.to_owned(), event }
}

fn accepted(version: u64, state: &str) -> Heard {
    answered("accepted", version, state, None)
}

fn answered(kind: &str, version: u64, state: &str, execution: Option<(u64, u64)>) -> Heard {
    let answer = Answer { kind: kind.to_owned(), execution, version, state: state.to_owned(), code: None };
    Heard::Answered { answer, replayed: false }
}

fn again(heard: Heard) -> Heard {
    match heard {
        Heard::Answered { answer, .. } => Heard::Answered { answer, replayed: true },
        other => panic!("{other:?}"),
    }
}

fn view(version: u64, n: i64) -> View {
    View {
        incarnation: 5,
        state: "idle".to_owned(),
        version,
        generation: 0,
        observed: 0,
        desired: None,
        n,
        done: 0,
        inbox: 0,
        locked_by: None,
    }
}

fn read(version: u64, n: i64) -> Heard {
    Heard::Entity(Box::new(view(version, n)))
}

fn made() -> Operation {
    op(0, 10, Ask::Create(None), Heard::Created { new: true })
}

fn put(was: i64, to: i64) -> Event {
    Event::Put { was, to }
}

/// The first history has an order, the second has none.
fn tells_apart(right: Vec<Operation>, wrong: Vec<Operation>) {
    if let Err(stuck) = check(&right) {
        panic!("{}", interlock_linear::rounds::explain(&right, &stuck));
    }
    let stuck = check(&wrong).expect_err("no order");
    assert!(stuck.complete && stuck.longest.len() < wrong.len());
}

#[test]
fn a_stale_read() {
    let history = |version, n| {
        let add = op(20, 30, event("a", Event::Add(3)), accepted(2, "idle"));
        vec![made(), add, op(40, 50, Ask::Get, read(version, n))]
    };
    tells_apart(history(2, 3), history(1, 0));
    // While the write is under way both are right.
    let meanwhile = |version, n| {
        let add = op(20, 60, event("a", Event::Add(3)), accepted(2, "idle"));
        vec![made(), add, op(40, 50, Ask::Get, read(version, n))]
    };
    assert!(check(&meanwhile(1, 0)).is_ok() && check(&meanwhile(2, 3)).is_ok());
    // And what one reader has seen, the next one sees.
    let mut back = meanwhile(2, 3);
    back.push(op(52, 55, Ask::Get, read(1, 0)));
    assert!(check(&back).is_err());
}

#[test]
fn a_lost_update() {
    let history = |second: Heard| {
        let first = op(20, 60, event("a", put(0, 1)), accepted(2, "idle"));
        vec![made(), first, op(25, 70, event("b", put(0, 2)), second)]
    };
    tells_apart(history(Heard::Refused("guard".to_owned())), history(accepted(3, "idle")));
    // Acknowledged, and later gone.
    let kept = |n| {
        let add = |id: &str, at, version| op(at, at + 5, event(id, Event::Add(1)), accepted(version, "idle"));
        vec![made(), add("a", 20, 2), add("b", 30, 3), op(40, 50, Ask::Get, read(3, n))]
    };
    tells_apart(kept(2), kept(1));
}

#[test]
fn a_doubled_event() {
    let history = |second: Heard, version, n| {
        let first = op(20, 30, event("a", Event::Add(1)), accepted(2, "idle"));
        let second = op(40, 50, event("a", Event::Add(1)), second);
        vec![made(), first, second, op(60, 70, Ask::Get, read(version, n))]
    };
    let right = history(again(accepted(2, "idle")), 2, 1);
    tells_apart(right.clone(), history(accepted(3, "idle"), 3, 2));
    tells_apart(right, history(again(accepted(2, "idle")), 3, 2));
}

#[test]
fn an_answer_that_was_lost_takes_effect_once_or_never() {
    let history =
        |version, n| vec![made(), lost(20, event("a", Event::Add(1))), op(60, 70, Ask::Get, read(version, n))];
    assert!(check(&history(1, 0)).is_ok());
    tells_apart(history(2, 1), history(3, 2));
    // Once it was seen, it has happened; and it does not happen before it was asked.
    let mut then = history(2, 1);
    then.push(op(80, 90, Ask::Get, read(1, 0)));
    assert!(check(&then).is_err());
    let early = vec![made(), op(12, 15, Ask::Get, read(2, 1)), lost(20, event("a", Event::Add(1)))];
    assert!(check(&early).is_err());
    // It may still come much later, and then its id is known.
    let mut late = history(1, 0);
    late.push(op(80, 90, event("b", Event::Add(1)), accepted(3, "idle")));
    late.push(op(95, 99, event("a", Event::Add(1)), again(accepted(2, "idle"))));
    assert!(check(&late).is_ok());
}

#[test]
fn a_version_given_twice() {
    let history = |second| {
        let add = |id: &str, at, version| op(at, at + 30, event(id, Event::Add(1)), accepted(version, "idle"));
        vec![made(), add("a", 20, 2), add("b", 21, second)]
    };
    tells_apart(history(3), history(2));
    // Over a deletion versions begin anew, and incarnations do not.
    let over = |number| {
        let gone = Heard::Now { state: "idle".to_owned(), version: 1, changed: true };
        let view = View { incarnation: number, ..view(1, 0) };
        vec![
            made(),
            op(15, 18, Ask::Get, read(1, 0)),
            op(20, 30, Ask::Delete, gone),
            op(40, 50, Ask::Create(None), Heard::Created { new: true }),
            op(60, 70, Ask::Get, Heard::Entity(Box::new(view))),
        ]
    };
    tells_apart(over(9), over(5));
    assert!(check(&over(4)).is_err());
}

#[test]
fn a_lock_that_two_hold() {
    let held = |number| answered("accepted", 2 + (number - 1), "held", Some((5, number)));
    let history = |second: Heard| {
        let first = op(20, 60, event("a", Event::Hold), held(1));
        vec![made(), first, op(25, 70, event("b", Event::Hold), second)]
    };
    tells_apart(history(Heard::Refused("busy".to_owned())), history(held(2)));
}

#[test]
fn a_step_that_goes_back() {
    let working = View { state: "s5".to_owned(), locked_by: Some((5, 1)), ..view(2, 0) };
    let done = View { done: 1, ..view(3, 0) };
    let history = |first: &View, second: &View| {
        let work = op(20, 30, event("a", Event::Work), answered("accepted", 2, "s5", Some((5, 1))));
        let see = |at, view: &View| op(at, at + 5, Ask::Get, Heard::Entity(Box::new(view.clone())));
        vec![made(), work, see(40, first), see(50, second)]
    };
    tells_apart(history(&working, &done), history(&done, &working));
    let twice = View { done: 2, ..view(4, 0) };
    assert!(check(&history(&done, &done)).is_ok() && check(&history(&done, &twice)).is_err());
}

#[test]
fn an_event_that_waited_and_was_taken_twice_or_forgotten() {
    let history = |n, version| {
        let free = answered("accepted", 3, "idle", Some((5, 1)));
        vec![
            made(),
            op(20, 30, event("h", Event::Hold), answered("accepted", 2, "held", Some((5, 1)))),
            op(40, 50, event("a", Event::Add(2)), answered("queued", 2, "held", None)),
            op(60, 70, event("f", Event::Free), free),
            op(80, 90, Ask::Get, read(version, n)),
        ]
    };
    tells_apart(history(2, 4), history(4, 5));
    assert!(check(&history(0, 3)).is_err());
}
