//! The targets of the design for this release, judged by the figures of this run and nothing else.

use crate::report::{Report, Side, Target};
use crate::{raw, scale, steps, transitions};

/// Concurrent entities that the targets speak of.
const ENTITIES: usize = 64;

/// Growth of resident memory with each idle entity that still counts as none, in bytes: a thousandth of
/// what an entity takes on disk; below it are the allocator's own leftovers.
const NOTHING_BYTES: f64 = 1.0;

/// Every target, measured or not.
pub(crate) fn judge(report: &Report) -> Vec<Target> {
    let figure = |title: &str, row: &str, name: &str| {
        let group = report.groups.iter().find(|group| group.title == title)?;
        group.figure(row, name)
    };
    let whole = figure(steps::TITLE, &transitions::row_name(ENTITIES), "steps_per_s");
    let raw_steps = figure(raw::TITLE, &raw::row_name(ENTITIES), "steps_per_s");
    let one = figure(transitions::TITLE, &transitions::row_name(1), "p50_us");
    let one_whole = figure(steps::TITLE, &transitions::row_name(1), "p50_us");
    let raw_one = figure(raw::TITLE, &raw::row_name(1), "batch_p50_us");
    let start = figure(steps::START_TITLE, steps::START_ROW, "p50_us");
    let target = |what, side, bound, measured| Target { what, side, bound, measured };
    vec![
        target("whole durable steps per second, 64 x 5", Side::AtLeast, 12_600.0, whole),
        target("the same, as a part of raw redb (64 a batch)", Side::AtLeast, 0.70, part(whole, raw_steps)),
        target("one transition, one client, p50, in raw redb's", Side::AtMost, 1.3, part(one, raw_one)),
        target("the same as a whole step with its run", Side::AtMost, 1.3, part(one_whole, raw_one)),
        target("one run of a no-op step, p50, us", Side::AtMost, 25.0, start),
        target("cost per transition, most by least", Side::AtMost, 2.0, flatness(report)),
        target("bytes of memory that grow with an idle entity", Side::AtMost, NOTHING_BYTES, growth(report)),
    ]
}

fn part(of: Option<f64>, whole: Option<f64>) -> Option<f64> {
    Some(of? / whole?)
}

/// The highest cost per transition by the lowest, over all numbers of entities.
fn flatness(report: &Report) -> Option<f64> {
    let group = report.groups.iter().find(|group| group.title == scale::COST)?;
    let costs = group.rows.iter().filter_map(|row| group.figure(&row.name, "us_per_transition"));
    let (least, most) = costs.fold((f64::MAX, 0.0_f64), |(least, most), cost| (least.min(cost), most.max(cost)));
    (most > 0.0).then_some(most / least)
}

/// At the largest number of entities: only there has the cache its size.
fn growth(report: &Report) -> Option<f64> {
    let group = report.groups.iter().find(|group| group.title == scale::MEMORY)?;
    let largest = group.rows.last()?;
    group.figure(&largest.name, "growth_bytes_per_entity").filter(|_| !report.quick)
}
