"""The promises of the package: small adapters, one door for each framework, honest docs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import handaxe

SOURCE = Path(handaxe.__file__).parent
HOUSE = Path(__file__).parent.parent.parent
DOORS = {
    "agno": "agno",
    "autogen": "autogen_core",
    "langchain": "langchain_core",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
}
APPROVING = {"langchain", "openai_agents", "pydantic_ai"}
EXAMPLES = sorted((HOUSE / "docs" / "examples" / "frameworks").glob("*.py"))


def imported_by(path: Path) -> set[str]:
    """The top-level packages that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.proves("AR-1")
@pytest.mark.parametrize("adapter", DOORS)
def test_an_adapter_has_fewer_than_a_hundred_lines(adapter: str):
    assert len((SOURCE / "adapters" / f"{adapter}.py").read_text().splitlines()) < 100


@pytest.mark.proves("AR-1")
@pytest.mark.parametrize("adapter", DOORS)
def test_a_framework_is_imported_by_its_own_adapter_only(adapter: str):
    doors = {path for path in SOURCE.rglob("*.py") if DOORS[adapter] in imported_by(path)}
    assert doors == {SOURCE / "adapters" / f"{adapter}.py"}


@pytest.mark.parametrize("adapter", DOORS)
def test_every_adapter_is_called_in_the_same_way(adapter: str):
    tree = ast.parse((SOURCE / "adapters" / f"{adapter}.py").read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    asked = ast.unparse(functions["tools_for"].args)
    approvals = ", approvals: bool=False" if adapter in APPROVING else ""
    assert asked == f"session: Session, *, fresh_ids: bool=False{approvals}"


@pytest.mark.proves("AR-1")
def test_the_package_imports_no_framework():
    code = "import sys, handaxe.adapters.tool_conversion; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.split()}
    assert loaded.isdisjoint({*DOORS.values(), "pydantic", "langgraph", "openai", "httpx"})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_guide_shows_every_example_as_it_is(example: Path):
    head = example.read_text().partition("\n\n\n# Below: ")[0].partition("\n\n")[2]
    guide = (HOUSE / "docs" / "guides" / "frameworks.md").read_text()
    assert f"```python\n{head}\n```" in guide
    body = head[head.index("async with") :]
    assert len([line for line in body.splitlines() if line.strip()]) <= 10


def test_there_is_an_example_for_every_adapter():
    shown = {name for path in EXAMPLES for name in DOORS if f"adapters.{name}" in path.read_text()}
    assert shown == set(DOORS)
