"""For step authors: a step is one function on typed data that ends by asking for a transition.

The host owns the entity's state. A step reads a snapshot of it, does its work and asks; the host decides inside one
transaction and answers::

    from dataclasses import dataclass

    from interlock import Done, Entity, Failure, step, to


    @dataclass
    class Data:
        size: int
        target: int


    @step
    def resize(pool: Entity) -> Done:
        data = pool.data(Data)
        if data.target > 64:
            raise Failure.permanent("no pool has more than 64 nodes", code="too-large")
        data.size = data.target
        return pool.transition(to("ready", data=data))

What the host refuses is raised as a :class:`Rejection`. One that nobody catches ends the attempt: retryable becomes a
retry, the rest is permanent. A step that wants to decide for itself catches it; after a ``conflict`` it calls
:meth:`Entity.reload` and decides again.

A step runs at least once and its accepted transition happens exactly once: whatever it does outside must bear
repetition, and should carry :func:`interlock.fencing.token`.

This package knows no rule: what is allowed is decided by the host alone. ``interlock.timers``, ``interlock.effects``
and ``interlock.rows`` are powers: a component has those that its modules import, and ``interlock inspect`` shows them.
"""

from .change import (
    KEEP,
    Append,
    Change,
    Checkpoint,
    Condition,
    From,
    Increment,
    Max,
    Min,
    Mutation,
    Remove,
    Set,
    checkpoint,
    to,
)
from .entity import Done, Entity
from .event import EffectResult, Event, EventKind
from .failure import Failure
from .filter import Comparison, Field, Filter, field
from .lease import Lease
from .rejection import Rejection, RejectionKind
from .steps import step

__all__ = [
    "KEEP",
    "Append",
    "Change",
    "Checkpoint",
    "Comparison",
    "Condition",
    "Done",
    "EffectResult",
    "Entity",
    "Event",
    "EventKind",
    "Failure",
    "Field",
    "Filter",
    "From",
    "Increment",
    "Lease",
    "Max",
    "Min",
    "Mutation",
    "Rejection",
    "RejectionKind",
    "Remove",
    "Set",
    "checkpoint",
    "field",
    "step",
    "to",
]
