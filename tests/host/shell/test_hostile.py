"""Many hostile commands at once, and none of them leaves anything; the script takes any number."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "bench" / "shell_hostile.py"


@pytest.mark.proves("SH-4")
def test_a_hundred_and_fifty_hostile_commands_leave_nothing():
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), "150"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 survivors" in ran.stdout
