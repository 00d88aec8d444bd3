//! What a search found, told.

use super::Paint;
use interlock_lab::explore::{Counts, Found, Stopped, Told};
use serde::Serialize;

/// What a search from one scenario found.
#[derive(Debug, Serialize)]
pub(crate) struct Searched {
    scenario: String,
    sentence: String,
    /// `holds`, `broken`, or `open`: nothing broke, but not everything was seen.
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<Break>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<SeenCounts>,
    /// The lines of what happened, if something broke or was played again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    story: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
    /// Choices of an order played again that could not be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_over: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Break {
    promise: String,
    entity: String,
    expected: String,
    got: String,
    faults: u32,
    choices: usize,
}

/// What was looked at, with at most `faults` in one order.
#[derive(Debug, Serialize)]
struct SeenCounts {
    faults: u32,
    depth: usize,
    #[serde(flatten)]
    counts: Counts,
}

impl Searched {
    pub(crate) fn of(scenario: &str, sentence: &str, searched_in: &str, found: &Found) -> Self {
        let stopped = found.stopped.map(|stopped| match stopped {
            Stopped::Depth => format!("an order was longer than {}: --depth", count(found.bounds.depth, "choice")),
            Stopped::States => format!("there were more than {}: --states", count(found.bounds.states, "state")),
        });
        let result = match (&found.broken, &stopped) {
            (Some(_), _) => "broken",
            (None, Some(_)) => "open",
            (None, None) => "holds",
        };
        let mut searched = Self::new(scenario, sentence, result);
        searched.stopped = stopped;
        searched.seen = Some(SeenCounts { faults: found.faults, depth: found.bounds.depth, counts: found.counts });
        if let Some(told) = &found.broken {
            searched.tell(searched_in, told);
        }
        searched
    }

    /// One order, played again.
    pub(crate) fn again(scenario: &str, sentence: &str, searched_in: &str, told: &Told) -> Self {
        let result = if told.broken.is_some() { "broken" } else { "holds" };
        let mut searched = Self::new(scenario, sentence, result);
        searched.passed_over = (told.passed_over > 0).then_some(told.passed_over);
        searched.tell(searched_in, told);
        searched
    }

    fn new(scenario: &str, sentence: &str, result: &'static str) -> Self {
        Self {
            scenario: scenario.to_owned(),
            sentence: sentence.to_owned(),
            result,
            broken: None,
            stopped: None,
            seen: None,
            story: Vec::new(),
            replay: None,
            passed_over: None,
        }
    }

    fn tell(&mut self, searched_in: &str, told: &Told) {
        self.broken = told.broken.as_ref().map(|broken| Break {
            promise: broken.promise.clone(),
            entity: broken.entity.clone(),
            expected: broken.expected.clone(),
            got: broken.got.clone(),
            faults: told.faults,
            choices: told.path.0.len(),
        });
        let text = told.story.text(0..told.story.lines().len(), "");
        self.story = text.lines().map(|line| line.trim_end().to_owned()).collect();
        self.replay = Some(format!("interlock explore {searched_in} --replay {}:{}", self.scenario, told.path));
    }
}

/// One scenario's search, for people.
pub(crate) fn searched(searched: &Searched, paint: Paint) -> String {
    let mut text = match searched.result {
        "broken" => paint.red("BROKEN"),
        "open" => paint.yellow("open  "),
        _ => paint.green("holds "),
    };
    text.push_str(&format!("  {}  {}\n", paint.bold(&searched.scenario), searched.sentence));
    if let Some(broken) = &searched.broken {
        text.push_str(&format!("   promise    {}: {}\n", broken.entity, broken.promise));
        text.push_str(&format!("   expected   {}\n   got        {}\n", broken.expected, broken.got));
        let faults = count(broken.faults as usize, "fault");
        text.push_str(&format!("   after      {faults}, {}; this is how:\n", count(broken.choices, "choice")));
    }
    if !searched.story.is_empty() {
        text.push('\n');
        for line in &searched.story {
            text.push_str(&format!("   {line}\n"));
        }
        text.push('\n');
    }
    if let (Some(replay), true) = (&searched.replay, searched.broken.is_some()) {
        text.push_str(&format!("   replay     {replay}\n"));
    }
    if let Some(passed_over) = searched.passed_over {
        let choices = count(passed_over, "choice");
        text.push_str(&format!("   passed over {choices} of that order: not possible where it stands\n"));
    }
    if let Some(seen) = &searched.seen {
        text.push_str(&seen_by(seen, searched.broken.is_some(), paint));
    }
    if let Some(stopped) = &searched.stopped {
        text.push_str(&format!("   not all    {stopped}\n"));
    } else if searched.result == "holds"
        && let Some(seen) = &searched.seen
    {
        text.push_str(&format!(
            "   complete   every order with at most {}, no order longer than {}\n",
            count(seen.faults as usize, "fault"),
            count(seen.counts.deepest, "choice")
        ));
    }
    text
}

fn seen_by(seen: &SeenCounts, broken: bool, paint: Paint) -> String {
    let tried = if broken { "until then" } else { "seen      " };
    paint.dim(&format!(
        "   {tried} {}, {}, {}, {}; {}, {}, {}, {}{}{}; {} recognised, {} left out as independent",
        count(seen.counts.states, "state"),
        count(seen.counts.choices, "choice"),
        count(seen.counts.orders, "order"),
        count(seen.counts.ends, "end"),
        count(seen.counts.crash_points, "crash point"),
        count(seen.counts.lost, "lost answer"),
        count(seen.counts.doubled, "doubled delivery"),
        count(seen.counts.slow, "slow step"),
        where_any(seen.counts.leases_lost, "lost lease"),
        where_any(seen.counts.unanswered, "unanswered request"),
        count(seen.counts.equal, "equal state"),
        seen.counts.independent,
    )) + "\n"
}

/// Said only where there are leases, or requests, at all.
fn where_any(number: usize, what: &str) -> String {
    if number == 0 { String::new() } else { format!(", {}", count(number, what)) }
}

fn count(number: usize, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}
