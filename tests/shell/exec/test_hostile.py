"""Two thousand hostile commands, and none of them leaves anything; the script takes any number."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "bench" / "shell_hostile.py"
PARTS, EACH = 8, 250


@pytest.mark.proves("SH-4")
# In parts, so that they are shared out among the processes that run the tests.
@pytest.mark.parametrize("seed", range(PARTS))
def test_two_thousand_hostile_commands_leave_nothing(seed):
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), str(EACH), str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{EACH} hostile commands" in ran.stdout
    assert ": 0 survivors" in ran.stdout
