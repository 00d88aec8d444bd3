"""Operations on rows as values, and what they are answered. The words are those of ``wit/rows.wit``, which says what
each of them means; ``rows.py`` asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

from . import document, shape
from .change import Mutations
from .filter import Filter

T = TypeVar("T")
A = TypeVar("A", covariant=True)

EVERYTHING = Filter()


# --- What is answered ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row as it stands behind the request."""

    key: str
    """Its key."""
    text: str
    """Its value as JSON text, or the fields asked for."""
    etag: str
    """Names this content of this row; it comes back for no other."""
    created_ms: int
    """Milliseconds since 1970 when it was inserted."""
    updated_ms: int
    """The same of its last change."""
    claims: int
    """How often it was claimed."""
    claimed_by: str | None
    """Who has claimed it and is not done with it."""

    @overload
    def value(self) -> Any: ...
    @overload
    def value(self, of: type[T]) -> T: ...
    def value(self, of: Any = Any) -> Any:
        """Its value, as plain values or as a type of yours.

        Raises a permanent :class:`Failure` with the code ``row-shape`` if it is no such type.
        """
        return shape.read(of, document.decode(self.text), f"row {self.key}", "row-shape")


@dataclass(frozen=True)
class Miss:
    """Why a row is as it was."""

    key: str
    """The key that was asked for."""
    guard: str | None
    """The comparison that did not hold; none if there is no such row."""


@dataclass(frozen=True)
class Written:
    """What a put or an upsert is answered."""

    inserted: bool
    """Whether it is new."""
    row: Row
    """The row."""


@dataclass(frozen=True)
class Updated:
    """What an update is answered: the row that it changed, or why it changed none."""

    row: Row | None
    """The row, if it was changed."""
    miss: Miss | None
    """Why it was not."""


@dataclass(frozen=True)
class Claimed:
    """What a claim is answered."""

    rows: list[Row]
    """The rows that this claim has, in order."""
    more: bool
    """Whether it was cut by the bound on bytes, not by its limit."""
    lost: list[str]
    """Keys of rows that an earlier answer of this claim had, and that it has no more."""


@dataclass(frozen=True)
class Deleted:
    """What a delete is answered: the key of the row that is gone, or why none is."""

    gone: str | None
    """The key, if a row is gone."""
    miss: Miss | None
    """Why none is."""


@dataclass(frozen=True)
class Page:
    """What a query is answered."""

    rows: list[Row]
    """The rows, in order."""
    next: str | None
    """Where to go on, if there may be more."""


Answer = Row | Written | Updated | Claimed | Deleted | None
"""What one of several operations is answered. A get's is the row, or none."""


# --- What is asked ------------------------------------------------------------------------------------


class Operation(Generic[A]):
    """Something to be done to a table, and the type of what it is answered.

    Nothing is asked until it is handed to ``rows.now``, ``rows.stage`` or ``rows.transact``.
    """

    table: str


@dataclass(frozen=True)
class Order:
    """An order of rows: by ``created``, ``updated``, or the name of a declared index as ``Order(index="due")``."""

    by: Literal["created", "updated"] = "created"
    descending: bool = False
    index: str | None = None


@dataclass(frozen=True)
class Get(Operation["Row | None"]):
    """One row by its key."""

    table: str
    key: object
    fields: Sequence[str] = ()


@dataclass(frozen=True)
class Put(Operation[Written]):
    """A whole row, whatever is there; with ``if_absent`` or ``if_still`` a ``conflict`` unless that is so."""

    table: str
    key: object
    value: object
    fill: Mutations = ()
    """Applied to the value: what only the transaction knows, ``{"at": From("now")}``."""
    if_absent: bool = False
    if_still: Row | None = None
    """The row as it was answered."""
    fields: Sequence[str] = ()


@dataclass(frozen=True)
class Update(Operation[Updated]):
    """Changes one row if ``where`` holds of it; never makes one."""

    table: str
    key: object
    set: Mutations
    where: Filter = EVERYTHING
    must: bool = False
    """Refuses the whole request as ``guard``, with the code ``require``, if it matches nothing."""
    fields: Sequence[str] = ()


@dataclass(frozen=True)
class Upsert(Operation[Written]):
    """Inserts the row if it is absent, changes it otherwise: not at all, if ``set`` is empty."""

    table: str
    key: object
    insert: object
    fill: Mutations = ()
    """As in :class:`Put`."""
    set: Mutations = ()
    fields: Sequence[str] = ()


@dataclass(frozen=True)
class Claim(Operation[Claimed]):
    """Takes rows that nobody else takes: which, and how they are marked, as the table declares unless it is said."""

    table: str
    where: Filter | None = None
    set: Mutations | None = None
    order: Order | None = None
    limit: int | None = None
    """At most so many, up to 1,000; 10 if it does not say."""
    delete: bool = False
    """Removes the rows instead of marking them."""
    must: bool = False
    """As in :class:`Update`."""
    fields: Sequence[str] = ()


@dataclass(frozen=True)
class Delete(Operation[Deleted]):
    """Removes one row if ``where`` holds of it."""

    table: str
    key: object
    where: Filter = EVERYTHING
    must: bool = False
    """As in :class:`Update`."""


class Requirement:
    """A condition on something else, judged in the transaction before anything is done: one of the classes below."""


@dataclass(frozen=True)
class RequireRow(Requirement):
    """A condition on a row: that it is there, or with ``present=False`` that it is not, and what holds of it."""

    table: str
    key: object
    present: bool = True
    where: Filter = EVERYTHING


@dataclass(frozen=True)
class RequireEntity(Requirement):
    """A condition on an entity, ``machine/key``, of this machine or of one that its manifest names in ``peers``."""

    entity: str
    states: Sequence[str] = ()
    """It is in one of these; none means any."""
    where: Filter = EVERYTHING
    """What is to hold of its documents: ``field("data.free").ge(4)``."""
