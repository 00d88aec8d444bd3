//! Leases.

use super::{Paint, ago, clock, fields, span, table};
use interlock_daemon::api::{LeaseEntryView, LeaseHeld, LeaseHolderView, LeasePage, LeaseView, WatchLease};

/// A lease that was granted or renewed.
pub(crate) fn held(held: &LeaseHeld, paint: Paint) -> String {
    let word = if held.new { paint.green("granted") } else { paint.green("renewed") };
    let until = clock(&held.until);
    let mut text = format!("{}   {word} for {}   until {until}\n", paint.bold(&held.lease), span(held.ttl_ms));
    let grant = held.grant.clone().unwrap_or_default();
    text.push_str(&fields("  ", &[("token", held.token.to_string()), ("grant", grant)]));
    text
}

/// One lease.
pub(crate) fn lease(lease: &LeaseView, paint: Paint) -> String {
    let free = if lease.line.is_empty() { "free" } else { "about to be granted" };
    let mut text = match &lease.holder {
        Some(holder) => format!("{}   {}\n", paint.bold(&lease.lease), holding(holder)),
        None => format!("{}   {free}\n", paint.bold(&lease.lease)),
    };
    let mut pairs = Vec::new();
    if let Some(holder) = &lease.holder {
        let bound = format!("{}, and {} at the latest", clock(&holder.until), clock(&holder.hold_until));
        pairs.push(("renewed", format!("{} ago", ago(&holder.renewed))));
        pairs.push(("until", bound));
    }
    pairs.extend(
        lease
            .delay
            .iter()
            .map(|delay| ("kept", format!("for {}, who lost it, until {}", delay.owner, clock(&delay.until)))),
    );
    pairs.extend(lease.line.iter().enumerate().map(|(at, waiter)| {
        let until = waiter.until.as_ref().map(|until| format!(", until {}", clock(until))).unwrap_or_default();
        ("in line", format!("{}. {} for {}{until}", at + 1, waiter.owner, ago(&waiter.since)))
    }));
    text.push_str(&fields("", &pairs));
    if !lease.entries.is_empty() {
        let rows: Vec<_> = lease.entries.iter().rev().map(row).collect();
        text.push('\n');
        text.push_str(&table(&["no", "when", "what", "token", "owner", "more", "by"], &rows));
    }
    text
}

fn holding(holder: &LeaseHolderView) -> String {
    format!("held by {} for {}, token {}", holder.owner, ago(&holder.since), holder.token)
}

fn row(entry: &LeaseEntryView) -> Vec<String> {
    let LeaseEntryView { number, what, owner, token, note, by, at } = entry;
    let token = token.map(|token| token.to_string()).unwrap_or_default();
    vec![format!("{number:>2}"), clock(at), what.clone(), token, owner.clone(), note.clone(), by.clone()]
}

/// A page of leases.
pub(crate) fn leases(page: &LeasePage) -> String {
    let rows = page.leases.iter().map(|lease| {
        let holder = lease.holder.as_ref();
        let of = |what: fn(&LeaseHolderView) -> String| holder.map(what).unwrap_or_default();
        vec![
            lease.lease.clone(),
            holder.map_or_else(|| "free".to_owned(), |holder| holder.owner.clone()),
            of(|holder| holder.token.to_string()),
            of(|holder| clock(&holder.since)),
            of(|holder| clock(&holder.until)),
            if lease.in_line == 0 { String::new() } else { lease.in_line.to_string() },
        ]
    });
    table(&["lease", "held by", "token", "since", "until", "in line"], &rows.collect::<Vec<_>>())
}

/// What became of a lease, as it happens.
pub(crate) fn watched_lease(watched: &WatchLease) -> String {
    let WatchLease { lease, entry, .. } = watched;
    let token = entry.token.map(|token| format!("token {token}")).unwrap_or_default();
    format!("{}  {lease:<24}  {:<10}  {token:<10}  {}: {}\n", clock(&entry.at), entry.what, entry.owner, entry.note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use interlock_daemon::api::{LeaseDelayView, LeaseSummary};

    /// No time of a day, so that it is shown as it is in every zone.
    fn at(time: &str) -> String {
        time.to_owned()
    }

    fn entry(number: u64, what: &str, token: Option<u64>) -> LeaseEntryView {
        let (owner, note, by) = ("ci".to_owned(), "for 30 s".to_owned(), "local".to_owned());
        LeaseEntryView { number, what: what.to_owned(), owner, token, note, by, at: at("10:15:03") }
    }

    #[test]
    fn leases_say_who_has_them_and_what_became_of_them() {
        let holder = LeaseHolderView {
            owner: "ci".to_owned(),
            execution: false,
            token: 7,
            since: at("10:15:03"),
            renewed: at("10:15:03"),
            until: at("10:15:33"),
            hold_until: at("11:15:03"),
            ttl_ms: 30_000,
        };
        let summary = |lease: &str, holder: Option<&LeaseHolderView>, in_line| LeaseSummary {
            lease: lease.to_owned(),
            holder: holder.cloned(),
            in_line,
        };
        let page = LeasePage { leases: vec![summary("a", Some(&holder), 2), summary("b", None, 0)], next: None };
        let free = LeaseView {
            lease: "deploy/web".to_owned(),
            holder: None,
            line: Vec::new(),
            entries: vec![entry(2, "expired", Some(7)), entry(1, "acquired", Some(7))],
            delay: Some(LeaseDelayView { owner: "a client".to_owned(), until: at("10:16:00") }),
        };
        let told = WatchLease { position: "9.0".to_owned(), lease: "a".to_owned(), entry: entry(3, "contended", None) };
        let granted = LeaseHeld {
            lease: "a".to_owned(),
            grant: Some("secret".to_owned()),
            token: 7,
            ttl_ms: 30_000,
            until: at("10:15:33"),
            new: true,
        };
        let all = [held(&granted, Paint::Off), leases(&page), lease(&free, Paint::Off), watched_lease(&told)].concat();
        expect![[r#"
            a   granted for 30 s   until 10:15:33
              token      7
              grant      secret
            lease  held by  token  since     until     in line
            a      ci       7      10:15:03  10:15:33  2
            b      free
            deploy/web   free
            kept       for a client, who lost it, until 10:16:00

            no  when      what      token  owner  more      by
             1  10:15:03  acquired  7      ci     for 30 s  local
             2  10:15:03  expired   7      ci     for 30 s  local
            10:15:03  a                         contended               ci: for 30 s
        "#]]
        .assert_eq(&all);
    }
}
