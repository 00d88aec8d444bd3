"""The component's export: one attempt, from the host's call to its answer."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import wit_world  # type: ignore[import-not-found, unused-ignore]

from . import _wit, log
from .entity import Entity
from .failure import Failure
from .rejection import Rejection
from .steps import find

_NOT_THE_AUTHORS = ("/python/", "/world/", "<frozen ")


class WitWorld(wit_world.WitWorld):  # type: ignore[misc, unused-ignore]
    """What componentize-py looks for in the module that it is given."""

    def run(self, step_name: str, entity: Any, event: Any) -> None:
        """Runs the step of this name; see ``wit/world.wit``."""
        try:
            find(step_name)(Entity(entity, _wit.event(event)))
        except Failure as told:
            raise _wit.Err(_wit.failure(told)) from None
        except Rejection as no:
            raise _wit.Err(_wit.failure(Failure.of(no))) from None
        except BaseException as error:
            raise _wit.Err(_wit.failure(exception(error))) from None
        finally:
            log.end()


def exception(error: BaseException) -> Failure:
    """What an exception of the author's becomes: the next attempt may have it better. Its traceback is logged."""
    kind = type(error).__name__
    logging.getLogger().error("%s: %s", kind, error, exc_info=error)
    place = _place(error)
    return Failure.retry(f"{kind}: {error}{f' ({place})' if place else ''}", code="exception")


def _place(error: BaseException) -> str:
    """The innermost line of the author's on the way to where it was raised."""
    own = __file__.rpartition("/")[0]
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith((own, *_NOT_THE_AUTHORS)):
            place = f"{_relative(file)}:{line}"
    return place


def _relative(file: str) -> str:
    """The file as the author knows it: the build hands each folder in under a number of its own, `/0/steps.py`."""
    head, _, tail = file.removeprefix("/").partition("/")
    return tail if head.isdigit() and tail else file
