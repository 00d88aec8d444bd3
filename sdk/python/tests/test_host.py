"""What the host is asked, in the contract's own classes, and what its answers become."""

from __future__ import annotations

import contextlib
import logging
import sys
import unittest
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, get_args
from unittest import mock

from interlock import (
    Append,
    Condition,
    EffectResult,
    Entity,
    Event,
    EventKind,
    Failure,
    From,
    Increment,
    Max,
    Min,
    Rejection,
    RejectionKind,
    Remove,
    Set,
    checkpoint,
    effects,
    fencing,
    field,
    log,
    rows,
    steps,
    timers,
    to,
)

from . import TOOL, WITHOUT_TOOL

if TOOL is not None:
    from componentize_py_types import Err
    from wit_world.imports import effects as host_effects
    from wit_world.imports import fencing as host_fencing
    from wit_world.imports import lease as host_lease
    from wit_world.imports import log as host_log
    from wit_world.imports import rows as host_rows
    from wit_world.imports import timers as host_timers
    from wit_world.imports import transition, types

    from interlock import _wit


class Handle:
    """Stands for the host's handle; it records what is asked."""

    def __init__(self, data: str | None = None, answer: Exception | None = None) -> None:
        self.asked: list[Any] = []
        self._data, self._answer = data, answer

    def id(self) -> str:
        return "pool/a"

    def state(self) -> str:
        return "planning"

    def data(self) -> str | None:
        return self._data

    desired = outputs = data

    def transition(self, change: Any) -> None:
        self.asked.append(change)
        if self._answer is not None:
            raise self._answer

    save = transition


def entered(kind: Any = "signal", text: str | None = None) -> Event:
    return Event("e1", kind, "resize", text, 5)


def refusal() -> Exception:
    kind = types.RejectionKind.NOT_ALLOWED
    no = types.Rejection(kind, "target", "pool/a", "ready", "lost", True, 1_500, '{"big":9007199254740993}')
    return Err(no)


