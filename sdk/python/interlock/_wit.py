"""This package's words over the bindings that componentize-py generates from ``wit/``.

Bindings exist inside of a component alone, and only of the interfaces that it imports. What is missing is told when it
is used, so that modules can be imported and tested anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from importlib import import_module
from typing import Any

from . import document
from .change import Append, Change, Checkpoint, Condition, From, Increment, Max, Min, Mutation, Remove, Set
from .event import Event
from .failure import Failure
from .rejection import Rejection

U32_MAX, U64_MAX = 2**32 - 1, 2**64 - 1


MISSING: set[str] = set()
"""The interfaces that were asked for and are no imports of this component."""


class Missing:
    """An interface without bindings."""

    def __init__(self, interface: str) -> None:
        self._interface = interface

    def __getattr__(self, name: str) -> Any:
        interface = self._interface
        raise RuntimeError(
            f"there is no host to ask: expected a component that imports `{interface}`, "
            f"which `interlock build` makes of modules with `from interlock import {interface}`"
        )


def imported(interface: str) -> Any:
    """The bindings of an interface."""
    try:
        return import_module(f"wit_world.imports.{interface}")
    except ModuleNotFoundError:
        MISSING.add(interface)
        return Missing(interface)


types, transition, lease, fencing, log = map(imported, ("types", "transition", "lease", "fencing", "log"))
try:
    from componentize_py_types import Err as Err  # type: ignore[import-not-found, unused-ignore]
except ModuleNotFoundError:

    class Err(Exception):  # type: ignore[no-redef]
        """What bindings raise for a refusal; outside of a component nothing raises it."""

        value: Any


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the host; what it refuses is raised as a :class:`Rejection`."""
    try:
        return function(*arguments)
    except Err as refused:
        raise rejection(refused.value) from None


# --- To the host --------------------------------------------------------------------------------------


# Handed anything but the contract's types, the bindings end the whole attempt with a trap that says nothing.


def text(given: object, subject: str) -> str:
    """Text, as the contract has it."""
    if isinstance(given, str):
        return document.whole(str(given), subject)
    raise TypeError(f"expected text as {subject}, got {given!r}")


def texts(given: Iterable[object], subject: str) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"expected a list as {subject}, got {given!r}")
    return [text(one, subject) for one in given]


def within(number: int, least: int, most: int, subject: str) -> int:
    """A number that the contract's type holds: another one is refused, never cut."""
    if not isinstance(number, int):
        raise TypeError(f"expected an integer as {subject}, got {number!r}")
    if least <= number <= most:
        return number
    raise Rejection("invalid", "number", subject, f"an integer from {least} to {most}", str(number))


def whole_ms(time: timedelta) -> int:
    """Part of a millisecond counts as a whole one: nothing is due too early."""
    return -(-time // timedelta(milliseconds=1))


def ms(time: timedelta, subject: str) -> int:
    """A duration as the host takes it."""
    return within(whole_ms(time), 0, U64_MAX, subject)


def value(given: object, subject: str) -> Any:
    if isinstance(given, From):
        return types.Value_From(text(given.source, subject))
    return types.Value_Json(document.encode(given, subject))


def _assigned(kind: str, field: str, given: object) -> Any:
    return getattr(types, f"Mutation_{kind}")(types.Assignment(text(field, "field"), value(given, field)))


def mutation(change: Mutation) -> Any:
    if isinstance(change, Set):
        return _assigned("Set", change.field, change.value)
    if isinstance(change, Increment):
        return _assigned("Increment", change.field, change.by)
    if isinstance(change, Remove):
        return types.Mutation_Remove(text(change.field, "field"))
    if isinstance(change, Append):
        field, limit = text(change.field, "field"), within(change.limit, 0, U32_MAX, f"limit of {change.field}")
        return types.Mutation_Append(types.Appending(field, value(change.value, field), limit))
    if isinstance(change, Max):
        return _assigned("Max", change.field, change.value)
    if isinstance(change, Min):
        return _assigned("Min", change.field, change.value)
    raise TypeError(f"expected Set, Increment, Remove, Append, Max or Min, got {change!r}")


def mutations(changes: Iterable[Mutation]) -> list[Any]:
    return [mutation(change) for change in changes]


def condition(said: Condition) -> Any:
    words = types.ConditionStatus
    status = words.UNKNOWN if said.holds is None else words.TRUE if said.holds else words.FALSE
    kind, reason = text(said.type, "type of a condition"), text(said.reason, "reason of a condition")
    return types.Condition(kind, status, reason, text(said.message, "message of a condition"))


def _content(content: Checkpoint) -> tuple[Any, ...]:
    conditions = [condition(said) for said in content.conditions]
    return content.data, content.outputs, mutations(content.set), conditions


def checkpoint(content: Checkpoint) -> Any:
    return transition.Checkpoint(*_content(content))


def change(asked: Change) -> Any:
    return transition.Change(text(asked.state, "state"), *_content(asked.content))


def failure(told: Failure) -> Any:
    after = told.retry_after
    wait = None if after is None else max(0, min(whole_ms(after), U64_MAX))
    return types.Failure(bool(told.is_permanent), shown(told.code), shown(told.reason), wait)


def shown(words: object) -> str:
    """Text for people: what Unicode cannot hold is shown as its escape, not refused."""
    return str(words).encode("utf-8", "backslashreplace").decode()


# --- From the host ------------------------------------------------------------------------------------


def word(case: Any) -> Any:
    """An enum's case as the contract spells it: `NOT_ALLOWED` is "not-allowed"."""
    return case.name.lower().replace("_", "-")


def duration(milliseconds: int) -> timedelta:
    """Exact; what no timedelta holds, millions of years, is as long as one can be."""
    try:
        return timedelta(milliseconds=milliseconds)
    except OverflowError:
        return timedelta.max


def event(entered: Any) -> Event:
    return Event(entered.id, word(entered.kind), entered.name, entered.payload, entered.at_ms)


def rejection(no: Any) -> Rejection:
    after = None if no.retry_after_ms is None else duration(no.retry_after_ms)
    detail = None if no.detail is None else document.decode(no.detail)
    return Rejection(word(no.kind), no.code, no.subject, no.expected, no.got, no.retryable, after, detail)
