"""Documents: JSON text to and from plain values, exactly or not at all.

Integers of 64 bits stay what they are in both directions; a larger one, NaN and whatever else a document cannot hold
is refused, never rounded. Whether a document fits its schema is the host's to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from .rejection import Rejection

INT_MIN, INT_MAX = -(2**63), 2**64 - 1
_AS_THEY_ARE = frozenset({str, bool, type(None)})


class _Unfit(Exception):
    """A value that no document holds, and where it is."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(expected, got)
        self.expected, self.got, self.path = expected, got, ""


def encode(value: object, subject: str) -> str:
    """JSON text of a value: plain values, dataclasses, mappings, enums, and what is made of these.

    Raises a :class:`Rejection`, ``invalid`` with the code ``json``, for anything else. It begins with ``subject``,
    which says whose value it is.
    """
    try:
        return whole(json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":")), subject)
    except _Unfit as unfit:
        raise _refused(subject + unfit.path, unfit.expected, unfit.got) from None
    except RecursionError:
        raise _refused(subject, "a value that ends", "one that contains itself, or is nested too deep") from None


def whole(text: str, subject: str) -> str:
    """The text itself; half of a surrogate pair in it is refused as :func:`encode` refuses."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError as why:
        raise _refused(subject, "text that Unicode can hold", ascii(text[why.start])) from None


def decode(text: str) -> Any:
    """The plain value of a document from the host."""
    return json.loads(text)


def name_of(field: Any) -> str:
    """What a dataclass's field is called in a document: ``field(metadata={"json": "max-size"})``, or its own name."""
    return str(field.metadata.get("json", field.name))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, int):
        return _whole(int(value))
    if isinstance(value, float):
        return _finite(float(value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {_key(key): _at(f".{key}", item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_at(f"[{index}]", item) for index, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return {name_of(field): _at(f".{name_of(field)}", getattr(value, field.name)) for field in fields(value)}
    raise _Unfit("a value that JSON can hold", f"{kind.__module__}.{kind.__qualname__}")


def _at(step: str, value: Any) -> Any:
    try:
        return _plain(value)
    except _Unfit as unfit:
        unfit.path = step + unfit.path
        raise


def _whole(number: int) -> int:
    if INT_MIN <= number <= INT_MAX:
        return number
    got = str(number) if number.bit_length() < 4096 else f"one of {number.bit_length()} bits"
    raise _Unfit(f"an integer from {INT_MIN} to {INT_MAX}", got)


def _finite(number: float) -> float:
    if number - number == 0.0:
        return number
    raise _Unfit("a finite number", str(number))


def _key(key: object) -> str:
    if isinstance(key, str):
        return str(key)
    raise _Unfit("text as a key", f"{type(key).__qualname__} {key!r}")


def _refused(subject: str, expected: str, got: str) -> Rejection:
    return Rejection("invalid", "json", subject, expected, got)
