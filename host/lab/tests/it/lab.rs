//! What can be done to a host.

use crate::world::{id, lab, send, stands};
use interlock_coordinator::Awaited;
use interlock_lab::{Asked, Fault, Lab, Seen, Told, Turn};

/// The codes that attempts were refused with so far.
fn refusals(lab: &mut Lab) -> Vec<String> {
    let seen = lab.take_seen();
    let told = seen.into_iter().filter_map(|seen| match seen {
        Seen::Told { told: Told::Refused(error), .. } => {
            Some(error.rejection().map_or("store".to_owned(), |no| no.code.to_string()))
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn nothing_moves_unless_it_is_moved() {
    let mut lab = lab();
    send(&mut lab, "run", "e1").unwrap();
    assert_eq!(stands(&lab), r#"first v2 {"runs":0} attempt Some(1) failed 0 lost 0"#);
    let held = lab.held();
    assert_eq!((held.len(), held[0].nth, held[0].attempt), (1, 1, 1));
    assert!(matches!(held[0].asked, Asked::Save(_)));
    assert_eq!(lab.passed_ms(), 0);

    lab.let_go(0).unwrap();
    assert_eq!(stands(&lab), r#"first v3 {"runs":1} attempt Some(1) failed 0 lost 0"#);
    assert!(matches!(lab.held()[0].asked, Asked::Transition(..)));
    lab.run().unwrap();
    assert_eq!(stands(&lab), r#"pause v4 {"runs":1} attempt None failed 0 lost 0"#);
    assert_eq!(lab.passed_ms(), 0);
}

#[test]
fn time_comes_from_what_is_on_record() {
    let mut lab = lab();
    assert_eq!(lab.tick().unwrap(), None, "an entity at rest waits for nobody");
    send(&mut lab, "run", "e1").unwrap();
    lab.run().unwrap();
    let next = lab.tick().unwrap().unwrap();
    assert_eq!(
        (next.in_ms, &next.entity, &next.what),
        (90_000, &Some(id()), &Awaited::Timer("after".parse().unwrap()))
    );
    lab.run().unwrap();
    assert_eq!(stands(&lab), r#"idle v6 {"runs":2}"#);
    assert_eq!(lab.passed_ms(), 90_000);
}

#[test]
fn a_killed_host_begins_the_step_again_from_its_save() {
    let mut lab = lab();
    send(&mut lab, "run", "e1").unwrap();
    lab.let_go(0).unwrap();
    lab.kill();
    assert!(!lab.is_up());
    lab.boot().unwrap();
    assert_eq!(stands(&lab), r#"first v3 {"runs":1} attempt Some(2) failed 0 lost 1"#);
    lab.run().unwrap();
    // It counts itself again: that is what saving what is not the step's whole progress does.
    assert_eq!(stands(&lab), r#"pause v5 {"runs":2} attempt None failed 0 lost 0"#);
}

#[test]
fn downtime_counts_for_timers() {
    let mut lab = lab();
    send(&mut lab, "run", "e1").unwrap();
    lab.run().unwrap();
    lab.kill();
    lab.advance(100_000, &mut |_| Turn::Go).unwrap();
    lab.boot().unwrap();
    lab.run().unwrap();
    assert_eq!(stands(&lab), r#"idle v6 {"runs":2}"#);
}

#[test]
fn each_fault_is_what_it_says() {
    // The first call of the first attempt meets it; everything else goes on.
    let expected = [
        (Fault::Conflict, vec!["conflict"], r#"pause v5 {"runs":1}"#),
        (Fault::Fenced, vec!["fenced"], r#"pause v4 {"runs":1}"#),
        (Fault::Unavailable, vec!["store"], r#"pause v4 {"runs":1}"#),
        (Fault::Unknown { kept: false }, vec!["store"], r#"pause v4 {"runs":1}"#),
        (Fault::Unknown { kept: true }, vec!["store"], r#"pause v5 {"runs":2}"#),
        (Fault::Crash, vec![], r#"pause v4 {"runs":1}"#),
        (Fault::CrashBehind, vec![], r#"pause v5 {"runs":2}"#),
    ];
    for (fault, refused, ends) in expected {
        let mut lab = lab();
        send(&mut lab, "run", "e1").unwrap();
        lab.take_seen();
        let mut left = Some(fault);
        lab.settle(&mut |_| left.take().map_or(Turn::Go, Turn::Fault)).unwrap();
        assert_eq!(refusals(&mut lab), refused, "{fault:?}");
        lab.advance(5_000, &mut |_| Turn::Go).unwrap();
        assert!(stands(&lab).starts_with(ends), "{fault:?}: {}", stands(&lab));
    }
}

#[test]
fn a_transition_whose_answer_is_lost_was_made_once() {
    for kept in [true, false] {
        let mut lab = lab();
        send(&mut lab, "run", "e1").unwrap();
        lab.let_go(0).unwrap();
        let mut left = Some(Fault::Unknown { kept });
        lab.settle(&mut |_| left.take().map_or(Turn::Go, Turn::Fault)).unwrap();
        lab.advance(120_000, &mut |_| Turn::Go).unwrap();
        let runs = if kept { 2 } else { 3 };
        assert!(stands(&lab).starts_with("idle v"), "{}", stands(&lab));
        assert!(stands(&lab).contains(&format!("\"runs\":{runs}")), "kept {kept}: {}", stands(&lab));
    }
}

#[test]
fn an_event_may_come_between_two_calls() {
    let mut lab = lab();
    send(&mut lab, "run", "e1").unwrap();
    lab.let_go(0).unwrap();
    send(&mut lab, "note", "e2").unwrap();
    lab.run().unwrap();
    assert_eq!(refusals(&mut lab), ["conflict"]);
}
