"""Tests of fields, put together: guards of rows, and what a claim or a query looks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "not-in", "exists", "contains", "starts-with"]


@dataclass(frozen=True)
class Comparison:
    """One test of one field."""

    field: str
    operator: Operator
    value: object


@dataclass(frozen=True)
class Filter:
    """Any of these groups, each of which needs all of its tests. An empty one matches everything.

    ::

        pending = field("status").eq("pending")
        stale = field("status").eq("in_flight") & field("claimed_at").lt(From("now-5m"))
        either = pending | stale
    """

    groups: tuple[tuple[Comparison, ...], ...] = ()

    def __and__(self, other: Filter) -> Filter:
        """Both hold. Every group of the one is put together with every group of the other."""
        if not self.groups or not other.groups:
            return other if not self.groups else self
        return Filter(tuple(one + two for one in self.groups for two in other.groups))

    def __or__(self, other: Filter) -> Filter:
        """One of them holds."""
        if not self.groups or not other.groups:
            return Filter()  # one of them holds always
        return Filter(self.groups + other.groups)


@dataclass(frozen=True)
class Field:
    """A field to be tested, made by :func:`field`. A missing one fails every test but :meth:`missing`."""

    path: str

    def eq(self, value: object) -> Filter:
        """It is this; numbers by value."""
        return self._test("eq", value)

    def ne(self, value: object) -> Filter:
        """It is there, and not this."""
        return self._test("ne", value)

    def lt(self, value: object) -> Filter:
        """It is less: a number than a number, a text than a text."""
        return self._test("lt", value)

    def le(self, value: object) -> Filter:
        """It is less, or the same."""
        return self._test("le", value)

    def gt(self, value: object) -> Filter:
        """It is greater."""
        return self._test("gt", value)

    def ge(self, value: object) -> Filter:
        """It is greater, or the same."""
        return self._test("ge", value)

    def one_of(self, values: Iterable[object]) -> Filter:
        """It is one of a list."""
        return self._test("in", list(values))

    def none_of(self, values: Iterable[object]) -> Filter:
        """It is there, and none of a list."""
        return self._test("not-in", list(values))

    def exists(self) -> Filter:
        """It is there; null is."""
        return self._test("exists", True)

    def missing(self) -> Filter:
        """It is not there."""
        return self._test("exists", False)

    def contains(self, value: object) -> Filter:
        """It is a list with this in it, or a text with it inside."""
        return self._test("contains", value)

    def starts_with(self, text: object) -> Filter:
        """It is a text that begins with this."""
        return self._test("starts-with", text)

    def _test(self, operator: Operator, value: object) -> Filter:
        return Filter(((Comparison(self.path, operator, value),),))


def field(path: str) -> Field:
    """Begins a test of a field: ``field("status").eq("pending")``.

    Paths are of the row, ``payload.amount``, ``tags[0]``; in a condition on an entity they begin with its document,
    ``data.size``.
    """
    return Field(path)