@unittest.skipIf(TOOL is None, WITHOUT_TOOL)
class Asking(unittest.TestCase):
    def setUp(self) -> None:
        self.handle = Handle()
        self.entity = Entity(self.handle, entered())

    def told(self, module: Any, function: str, answer: Any = None) -> list[Any]:
        """Takes the place of a function of the host; what it is asked comes into the list."""
        asked: list[Any] = []

        def record(*arguments: Any) -> Any:
            asked.append(arguments)
            return answer

        patch = mock.patch.object(module, function, record)
        patch.start()
        self.addCleanup(patch.stop)
        return asked

    def refused(self, code: str, ask: Callable[..., Any], *arguments: Any) -> Rejection:
        with self.assertRaises(Rejection) as caught:
            ask(*arguments)
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_a_transition_says_everything_in_order(self) -> None:
        mutations = [
            Set("data.a", From("now")),
            Increment("data.n", -1),
            Remove("data.x"),
            Append("data.log", {"a": 1}, limit=10),
            Max("data.hi", 2**63),
            Min("data.lo", 0.5),
        ]
        said = [Condition("Placed", True, "Found", "a place"), Condition("Warm", None), Condition("Up", False)]
        self.entity.transition(to("ready", data={"n": 1}, set=mutations, conditions=said))

        def put(field: str, text: str) -> Any:
            return types.Assignment(field, types.Value_Json(text))

        self.assertEqual(
            self.handle.asked,
            [
                transition.Change(
                    "ready",
                    '{"n":1}',
                    None,
                    [
                        types.Mutation_Set(types.Assignment("data.a", types.Value_From("now"))),
                        types.Mutation_Increment(put("data.n", "-1")),
                        types.Mutation_Remove("data.x"),
                        types.Mutation_Append(types.Appending("data.log", types.Value_Json('{"a":1}'), 10)),
                        types.Mutation_Max(put("data.hi", str(2**63))),
                        types.Mutation_Min(put("data.lo", "0.5")),
                    ],
                    [
                        types.Condition("Placed", types.ConditionStatus.TRUE, "Found", "a place"),
                        types.Condition("Warm", types.ConditionStatus.UNKNOWN, "", ""),
                        types.Condition("Up", types.ConditionStatus.FALSE, "", ""),
                    ],
                )
            ],
        )

    def test_a_save_is_a_checkpoint(self) -> None:
        self.entity.save(checkpoint(outputs=[], set={"data.at": 1}))
        kept = transition.Checkpoint(
            None, "[]", [types.Mutation_Set(types.Assignment("data.at", types.Value_Json("1")))], []
        )
        self.assertEqual(self.handle.asked, [kept])

    def test_a_refusal_is_raised_with_all_it_says(self) -> None:
        entity = Entity(Handle(answer=refusal()), entered())
        no = self.refused("target", entity.transition, to("lost"))
        self.assertEqual(
            (no.kind, no.subject, no.expected, no.got, no.retryable, no.retry_after, no.detail),
            ("not-allowed", "pool/a", "ready", "lost", True, timedelta(milliseconds=1500), {"big": 9007199254740993}),
        )

    def test_every_kind_of_refusal_has_its_word(self) -> None:
        words = {_wit.word(kind) for kind in types.RejectionKind}
        self.assertEqual(words, set(get_args(RejectionKind)))

    def test_every_kind_of_event_has_its_word(self) -> None:
        self.assertEqual({_wit.word(kind) for kind in types.EventKind}, set(get_args(EventKind)))

    def test_numbers_that_the_contract_cannot_hold_are_refused(self) -> None:
        asked = self.told(host_timers, "after") + self.told(host_timers, "at")
        self.refused("number", timers.after, self.entity, "late", timedelta(seconds=-1))
        self.refused("number", timers.at, self.entity, "late", 2**63)
        no = self.refused("number", _wit.mutation, Append("data.log", 1, limit=2**32))
        self.assertEqual(no.expected, f"an integer from 0 to {2**32 - 1}")
        self.assertEqual(asked, [])

    def test_what_is_no_text_is_told_before_the_bindings_trap(self) -> None:
        asked = self.told(host_timers, "cancel")
        for mistake in (
            lambda: self.entity.transition(to(None)),  # type: ignore[arg-type]
            lambda: self.entity.transition(to("ready", conditions=[Condition(3, True)])),  # type: ignore[arg-type]
            lambda: self.entity.transition(to("ready", set=[Remove(b"data.x")])),  # type: ignore[arg-type]
            lambda: timers.cancel(self.entity, 3),  # type: ignore[arg-type]
            lambda: timers.at(self.entity, "a", 1.5),  # type: ignore[arg-type]
            lambda: rows.now(self.entity, rows.Get("jobs", "k", fields="name")),
            lambda: rows.now(self.entity, rows.Get(None, "k")),  # type: ignore[arg-type]
            lambda: rows.now(self.entity, "jobs"),  # type: ignore[arg-type]
        ):
            with self.assertRaisesRegex(TypeError, "^expected .* got "):
                mistake()
        self.refused("json", timers.cancel, self.entity, "half \ud800")
        self.assertEqual((asked, self.handle.asked), ([], []))

    def test_timers(self) -> None:
        after, at = self.told(host_timers, "after"), self.told(host_timers, "at")
        cancel = self.told(host_timers, "cancel")
        timers.after(self.entity, "a", timedelta(microseconds=1_000_001))
        timers.at(self.entity, "b", datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
        timers.at(self.entity, "b", -5)
        timers.cancel(self.entity, "c")
        self.assertEqual(after, [(self.handle, "a", 1001)])
        self.assertEqual(at, [(self.handle, "b", 0), (self.handle, "b", -5)])
        self.assertEqual(cancel, [(self.handle, "c")])
        with self.assertRaisesRegex(ValueError, "a time with a zone"):
            timers.at(self.entity, "b", datetime(2026, 1, 1))

    def test_effects(self) -> None:
        asked = self.told(host_effects, "request")
        effects.request(self.entity, "tickets", params={"id": 7}, headers={"x-a": "b"}, body={"n": 2**53 + 1})
        effects.request(self.entity, "ping")
        self.assertEqual(
            [outbound for _, outbound in asked],
            [
                host_effects.Outbound("tickets", [("id", "7")], [("x-a", "b")], '{"n":9007199254740993}'),
                host_effects.Outbound("ping", [], [], None),
            ],
        )

    def test_leases_and_tokens(self) -> None:
        granted = mock.Mock(spec=["name", "left_ms", "extend"])
        granted.name.return_value, granted.left_ms.return_value = "disk", 2_500
        acquired = self.told(host_lease, "acquire", granted)
        self.told(host_fencing, "token", 7)
        self.told(host_fencing, "lease_token", 9)
        disk = self.entity.lease("disk", timedelta(seconds=3))
        disk.extend()
        self.assertEqual(acquired, [(self.handle, "disk", 3000)])
        granted.extend.assert_called_once_with(None)
        self.assertEqual((disk.name, disk.token, fencing.token(self.entity)), ("disk", 9, 7))
        self.assertEqual(disk.time_left(), timedelta(seconds=2.5))
        granted.left_ms.return_value = 2**64 - 1
        self.assertEqual(disk.time_left(), timedelta.max)

    def test_rows_at_once(self) -> None:
        row = host_rows.Row("k", '{"n":1}', "t1", 1, 2, 3, None)
        claimed = self.told(host_rows, "claim", host_rows.Claimed([row], False, ["x"]))
        updated = self.told(host_rows, "update", host_rows.Updated_Unmatched(host_rows.Miss("k", "status = open")))
        self.told(host_rows, "get", host_rows.Got("k", None))
        self.told(host_rows, "delete", host_rows.Deleted_Gone("k"))
        taken = rows.now(self.entity, rows.Claim("jobs", order=rows.Order(index="due", descending=True)), op="take")
        mine = field("status").eq("open") & field("at").lt(From("now-5m"))
        missed = rows.now(self.entity, rows.Update("jobs", 7, {"status": "done"}, where=mine, must=True))
        self.assertEqual((taken.rows[0].value(), taken.lost), ({"n": 1}, ["x"]))
        self.assertEqual((missed.row, missed.miss), (None, rows.Miss("k", "status = open")))
        self.assertIsNone(rows.now(self.entity, rows.Get("jobs", "k")))
        self.assertEqual(rows.now(self.entity, rows.Delete("jobs", "k")), rows.Deleted("k", None))
        order = host_rows.Order(host_rows.OrderBy_Index("due"), True)
        claiming = host_rows.Claiming(None, None, order, None, False, [], False)
        self.assertEqual(claimed, [(self.handle, "jobs", claiming, "take")])
        where = [
            [
                types.Comparison("status", types.Operator.EQ, types.Value_Json('"open"')),
                types.Comparison("at", types.Operator.LT, types.Value_From("now-5m")),
            ]
        ]
        change = types.Mutation_Set(types.Assignment("status", types.Value_Json('"done"')))
        updating = host_rows.Updating(types.Value_Json("7"), where, [change], [], True)
        self.assertEqual(updated, [(self.handle, "jobs", updating, None)])

    def test_rows_together_and_staged(self) -> None:
        row = host_rows.Row("k", "{}", "t1", 1, 2, 0, None)
        written = host_rows.Answer_Put(host_rows.Written(True, row))
        gone = host_rows.Answer_Deleted(host_rows.Deleted_Unmatched(host_rows.Miss("k", None)))
        both = self.told(host_rows, "transact", [written, gone])
        staged, required = self.told(host_rows, "stage"), self.told(host_rows, "require_row")
        put = rows.Put("jobs", "k", {}, fill={"at": From("now")}, if_absent=True)
        there = rows.RequireEntity("cluster/eu-1", states=["ready"])
        answers = rows.transact(self.entity, [put, rows.Delete("jobs", "k")], require=[there], op="move")
        rows.stage(self.entity, put)
        rows.require(self.entity, rows.RequireRow("jobs", "k", present=False))
        self.assertIsInstance(answers[0], rows.Written)
        self.assertEqual(answers[1], rows.Deleted(None, rows.Miss("k", None)))
        fill = types.Mutation_Set(types.Assignment("at", types.Value_From("now")))
        putting = host_rows.Putting(types.Value_Json('"k"'), "{}", [fill], host_rows.Expected_Absent(), [])
        operation = host_rows.Operation("jobs", host_rows.Action_Put(putting))
        requirement = host_rows.EntityRequirement("cluster/eu-1", ["ready"], [])
        (_, operations, requirements, op) = both[0]
        self.assertEqual((operations[0], op), (operation, "move"))
        self.assertEqual(requirements, [host_rows.Requirement_Entity(requirement)])
        self.assertEqual(staged, [(self.handle, operation)])
        key = types.Value_Json('"k"')
        self.assertEqual(required, [(self.handle, host_rows.RowRequirement("jobs", key, False, []))])


class Reading(unittest.TestCase):
    def test_documents_that_are_not_there(self) -> None:
        entity = Entity(Handle(None), entered())
        self.assertEqual((entity.data(), entity.desired(dict), entity.outputs()), (None, None, None))
        with self.assertRaises(Failure) as caught:
            entity.data(dict)
        self.assertEqual(caught.exception.code, "data-shape")

    def test_payloads_and_results_of_effects(self) -> None:
        self.assertEqual(entered(text='{"size":18446744073709551615}').payload(), {"size": 2**64 - 1})
        text = '{"effect":"k","number":1,"target":"t","execution":"x","status":201,"body":{"id":4}}'
        result = entered("effect", text).effect(dict)
        self.assertEqual(result, EffectResult("k", 1, "t", "x", 201, {"id": 4}))
        for event in (entered("signal", text), entered("effect")):
            with self.assertRaises(Failure) as caught:
                event.effect()
            self.assertEqual(caught.exception.code, "no-effect")


@unittest.skipIf(TOOL is None, WITHOUT_TOOL)
class Logging(unittest.TestCase):
    def setUp(self) -> None:
        self.lines: list[tuple[str, str, list[tuple[str, str]]]] = []

        def write(level: Any, message: str, fields: Any) -> None:
            self.lines.append((level.name.lower(), message, fields))

        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(host_log, "write", write))
            for name in ("stdout", "stderr"):
                stack.enter_context(mock.patch.object(sys, name))
            root = logging.getLogger()
            self.addCleanup(setattr, root, "handlers", root.handlers)
            self.addCleanup(root.setLevel, root.level)
            self.addCleanup(logging.captureWarnings, False)
            log.begin()
            self.addCleanup(stack.pop_all().close)

    def test_every_level_arrives_with_its_fields(self) -> None:
        logger = logging.getLogger("placement")
        for level in (log.TRACE, logging.DEBUG, logging.INFO, logging.WARNING, logging.CRITICAL):
            logger.log(level, "found %d", 4, extra={"zone": "b", "nodes": 4})
        fields = [("zone", "b"), ("nodes", "4"), ("logger", "placement")]
        levels = ("trace", "debug", "info", "warn", "error")
        self.assertEqual(self.lines, [(level, "found 4", fields) for level in levels])

    def test_what_is_printed_comes_line_by_line(self) -> None:
        print("one\ntwo", end="")
        print("half of a pair: \ud800", file=sys.stderr)
        log.end()
        self.assertEqual(
            self.lines, [("info", "one", []), ("warn", "half of a pair: \\ud800", []), ("info", "two", [])]
        )

    def test_warnings_and_tracebacks_arrive(self) -> None:
        warnings.warn("mind the gap", stacklevel=1)
        try:
            raise KeyError("size")
        except KeyError:
            logging.exception("it went wrong")
        (warned, failed) = self.lines
        self.assertEqual((warned[0], failed[0], failed[1]), ("warn", "error", "it went wrong"))
        self.assertIn("mind the gap", warned[1])
        self.assertIn("KeyError: 'size'", dict(failed[2])["exception"])


