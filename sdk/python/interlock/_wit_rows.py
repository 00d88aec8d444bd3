"""This package's words about rows over the generated bindings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from . import _wit, document
from .change import mutations as in_order
from .filter import Filter
from .row import (
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

host = _wit.imported("rows")


def now(handle: Any, operation: Operation[Any], op: str | None) -> Any:
    verb, what = _action(operation)
    ask = getattr(host, verb.lower())
    if isinstance(operation, Get):
        return _row_or_none(_wit.ask(ask, handle, _wit.text(operation.table, "table"), what).row)
    return _ANSWERS[verb](_wit.ask(ask, handle, _wit.text(operation.table, "table"), what, _name(op)))


def query(
    handle: Any,
    table: str,
    where: Filter,
    order: Order | None,
    limit: int | None,
    after: str | None,
    fields: Sequence[str],
) -> Page:
    what = host.Querying(
        _filter(where),
        _order(order),
        _limit(limit),
        None if after is None else _wit.text(after, "after"),
        _names(fields),
    )
    page = _wit.ask(host.query, handle, _wit.text(table, "table"), what)
    return Page([_row(row) for row in page.rows], page.next)


def transact(
    handle: Any, operations: Iterable[Operation[Any]], require: Iterable[Requirement], op: str | None
) -> list[Answer]:
    asked = [_operation(operation) for operation in operations]
    wanted = [_requirement(requirement) for requirement in require]
    return [_answer(answer) for answer in _wit.ask(host.transact, handle, asked, wanted, _name(op))]


def stage(handle: Any, operation: Operation[Any]) -> None:
    _wit.ask(host.stage, handle, _operation(operation))


def require(handle: Any, requirement: Requirement) -> None:
    ask = host.require_row if isinstance(requirement, RequireRow) else host.require_entity
    _wit.ask(ask, handle, _requirement(requirement).value)


def answers(handle: Any) -> list[Answer]:
    return [_answer(answer) for answer in host.answers(handle)]


# --- To the host --------------------------------------------------------------------------------------


def _operation(operation: Operation[Any]) -> Any:
    verb, what = _action(operation)
    return host.Operation(_wit.text(operation.table, "table"), getattr(host, f"Action_{verb}")(what))


def _action(operation: Operation[Any]) -> tuple[str, Any]:
    """The contract's verb, and what it takes."""
    if isinstance(operation, Get):
        return "Get", host.Getting(_key(operation.key), _names(operation.fields))
    if isinstance(operation, Put):
        return "Put", _putting(operation)
    if isinstance(operation, Update):
        where, changes = _filter(operation.where), _changes(operation.set)
        return "Update", host.Updating(
            _key(operation.key), where, changes, _names(operation.fields), bool(operation.must)
        )
    if isinstance(operation, Upsert):
        insert, fill = document.encode(operation.insert, "insert"), _changes(operation.fill)
        return "Upsert", host.Upserting(
            _key(operation.key), insert, fill, _changes(operation.set), _names(operation.fields)
        )
    if isinstance(operation, Claim):
        return "Claim", _claiming(operation)
    if isinstance(operation, Delete):
        return "Delete", host.Deleting(_key(operation.key), _filter(operation.where), bool(operation.must))
    raise TypeError(f"expected Get, Put, Update, Upsert, Claim or Delete, got {operation!r}")


def _putting(put: Put) -> Any:
    expect = None
    if put.if_still is not None:
        expect = host.Expected_Etag(put.if_still.etag)
    elif put.if_absent:
        expect = host.Expected_Absent()
    value = document.encode(put.value, "value")
    return host.Putting(_key(put.key), value, _changes(put.fill), expect, _names(put.fields))


def _claiming(claim: Claim) -> Any:
    return host.Claiming(
        None if claim.where is None else _filter(claim.where),
        None if claim.set is None else _changes(claim.set),
        _order(claim.order),
        _limit(claim.limit),
        bool(claim.delete),
        _names(claim.fields),
        bool(claim.must),
    )


def _requirement(requirement: Requirement) -> Any:
    if isinstance(requirement, RequireRow):
        table, key = _wit.text(requirement.table, "table"), _key(requirement.key)
        where = _filter(requirement.where)
        return host.Requirement_Row(host.RowRequirement(table, key, bool(requirement.present), where))
    if isinstance(requirement, RequireEntity):
        entity, states = _wit.text(requirement.entity, "entity"), _wit.texts(requirement.states, "states")
        return host.Requirement_Entity(host.EntityRequirement(entity, states, _filter(requirement.where)))
    raise TypeError(f"expected RequireRow or RequireEntity, got {requirement!r}")


def _filter(where: Filter) -> list[list[Any]]:
    def comparison(test: Any) -> Any:
        operator = _wit.types.Operator[test.operator.upper().replace("-", "_")]
        return _wit.types.Comparison(_wit.text(test.field, "field"), operator, _wit.value(test.value, test.field))

    return [[comparison(test) for test in group] for group in where.groups]


def _order(order: Order | None) -> Any:
    if order is None:
        return None
    if order.index is not None:
        return host.Order(host.OrderBy_Index(_wit.text(order.index, "index")), bool(order.descending))
    by = host.OrderBy_Updated() if order.by == "updated" else host.OrderBy_Created()
    return host.Order(by, bool(order.descending))


def _key(key: object) -> Any:
    return _wit.value(key, "key")


def _changes(changes: Any) -> list[Any]:
    return _wit.mutations(in_order(changes))


def _names(fields: Sequence[str]) -> list[str]:
    return _wit.texts(fields, "fields")


def _name(name: str | None) -> str | None:
    return None if name is None else _wit.text(name, "op")


def _limit(limit: int | None) -> int | None:
    return None if limit is None else _wit.within(limit, 0, _wit.U32_MAX, "limit")


# --- From the host ------------------------------------------------------------------------------------


def _row(row: Any) -> Row:
    return Row(row.key, row.value, row.etag, row.created_ms, row.updated_ms, row.claims, row.claimed_by)


def _row_or_none(row: Any) -> Row | None:
    return None if row is None else _row(row)


def _written(answer: Any) -> Written:
    return Written(answer.inserted, _row(answer.row))


def _updated(answer: Any) -> Updated:
    if isinstance(answer, host.Updated_Changed):
        return Updated(_row(answer.value), None)
    return Updated(None, Miss(answer.value.key, answer.value.guard))


def _claimed(answer: Any) -> Claimed:
    return Claimed([_row(row) for row in answer.rows], answer.more, answer.lost)


def _deleted(answer: Any) -> Deleted:
    if isinstance(answer, host.Deleted_Gone):
        return Deleted(answer.value, None)
    return Deleted(None, Miss(answer.value.key, answer.value.guard))


_ANSWERS: dict[str, Any] = {
    "Got": lambda got: _row_or_none(got.row),
    "Put": _written,
    "Update": _updated,
    "Updated": _updated,
    "Upsert": _written,
    "Upserted": _written,
    "Claim": _claimed,
    "Claimed": _claimed,
    "Delete": _deleted,
    "Deleted": _deleted,
}


def _answer(answer: Any) -> Answer:
    """One of several: the bindings name its class `Answer_Claimed`."""
    read: Answer = _ANSWERS[type(answer).__name__.removeprefix("Answer_")](answer.value)
    return read
