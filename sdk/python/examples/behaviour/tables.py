"""Rows: one at a time, many, several at once, and with the next commit."""

from collections.abc import Iterable
from typing import Any

from asked import answer, behaviour, refusal, shown

from interlock import Done, Entity, Failure, From, Increment, Set, checkpoint, field, rows
from interlock.rows import Claim, Delete, Get, Order, Put, RequireEntity, RequireRow, Row, Update, Updated, Upsert, now

IS_NEW = field("status").eq("new")
ONE_MORE = [Increment("n")]


def values(found: Iterable[Row]) -> list[Any]:
    return [row.value() for row in found]


def keys(found: Iterable[Row]) -> list[str]:
    return [row.key for row in found]


def result(updated: Updated) -> Any:
    """The value of a changed row, or the comparison that did not hold, or `absent`."""
    if updated.row is not None:
        return updated.row.value()
    return (updated.miss and updated.miss.guard) or "absent"


def there(row: Row | None) -> Row:
    if row is None:
        raise Failure.permanent("expected the row to be there")
    return row


@behaviour("rows")
def one_at_a_time(entity: Entity, _: Any) -> Done:
    put = now(entity, Put("jobs", "a", {"status": "new", "n": 1}, if_absent=True))
    got = there(now(entity, Get("jobs", "a")))
    some = there(now(entity, Get("jobs", "a", fields=["n"])))
    nobody = now(entity, Get("jobs", "nobody"))
    changed = now(entity, Update("jobs", "a", [Set("status", "old"), *ONE_MORE], where=IS_NEW))
    unmatched = now(entity, Update("jobs", "a", {"status": "older"}, where=IS_NEW))
    absent = now(entity, Update("jobs", "nobody", {"status": "old"}))
    added = now(entity, Upsert("jobs", "a", {"status": "new", "n": 0}, set=[Increment("n", 5)]))
    filled = now(entity, Upsert("jobs", "b", {"status": "new"}, fill={"n": From("event.value")}))
    gone = [now(entity, Delete("jobs", "a")).gone is not None for _turn in range(2)]
    saw = {
        "put": put.inserted,
        "got": got.value(),
        "key": got.key,
        "claims": got.claims,
        "claimed": got.claimed_by is not None,
        "fields": some.value(),
        "nobody": nobody is None,
        "changed": result(changed),
        "unmatched": result(unmatched),
        "absent": result(absent),
        "added": {"inserted": added.inserted, "value": added.row.value()},
        "filled": {"inserted": filled.inserted, "value": filled.row.value()},
        "gone": gone,
    }
    return answer(entity, saw)


@behaviour("rows-etag")
def etag(entity: Entity, _: Any) -> Done:
    def put(n: int, **expected: Any) -> Row:
        return now(entity, Put("jobs", "a", {"status": "new", "n": n}, **expected)).row

    first = put(1)
    second = put(2, if_still=first)
    stale = refusal(lambda: put(3, if_still=first))
    taken = refusal(lambda: put(4, if_absent=True))
    saw = {"n": second.value()["n"], "differ": first.etag != second.etag, "stale": stale.code, "there": taken.code}
    return answer(entity, saw)


@behaviour("rows-query")
def query(entity: Entity, _: Any) -> Done:
    """The rows with an `n` of 2 or more, the greatest first, two at a time and their `n` alone."""

    def two(after: str | None = None) -> rows.Page:
        greatest = Order(index="by-n", descending=True)
        return rows.query(entity, "jobs", field("n").ge(2), order=greatest, limit=2, fields=["n"], after=after)

    first = two()
    second = two(after=first.next)
    either = rows.query(entity, "jobs", field("n").eq(1) | field("status").starts_with("d"))
    saw = {
        "first": keys(first.rows),
        "values": values(first.rows),
        "second": keys(second.rows),
        "more": second.next is not None,
        "either": keys(either.rows),
    }
    return answer(entity, saw)


@behaviour("rows-claim")
def claim(entity: Entity, _: Any) -> Done:
    taken = now(entity, Claim("jobs", limit=2))
    first = taken.rows[0]
    mine = field("claimed_by").eq(From("execution"))
    settled = now(entity, Update("jobs", first.key, {"status": "done"}, where=mine))
    rest, none = now(entity, Claim("jobs")), now(entity, Claim("jobs"))
    saw = {
        "taken": keys(taken.rows),
        "status": first.value()["status"],
        "claims": first.claims,
        "mine": first.claimed_by == entity.execution,
        "settled": settled.row is not None,
        "rest": keys(rest.rows),
        "none": keys(none.rows),
    }
    return answer(entity, saw)


