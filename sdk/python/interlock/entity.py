"""The entity as an attempt sees it: typed reading, and asking for the next state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar, final, overload

from . import _wit, document, shape
from .change import Change, Checkpoint
from .event import Event
from .lease import Lease

T = TypeVar("T")


@final
class Done:
    """The proof that a transition was accepted: a step returns it. Only :meth:`Entity.transition` makes one."""

    __slots__ = ()


@final
class Entity:
    """The entity of this attempt: a snapshot to read, and the right to ask for its next state."""

    __slots__ = ("event", "handle")

    def __init__(self, handle: Any, event: Event) -> None:
        """For the component: an entity over the host's handle, entered by this event."""
        self.handle = handle
        self.event = event
        """What entered the visit: the same for every attempt of it."""

    @property
    def id(self) -> str:
        """``machine/key``."""
        return str(self.handle.id())

    @property
    def key(self) -> str:
        """The key alone."""
        return str(self.handle.key())

    @property
    def execution(self) -> str:
        """Id of the execution that holds the entity, the same over all its steps and attempts."""
        return str(self.handle.execution())

    @property
    def attempt(self) -> int:
        """Which try of this visit this is, from 1."""
        return int(self.handle.attempt())

    @property
    def state(self) -> str:
        """Name of the state the entity is in."""
        return str(self.handle.state())

    @property
    def version(self) -> int:
        """How many changes of this entity were accepted. To read and to show."""
        return int(self.handle.version())

    @overload
    def data(self) -> Any: ...
    @overload
    def data(self, of: type[T]) -> T: ...
    def data(self, of: Any = Any) -> Any:
        """What the steps remember: as plain values, or as a type of yours, ``pool.data(Data)``.

        Raises a permanent :class:`Failure` with the code ``data-shape`` if it is no such type.
        """
        text = self.handle.data()
        return shape.read(of, None if text is None else document.decode(text), "data", "data-shape")

    @overload
    def desired(self) -> Any: ...
    @overload
    def desired(self, of: type[T]) -> T | None: ...
    def desired(self, of: Any = Any) -> Any:
        """What clients want; none before the first apply.

        Raises a permanent :class:`Failure` with the code ``desired-shape`` if it is no such type.
        """
        text = self.handle.desired()
        return None if text is None else shape.read(of, document.decode(text), "desired", "desired-shape")

    @overload
    def outputs(self) -> Any: ...
    @overload
    def outputs(self, of: type[T]) -> T | None: ...
    def outputs(self, of: Any = Any) -> Any:
        """What steps promised to clients; none before the first.

        Raises a permanent :class:`Failure` with the code ``outputs-shape`` if it is no such type.
        """
        text = self.handle.outputs()
        return None if text is None else shape.read(of, document.decode(text), "outputs", "outputs-shape")

    def cancel_requested(self) -> bool:
        """Whether somebody asked for this execution to be cancelled: the step decides where to stop safely."""
        return bool(self.handle.cancel_requested())

    def time_left(self) -> timedelta:
        """Real time left before the host ends this attempt.

        An accepted save does not lengthen it; it only starts the idle deadline anew.
        """
        return _wit.duration(self.handle.deadline_ms())

    def reload(self) -> None:
        """Reads the entity again, after a ``conflict``, and drops what was staged.

        Rejections: ``fenced``, ``spent``, ``limit``, ``unavailable``.
        """
        _wit.ask(self.handle.reload)

    def save(self, checkpoint: Checkpoint) -> None:
        """Puts a checkpoint on record: a later attempt of this visit begins from here.

        Rejections: ``fenced``, ``spent``, ``conflict``, ``not-allowed``, ``guard``, ``denied``, ``invalid``, ``limit``,
        ``unavailable``.
        """
        _wit.ask(self.handle.save, _wit.checkpoint(checkpoint))

    def transition(self, change: Change) -> Done:
        """Asks for the next state. Accepted means durable, and this attempt is over: return the :class:`Done`.

        Rejections: ``fenced``, ``spent``, ``conflict``, ``not-allowed``, ``guard``, ``denied``, ``invalid``, ``limit``,
        ``unavailable``. Nothing has changed then, and the step may ask for something else.
        """
        _wit.ask(self.handle.transition, _wit.change(change))
        return Done()

    def lease(self, name: str, ttl: timedelta | None = None) -> Lease:
        """Takes a lease for this execution, for as long as the machine declares or for ``ttl``; never waits.

        One that it has, from a step before or since its state needs it, is renewed and keeps its token.

        Rejections: ``not-found`` for one that the machine was not granted, ``busy`` with who has it, ``fenced``,
        ``spent``, ``invalid``, ``limit``, ``unavailable``.
        """
        time = None if ttl is None else _wit.ms(ttl, "ttl")
        return Lease(_wit.ask(_wit.lease.acquire, self.handle, _wit.text(name, "name"), time))

    def __repr__(self) -> str:
        return f"Entity({self.id!r}, state={self.state!r}, event={self.event!r})"
