//! Searching what can happen to steps as functions.

use crate::world::{JOB, Steps, id, lab_with};
use interlock_kernel::command::Verb;
use interlock_kernel::record::Expect;
use interlock_kernel::view::Event;
use interlock_lab::explore::{Act, Bounds, Plan, Promise, explore};
use std::sync::Arc;

fn sends(name: &str, event: &str) -> Act {
    let event = Event {
        id: event.parse().unwrap(),
        name: name.parse().unwrap(),
        payload: None,
        expect: Expect::default(),
        checked: None,
    };
    let words = format!("send {name} as {}", event.id);
    Act { entity: id(), verb: Verb::Deliver { entity: id(), event: Box::new(event) }, words }
}

fn plan(acts: Vec<Act>, bounds: Bounds) -> Plan {
    Plan {
        begin: Box::new(|executor| Ok(lab_with(executor))),
        executor: Arc::new(Steps),
        sees_tokens: false,
        entities: vec![id()],
        acts,
        always: Vec::new(),
        eventually: Vec::new(),
        may_park: false,
        bounds,
    }
}

fn runs(at_most: u64) -> Promise {
    Promise {
        name: "no run counts twice".to_owned(),
        entity: None,
        judge: Box::new(move |view| {
            let data = view.documents.data.as_ref().map(|data| data.value()["runs"].as_u64().unwrap());
            match data {
                Some(runs) if runs > at_most => Err((format!("data.runs le {at_most}"), runs.to_string())),
                _ => Ok(()),
            }
        }),
    }
}

#[test]
fn zz() {
    assert!(JOB.contains("job"));
    for faults in 0..3 {
        let t = std::time::Instant::now();
        let plan = plan(vec![sends("run", "e1"), sends("note", "e2")], Bounds { faults, ..Bounds::default() });
        let found = explore(&plan).unwrap();
        println!("{found:#?} {:?}", t.elapsed());
    }
    let t = std::time::Instant::now();
    let mut plan = plan(vec![sends("run", "e1")], Bounds { faults: 1, ..Bounds::default() });
    plan.always.push(runs(2));
    let found = explore(&plan).unwrap();
    println!("{found:?} {} {:?}", found.broken.as_ref().map(|b| b.1.to_string()).unwrap_or_default(), t.elapsed());
}
