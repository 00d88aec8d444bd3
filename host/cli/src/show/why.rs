//! Why something stands where it stands.

use super::{Paint, ago, clock, fields};
use interlock_daemon::api::{ClaimedRowView, LeaseUntilView, NextView, WhyView};

/// Why, as it is read at night: the answer first, then since when, what comes next, and what to type.
pub(crate) fn why(why: &WhyView, paint: Paint) -> String {
    let mut text = format!("{}   {}\n", paint.bold(&why.subject), why.sentence);
    let past = |time: &Option<String>| time.as_ref().map(|time| format!("{} ({} ago)", clock(time), ago(time)));
    let failure = why.failure.as_ref().map(|failed| {
        let reason = failed.reason.lines().next().unwrap_or_default();
        format!("{}: {reason}", failed.code)
    });
    let mut pairs = vec![
        ("held by", why.holder.clone().unwrap_or_default()),
        ("since", past(&why.since).unwrap_or_default()),
        ("progress", past(&why.progress).unwrap_or_default()),
        ("failure", failure.unwrap_or_default()),
    ];
    pairs.extend(why.leases.iter().map(|lease| ("lease", holding(lease))));
    pairs.extend(why.rows.iter().map(|row| ("row", claimed(row, why))));
    if why.rows_more > 0 {
        pairs.push(("row", format!("and {} more", why.rows_more)));
    }
    pairs.extend(why.next.iter().map(|next| ("next", coming(next))));
    pairs.extend(why.operator.iter().map(|command| ("try", command.clone())));
    pairs.push(("owner", why.owner.clone().unwrap_or_default()));
    text.push_str(&fields("  ", &pairs));
    text
}

fn holding(lease: &LeaseUntilView) -> String {
    match &lease.until {
        Some(until) => format!("{}, until {} unless it is renewed", lease.lease, clock(until)),
        None => format!("{}, lost", lease.lease),
    }
}

/// A row, and who has claimed it unless that goes without saying.
fn claimed(row: &ClaimedRowView, why: &WhyView) -> String {
    let ClaimedRowView { table, key, claimed_by, since } = row;
    let said = why.holder.as_ref() == Some(claimed_by) || why.subject == *claimed_by;
    let by = if said { String::new() } else { format!(" by {claimed_by}") };
    format!("{table}/{key}, claimed{by} since {}", clock(since))
}

fn coming(next: &NextView) -> String {
    match &next.at {
        Some(at) => format!("{}   {}", clock(at), next.what),
        None => next.what.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use interlock_daemon::api::Because;

    #[test]
    fn why_says_what_comes_next_and_what_to_type() {
        // No times of a day, so that they are shown as they are in every zone.
        let at = |time: &str| Some(time.to_owned());
        let next = |what: &str, at: Option<String>| NextView { what: what.to_owned(), at };
        let row = |key: &str, by: &str| ClaimedRowView {
            table: "jobs".to_owned(),
            key: key.to_owned(),
            claimed_by: by.to_owned(),
            since: "10:14:00".to_owned(),
        };
        let view = WhyView {
            subject: "pool/a".to_owned(),
            because: Because::Lease,
            sentence: "plan does not begin before it has lease rack-7, held by ci, place 2 in line".to_owned(),
            holder: Some("pool/a@3.1".to_owned()),
            since: None,
            progress: None,
            failure: None,
            awaits: None,
            leases: vec![
                LeaseUntilView { lease: "region".to_owned(), until: at("10:15:33") },
                LeaseUntilView { lease: "gone".to_owned(), until: None },
            ],
            rows: vec![row("order-1", "pool/a@3.1"), row("order-2", "pool/a@2.7")],
            rows_more: 5,
            next: vec![next("the deadline of planning -> ready", at("10:30:00")), next("place 1 in line: ci", None)],
            operator: vec!["interlock why --lease rack-7".to_owned()],
            owner: Some("platform-team".to_owned()),
        };
        expect![[r#"
            pool/a   plan does not begin before it has lease rack-7, held by ci, place 2 in line
              held by    pool/a@3.1
              lease      region, until 10:15:33 unless it is renewed
              lease      gone, lost
              row        jobs/order-1, claimed since 10:14:00
              row        jobs/order-2, claimed by pool/a@2.7 since 10:14:00
              row        and 5 more
              next       10:30:00   the deadline of planning -> ready
              next       place 1 in line: ci
              try        interlock why --lease rack-7
              owner      platform-team
        "#]]
        .assert_eq(&why(&view, Paint::Off));
    }
}
