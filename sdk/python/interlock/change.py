"""What a step asks for: the next state or a checkpoint, and what is to be written with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from . import document


class _Keep:
    """The type of :data:`KEEP`."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final = _Keep()
"""Leaves a document as it is. ``None`` is a value: it writes null."""


@dataclass(frozen=True)
class From:
    """A value that the host evaluates inside the transaction, so it cannot be stale.

    ``From("now")``, ``From("now+5m")``, ``From("execution")``, ``From("event.size")``, ``From("data.size")``.
    """

    source: str


class Mutation:
    """One change of one field, applied by the host inside the transaction: one of the classes below."""


@dataclass(frozen=True)
class Set(Mutation):
    """Puts the value at the path; missing objects on the way are made."""

    field: str
    value: object


@dataclass(frozen=True)
class Increment(Mutation):
    """Adds a number, which may be negative; a missing field starts from 0."""

    field: str
    by: object = 1


@dataclass(frozen=True)
class Remove(Mutation):
    """Takes the field away; a missing one is no refusal."""

    field: str


@dataclass(frozen=True)
class Append(Mutation):
    """Adds to the end of a list, of which the newest ``limit`` items stay."""

    field: str
    value: object
    limit: int


@dataclass(frozen=True)
class Max(Mutation):
    """Keeps the larger of the field and the value."""

    field: str
    value: object


@dataclass(frozen=True)
class Min(Mutation):
    """Keeps the smaller of the field and the value."""

    field: str
    value: object


Mutations = Mapping[str, object] | Iterable[Mutation]
"""Changes in order; ``{"data.size": 4}`` is short for ``[Set("data.size", 4)]``."""


@dataclass(frozen=True)
class Condition:
    """A published status of the entity, one per type. Types that begin with ``interlock/`` belong to the host."""

    type: str
    """Names what is said: ``NodesPlaced``."""
    holds: bool | None
    """Whether it holds; ``None`` if nobody can tell."""
    reason: str = ""
    """One word for programs."""
    message: str = ""
    """One sentence for people."""


@dataclass(frozen=True)
class Checkpoint:
    """What a save writes, ready to be asked for; made by :func:`checkpoint`. Documents are JSON text."""

    data: str | None
    outputs: str | None
    set: tuple[Mutation, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Change:
    """The next state and what is written with it, ready to be asked for; made by :func:`to`."""

    state: str
    content: Checkpoint


def to(
    state: str,
    *,
    data: object = KEEP,
    outputs: object = KEEP,
    set: Mutations = (),
    conditions: Iterable[Condition] = (),
) -> Change:
    """A request for the next state: ``pool.transition(to("ready", data=data))``.

    ``data`` and ``outputs`` replace those documents; ``set`` is applied after that, in order, and may change fields
    under ``data`` and ``outputs``.

    Raises a :class:`Rejection`, ``invalid`` with the code ``json``, for a value that no document holds.
    """
    return Change(state, checkpoint(data=data, outputs=outputs, set=set, conditions=conditions))


def checkpoint(
    *,
    data: object = KEEP,
    outputs: object = KEEP,
    set: Mutations = (),
    conditions: Iterable[Condition] = (),
) -> Checkpoint:
    """A checkpoint: ``pool.save(checkpoint(data=data))``. The words are those of :func:`to`."""
    return Checkpoint(_document(data, "data"), _document(outputs, "outputs"), mutations(set), tuple(conditions))


def mutations(changes: Mutations) -> tuple[Mutation, ...]:
    """Changes as the host takes them: a list, in order."""
    if not changes:
        return ()
    if isinstance(changes, Mapping):
        return tuple(Set(field, value) for field, value in changes.items())
    return tuple(changes)


def _document(value: object, subject: str) -> str | None:
    return None if value is KEEP else document.encode(value, subject)
