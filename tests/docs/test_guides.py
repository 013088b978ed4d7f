"""The Python code of the guides imports public names only, and runs."""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent.parent
sys.path.insert(0, str(HOUSE / "docs"))
from api_pages import PUBLIC  # noqa: E402 - a module of the documentation

PAGES = sorted([*(HOUSE / "docs").rglob("*.md"), HOUSE / "README.md"])
EXAMPLES = sorted((HOUSE / "docs" / "examples").rglob("*.py"))
ABOUT_SOURCE = ("architecture.md", "tools.md")
OTHER_NAMES = ("handaxe.pipeline", "handaxe.tools")
"""A logger, and the group of entry points."""
RUN = ("evaluation", "file-tools")
"""Guides whose code is one program."""
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_RUNNER = """
import ast, asyncio, inspect, sys
source = sys.stdin.read()
code = compile(source, "guide", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
namespace = {"__name__": "guide"}
async def main():
    made = eval(code, namespace)
    if inspect.isawaitable(made):
        await made
asyncio.run(main())
"""


def read_blocks(page: Path) -> list[str]:
    return _BLOCK.findall(page.read_text())


def find_imports(source: str) -> list[tuple[str, str]]:
    """The names of handaxe that a program imports, with their modules."""
    tree = compile(source, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    found += [
        (alias.name, "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    return [(module, name) for module, name in found if module.partition(".")[0] == "handaxe"]


def is_public(module: str, name: str) -> bool:
    if module.startswith("handaxe.adapters."):
        return name in ("", "tools_for")
    return module in PUBLIC and (not name or name in importlib.import_module(module).__all__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_import_public_names_only(page: Path):
    found = [one for block in read_blocks(page) for one in find_imports(block)]
    assert [one for one in found if not is_public(*one)] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_import_public_names_only(example: Path):
    found = find_imports(example.read_text())
    assert [one for one in found if not is_public(*one)] == []


@pytest.mark.parametrize("page", sorted((HOUSE / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_pages_name_no_internal_module(page: Path):
    if page.parent.name == "adr" or page.name in ABOUT_SOURCE:
        return
    named = re.findall(r"`(handaxe(?:\.[a-z_]+)+)", page.read_text())
    wrong = [
        name
        for name in named
        if name not in (*PUBLIC, *OTHER_NAMES)
        and not is_public(*name.rpartition(".")[::2])
        and not name.startswith("handaxe.adapters")
    ]
    assert wrong == []


@pytest.mark.parametrize("name", RUN)
def test_the_code_of_a_guide_runs(name: str, tmp_path: Path):
    project = tmp_path / "project"
    project.mkdir()
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", _RUNNER],
        input="\n".join(read_blocks(HOUSE / "docs" / "guides" / f"{name}.md")),
        cwd=project,
        env={**os.environ, "HANDAXE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