@behaviour("rows-take")
def take(entity: Entity, _: Any) -> Done:
    greatest = Order(index="by-n", descending=True)
    taken = now(entity, Claim("jobs", where=field("n").gt(1), order=greatest, limit=1, delete=True))
    changes = [Set("status", "mine"), Increment("n", 10)]
    marked = now(entity, Claim("jobs", where=field("n").eq(1), set=changes))
    return answer(entity, {"taken": keys(taken.rows), "marked": values(marked.rows)})


@behaviour("rows-transact")
def transact(entity: Entity, _: Any) -> Done:
    """Three operations and two conditions, one transaction."""
    done = rows.transact(
        entity,
        [
            Put("jobs", "x", {"status": "new", "n": 1}),
            Update("jobs", "x", ONE_MORE, must=True),
            Get("jobs", "x"),
            Delete("jobs", "a", where=field("n").lt(100)),
        ],
        require=[RequireRow("jobs", "a", where=field("n").eq(7)), RequireRow("jobs", "z", present=False)],
    )
    match done:
        case [rows.Written() as put, Updated(row=Row() as changed), Row() as got, rows.Deleted() as deleted]:
            saw = {
                "put": put.inserted,
                "changed": changed.value(),
                "got": got.value(),
                "deleted": deleted.gone is not None,
            }
            return answer(entity, saw)
        case other:
            raise Failure.permanent(f"expected four answers, got {other}")


@behaviour("rows-must")
def must(entity: Entity, _: Any) -> Done:
    """The second operation must match and does not: neither is done."""
    both = [Put("jobs", "x", {"status": "new", "n": 1}), Update("jobs", "nobody", ONE_MORE, must=True)]
    return answer(entity, shown(refusal(lambda: rows.transact(entity, both))))


@behaviour("rows-stage")
def stage(entity: Entity, _: Any) -> Done:
    """With a save: conditions on a row and on an entity, and two changes."""
    rows.require(entity, RequireRow("jobs", "a", where=field("status").eq("pending")))
    rows.require(entity, RequireEntity(entity.id, states=[entity.state]))
    rows.stage(entity, Update("jobs", "a", {"n": From("data.saw.n")}, must=True))
    rows.stage(entity, Put("jobs", "b", {"status": "new", "n": 2}))
    before = now(entity, Get("jobs", "b")) is not None
    entity.save(checkpoint(set={"data.saw.n": 40}))
    match rows.answers(entity):
        case [Updated(row=Row() as changed), rows.Written() as put]:
            return answer(entity, {"before": before, "a": changed.value(), "b": put.inserted})
        case other:
            raise Failure.permanent(f"expected two answers, got {other}")


@behaviour("rows-require")
def require(entity: Entity, _: Any) -> Done:
    """A condition that does not hold refuses the save, and what was staged is dropped."""
    rows.require(entity, RequireRow("jobs", "a", where=field("n").gt(100)))
    rows.stage(entity, Put("jobs", "b", {"status": "new", "n": 2}))
    return answer(entity, shown(refusal(lambda: entity.save(checkpoint(set={"data.saw.n": 1})))))


@behaviour("rows-named")
def named(entity: Entity, _: Any) -> Done:
    """Counts under a name and fails; the second attempt, which asks for something else first, is told of it."""
    if entity.attempt > 1:
        now(entity, Update("jobs", "b", ONE_MORE))
    counted = now(entity, Update("jobs", "a", ONE_MORE), op="count")
    if entity.attempt == 1:
        raise Failure.retry("counted, and failed")
    return answer(entity, {"attempt": entity.attempt, "a": result(counted)})


@behaviour("rows-remembered")
def remembered(entity: Entity, _: Any) -> Done:
    """Counts twice and fails; the second attempt asks the same and counts no more."""
    first, second = (now(entity, Update("jobs", "a", ONE_MORE)) for _turn in range(2))
    if entity.attempt == 1:
        raise Failure.retry("counted, and failed")
    return answer(entity, {"attempt": entity.attempt, "first": result(first), "second": result(second)})


@behaviour("rows-id-reused")
def id_reused(entity: Entity, _: Any) -> Done:
    now(entity, Update("jobs", "a", ONE_MORE), op="count")
    two_more = Update("jobs", "a", [Increment("n", 2)])
    return answer(entity, shown(refusal(lambda: now(entity, two_more, op="count"))))


@behaviour("rows-denied")
def denied(entity: Entity, _: Any) -> Done:
    return answer(entity, shown(refusal(lambda: now(entity, Get("closed", "a")))))
