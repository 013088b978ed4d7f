"""What the tests of every adapter share: a project to work in, a script, what a session did."""

import asyncio
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handaxe import Session
from handaxe.contract.events import CallStarted, Event

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples" / "frameworks"
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\x06\0\0\0\x1f\x15\xc4\x89"
    b"\0\0\0\rIDATx\xdac\xfc\xcf\xc0P\x0f\0\x04\x85\x01\x80\x84\xa9\x8c!\0\0\0\0IEND\xaeB`\x82"
)
Step = tuple[str, str, dict[str, Any]]


@pytest.fixture
def script(project: Path) -> list[Step]:
    """Calls of a model: one works, one changes a file, three are refused."""
    (project / "a.py").write_text("x = 1\n")
    (project / "unread.py").write_text("y = 1\n")
    change = {"old_string": "x = 1", "new_string": "x = 2"}
    return [
        ("one", "Read", {"file_path": "a.py"}),
        ("two", "Edit", {"file_path": "a.py", **change}),
        ("three", "Read", {"file_path": "/etc/hosts"}),
        ("four", "Edit", {"file_path": "unread.py", **change}),
        ("five", "Read", {"file_path": "missing.py"}),
    ]


@pytest.fixture
def writes() -> list[Step]:
    """Three calls that need a yes."""
    return [(n, "Write", {"file_path": f"{n}.txt", "content": f"{n}\n"}) for n in ("a", "b", "c")]


@pytest.fixture
def moving_link(project: Path) -> tuple[Step, Callable[[], None], Callable[[], bool]]:
    """A call that needs a yes, what lets it lead elsewhere, and whether it has got there."""
    for name in ("x", "y"):
        (project / name).mkdir()
    link = project / "link"
    link.symlink_to("x")

    def move() -> None:
        link.unlink()
        link.symlink_to("y")

    step = ("moved", "Bash", {"command": "touch link/g"})
    return step, move, (project / "y" / "g").exists


@pytest.fixture
def picture(project: Path) -> str:
    """The name of a picture in the project."""
    (project / "dot.png").write_bytes(PNG)
    return "dot.png"


@pytest.fixture
def started(session: Session) -> list[str]:
    """The ids of the calls that were started, as they come."""
    ids: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, CallStarted):
            ids.append(event.call_id)

    session.subscribe(listen)
    return ids


@pytest.fixture
def load_example() -> Callable[[str], dict[str, Any]]:
    """Read an example without running it; its names."""
    return lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="example")


@pytest.fixture
def run_example(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Run an example in the project; what it wrote there."""

    def run(name: str) -> str:
        monkeypatch.chdir(project)
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return (project / "hello.txt").read_text()

    return run


@pytest.fixture
def offered(session: Session) -> list[tuple[str, str, str]]:
    """Name, description and schema of every tool, as the session says them."""
    return [
        (tool["name"], tool["description"], json.dumps(tool["inputSchema"], sort_keys=True))
        for tool in session.tools()
    ]


@pytest.fixture
def settled() -> Callable[[], Any]:
    """Let listeners hear what happened."""
    return lambda: asyncio.sleep(0)
