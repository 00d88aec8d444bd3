"""Requests to the outside, made by the host once the next commit is durable.

At least once, under one ``Idempotency-Key``, with this attempt's fencing token. A refused commit and a reload drop what
was staged::

    from interlock import effects

    effects.request(order, "tickets", params={"project": "atlas"}, body={"title": order.key})
    return order.transition(to("waiting"))

What came of it enters a state that declares ``on.effect-done`` or ``on.effect-failed``: :meth:`Event.effect`, which
needs no power, reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import _wit, document
from .change import KEEP
from .entity import Entity

host = _wit.imported("effects")


def request(
    entity: Entity,
    target: str,
    *,
    params: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
    body: object = KEEP,
) -> None:
    """Stages a request to a target that the machine declares; without ``body`` it has none.

    ``params`` are what the placeholders of the target's URL stand for. Credentials are the target's business.

    Rejections: ``fenced``, ``spent``, ``invalid``, ``denied``, ``limit``.
    """
    _wit.ask(
        host.request,
        entity.handle,
        host.Outbound(
            _wit.text(target, "target"),
            _pairs(params or {}, "params"),
            _pairs(headers or {}, "headers"),
            None if body is KEEP else document.encode(body, "body"),
        ),
    )


def _pairs(given: Mapping[str, object], subject: str) -> list[tuple[str, str]]:
    return [(_wit.text(name, subject), _wit.text(str(value), f"{subject}.{name}")) for name, value in given.items()]
