//! Small worlds, exhaustively: three actors around one entity, every order of everything they do to a
//! stated depth, with equal states recognised (`key`). After every act, which is one command or the same
//! one twice, the world checks every theorem and the scene what each actor was promised (`scene`); what
//! must change nothing is asked of every state.
//! The first violation is a shortest one and is told as a story (`search`). That it would be found is
//! tested with kernels that are broken on purpose (`broken`).
//!
//! ```text
//! INTERLOCK_SCOPE_DEPTH=7 cargo test --release -p interlock-kernel --test it scopes::queue -- --nocapture
//! INTERLOCK_SCOPE_DEPTH=12 cargo test --release -p interlock-kernel --test it scopes::retries -- --nocapture
//! INTERLOCK_SCOPE_DEPTH=16 cargo test --release -p interlock-kernel --test it scopes::times -- --nocapture
//! INTERLOCK_SCOPE_TWINS=6 cargo test --release -p interlock-kernel --test it scopes::equal -- --nocapture
//! ```

mod broken;
mod key;
mod machines;
mod scene;
mod search;

use machines::Scope;
use search::{Seen, search, story};

/// A number of steps from the environment.
fn asked(variable: &str, or: usize) -> usize {
    let parsed = |set: String| set.parse().unwrap_or_else(|_| panic!("{variable} is a number of steps, got {set:?}"));
    std::env::var(variable).map_or(or, parsed)
}

fn explore(scope: &Scope) -> Seen {
    let start = (scope.start)();
    let depth = asked("INTERLOCK_SCOPE_DEPTH", scope.depth);
    let seen = search(&start, scope.acts, depth);
    if let Some(violation) = &seen.violation {
        panic!(
            "{} breaks after {} steps:\n{}\nagain: cargo test -p interlock-kernel --test it scopes::{}",
            scope.name,
            violation.path.len(),
            story(&start, scope.acts, violation),
            scope.name
        );
    }
    println!(
        "{}: depth {depth}, {} states, {} transitions, {}; new states by step {:?}",
        scope.name,
        seen.states,
        seen.transitions,
        if seen.complete { "complete" } else { "not complete" },
        seen.by_depth
    );
    assert!(seen.complete || seen.by_depth.len() == depth + 1);
    assert!(seen.states >= scope.states_at_least || depth != scope.depth, "{} states", seen.states);
    seen
}

#[test]
fn attempts() {
    assert!(explore(&machines::ATTEMPTS).complete);
}

#[test]
fn queue() {
    explore(&machines::QUEUE);
}

#[test]
fn retries() {
    explore(&machines::RETRIES);
}

#[test]
fn times() {
    explore(&machines::TIMES);
}

#[test]
fn equal_states_stay_equal() {
    for scope in [machines::ATTEMPTS, machines::QUEUE, machines::RETRIES, machines::TIMES] {
        let depth = asked("INTERLOCK_SCOPE_TWINS", scope.twin_depth);
        let pairs = search::equal_states_stay_equal(&(scope.start)(), scope.acts, depth);
        println!("{}: depth {depth}, {pairs} pairs of scenes that are one state", scope.name);
        assert!(pairs > 10, "{}: {pairs}", scope.name);
    }
}