@unittest.skipIf(TOOL is None, WITHOUT_TOOL)
class Attempts(unittest.TestCase):
    def setUp(self) -> None:
        patch = mock.patch.dict(steps.STEPS, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def failed(self, run: Callable[[Entity], Any]) -> Any:
        from interlock._component import WitWorld

        steps.STEPS["it"] = run
        event = types.Event("e1", types.EventKind.DESIRED_CHANGED, "x", None, 5)
        with self.assertLogs(level="ERROR") as self.logged, self.assertRaises(Err) as caught:
            logging.error("so that there is a line")
            WitWorld().run("it", Handle('{"size":"x"}', refusal()), event)
        return caught.exception.value

    def test_a_failure_is_told_as_it_is(self) -> None:
        def starting(pool: Entity) -> None:
            self.assertEqual(pool.event.kind, "desired-changed")
            raise Failure.retry("still starting", code="starting", after=timedelta(seconds=2))

        self.assertEqual(self.failed(starting), types.Failure(False, "starting", "still starting", 2000))

    def test_a_rejection_that_nobody_catches_is_a_failure_with_its_code(self) -> None:
        failure = self.failed(lambda pool: pool.transition(to("lost")))
        self.assertEqual(failure, types.Failure(False, "target", "target: pool/a: expected ready, got lost", 1500))

    def test_an_exception_is_a_retry_with_type_message_and_place(self) -> None:
        def broken(pool: Entity) -> None:
            raise ZeroDivisionError("no")  # the place

        failure = self.failed(broken)
        line = broken.__code__.co_firstlineno + 1
        self.assertEqual((failure.permanent, failure.code, failure.retry_after_ms), (False, "exception", None))
        self.assertEqual(failure.reason, f"ZeroDivisionError: no ({__file__}:{line})")
        self.assertIn("ZeroDivisionError: no", self.logged.output[1])

    def test_leaving_the_process_is_an_exception_too(self) -> None:
        self.assertEqual(self.failed(lambda pool: sys.exit(3)).reason.partition(" (")[0], "SystemExit: 3")


if __name__ == "__main__":
    unittest.main()
