"""Tests of what is pure, under plain CPython: `python -m unittest discover -s sdk/python/tests -t sdk/python`.

Calls of the host are looked at through the bindings that componentize-py generates: the same classes as in a component,
with functions that a test replaces. They are made before `interlock` is imported for the first time. Without the
tool those tests are skipped, unless INTERLOCK_TOOLS=required is set.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
WIT = PACKAGE.parent.parent / "wit"


def _tool() -> str | None:
    if sys.version_info < (3, 11):
        return None  # it builds, but the bindings for type checkers need typing.Self
    beside = Path(sys.executable).parent / "componentize-py"
    return str(beside) if beside.is_file() else shutil.which("componentize-py")


TOOL = _tool()
WITHOUT_TOOL = "componentize-py is missing, for Python 3.11 or later: pip install -r sdk/python/requirements.txt"

if TOOL is None and os.environ.get("INTERLOCK_TOOLS") == "required":
    raise RuntimeError(WITHOUT_TOOL)

if TOOL is not None:
    _bindings = tempfile.TemporaryDirectory(prefix="interlock-bindings-")
    subprocess.run(
        [TOOL, "--quiet", "-d", str(WIT), "-w", "step-with-everything", "bindings", _bindings.name],
        check=True,
    )
    sys.path.insert(0, _bindings.name)
