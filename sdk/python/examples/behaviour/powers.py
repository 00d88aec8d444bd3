"""Leases, fencing tokens, timers, effects and the log."""

import logging
from datetime import timedelta
from typing import Any

from asked import answer, behaviour, refusal, shown

from interlock import Done, Entity, Failure, checkpoint, effects, fencing, timers, to
from interlock.log import TRACE


@behaviour("lease")
def lease(entity: Entity, _: Any) -> Done:
    desk = entity.lease("desk")
    name, token, holds = desk.name, desk.token, desk.still_holds()
    desk.extend(timedelta(seconds=300))
    extended = desk.time_left() > timedelta(seconds=60) and desk.token == token
    desk.release()
    again = entity.lease("desk", timedelta(seconds=30))
    short, grown = again.time_left() <= timedelta(seconds=30), again.token > token
    return answer(entity, {"name": name, "holds": holds, "extended": extended, "short": short, "grown": grown})


@behaviour("lease-refused")
def lease_refused(entity: Entity, _: Any) -> Done:
    return answer(entity, shown(refusal(lambda: entity.lease("desk"))))


@behaviour("fencing")
def fenced(entity: Entity, _: Any) -> Done:
    """Fails once, so that a second attempt can compare."""
    token = fencing.token(entity)
    if entity.attempt == 1:
        entity.save(checkpoint(set={"data.saw.token": token}))
        raise Failure.retry("for another token")
    before = entity.data()["saw"]["token"]
    return answer(entity, {"grown": token > before, "holds": fencing.still_holds(entity)})


@behaviour("timer-after")
def timer_after(entity: Entity, _: Any) -> Done:
    timers.after(entity, "bell", timedelta(seconds=60))
    return entity.transition(to("waiting"))


@behaviour("timer-at")
def timer_at(entity: Entity, _: Any) -> Done:
    timers.at(entity, "gong", entity.event.at_ms + 60_000)
    return entity.transition(to("waiting"))


@behaviour("timer-cancel")
def timer_cancel(entity: Entity, _: Any) -> Done:
    timers.after(entity, "bell", timedelta(seconds=10))
    timers.after(entity, "gong", timedelta(seconds=20))
    timers.cancel(entity, "bell")
    return entity.transition(to("waiting"))


@behaviour("effect")
def effect(entity: Entity, value: Any) -> Done:
    effects.request(entity, "api", params={"item": value["item"]}, headers={"X-Note": "from a step"}, body=value)
    return entity.transition(to("waiting"))


@behaviour("effect-denied")
def effect_denied(entity: Entity, _: Any) -> Done:
    credentials = {"Authorization": "Bearer x"}
    no = refusal(lambda: effects.request(entity, "api", params={"item": 1}, headers=credentials))
    return answer(entity, shown(no))


@behaviour("log")
def log(entity: Entity, _: Any) -> Done:
    logging.log(TRACE, "this is trace")
    logging.debug("this is debug")
    logging.info("this is info")
    logging.warning("this is warn")
    logging.error("this is error")
    logging.info("with fields", extra={"n": 9007199254740993, "text": "Grüße"})
    return answer(entity, "logged")
