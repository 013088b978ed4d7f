"""What every test may ask for: a throw-away project, a data directory, a session."""

import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from handaxe import Session
from handaxe.testing.conformance import check_every_output

# Who runs the tests under `nohup` hands an ignored SIGHUP on to the programs they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# The data of every successful call in a test has to fit the output type of its tool.
check_every_output()
# How fast the machine is proves nothing.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: what is long and comes last keeps one core waiting for the other."""
    items.sort(key=lambda item: "test_mcp_conformance" not in item.nodeid)


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of the machine's own handaxe or user settings reaches a test."""
    home = tmp_path_factory.mktemp("handaxe-home")
    monkeypatch.setenv("HANDAXE_HOME", str(home))
    monkeypatch.setenv("HANDAXE_CONFIG_HOME", f"{home}-own-settings")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{home}-shared-settings")


class _MisfitLog(logging.Handler):
    """Which built-in tools gave data that is not what they declare."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        is_own = str(getattr(record, "tool_module", "")).startswith("handaxe.")
        self.found += [record.getMessage()] if is_own else []


_MISFITS = _MisfitLog()
logging.getLogger("handaxe.pipeline").addHandler(_MISFITS)


@pytest.fixture(autouse=True)
def broken_promises() -> Iterator[list[str]]:
    """No test passes while a built-in tool breaks its promise, whatever else it looks at."""
    _MISFITS.found.clear()
    yield _MISFITS.found
    assert not _MISFITS.found


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
