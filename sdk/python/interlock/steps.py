"""From a step's name in the manifest to the function that is it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, overload

from .entity import Done, Entity
from .failure import Failure

Run = Callable[[Entity], Done]
"""A step: reads its entity and ends with an accepted transition, or raises."""

F = TypeVar("F", bound=Run)

STEPS: dict[str, Run] = {}
"""The steps of this component by name, as the manifest spells them."""


@overload
def step(run: F) -> F: ...
@overload
def step(run: str) -> Callable[[F], F]: ...
def step(run: F | str) -> F | Callable[[F], F]:
    """Makes a function a step of the component.

    A function ``check_quota`` is the step ``check-quota`` of the manifest; another name is given as ``@step("move")``.
    The function stays what it is.
    """
    if isinstance(run, str):
        name = run

        def named(function: F) -> F:
            return _added(name, function)

        return named
    return _added(run.__name__, run)


def _added(name: str, function: F) -> F:
    name = _spelled(name)
    if name in STEPS:
        taken = STEPS[name]
        raise ValueError(f"two steps are called {name!r}: {taken.__module__}.{taken.__qualname__} is one already")
    STEPS[name] = function
    return function


def find(name: str) -> Run:
    """The step of this name.

    Raises a permanent :class:`Failure` with the code ``unknown-step``, naming the known ones, if there is none.
    """
    found: Run | None = STEPS.get(_spelled(name))
    if found is None:
        known = ", ".join(STEPS)
        raise Failure.permanent(f"this component has no step {name!r}; it has {known}", code="unknown-step")
    return found


def _spelled(name: str) -> str:
    return name.replace("_", "-")
