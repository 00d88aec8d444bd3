"""The fencing token of an attempt, to carry outside.

A receiver that remembers the highest token it has seen and refuses lower ones cannot be written by a late owner. The
host checks its own writes itself.
"""

from __future__ import annotations

from . import _wit
from .entity import Entity


def token(entity: Entity) -> int:
    """The token of this attempt: higher than that of any attempt before, below 2**53."""
    return int(_wit.fencing.token(entity.handle))


def still_holds(entity: Entity) -> bool:
    """Whether this attempt is still the open one. True is the answer of one moment: send the token along."""
    return bool(_wit.fencing.still_holds(entity.handle))
