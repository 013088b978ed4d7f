"""What every test may ask for: a throw-away project, a data directory, a session."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.app import background_work

sys.path.insert(0, str(Path(__file__).parent))
from plain_shell import PlainShell


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of the machine's own handaxe or user settings reaches a test."""
    home = tmp_path_factory.mktemp("handaxe-home")
    monkeypatch.setenv("HANDAXE_HOME", str(home))
    monkeypatch.setenv("HANDAXE_CONFIG_HOME", f"{home}-own-settings")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{home}-shared-settings")


@pytest.fixture(autouse=True)
def _plain_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a small shell of the tests' own until the supervised one is here."""
    if find_spec("handaxe.host.shell") is None:
        monkeypatch.setattr(
            background_work,
            "local_shell",
            lambda around, _confiner: PlainShell(around.session_directory / background_work.TASKS),
        )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project directory."""
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
async def session(project: Path):
    """A session in the project that may change files in it."""
    async with Session(project, permission_mode="acceptEdits") as opened:
        yield opened
