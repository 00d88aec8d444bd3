"""What entered the visit: stored by the host, the same for every attempt of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, overload

from . import document, shape
from .failure import Failure

T = TypeVar("T")
B = TypeVar("B")

EventKind = Literal[
    "signal",
    "timer",
    "deadline",
    "transition",
    "desired-changed",
    "failure",
    "created",
    "child",
    "join",
    "effect",
    "cancel",
    "operator",
    "other",
]
"""What sort of thing happened; ``wit/types.wit`` says more of each. ``other`` has no word here: its name says what."""


@dataclass(frozen=True)
class EffectResult(Generic[B]):
    """What came of a request: the payload of an event of the kind ``effect``."""

    effect: str
    """The ``Idempotency-Key`` it was sent under: the same over all tries."""
    number: int
    """Its number in its entity's outbox."""
    target: str
    """The target."""
    execution: str
    """The execution that asked for it."""
    status: int | None = None
    """The status of the answer, if there was one."""
    body: B | Any = None
    """The body of the answer: JSON as it is, else as text."""
    truncated: bool = False
    """Whether there was more of it than is kept."""
    code: str | None = None
    """Why it was given up: ``refused``, ``exhausted``, ``denied``, ``withdrawn``, ``fenced``; none if it was done."""
    reason: str | None = None
    """The same for people."""


@dataclass(frozen=True)
class Event:
    """What entered the visit."""

    id: str
    """Unique per entity; the client's own id where it sent one."""
    kind: EventKind
    """What sort of thing happened."""
    name: str
    """The declared name of a signal or timer; for other kinds what it is about."""
    text: str | None
    """What came with it, as JSON text."""
    at_ms: int
    """Milliseconds since 1970 when the host committed it."""

    @overload
    def payload(self) -> Any: ...
    @overload
    def payload(self, of: type[T]) -> T | None: ...
    def payload(self, of: Any = Any) -> Any:
        """What came with it, as plain values or as a type of yours; none if nothing came.

        Raises a permanent :class:`Failure` with the code ``payload-shape`` if it is no such type.
        """
        if self.text is None:
            return None
        return shape.read(of, document.decode(self.text), f"the payload of {self.name}", "payload-shape")

    @overload
    def effect(self) -> EffectResult[Any]: ...
    @overload
    def effect(self, body: type[B]) -> EffectResult[B]: ...
    def effect(self, body: Any = Any) -> EffectResult[Any]:
        """What came of a request; its body as plain values or as a type of yours, none if there was none.

        Raises a permanent :class:`Failure`, ``no-effect`` if the event is about something else.
        """
        if self.kind != "effect" or self.text is None:
            got = f"expected the result of an effect, got {self.kind} {self.name}"
            raise Failure.permanent(got, code="no-effect")
        result: EffectResult[Any] = self.payload(EffectResult)  # type: ignore[assignment]
        if result.body is None:
            return result
        read = shape.read(body, result.body, f"the answer of {result.target}", "payload-shape")
        return replace(result, body=read)
