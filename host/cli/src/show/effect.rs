//! Effects: where each stands, and why.

use super::{Paint, clock, fields, table};
use crate::client::line;
use interlock_daemon::api::{EffectList, EffectView, StandsView};

/// Effects, one a line.
pub(crate) fn effects(list: &EffectList) -> String {
    let row = |effect: &EffectView| {
        vec![
            effect.entity.clone(),
            format!("{:>2}", effect.number),
            effect.target.clone(),
            stands(effect),
            format!("{:>5}", effect.tries),
            format!("{:>5}", effect.token),
            clock(&effect.at),
            why(effect),
        ]
    };
    let rows: Vec<_> = list.effects.iter().map(row).collect();
    table(&["entity", "no", "target", "stands", "tries", "token", "committed", "why"], &rows)
}

/// One effect, whole.
pub(crate) fn effect(effect: &EffectView, paint: Paint) -> String {
    let head = paint.bold(&format!("effect {} of {}", effect.number, effect.entity));
    let mut text = format!("{head}   {}   {}\n", effect.target, stands(effect));
    let seen = if effect.maybe_sent { "one of them may have reached it" } else { "none has reached it" };
    let late = if effect.outstanding { ", which is over" } else { "" };
    let mut pairs = vec![
        ("why", why(effect)),
        ("tries", format!("{}, {seen}", effect.tries)),
        ("url", effect.url.clone()),
        ("key", effect.key.clone()),
        ("fence", format!("{}, token {}", effect.resource, effect.token)),
        ("by", format!("{}{late}", effect.execution)),
        ("committed", format!("{} at version {}", clock(&effect.at), effect.version)),
    ];
    if let Some(request) = &effect.request {
        pairs.extend(request.headers.iter().map(|(name, value)| ("header", format!("{name}: {value}"))));
        pairs.push(("body", request.body.as_ref().map(line).unwrap_or_default()));
    }
    text.push_str(&fields("", &pairs));
    text
}

fn stands(effect: &EffectView) -> String {
    match (effect.stands, &effect.due, &effect.code) {
        (StandsView::Due, Some(due), _) => format!("due {}", clock(due)),
        (StandsView::Dead, _, Some(code)) => format!("dead: {code}"),
        (StandsView::InFlight, ..) => "in flight".to_owned(),
        (stands, ..) => stands.as_str().to_owned(),
    }
}

/// Why it is dead, or what came of its last try.
fn why(effect: &EffectView) -> String {
    effect.reason.clone().or_else(|| effect.last.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use interlock_daemon::api::EffectRequestView;
    use interlock_kernel::doc::Doc;

    fn one(number: u64, stands: StandsView) -> EffectView {
        EffectView {
            entity: "resource/gpu-7".to_owned(),
            number,
            target: "tickets".to_owned(),
            url: "https://tickets.example.com/v1/pool".to_owned(),
            stands,
            due: None,
            tries: 0,
            maybe_sent: false,
            last: None,
            code: None,
            reason: None,
            key: "5f1c".to_owned(),
            resource: "resource/gpu-7".to_owned(),
            token: 12,
            version: 4,
            attempt: Some(1),
            execution: "resource/gpu-7@3.1".to_owned(),
            outstanding: false,
            at: "noon".to_owned(), // no time of the day it is printed on
            request: None,
        }
    }

    #[test]
    fn effects_say_where_they_stand_and_why() {
        let dead = EffectView {
            code: Some("exhausted".to_owned()),
            reason: Some("8 tries: status 503".to_owned()),
            last: Some("status 503".to_owned()),
            tries: 8,
            maybe_sent: true,
            outstanding: true,
            ..one(1, StandsView::Dead)
        };
        let due = EffectView {
            due: Some("soon".to_owned()),
            last: Some("status 429".to_owned()),
            tries: 1,
            ..one(2, StandsView::Due)
        };
        let effects_of = vec![dead.clone(), due, one(3, StandsView::InFlight), one(10, StandsView::Waits)];
        let body = Doc::parse(r#"{"pool": "gpu-7"}"#).ok().map(interlock_daemon::api::Document);
        let headers = vec![("X-Team".to_owned(), "platform".to_owned())];
        let whole =
            EffectView { request: Some(EffectRequestView { params: Default::default(), headers, body }), ..dead };
        let all = effects(&EffectList { effects: effects_of, more: false }) + &effect(&whole, Paint::Off);
        expect![[r#"
            entity          no  target   stands           tries  token  committed  why
            resource/gpu-7   1  tickets  dead: exhausted      8     12  noon       8 tries: status 503
            resource/gpu-7   2  tickets  due soon             1     12  noon       status 429
            resource/gpu-7   3  tickets  in flight            0     12  noon
            resource/gpu-7  10  tickets  waits                0     12  noon
            effect 1 of resource/gpu-7   tickets   dead: exhausted
            why         8 tries: status 503
            tries       8, one of them may have reached it
            url         https://tickets.example.com/v1/pool
            key         5f1c
            fence       resource/gpu-7, token 12
            by          resource/gpu-7@3.1, which is over
            committed   noon at version 4
            header      X-Team: platform
            body        {"pool":"gpu-7"}
        "#]]
        .assert_eq(&all);
    }
}
