"""The shape of the code: layers, sizes, names, types of documents."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [path for path in sorted((ROOT / "gateway").rglob("*.py")) if "versions" not in path.parts[-2:]]


def test_every_import_keeps_to_the_layers_of_the_design():
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_is_longer_than_about_400_lines():
    long = {path.name: count for path in SOURCES if (count := len(path.read_text("utf-8").splitlines())) > 420}
    assert not long


def test_no_function_is_longer_than_about_40_lines():
    long = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                if length > 45:
                    long.append(f"{path.relative_to(ROOT)}:{node.name} {length}")
    assert not long


def test_every_module_says_what_it_is_for():
    silent = [
        str(path.relative_to(ROOT)) for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert not silent


def test_no_module_is_called_after_nothing():
    nothing = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base", "core"}
    assert not [path for path in SOURCES if path.stem in nothing]


def test_the_changelog_knows_the_present_version():
    version = re.search(r'__version__ = "(.+)"', (ROOT / "gateway" / "__init__.py").read_text("utf-8")).group(1)
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
