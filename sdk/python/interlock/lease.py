"""Leases: named exclusive rights of the execution, apart from its entity."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from . import _wit


class Lease:
    """A lease that this execution holds, over all its steps and attempts.

    Made by :meth:`Entity.lease`. It is held until it is released or lost, or the execution ends; dropping this object
    gives nothing back. Every accepted save, transition and extension renews all leases of the execution. Once one is
    lost, whatever this attempt asks for is refused as ``fenced``.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._handle.name())

    def time_left(self) -> timedelta:
        """Time of the host's store left before it is over, unless it is renewed; none if it is lost."""
        return _wit.duration(self._handle.left_ms())

    def extend(self, ttl: timedelta | None = None) -> None:
        """Begins the time to live anew: the one that the machine declares, or this one.

        Rejections: ``fenced``, ``limit``, ``unavailable``. It then ends when it would have ended.
        """
        _wit.ask(self._handle.extend, _wit.ms(ttl, "ttl") if ttl is not None else None)

    def release(self) -> None:
        """Gives it back before the execution ends.

        Rejections: ``fenced`` if it was held no longer; ``unavailable``, and it then ends with the execution or by its
        time.
        """
        _wit.ask(type(self._handle).release, self._handle)

    @property
    def token(self) -> int:
        """The token of this grant, to carry outside: higher than that of any grant before, below 2**53."""
        return int(_wit.fencing.lease_token(self._handle))

    def still_holds(self) -> bool:
        """Whether it is still held under this grant. True is the answer of one moment: send the token along."""
        return bool(_wit.fencing.still_holds_lease(self._handle))

    def __repr__(self) -> str:
        return f"Lease({self.name!r})"
