"""What a step reads."""

from datetime import timedelta
from typing import Any

from asked import answer, behaviour

from interlock import Done, Entity, checkpoint


@behaviour("read")
def read(entity: Entity, _: Any) -> Done:
    event = entity.event
    saw = {
        "id": entity.id,
        "key": entity.key,
        "execution": entity.execution.startswith(f"{entity.id}@"),
        "attempt": entity.attempt,
        "state": entity.state,
        "version": entity.version,
        "desired": entity.desired(),
        "data": entity.data(),
        "outputs": entity.outputs(),
        "cancel": entity.cancel_requested(),
        "time": entity.time_left() > timedelta(0),
        "event": {
            "id": event.id,
            "kind": event.kind,
            "name": event.name,
            "payload": event.payload(),
            "at": event.at_ms > 0,
        },
    }
    return answer(entity, saw)


@behaviour("read-nothing")
def read_nothing(entity: Entity, _: Any) -> Done:
    return answer(entity, {"desired": entity.desired() is None, "outputs": entity.outputs() is None})


@behaviour("echo")
def echo(entity: Entity, value: Any) -> Done:
    return answer(entity, value)


@behaviour("nulls")
def nulls(entity: Entity, _: Any) -> Done:
    """Null is a value; a field that is not there is none. Both are read back from what was saved."""
    entity.save(checkpoint(set={"data.saw": {"null": None, "list": [None]}}))
    saw = entity.data()["saw"]

    def word(field: str) -> str:
        if field not in saw:
            return "missing"
        return "null" if saw[field] is None else "there"

    return answer(entity, {field: word(field) for field in ("null", "other", "list")})
