"""Tables: rows that entities and clients share, under the rights that their declarations grant.

Each request is one transaction of the host's: a guard is judged where the change is made, and no row is taken twice.
An operation is a value; :func:`now` does it at once, whatever becomes of the attempt, and its answer is remembered for
the attempts after it; :func:`stage` has it done with the next accepted save or transition, or not at all::

    from interlock import Done, Entity, From, Increment, field, rows, step, to


    @step
    def work(worker: Entity) -> Done:
        # Nobody else has these, and they are this execution's until their status changes.
        taken = rows.now(worker, rows.Claim("jobs", limit=5))
        mine = field("claimed_by").eq(From("execution"))
        for job in taken.rows:
            send(job.value())
            rows.now(worker, rows.Update("jobs", job.key, where=mine, set={"status": "done"}))
        # Counted in the transaction of the transition: once, or not at all.
        rows.stage(worker, rows.Update("counters", "done", set=[Increment("n", len(taken.rows))], must=True))
        return worker.transition(to("idle"))

Keys are text or integers; ``fields`` are the top-level fields of the value to be answered, all of them if none is
named. ``wit/rows.wit`` says what each operation means and which rejections come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from . import _wit_rows
from .entity import Entity
from .filter import Filter
from .row import (
    EVERYTHING,
    Answer,
    Claim,
    Claimed,
    Delete,
    Deleted,
    Get,
    Miss,
    Operation,
    Order,
    Page,
    Put,
    RequireEntity,
    Requirement,
    RequireRow,
    Row,
    Update,
    Updated,
    Upsert,
    Written,
)

__all__ = [
    "Answer",
    "Claim",
    "Claimed",
    "Delete",
    "Deleted",
    "Get",
    "Miss",
    "Operation",
    "Order",
    "Page",
    "Put",
    "RequireEntity",
    "RequireRow",
    "Requirement",
    "Row",
    "Update",
    "Updated",
    "Upsert",
    "Written",
    "answers",
    "now",
    "query",
    "require",
    "stage",
    "transact",
]

A = TypeVar("A")


def now(entity: Entity, operation: Operation[A], *, op: str | None = None) -> A:
    """Does it at once, in a transaction of its own, whatever becomes of this attempt.

    ``op`` is the step's own name for it: whoever asks again under it gets the same answer, until the next accepted save
    or transition. Without it the request itself is its name, and how often it was asked.

    Rejections: ``fenced``, ``spent``, ``invalid``, ``not-found``, ``denied``, ``guard``, ``conflict``, ``limit``,
    ``unavailable``. Nothing has changed then; after ``unavailable`` the same may be asked again.
    """
    return cast(A, _wit_rows.now(entity.handle, operation, op))


def query(
    entity: Entity,
    table: str,
    where: Filter = EVERYTHING,
    *,
    order: Order | None = None,
    limit: int | None = None,
    after: str | None = None,
    fields: Sequence[str] = (),
) -> Page:
    """Reads a page of rows by filter, from a snapshot: 10 unless ``limit`` says how many, up to 1,000.

    ``after`` is the ``next`` of an earlier page of the same query.

    Rejections: ``fenced``, ``spent``, ``invalid``, ``not-found``, ``denied``, ``limit``, ``unavailable``.
    """
    return _wit_rows.query(entity.handle, table, where, order, limit, after, fields)


def transact(
    entity: Entity,
    operations: Iterable[Operation[Any]],
    *,
    require: Iterable[Requirement] = (),
    op: str | None = None,
) -> list[Answer]:
    """Does all of these at once, in order, or none of them, if all requirements hold; their answers, in order.

    Each operation sees what those before it did. Rejections and ``op`` as in :func:`now`; ``guard`` with the code
    ``require`` if a requirement does not hold, or an operation that must match matches nothing.
    """
    return _wit_rows.transact(entity.handle, operations, require, op)


def stage(entity: Entity, operation: Operation[Any]) -> None:
    """Stages it: the next accepted save or transition does it in its one transaction; :func:`answers` has its answer.

    Rejections: ``fenced``, ``spent``, ``invalid``, ``limit``. Whether it may be done is judged by the commit.
    """
    _wit_rows.stage(entity.handle, operation)


def require(entity: Entity, requirement: Requirement) -> None:
    """Stages a condition: the next save or transition is refused as ``guard``, ``require``, if it does not hold."""
    _wit_rows.require(entity.handle, requirement)


def answers(entity: Entity) -> list[Answer]:
    """What the newest accepted save or transition answered to the operations that it carried, in their order."""
    return _wit_rows.answers(entity.handle)
