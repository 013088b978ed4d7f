"""Too few files, processes, bytes; a clock that jumps; a process that is stopped; a bad byte.

Whatever happens: contents are old or new and whole, and the next session reads, edits and undoes.
The long forms are `scripts/check --long rough` and `scripts/check --long damage`.
"""

import asyncio
import shutil
import signal
import subprocess
from pathlib import Path

import damaged_bytes
import pytest
import rough_session

from handaxe import Session
from handaxe.disk import locks

DAY_S = 86_400


def compile_clock(place: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "no C compiler is installed; scripts/check installs one or says how"
    library = place / "clock_jumps.so"
    source = Path(__file__).with_name("clock_jumps.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("files", [64, 200])
def test_with_few_files_to_open_everything_still_works(files: int):
    with rough_session.prepared() as (project, home):
        outcome = rough_session.answers(rough_session.start(project, home, f"files={files}"))
        assert outcome["codes"][1:] == [[tool, None] for tool, _ in rough_session.CALLS], outcome
        assert rough_session.problems_after(project, home) == []


@pytest.mark.parametrize("strain", ["memory=3000000", "allocation=150000"])
def test_without_memory_nothing_is_torn(strain: str):
    with rough_session.prepared() as (project, home):
        outcome = rough_session.answers(rough_session.start(project, home, strain))
        assert outcome["codes"], outcome
        is_struck = outcome["status"] != 0 or any(code for _, code in outcome["codes"][1:])
        assert is_struck, outcome
        assert rough_session.problems_after(project, home) == []


def test_without_processes_files_are_changed_all_the_same():
    with rough_session.prepared() as (project, home):
        before = rough_session.without_processes(0)
        outcome = rough_session.answers(rough_session.start(project, home, before=before))
        done = outcome["codes"][1:7]
        assert done == [[tool, None] for tool, _ in rough_session.CALLS[:6]], outcome
        assert rough_session.problems_after(project, home) == []


def test_a_clock_that_jumps_spoils_nothing(tmp_path: Path):
    library = compile_clock(tmp_path)
    variables = {"CLOCK_FLIP_S": str(400 * DAY_S), "LD_PRELOAD": str(library)}
    with rough_session.prepared() as (project, home):
        outcome = rough_session.answers(rough_session.start(project, home, variables=variables))
        assert outcome["codes"][1:] == [[tool, None] for tool, _ in rough_session.CALLS], outcome
        assert rough_session.problems_after(project, home) == []


def test_a_session_that_is_stopped_holds_up_no_other_for_good(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(locks, "WAIT_S", 0.2)
    with rough_session.prepared() as (project, home):
        codes: list[str] = []
        with rough_session.start(project, home) as process:
            assert process.stdout is not None
            try:
                while line := process.stdout.readline():
                    codes.append(line)
                    process.send_signal(signal.SIGSTOP)
                    asyncio.run(_work_beside(project, home))
                    process.send_signal(signal.SIGCONT)
            finally:
                process.kill()
        (project / "beside.txt").unlink(missing_ok=True)
        assert len(codes) == len(rough_session.CALLS) + 1
        assert all("null" in line for line in codes[1:]), codes
        assert rough_session.problems_after(project, home) == []


async def _work_beside(project: Path, home: Path) -> None:
    async with Session(project, permission_mode="acceptEdits", home=home) as session:
        assert (await session.call("Read", file_path="small.txt")).ok
        if (project / "beside.txt").exists():
            assert (await session.call("Read", file_path="beside.txt")).ok
        written = await session.call("Write", file_path="beside.txt", content="beside\n")
        # The other one may be stopped with the lock of the directory in its hands.
        assert written.ok or "lock" in written.text, written.text


@pytest.mark.proves("SS-4")
def test_a_bad_byte_in_our_records_restores_nothing_wrong():
    assert {kind for kind, _ in damaged_bytes.run(2)} == set(damaged_bytes.KINDS)
