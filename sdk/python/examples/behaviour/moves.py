"""What a step asks for: transitions, saves, failures, and what it hears if it may not."""

from datetime import timedelta
from typing import Any

from asked import answer, behaviour, refusal, shown

from interlock import (
    Append,
    Condition,
    Done,
    Entity,
    Failure,
    From,
    Increment,
    Max,
    Min,
    Rejection,
    Remove,
    Set,
    checkpoint,
    to,
)


@behaviour("change")
def change(entity: Entity, value: Any) -> Done:
    return entity.transition(
        to(
            "idle",
            data={"what": "change", "saw": value, "count": 1},
            outputs={"result": value},
            conditions=[
                Condition("Ready", True, "AllThere", "everything is there"),
                Condition("Stale", False),
                Condition("Reachable", None, "NotAsked", "nobody has asked"),
            ],
        )
    )


@behaviour("mutations")
def mutations(entity: Entity, _: Any) -> Done:
    saw = {"n": 1, "gone": True, "list": [1, 2], "high": 5, "low": 5}
    changes = [
        Set("data.saw.made.on.the.way", True),
        Set("data.saw.null", None),
        Set("data.saw.event", From("event.value")),
        Increment("data.saw.n", 41),
        Increment("data.saw.new", -1),
        Remove("data.saw.gone"),
        Append("data.saw.list", 3, limit=2),
        Max("data.saw.high", 9),
        Min("data.saw.low", 9),
    ]
    return entity.transition(to("idle", data={"what": "mutations", "saw": saw}, set=changes))


@behaviour("look")
def look(entity: Entity, _: Any) -> Done:
    return entity.transition(to("looking"))


@behaviour("walk")
def walk(entity: Entity, _: Any) -> Done:
    """Three parts, each saved; where it stands is read anew from what was saved."""
    while (done := entity.data()["saw"].get("done", 0)) != 3:
        walking = Condition("Walked", False, "Walking", f"{done} of 3")
        entity.save(checkpoint(set=[Increment("data.saw.done")], conditions=[walking]))
    return entity.transition(to("idle", outputs={"result": done}, conditions=[Condition("Walked", True)]))


@behaviour("reload")
def reload(entity: Entity, _: Any) -> Done:
    """For a scenario in which another write gets in first."""
    before = entity.version
    try:
        return entity.transition(to("idle", set={"data.saw": "there was no conflict"}))
    except Rejection as no:
        if no.kind != "conflict":
            raise
        entity.reload()
        return answer(entity, {"kind": no.kind, "grown": entity.version > before})


@behaviour("not-allowed")
def not_allowed(entity: Entity, _: Any) -> Done:
    return answer(entity, shown(refusal(lambda: entity.transition(to("nowhere")))))


@behaviour("guard")
def guard(entity: Entity, _: Any) -> Done:
    """Refused with 1; the handle is as good as before, and 2 is enough."""
    no = refusal(lambda: entity.transition(to("counted", set={"data.count": 1})))
    return entity.transition(to("counted", set={"data.count": 2, "data.saw": shown(no)}))


@behaviour("schema")
def schema(entity: Entity, _: Any) -> Done:
    return answer(entity, shown(refusal(lambda: entity.transition(to("idle", set={"data.count": "many"})))))


@behaviour("denied")
def denied(entity: Entity, _: Any) -> Done:
    return answer(entity, shown(refusal(lambda: entity.transition(to("idle", set={"desired.size": 1})))))


@behaviour("number")
def number(entity: Entity, _: Any) -> Done:
    """No 64 bits hold it, and it must not be rounded."""
    no = refusal(lambda: entity.transition(to("idle", set={"data.saw": 2**64 + 1})))
    return answer(entity, {"kind": no.kind})


@behaviour("uncaught")
def uncaught(entity: Entity, _: Any) -> Done:
    return entity.transition(to("nowhere"))


@behaviour("retry")
def retry(entity: Entity, _: Any) -> Done:
    if entity.attempt == 1:
        raise Failure.retry("not yet there", code="not-yet", after=timedelta(seconds=30))
    return answer(entity, {"attempt": entity.attempt})


@behaviour("give-up")
def give_up(entity: Entity, _: Any) -> Done:
    raise Failure.permanent("it is of no use", code="no-use")


@behaviour("exception")
def exception(entity: Entity, _: Any) -> Done:
    raise RuntimeError("this step is broken")


@behaviour("no-transition")
def no_transition(entity: Entity, _: Any) -> Done:
    return None  # type: ignore[return-value]  # as somebody writes it who has no type checker
