"""From plain values to types: dataclasses, and what they are made of, checked all the way down.

Fields that the type does not name are left out; a missing one takes its default. An integer is an integer: no text, no
truth value and no fraction becomes one.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar, Union

from .document import name_of
from .failure import Failure

T = TypeVar("T")
Reader = Callable[[Any], Any]

_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable)
_TABLES = (dict, collections.abc.Mapping)


class Mismatch(Exception):
    """A value of another shape, and where it is."""

    def __init__(self, expected: str, got: Any) -> None:
        super().__init__()
        self.expected, self.got, self.path = expected, _named(got), ""

    def __str__(self) -> str:
        place = f"at {self.path.removeprefix('.')}: " if self.path else ""
        return f"{place}expected {self.expected}, got {self.got}"


def read(shape: Any, value: Any, what: str, code: str) -> Any:
    """The value as a ``shape``; a permanent :class:`Failure` with this code if it is none."""
    try:
        return reader(shape)(value)
    except Mismatch as no:
        raise Failure.permanent(f"{what} is not what the step expects: {no}", code=code) from None


@cache
def reader(shape: Any) -> Reader:
    """What reads values of this shape. Raises ``TypeError`` for a type that no document holds."""
    if shape in _SIMPLE:
        return _SIMPLE[shape]
    if isinstance(shape, TypeVar):
        return _anything
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if origin is typing.Annotated:
        return reader(arguments[0])
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return _union(shape, arguments)
    if shape in _LISTS or origin in _LISTS:
        return _list(reader(arguments[0] if arguments else Any), list)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _list(reader(arguments[0]), tuple)
    if shape in _TABLES or origin in _TABLES:
        return _table(arguments)
    if hasattr(shape, "__supertype__"):  # a NewType
        return reader(shape.__supertype__)
    if typing.is_typeddict(shape):
        return _typed_dict(shape)
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return _enum(shape)
    if isinstance(shape, type) and dataclasses.is_dataclass(shape):
        return _dataclass(shape)
    raise TypeError(
        f"no document holds {shape!r}: use dataclasses, plain values, lists, dicts, enums and unions of these"
    )


def _exactly(kind: type, expected: str) -> Reader:
    def read_exactly(value: Any) -> Any:
        if type(value) is kind:
            return value
        raise Mismatch(expected, value)

    return read_exactly


def _anything(value: Any) -> Any:
    return value


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int and int(float(value)) == value:
        return float(value)
    raise Mismatch("a number that a float can hold", value)


def _part(read_item: Reader, step: str, value: Any) -> Any:
    try:
        return read_item(value)
    except Mismatch as no:
        no.path = step + no.path
        raise


def _list(read_item: Reader, made: Callable[[list[Any]], Any]) -> Reader:
    def read_list(value: Any) -> Any:
        if type(value) is not list:
            raise Mismatch("a list", value)
        return made([_part(read_item, f"[{index}]", item) for index, item in enumerate(value)])

    return read_list


def _table(arguments: tuple[Any, ...]) -> Reader:
    if arguments and arguments[0] not in (str, Any):
        raise TypeError(f"keys of a document are text, not {arguments[0]!r}")
    read_item = reader(arguments[1] if arguments else Any)

    def read_table(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch("an object", value)
        return {key: _part(read_item, f".{key}", item) for key, item in value.items()}

    return read_table


def _literal(options: tuple[Any, ...]) -> Reader:
    def read_literal(value: Any) -> Any:
        for option in options:
            if type(option) is type(value) and option == value:
                return value
        raise Mismatch(" or ".join(repr(option) for option in options), value)

    return read_literal


def _union(shape: Any, options: tuple[Any, ...]) -> Reader:
    readers = [reader(option) for option in options]

    def read_union(value: Any) -> Any:
        told: list[Mismatch] = []
        for read_option in readers:
            try:
                return read_option(value)
            except Mismatch as no:
                told.append(no)
        deepest = max(told, key=lambda no: len(no.path))
        raise deepest if deepest.path else Mismatch(_spelled(shape), value)

    return read_union


def _enum(shape: type[enum.Enum]) -> Reader:
    def read_enum(value: Any) -> Any:
        for member in shape:
            if type(member.value) is type(value) and member.value == value:
                return member
        raise Mismatch(" or ".join(repr(member.value) for member in shape), value)

    return read_enum


def _typed_dict(shape: Any) -> Reader:
    hints = typing.get_type_hints(shape)
    items = [(name, reader(hint), name in shape.__required_keys__) for name, hint in hints.items()]

    def read_typed_dict(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch(f"an object ({shape.__name__})", value)
        made = {}
        for name, read_item, required in items:
            if name in value:
                made[name] = _part(read_item, f".{name}", value[name])
            elif required:
                raise Mismatch(f"an object with `{name}`", value)
        return made

    return read_typed_dict


def _dataclass(shape: Any) -> Reader:
    def read_dataclass(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch(f"an object ({shape.__name__})", value)
        made = {}
        for name, key, read_item, has_default in _fields(shape):
            if key in value:
                made[name] = _part(read_item, f".{key}", value[key])
            elif not has_default:
                raise Mismatch(f"an object with `{key}`", value)
        return shape(**made)

    return read_dataclass


@cache
def _fields(shape: Any) -> list[tuple[str, str, Reader, bool]]:
    """Looked up at the first reading, so that a dataclass may contain itself."""
    hints = typing.get_type_hints(shape)
    return [
        (
            field.name,
            name_of(field),
            reader(hints[field.name]),
            field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING,
        )
        for field in dataclasses.fields(shape)
        if field.init
    ]


def prepare(module: types.ModuleType) -> None:
    """Looks the dataclasses of a module up, so that a component begins with what its steps would look up.

    One that no document holds is left alone: it may be meant for something else.
    """
    for shape in vars(module).values():
        if isinstance(shape, type) and dataclasses.is_dataclass(shape):
            try:
                _fields(shape)
            except (TypeError, NameError):
                continue


def _spelled(shape: Any) -> str:
    """A union as people say it: `int | None` is "an integer or null"."""
    return " or ".join(
        _WORDS.get(option, getattr(option, "__name__", str(option))) for option in typing.get_args(shape)
    )


def _named(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(sorted(value)[:8]) or 'nothing in it'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "null"
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= 80 else text[:80] + "..."


_WORDS: dict[Any, str] = {str: "text", int: "an integer", float: "a number", bool: "true or false", type(None): "null"}

_SIMPLE: dict[Any, Reader] = {
    Any: _anything,
    object: _anything,
    str: _exactly(str, "text"),
    int: _exactly(int, "an integer"),
    bool: _exactly(bool, "true or false"),
    float: _number,
    None: _exactly(type(None), "null"),
    type(None): _exactly(type(None), "null"),
}
