"""What a step can do, one behaviour each: `do` names it.

guests/behaviour says what each does and answers; other languages have the same steps, and the same scenarios.
"""

from dataclasses import dataclass
from typing import Any

import hostile  # noqa: F401 - each module adds its behaviours
import moves  # noqa: F401
import powers  # noqa: F401
import reads  # noqa: F401
import tables  # noqa: F401
from asked import BEHAVIOURS, answer

from interlock import Done, Entity, Failure, step


@dataclass
class Ask:
    """What the event asks for."""

    what: str
    value: Any = None


@step
def behave(entity: Entity) -> Done:
    ask = entity.event.payload(Ask)
    if ask is None:
        raise Failure.permanent("an event without a payload")
    if ask.what not in BEHAVIOURS:
        raise Failure.permanent(ask.what, code="unknown-behaviour")
    return BEHAVIOURS[ask.what](entity, ask.value)


@step
def look(entity: Entity) -> Done:
    """Answers what entered its state."""
    event = entity.event
    if event.kind != "effect":
        has_payload = event.payload() is not None
        return answer(entity, {"kind": event.kind, "name": event.name, "payload": has_payload})
    result = event.effect()
    saw = {"target": result.target, "status": result.status, "body": result.body, "code": result.code}
    return answer(entity, {"kind": event.kind, "name": event.name, **saw})
