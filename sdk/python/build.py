"""Makes a component of a folder of Python: `python build.py REQUEST.json`.

`interlock build` runs it, with the Python that has componentize-py. The request names the folder, the module with the
steps (`main`), the package `interlock` (`sdk`), the contract (`wit`), where the component goes (`out`) and a folder for
what is made on the way (`work`).

The last line of standard output is one JSON object. Exit 0: {"uses": [powers], "tool": "componentize-py 0.25.1"}.
Exit 1, the author's mistakes: {"problems": [{"file", "line", "column", "text"}]}. Anything else is said by the tool.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

POWERS = ("timers", "effects", "rows")

# Modules that the standard library's C code imports as it runs, when there are no files any more.
HIDDEN = ("_strptime", "encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_8_sig")

PROBLEM = re.compile(r"^\s*(?:interlock\._start\.)?Problem: (\{.*\})\s*$", re.MULTILINE)


class Mistake(Exception):
    """What the author has to mend."""

    def __init__(self, text: str, file: str | None = None, line: int | None = None, column: int | None = None) -> None:
        super().__init__(text)
        self.problem = {"file": file, "line": line, "column": column, "text": text}


class ToolFailed(Exception):
    """What the tool said; nobody knows better."""


@dataclass
class Found:
    """What the author's modules import."""

    powers: set[str] = field(default_factory=set)
    """Powers, wherever they are imported."""
    modules: set[str] = field(default_factory=set)
    """Modules that the author's own files import: also those that a function imports as it runs."""


def main(path: str) -> int:
    """Builds what the request asks for; prints the answer."""
    request = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        answer, code = build(request), 0
    except Mistake as mistake:
        answer, code = {"problems": [mistake.problem]}, 1
    except ToolFailed as failed:
        print(failed, file=sys.stderr)
        return 2
    print(json.dumps(answer))
    return code


def build(request: dict[str, Any]) -> dict[str, Any]:
    """One component: scan, compose the world, run the tool."""
    folder, work, out = (Path(request[key]) for key in ("folder", "work", "out"))
    roots = [folder, *([folder / "src"] if (folder / "src").is_dir() else [])]
    found = scan(request["main"], folder, roots)
    for left in ("wit", "entry"):
        shutil.rmtree(work / left, ignore_errors=True)
    world = compose(Path(request["wit"]), work / "wit", found.powers)
    entry(work / "entry", request["main"], found.modules, len(roots))
    tool = find_tool()
    paths = [*roots, Path(request["sdk"]), work / "entry"]
    made = work / "built.wasm"
    run_tool(tool, world, paths, made)
    out.parent.mkdir(parents=True, exist_ok=True)
    made.replace(out)
    return {"uses": sorted(found.powers), "tool": version(tool)}


# --- What the modules import --------------------------------------------------------------------------


def scan(main: str, folder: Path, roots: list[Path]) -> Found:
    """Follows imports from the module with the steps, through the author's files and the packages of this Python."""
    packages = Path(sysconfig.get_path("purelib"))
    if locate(main, roots) is None:
        places = " or ".join(f"{main.replace('.', '/')}{end}" for end in (".py", "/__init__.py"))
        raise Mistake(
            f"there is no module {main}: expected {places}; main of [tool.interlock] says which module has the steps",
            "pyproject.toml",
        )
    found, seen, left = Found(), set(), [main]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        path = locate(name, roots)
        own = path is not None
        path = path or locate(name, [packages])
        if path is None:
            continue
        names = list(imports(name, path, folder if own else None))
        found.powers |= {power for power in POWERS if f"interlock.{power}" in names}
        if own:
            found.modules.update(names)
        left.extend(names)
    return found


def locate(name: str, roots: list[Path]) -> Path | None:
    """The file of a module below one of these folders."""
    if name.split(".")[0] == "interlock":
        return None
    for root in roots:
        for path in (
            root.joinpath(*name.split(".")).with_suffix(".py"),
            root.joinpath(*name.split("."), "__init__.py"),
        ):
            if path.is_file():
                return path
    return None


def imports(name: str, path: Path, folder: Path | None) -> Iterator[str]:
    """Every module that a file may import, the names in `from a import b` as well, which may be modules."""
    source = path.read_bytes()
    try:
        tree = ast.parse(source, str(path))
    except SyntaxError as error:
        if folder is None:
            return  # a package's own business: it may be for another Python
        file = path.relative_to(folder).as_posix()
        running = "{}.{}".format(*sys.version_info)
        raise Mistake(
            f"SyntaxError: {error.msg} (read by Python {running})", file, error.lineno, error.offset
        ) from None
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All of it but what is for type checkers alone."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            left.extend(node.orelse)
        else:
            left.extend(ast.iter_child_nodes(node))


# --- What the tool is given ---------------------------------------------------------------------------


def compose(wit: Path, to: Path, powers: set[str]) -> Path:
    """The contract, with a world that has these powers and no other."""
    shutil.copytree(wit, to)
    lines = ["include step;", *(f"import {power};" for power in sorted(powers))]
    world = "package interlock:step@0.1.0;\n\nworld built {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    (to / "built.wit").write_text(world, encoding="utf-8")
    return to


def entry(to: Path, main: str, modules: set[str], roots: int) -> None:
    """The module that the tool starts with. The tool calls the folders it is given `/0`, `/1` and so on."""
    to.mkdir(parents=True)
    inside = tuple(f"/{number}/" for number in range(roots))
    (to / "interlock_entry.py").write_text(
        "from interlock._start import load\n\n"
        f"load({main!r}, {sorted({*modules, *HIDDEN})!r}, {inside!r})\n\n"
        "from interlock._component import WitWorld\n",
        encoding="utf-8",
    )


def find_tool() -> str:
    """componentize-py of this Python, or of the PATH."""
    beside = Path(sys.executable).parent / "componentize-py"
    tool = str(beside) if beside.is_file() else shutil.which("componentize-py")
    if tool is None:
        raise ToolFailed(
            f"componentize-py is missing: expected it beside {sys.executable} or on the PATH; "
            f"install it with `{sys.executable} -m pip install -r {Path(__file__).parent / 'requirements.txt'}`"
        )
    return tool


def version(tool: str) -> str:
    """Its name and version, as it says them."""
    return subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout.strip()


def run_tool(tool: str, wit: Path, paths: list[Path], out: Path) -> None:
    """Runs it. What went wrong while it loaded the author's modules is theirs."""
    command = [tool, "--quiet", "--wit-path", str(wit), "--world", "built", "componentize"]
    for path in paths:
        command += ["--python-path", str(path)]
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}  # whose packages go in
    done = subprocess.run(
        [*command, "--output", str(out), "interlock_entry"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode == 0:
        return
    told = PROBLEM.search(done.stderr)
    if told is None:
        fail(done.stderr)
    problem = json.loads(told[1])
    raise Mistake(**problem)


def fail(said: str) -> NoReturn:
    """The tool's words without its stack of native frames."""
    raise ToolFailed("componentize-py failed:\n" + said.partition("Stack backtrace:")[0].strip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
