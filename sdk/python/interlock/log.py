"""Python's usual ways to say something reach the host's log, each with its level.

The ``logging`` module needs no setup: every logger's lines go there, with ``extra=`` as fields. :data:`TRACE` is the
level below ``DEBUG``. Warnings come as ``warn``; what is printed comes line by line, standard output as ``info``,
standard error as ``warn``. The host adds machine, entity, execution, step, attempt and time.
"""

from __future__ import annotations

import io
import logging
import sys
from typing import Any

from . import _wit

TRACE = 5
"""For whoever follows every move: ``logging.log(TRACE, ...)``."""

logging.addLevelName(TRACE, "TRACE")
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class HostHandler(logging.Handler):
    """Hands records to the host."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line. What goes wrong with it is the author's: a bad format string is told as an exception."""
        fields = [(name, _shown(value)) for name, value in vars(record).items() if name not in _OWN]
        if record.name != "root":
            fields.append(("logger", record.name))
        if record.exc_info:
            fields.append(("exception", logging.Formatter().formatException(record.exc_info)))
        write(record.levelno, record.getMessage(), fields)


class Lines(io.TextIOBase):
    """A stream whose lines go to the host."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self._level = level
        self._begun = ""

    def writable(self) -> bool:
        """It is for writing."""
        return True

    def write(self, text: str) -> int:
        """Hands over every line that is whole."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            write(self._level, line, [])
        return len(text)

    def finish(self) -> None:
        """Hands over what was begun and not ended by a line feed."""
        begun, self._begun = self._begun, ""
        if begun:
            write(self._level, begun, [])


def write(level: int, message: str, fields: list[tuple[str, str]]) -> None:
    """Writes one line, at a level of the ``logging`` module's numbers."""
    words = _wit.log.Level
    if level >= logging.ERROR:
        word = words.ERROR
    elif level >= logging.WARNING:
        word = words.WARN
    elif level >= logging.INFO:
        word = words.INFO
    elif level >= logging.DEBUG:
        word = words.DEBUG
    else:
        word = words.TRACE
    _wit.log.write(word, _wit.shown(message), [(name, _wit.shown(value)) for name, value in fields])


_HANDLER = HostHandler()
_OUT, _ERR = Lines(logging.INFO), Lines(logging.WARNING)


def begin() -> None:
    """Directs everything to the host, for good: the last thing that is done as a component is built."""
    sys.stdout, sys.stderr = _OUT, _ERR
    root = logging.getLogger()
    kept = [handler for handler in root.handlers if type(handler) is not logging.StreamHandler]
    root.handlers = [_HANDLER, *kept]
    if root.level == logging.WARNING:  # nobody chose another: the host does
        root.setLevel(TRACE)
    logging.captureWarnings(True)
    # They cost a call each, and there is one of each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    vars(logging)["logAsyncioTasks"] = False  # since Python 3.12


def end() -> None:
    """Hands over what was printed without a line feed, as an attempt ends."""
    _OUT.finish()
    _ERR.finish()


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
