"""`handaxe tour` shows what it says it shows, and leaves nothing behind."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from handaxe.frontends.cli.commands.tour import STEPS

COMMAND = [sys.executable, "-m", "handaxe", "tour"]


def take_the_tour(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HANDAXE_HOME": str(tmp_path / "home")}
    return subprocess.run(
        COMMAND, capture_output=True, text=True, env=environment, check=False, timeout=30
    )


def take_the_tour_on_a_terminal() -> str:
    ours, theirs = pty.openpty()
    with subprocess.Popen(COMMAND, stdout=theirs, stderr=theirs) as tour:
        os.close(theirs)
        shown = b""
        while chunk := read_terminal(ours):
            shown += chunk
    os.close(ours)
    assert tour.returncode == 0
    return shown.decode()


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        # Linux answers so when the other end of a terminal is closed.
        return b""


def test_the_tour_ends_well_and_says_nothing_on_stderr(tmp_path: Path):
    tour = take_the_tour(tmp_path)
    assert tour.returncode == 0
    assert tour.stderr == ""


def test_the_tour_shows_every_step_and_every_refusal(tmp_path: Path):
    shown = take_the_tour(tmp_path).stdout
    for number, step in enumerate(STEPS, 1):
        assert f"\n{number}. {step.title}\n" in shown
        for code in filter(None, step.codes):
            assert f"refused: {code}" in shown
    assert '-    return f"Hello, {name}!"\n' in shown
    assert '+    return f"Good morning, {name}!"\n' in shown
    assert "differs only in" in shown
    assert "session_closed" in shown


def test_the_tour_leaves_nothing_behind(tmp_path: Path):
    shown = take_the_tour(tmp_path).stdout
    assert list(tmp_path.iterdir()) == []
    assert "handaxe-tour-" not in shown


def test_the_tour_is_plain_in_a_pipe_and_coloured_on_a_terminal(tmp_path: Path):
    assert "\x1b[" not in take_the_tour(tmp_path).stdout
    shown = take_the_tour_on_a_terminal()
    assert "\x1b[32m+    return f" in shown
    assert "refused: file.changed\x1b[0m" in shown
