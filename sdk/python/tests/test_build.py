"""What the build finds in an author's modules, and whose mistake it calls what goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import build

from . import PACKAGE, TOOL, WIT, WITHOUT_TOOL

STEP = "from interlock import step, to\n\n@step\ndef plan(pool):\n    return pool.transition(to('ready'))\n"


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name).resolve() / "machine"
        self.folder.mkdir()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.folder / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def scan(self, main: str = "steps") -> build.Found:
        source = self.folder / "src"
        return build.scan(main, self.folder, [self.folder, *([source] if source.is_dir() else [])])

    def mistake(self) -> dict[str, Any]:
        with self.assertRaises(build.Mistake) as caught:
            self.scan()
        return caught.exception.problem


class Scanning(Folder):
    def test_powers_are_found_wherever_they_are_imported(self) -> None:
        for text in (
            "from interlock import rows",
            "import interlock.rows",
            "import interlock.rows as r",
            "from interlock.rows import Claim",
            "def f():\n    from interlock import to, rows as r",
            "import below.deep",
            "from below import deep",
            "from below.deep import x",
        ):
            with self.subTest(text):
                self.write(steps=text, below__deep="from interlock import rows\nx = 1")
                self.assertEqual(self.scan().powers, {"rows"})

    def test_relative_imports_are_followed(self) -> None:
        self.write(steps="import pool", pool__a="from . import b", pool__b="from ..pool.c import x")
        self.write(pool__c="from interlock import timers")
        (self.folder / "pool/__init__.py").write_text("from .a import y")
        self.assertEqual(self.scan().powers, {"timers"})

    def test_what_nothing_imports_gives_no_power(self) -> None:
        self.write(steps="from interlock import step", test_steps="from interlock import rows")
        self.write(other="from interlock import effects")
        self.assertEqual(self.scan().powers, set())

    def test_what_is_for_type_checkers_alone_gives_no_power(self) -> None:
        self.write(
            steps="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from interlock import rows\n"
            "else:\n    from interlock import timers"
        )
        self.assertEqual(self.scan().powers, {"timers"})

    def test_modules_that_a_function_imports_are_found(self) -> None:
        self.write(steps="def f():\n    import decimal\n    from xml.etree import ElementTree")
        self.assertLessEqual({"decimal", "xml.etree", "xml.etree.ElementTree"}, self.scan().modules)

    def test_a_folder_src_is_searched_too(self) -> None:
        self.write(src__steps="import pool", src__pool="from interlock import effects")
        self.assertEqual(self.scan().powers, {"effects"})

    def test_a_syntax_error_is_the_authors_with_its_place(self) -> None:
        self.write(steps="import pool", pool="def f(:\n")
        problem = self.mistake()
        self.assertEqual((problem["file"], problem["line"], problem["column"]), ("pool.py", 1, 7))
        self.assertIn("SyntaxError: ", problem["text"])

    def test_a_module_that_is_not_there_is_the_manifests_mistake(self) -> None:
        problem = self.mistake()
        self.assertEqual(problem["file"], "pyproject.toml")
        self.assertIn("there is no module steps: expected steps.py or steps/__init__.py", problem["text"])


class Composing(Folder):
    def test_the_world_has_the_powers_found_and_no_other(self) -> None:
        made = build.compose(WIT, self.folder / "wit", {"rows", "effects"})
        text = (made / "built.wit").read_text()
        self.assertIn("world built {\n  include step;\n  import effects;\n  import rows;\n}\n", text)
        self.assertTrue((made / "transition.wit").is_file())


@unittest.skipIf(TOOL is None, WITHOUT_TOOL)
class Building(Folder):
    """With the tool: seconds each, so as few as show all kinds of answers."""

    def built(self) -> tuple[int, dict[str, Any]]:
        work = self.folder.parent / "work"
        request = {
            "folder": str(self.folder),
            "main": "steps",
            "language": "python",
            "sdk": str(PACKAGE),
            "wit": str(WIT),
            "out": str(self.folder.parent / "out" / "machine.wasm"),
            "work": str(work),
        }
        path = self.folder.parent / "request.json"
        path.write_text(json.dumps(request))
        command = [sys.executable, str(PACKAGE / "build.py"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertTrue(done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout.splitlines()[-1])

    def problem(self) -> dict[str, Any]:
        code, answer = self.built()
        self.assertEqual((code, len(answer["problems"])), (1, 1), answer)
        problem: dict[str, Any] = answer["problems"][0]
        return problem

    def test_a_component_says_its_powers_and_the_tool(self) -> None:
        self.write(steps=STEP + "from interlock import timers\n")
        code, answer = self.built()
        self.assertEqual((code, answer["uses"]), (0, ["timers"]), answer)
        self.assertRegex(answer["tool"], r"^componentize-py \d+\.\d+\.\d+$")
        self.assertEqual((self.folder.parent / "out/machine.wasm").read_bytes()[:8], b"\0asm\x0d\0\1\0")

    def test_what_goes_wrong_at_import_is_the_authors_with_its_place(self) -> None:
        self.write(steps="import pool\n", pool="import json\n\nimport nothing_here\n")
        self.assertEqual(
            self.problem(),
            {
                "file": "pool.py",
                "line": 3,
                "column": None,
                "text": "ModuleNotFoundError: No module named 'nothing_here'",
            },
        )

    def test_a_module_without_a_step_is_told(self) -> None:
        self.write(steps="def plan(pool):\n    return None\n")
        problem = self.problem()
        self.assertEqual(problem["file"], "steps.py")
        self.assertIn("there is no step", problem["text"])

    def test_a_power_that_the_build_does_not_see_is_told(self) -> None:
        self.write(steps=STEP + "__import__('importlib').import_module('interlock.rows')\n")
        self.assertIn("write `from interlock import rows`", self.problem()["text"])


if __name__ == "__main__":
    unittest.main()
