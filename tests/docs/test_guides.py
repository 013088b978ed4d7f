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
OPENED = """
session = Session("path/to/project", permission_mode="acceptEdits")
await session.call("Read", file_path="a.py")
call_id = (await session.call("Write", file_path="new.txt", content="new")).id
"""
BEFORE = """
import asyncio
from collections.abc import AsyncIterator
from typing import Any
import handaxe
from handaxe import *
async def another(event): return None
model, tokens = "scripted:turns.toml", {"ada": "secret"}
"""
BETWEEN: dict[str, dict[int, str]] = {
    "library": {1: OPENED},
    "search": {0: "session = Session('.')"},
    "many-users": {
        1: "async with Session('users/ada', home='data/ada') as s: await s.call('TodoWrite', todos=[])"
    },
}
"""What a reader has before all blocks of code, and before one of a page."""
RUN_ELSEWHERE = {
    "frameworks": "tests/docs/test_examples.py",
    "own-tools": "tests/docs/test_guide_code.py",
    "command-line-agent": "tests/docs/test_guide_code.py",
    "mcp-client": "tests/docs/test_guide_code.py",
    "hosting": "tests/docs/test_guide_code.py",
    "hooks": "tests/docs/test_guide_code.py",
    "approvals": "tests/docs/test_guide_code.py",
}
SCRIPT = "[[turn]]\ntext = 'Done.'\n" * 9
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


GUIDES = sorted(
    page.stem
    for page in (HOUSE / "docs" / "guides").glob("*.md")
    if read_blocks(page) and page.stem not in RUN_ELSEWHERE
)


def test_every_page_with_code_is_run_by_some_test():
    from tests.docs.test_guide_code import USES

    pages = {page.stem for page in PAGES if read_blocks(page)}
    assert pages - {"README"} == {*GUIDES, *USES}


@pytest.mark.parametrize("name", GUIDES)
def test_the_code_of_a_guide_runs(name: str, tmp_path: Path):
    for folder in ("path/to/project", "users/ada", "data", "docs/examples"):
        (tmp_path / "work" / folder).mkdir(parents=True)
    project = tmp_path / "work"
    (project / "path" / "to" / "project" / "a.py").write_text("x = 1\n")
    for script in ("turns.toml", "docs/examples/two_turns.toml"):
        (project / script).write_text(SCRIPT)
    blocks = read_blocks(HOUSE / "docs" / "guides" / f"{name}.md")
    between = BETWEEN.get(name, {})
    parts = [f"{between.get(number, '')}\n{block}" for number, block in enumerate(blocks)]
    source = "\n".join([BEFORE, *parts]).replace(
        "claude-sonnet-4-5", f"scripted:{project}/turns.toml"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", _RUNNER],
        input=source.replace("asyncio.run(main())", "await main()"),
        cwd=project,
        env={**os.environ, "HANDAXE_HOME": str(tmp_path / "home"), "ANTHROPIC_API_KEY": "none"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
