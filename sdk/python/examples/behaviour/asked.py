"""What every behaviour is, and how it answers."""

from collections.abc import Callable
from typing import Any

from interlock import Done, Entity, Failure, Rejection, to

Behaviour = Callable[[Entity, Any], Done]

BEHAVIOURS: dict[str, Behaviour] = {}


def behaviour(name: str) -> Callable[[Behaviour], Behaviour]:
    """Makes a function the behaviour of this name."""

    def named(function: Behaviour) -> Behaviour:
        BEHAVIOURS[name] = function
        return function

    return named


def answer(entity: Entity, saw: object) -> Done:
    """The answer goes into `data.saw` on the way to `idle`."""
    return entity.transition(to("idle", set={"data.saw": saw}))


def refusal(ask: Callable[[], object]) -> Rejection:
    """What refuses this, which is to be refused."""
    try:
        ask()
    except Rejection as no:
        return no
    raise Failure.permanent("it was not refused", code="not-refused")


def shown(no: Rejection) -> dict[str, object]:
    """A refusal as the behaviours answer it."""
    return {
        "kind": no.kind,
        "code": no.code,
        "subject": no.subject,
        "expected": no.expected,
        "got": no.got,
        "retryable": no.retryable,
    }
