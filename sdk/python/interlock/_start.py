"""What a component begins with: the author's modules, loaded once as it is built.

componentize-py keeps the memory of an interpreter that has imported everything, and there are no files behind it later:
a module that is not imported here cannot be imported by a step.
"""

from __future__ import annotations

import gc
import json
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from . import _wit, log, shape, steps


class Problem(Exception):
    """A mistake of the author's; its message is one line of JSON, for ``build.py``."""


def load(main: str, more: Iterable[str], roots: tuple[str, ...]) -> None:
    """Imports the module with the steps, then those that steps import as they run.

    ``roots`` are the author's folders as they are called in here.
    """
    try:
        import_module(main)
    except BaseException as error:
        raise Problem(json.dumps(_told(error, roots))) from None
    for name in more:
        try:
            import_module(name)
        except Exception:
            continue
    if not steps.STEPS:
        text = f"there is no step: expected functions marked with @step in the module {main} or one that it imports"
        raise Problem(json.dumps(_problem(_file(sys.modules[main], roots), None, None, text)))
    for power in sorted(_wit.MISSING):
        text = f"interlock.{power} is imported where the build does not see it: write `from interlock import {power}`"
        raise Problem(json.dumps(_problem(_file(sys.modules[main], roots), None, None, text)))
    for module in list(sys.modules.values()):
        if str(getattr(module, "__file__", None) or "").startswith(roots):
            shape.prepare(module)
    log.begin()
    gc.collect()
    gc.freeze()  # what a component begins with is never garbage: no step looks through it


def _told(error: BaseException, roots: tuple[str, ...]) -> dict[str, Any]:
    """Where the author's code went wrong: the innermost line of theirs."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename and error.filename.startswith(roots):
        return _problem(_inside(error.filename, roots), error.lineno, error.offset, f"{kind}: {error.msg}")
    file: str | None = None
    line: int | None = None
    for frame, at in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith(roots):
            file, line = _inside(frame.f_code.co_filename, roots), at
    return _problem(file, line, None, f"{kind}: {error}")


def _problem(file: str | None, line: int | None, column: int | None, text: str) -> dict[str, Any]:
    return {"file": file, "line": line, "column": column, "text": text}


def _file(module: Any, roots: tuple[str, ...]) -> str | None:
    path = getattr(module, "__file__", None)
    return _inside(path, roots) if path else None


def _inside(path: str, roots: tuple[str, ...]) -> str:
    """The path in the author's folder: the first root is the folder itself, the second its `src`."""
    for number, root in enumerate(roots):
        if path.startswith(root):
            return ("src/" if number else "") + path[len(root) :]
    return path
