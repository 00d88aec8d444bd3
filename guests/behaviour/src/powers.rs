//! Leases, fencing tokens, timers, effects and the log.

use crate::{Answer, Behaviour, Went, expect_refused};
use interlock::{Entity, Failure, checkpoint, fencing, to};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const ALL: &[(&str, Behaviour)] = &[
    ("lease", lease),
    ("lease-refused", |entity, _| expect_refused(entity.lease("desk"))),
    ("fencing", fencing),
    ("timer-after", timer_after),
    ("timer-at", timer_at),
    ("timer-cancel", timer_cancel),
    ("effect", effect),
    ("effect-denied", |entity, _| {
        expect_refused(entity.effect("api").param("item", 1).header("Authorization", "Bearer x").request())
    }),
    ("log", log),
];

fn lease(entity: &Entity, _: &Value) -> Answer {
    let desk = entity.lease("desk")?;
    let (name, token, holds) = (desk.name(), desk.token(), desk.still_holds());
    desk.extend_for(Duration::from_secs(300))?;
    let extended = desk.time_left() > Duration::from_secs(60) && desk.token() == token;
    desk.release()?;
    let again = entity.lease_for("desk", Duration::from_secs(30))?;
    let (short, grown) = (again.time_left() <= Duration::from_secs(30), again.token() > token);
    Ok(Went::Saw(json!({ "name": name, "holds": holds, "extended": extended, "short": short, "grown": grown })))
}

/// Fails once, so that a second attempt can compare.
fn fencing(entity: &Entity, _: &Value) -> Answer {
    let token = fencing::token(entity);
    if entity.attempt() == 1 {
        entity.save(checkpoint().set("data.saw.token", token))?;
        return Err(Failure::retry("for another token"));
    }
    let data: Value = entity.data()?;
    let before = data["saw"]["token"].as_u64().unwrap_or(u64::MAX);
    Ok(Went::Saw(json!({ "grown": token > before, "holds": fencing::still_holds(entity) })))
}

fn timer_after(entity: &Entity, _: &Value) -> Answer {
    entity.timer("bell").after(Duration::from_secs(60))?;
    Ok(entity.transition(to("waiting"))?.into())
}

fn timer_at(entity: &Entity, _: &Value) -> Answer {
    let minute = i64::try_from(entity.event().at_ms).unwrap_or(i64::MAX).saturating_add(60_000);
    entity.timer("gong").at_ms(minute)?;
    Ok(entity.transition(to("waiting"))?.into())
}

fn timer_cancel(entity: &Entity, _: &Value) -> Answer {
    entity.timer("bell").after(Duration::from_secs(10))?;
    entity.timer("gong").after(Duration::from_secs(20))?;
    entity.timer("bell").cancel()?;
    Ok(entity.transition(to("waiting"))?.into())
}

fn effect(entity: &Entity, value: &Value) -> Answer {
    let item = value["item"].as_str().unwrap_or_default();
    entity.effect("api").param("item", item).header("X-Note", "from a step").body(value).request()?;
    Ok(entity.transition(to("waiting"))?.into())
}

/// By the crate that libraries log with, and by the SDK's own macros.
fn log(_: &Entity, _: &Value) -> Answer {
    log::trace!("this is trace");
    log::debug!("this is debug");
    log::info!("this is info");
    log::warn!("this is warn");
    log::error!("this is error");
    interlock::log::info!(n = 9_007_199_254_740_993_u64, text = "Grüße", "with fields");
    Ok(Went::Saw(json!("logged")))
}
