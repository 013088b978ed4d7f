"""Background work is counted over processes, and what a dead one left does not count."""

import subprocess
import sys

from handaxe.app.services.background import TaskCounter

HOLDER = """
import sys
from pathlib import Path
from handaxe.app.services.background import TaskCounter
tasks = TaskCounter(Path(sys.argv[1]))
tasks.note(7)
print("noted", flush=True)
sys.stdin.read()
"""


def test_sessions_count_each_other_and_not_themselves(tmp_path):
    one, other = TaskCounter(tmp_path), TaskCounter(tmp_path)
    assert one.elsewhere() == 0
    one.note(2)
    other.note(1)
    one.note(12)
    assert (one.elsewhere(), other.elsewhere()) == (1, 12)
    other.note(0)
    assert one.elsewhere() == 0
    one.close()
    assert list((tmp_path / "running").iterdir()) == []


def test_what_a_killed_process_left_does_not_count(tmp_path):
    tasks = TaskCounter(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"noted\n"
    assert tasks.elsewhere() == 7
    holder.kill()
    holder.communicate()
    assert tasks.elsewhere() == 0
    assert list((tmp_path / "running").iterdir()) == []


def test_a_directory_that_cannot_be_used_keeps_nobody_from_work(tmp_path):
    (tmp_path / "running").write_text("in the way")
    tasks = TaskCounter(tmp_path)
    tasks.note(1)
    assert tasks.elsewhere() == 0
    tasks.close()
