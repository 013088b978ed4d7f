"""A device that is slow stops its own call, and nobody else."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import HANG_S

pytestmark = pytest.mark.proves("SS-4")


@pytest.fixture(scope="module")
def slow_syncs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed: install gcc"
    library = tmp_path_factory.mktemp("shim") / "slow_syncs.so"
    source = Path(__file__).with_name("slow_syncs.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture
def answer(slow_syncs, project, tmp_path):
    """What a scenario says in the end; one whose event loop waits for a sync never ends."""

    def run(scenario: str):
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name("slow_device.py"), scenario, project],
            env={**os.environ, "LD_PRELOAD": str(slow_syncs), "SYNC_GATE": str(tmp_path / "gate"),
                 "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True, text=True, check=False, timeout=HANG_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_other_sessions_go_on_while_calls_wait_for_the_device(answer):
    for tool, beside, ok, _, text in answer("go_on"):
        assert ok, (tool, text)
        assert beside, tool


def test_the_event_loop_itself_never_waits_for_the_device(answer):
    steps = answer("find_syncs_on_loop")
    assert [step for step in steps if not step[2]] == []
    assert [step[0] for step in steps if step[1]] == []


def test_a_call_is_cancelled_while_its_record_is_synced(answer):
    (ok, code, _), again, changed, is_known = answer("cancel_early")
    assert (ok, code) == (False, "call.cancelled")
    assert (again, changed, is_known) == (True, 1, False)


def test_a_cancelled_call_says_what_is_still_being_written(answer, project):
    (ok, code, text), before, after, last, undone, restored = answer("cancel_late")
    assert (ok, code) == (False, "call.cancelled")
    assert f"{project}/a.txt is still being written" in text
    # It ends with the new content, and can be undone.
    assert (before, after, last) == ("a\n", "b\n", "late")
    assert (undone, restored) == (True, "a\n")


def test_a_command_cancelled_before_it_began_leaves_undo_alone(answer, project):
    (ok, code, _), calls, undone, told, restored = answer("cancel_command")
    assert (ok, code) == (False, "call.cancelled")
    # What others changed meanwhile is not its own, and a file of ours on its way is nobody's.
    assert (calls[-1], "command" in calls) == ("write", False)
    assert (undone, restored) == (True, "a\n"), told
    assert (project / "theirs.txt").read_text() == "changed meanwhile\n"
