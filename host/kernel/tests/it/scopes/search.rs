//! Every order of every act, breadth first: the first violation has a shortest story.

use super::key;
use super::scene::{Act, Scene};
use std::collections::HashMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a search has seen.
pub(crate) struct Seen {
    pub(crate) states: usize,
    pub(crate) transitions: u64,
    /// New states by the number of steps to them, the start first.
    pub(crate) by_depth: Vec<usize>,
    /// No state was left whose acts were not all tried.
    pub(crate) complete: bool,
    pub(crate) violation: Option<Violation>,
}

/// What must not be: the acts that lead there, and what was found.
pub(crate) struct Violation {
    pub(crate) path: Vec<usize>,
    pub(crate) why: String,
}

/// Searches up to a depth.
pub(crate) fn search(start: &Scene, acts: &[Act], depth: usize) -> Seen {
    let mut seen = Seen { states: 1, transitions: 0, by_depth: vec![1], complete: false, violation: None };
    let mut met = HashMap::from([(key::of(start), ())]);
    // How each state was reached: from which, by which act.
    let mut ways: Vec<(usize, usize)> = vec![(0, 0)];
    let mut frontier = vec![(0, start.clone())];
    while !frontier.is_empty() && seen.by_depth.len() <= depth {
        let mut next = Vec::new();
        for (from, scene) in frontier {
            for (index, act) in acts.iter().enumerate() {
                let mut after = scene.clone();
                match attempt(&mut after, act) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(why) => {
                        let mut path = path(&ways, from);
                        path.push(index);
                        seen.violation = Some(Violation { path, why });
                        return seen;
                    }
                }
                seen.transitions += 1;
                let state = key::of(&after);
                if met.insert(state, ()).is_some() {
                    continue;
                }
                if let Err(why) = guarded(|| after.probe()) {
                    let mut path = path(&ways, from);
                    path.push(index);
                    seen.violation = Some(Violation { path, why });
                    return seen;
                }
                ways.push((from, index));
                next.push((ways.len() - 1, after));
            }
        }
        seen.states += next.len();
        seen.by_depth.push(next.len());
        frontier = next;
    }
    seen.complete = frontier.is_empty();
    seen
}

fn path(ways: &[(usize, usize)], mut at: usize) -> Vec<usize> {
    let mut path = Vec::new();
    while at != 0 {
        let (from, act) = ways[at];
        path.push(act);
        at = from;
    }
    path.reverse();
    path
}

/// Does an act and checks what must hold after it.
pub(crate) fn attempt(scene: &mut Scene, act: &Act) -> Result<bool, String> {
    guarded(|| {
        let done = (act.run)(scene);
        if done {
            scene.check();
        }
        done
    })
}

fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        text.unwrap_or("something that is no text").to_owned()
    })
}

/// A violation as people read it.
pub(crate) fn story(start: &Scene, acts: &[Act], violation: &Violation) -> String {
    let mut text = String::new();
    let mut scene = start.clone();
    scene.world.silent = false;
    for (number, index) in violation.path.iter().enumerate() {
        let act = &acts[*index];
        let _ = writeln!(text, "{}. {} {}", number + 1, act.actor, act.what);
        let found = attempt(&mut scene, act);
        let told = scene.world.transcript();
        let of_people = |line: &&str| !line.starts_with("  writes") && !line.starts_with("  wakes");
        for line in told.lines().filter(of_people) {
            let _ = writeln!(text, "   {line}");
        }
        if found.is_err() {
            break;
        }
    }
    let _ = write!(text, "   and then: ");
    for (number, line) in violation.why.lines().take(3).enumerate() {
        let indent = if number > 0 { "\n   " } else { "" };
        let cut: String = line.chars().take(200).collect();
        let _ = write!(text, "{indent}{cut}");
    }
    text
}

/// Gives every act to both of two scenes with one key, to a depth: the keys after it must be equal again.
/// The number of pairs that were compared.
///
/// # Panics
/// With the two keys, if one act tells the scenes apart: then the key leaves out what matters.
pub(crate) fn equal_states_stay_equal(start: &Scene, acts: &[Act], depth: usize) -> usize {
    let mut met = HashMap::from([(key::of(start), start.clone())]);
    let mut frontier = vec![start.clone()];
    let mut pairs = 0;
    for _ in 0..depth {
        let mut next = Vec::new();
        for scene in frontier {
            for act in acts {
                let mut after = scene.clone();
                if !(act.run)(&mut after) {
                    continue;
                }
                after.check();
                let Some(twin) = met.get(&key::of(&after)) else {
                    met.insert(key::of(&after), after.clone());
                    next.push(after);
                    continue;
                };
                if twin.world.records == after.world.records && twin.world.store == after.world.store {
                    continue;
                }
                pairs += 1;
                for act in acts {
                    let (mut one, mut two) = (twin.clone(), after.clone());
                    let (did, done) = ((act.run)(&mut one), (act.run)(&mut two));
                    one.check();
                    two.check();
                    assert_eq!(did, done, "{} {}\n{}", act.actor, act.what, key::text(&after));
                    assert_eq!(key::text(&one), key::text(&two), "{} {}\n{}", act.actor, act.what, key::text(&after));
                }
            }
        }
        frontier = next;
    }
    pairs
}
