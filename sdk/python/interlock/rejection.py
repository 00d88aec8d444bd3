"""A decided no, in the host's words. It knows no rule: the host names the one that held."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

RejectionKind = Literal[
    "invalid",
    "not-found",
    "denied",
    "late",
    "fenced",
    "busy",
    "not-allowed",
    "conflict",
    "guard",
    "limit",
    "unavailable",
]
"""The kinds of refusal; the same words as over HTTP and on the command line. ``wit/types.wit`` says what each means."""


@dataclass(eq=False)
class Rejection(Exception):
    """A decided no. The system worked; nothing was changed.

    One that a step does not catch becomes a failure of the attempt: a retry if it is retryable, permanent otherwise.
    """

    kind: RejectionKind
    """What sort of no."""
    code: str
    """The exact rule, stable across releases: ``spent``, ``fenced``, ``schema``."""
    subject: str
    """What it is about: an entity, a state, a field."""
    expected: str
    """What would have been accepted."""
    got: str
    """What was found instead."""
    retryable: bool = False
    """Whether the same request can be accepted later, unchanged."""
    retry_after: timedelta | None = None
    """When it makes sense to try again; none if nobody knows."""
    detail: Any = None
    """More for programs; its shape depends on the code."""

    def __str__(self) -> str:
        return f"{self.code}: {self.subject}: expected {self.expected}, got {self.got}"
