"""Timers whose due time the step decides: those that a state declares with ``due = "step"``.

They are staged for the next commit: a transition sets timers of the visit it enters, a save those of this one. A
refused commit and a reload drop what was staged::

    from interlock import timers

    timers.after(order, "reminder", timedelta(hours=1))
    return order.transition(to("waiting"))

Rejections of each: ``fenced``, ``spent``, ``invalid``, ``limit``.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from . import _wit
from .entity import Entity

host = _wit.imported("timers")
_BEGINNING = datetime(1970, 1, 1, tzinfo=timezone.utc)


def after(entity: Entity, name: str, wait: timedelta) -> None:
    """Due so long after the commit, by wall time; part of a millisecond counts as a whole one."""
    _wit.ask(host.after, entity.handle, _wit.text(name, "name"), _wit.ms(wait, "wait"))


def at(entity: Entity, name: str, when: datetime | int) -> None:
    """Due at this instant, at once if it is past: a time with a zone, or milliseconds since 1970."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(f"expected a time with a zone, got {when.isoformat()}: say which with tzinfo=")
        when = _wit.whole_ms(when - _BEGINNING)
    _wit.ask(host.at, entity.handle, _wit.text(name, "name"), _wit.within(when, -(2**63), 2**63 - 1, "when"))


def cancel(entity: Entity, name: str) -> None:
    """Not due at all: takes back what is staged, and with a save the pending timer of this visit."""
    _wit.ask(host.cancel, entity.handle, _wit.text(name, "name"))
