"""Bash with a real shell: what is told, how long is waited, where the next command runs."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.expected_types import expect_type, require
from tests.waiting import HANG_S, until

from handaxe import Allow, Session
from handaxe.app.session import get_parts
from handaxe.contract.display import Diff, DiffHunk
from handaxe.contract.events import CallProgress, JobEnded, JobStarted
from handaxe.contract.ports.dry_run import CommandPreviews, Preview
from handaxe.contract.ports.shell import CommandEnd, CommandOutput
from handaxe.shell.exec.overlay_mounts import find_overlay_program


@pytest.fixture
async def free(project):
    async with Session(project, allow=["Bash", "Monitor"]) as opened:
        yield opened


async def bash(session, command, **more):
    return await session.call("Bash", command=command, **more)


@pytest.mark.proves("SH-3")
async def test_a_long_output_is_previewed_from_both_ends_and_kept_where_read_finds_it(free):
    result = await bash(free, "seq 1 20000; echo the end")
    assert result.ok
    assert len(result.text) < 6_000
    assert "\n1\n2\n3\n" in result.text
    assert "20000\nthe end" in result.text
    path = result.data["persistedOutputPath"]
    assert result.data["persistedOutputSize"] == result.data["totalBytes"] > 100_000
    assert path in result.text
    assert result.data["totalLines"] == 20_001
    (first, head_end), (tail_begin, last) = result.data["shownRanges"]
    assert (first, last) == (1, 20_001)
    assert f"\n{head_end}\n" in result.text
    assert f"\n{head_end + 1}\n" not in result.text
    assert f"\n{tail_begin}\n" in result.text
    assert f"\n{tail_begin - 1}\n" not in result.text
    read = await free.call("Read", file_path=path, offset=20_001)
    assert "the end" in read.text


async def test_what_fits_is_shown_whole(free):
    result = await bash(free, "head -c 29990 /dev/zero | tr '\\0' x")
    assert result.text.startswith("x" * 29_990 + "\n[exit code 0")
    assert "persistedOutputPath" not in result.data


@pytest.mark.proves("SH-3")
async def test_a_long_failure_is_cut_in_the_middle(free):
    result = await bash(free, "seq 1 5000; echo summary: 3 failed; exit 1")
    assert result.code == "shell.failed"
    assert result.text.startswith("Exit code 1\n1\n2\n")
    assert re.search(r"\.\.\. \[\d+ characters truncated\] \.\.\.", result.text)
    assert "summary: 3 failed" in result.text
    assert len(result.text) < 11_000
    assert f"Full output (5,001 lines) is in: {result.data['rawOutputPath']}" in result.text
    (first, head_end), (tail_begin, last) = result.data["shownRanges"]
    assert (first, last) == (1, 5001)
    assert f"\n{head_end}\n\n... [" in result.text
    assert f"] ...\n\n{tail_begin}\n" in result.text


async def test_a_failure_over_the_cap_says_what_is_really_kept(project):
    settings = {"shell": {"max_output_bytes": 1 << 20}}
    async with Session(project, allow=["Bash"], settings=settings) as session:
        result = await bash(session, "seq 1 500000; exit 3")
        path = Path(result.data["rawOutputPath"])
        assert "Full output" not in result.text
        assert "Of 500,000 lines (3,388,895 bytes) the beginning and the end (" in result.text
        kept = int(result.text.partition("the end (")[2].partition(" ")[0].replace(",", ""))
        assert kept < path.stat().st_size < kept + 100  # one line says what was left out
        assert result.data["shownRanges"][1][1] == 500_000


async def test_binary_output_does_not_reach_the_model(free):
    result = await bash(free, "printf 'a\\0b\\0c'")
    assert result.ok
    assert "binary output, 5 bytes" in result.text
    assert "\0" not in result.text


@pytest.mark.proves("SH-2")
async def test_at_the_timeout_a_command_moves_to_the_background(free):
    command = "cd .. && echo first; read -t 30 < <(sleep 30); echo never"
    result = await bash(free, command, timeout=300)
    assert result.ok
    assert "Command did not complete within its 0.3s timeout and was moved to the background" in (
        result.text
    )
    assert "Output so far:\nfirst" in result.text
    assert f"Session cwd remains {free.workdir.root}; directory changes made by" in result.text
    assert result.data["timedOutAfterMs"] == 300
    job_id = result.data["backgroundTaskId"]
    assert [state.job_id for state in free.jobs.running()] == [job_id]
    assert job_id in result.text
    assert result.data["rawOutputPath"] in result.text
    stopped = await free.call("TaskStop", task_id=job_id)
    assert stopped.data["task_type"] == "local_bash"
    assert stopped.data["command"] == command
    assert free.jobs.running() == []


@pytest.mark.proves("SH-2")
@pytest.mark.parametrize("command", ["sleep 30", "echo a; git --version; sleep 30"])
async def test_some_commands_end_at_their_timeout(free, command):
    result = await bash(free, command, timeout=300)
    assert not result.ok
    assert result.code == "call.timed_out"
    assert result.text.startswith("Command timed out after 0.3s")
    assert result.data["interrupted"]
    assert (result.data["exitCode"], result.data["signal"]) == (143, 15)
    assert result.data["durationMs"] >= 300
    assert free.jobs.listed() == []


@pytest.mark.proves("SH-2")
async def test_a_blocking_budget_moves_any_command(project):
    settings = {"shell": {"blocking_budget_s": 0.3}}
    async with Session(project, allow=["Bash"], settings=settings) as session:
        result = await bash(session, "sleep 20")
        assert "did not complete within 0.3s and was moved to the background" in result.text
        assert "timedOutAfterMs" not in result.data
        assert len(session.jobs.running()) == 1


@pytest.mark.proves("SH-2")
async def test_a_timeout_is_clamped_and_that_is_said(free):
    result = await bash(free, "true", timeout=9_000_000)
    assert result.notes == ("Timeout reduced from 9,000,000 ms to the maximum of 600,000 ms.",)
    result = await bash(free, "true", timeout=-5)
    assert "using the default of 120,000 ms" in result.notes[0]
    assert (await bash(free, "true", timeout="5000")).ok


@pytest.mark.proves("SH-2", "SH-5")
async def test_run_in_background_answers_at_once_and_the_end_is_told_once(free):
    events = []
    free.subscribe(events.append)
    result = await bash(free, "echo hello; exit 4", description="greets", run_in_background=True)
    job_id = result.data["backgroundTaskId"]
    assert result.text.startswith(
        f"Command running in background with ID: {job_id}. Output is being written to: "
    )
    assert await free.jobs.news(HANG_S)
    (notice,) = free.jobs.take_notices()
    assert notice == (
        "<task-notification>\n"
        f"<task-id>{job_id}</task-id>\n"
        f"<output-file>{result.data['rawOutputPath']}</output-file>\n"
        "<status>failed</status>\n"
        '<summary>Background command "greets" failed (exit code 4)</summary>\n'
        "</task-notification>"
    )
    assert free.jobs.take_notices() == ()
    read = await free.call("Read", file_path=result.data["rawOutputPath"])
    assert "hello" in read.text
    await asyncio.sleep(0)
    kinds = [type(event) for event in events]
    assert kinds.count(JobStarted) == kinds.count(JobEnded) == 1


@pytest.mark.proves("SH-4", "SH-5")
async def test_closing_a_session_ends_its_background_work(project):
    events = []
    async with Session(project, allow=["Bash"]) as session:
        session.subscribe(events.append)
        result = await bash(session, "echo $$; exec sleep 300", run_in_background=True)
        await until(lambda: Path(result.data["rawOutputPath"]).read_text().strip())
        pid = int(Path(result.data["rawOutputPath"]).read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    (ended,) = [event for event in events if isinstance(event, JobEnded)]
    assert ended.job.status == "killed"


@pytest.mark.proves("SH-4")
async def test_cancel_stops_the_command_and_says_what_it_had_printed(free):
    call = asyncio.create_task(bash(free, "echo $$; exec sleep 300"))
    reports = []
    free.subscribe(lambda e: reports.append(e) if isinstance(e, CallProgress) else None)
    await until(lambda: reports)
    pid = int(reports[0].text)
    assert free.cancel() == 1
    result = await call
    assert result.code == "call.cancelled"
    assert f"Its output:\n{pid}" in result.text
    assert result.data["interrupted"]
    assert (result.data["exitCode"], result.data["signal"]) == (143, 15)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_host_that_cancels_its_own_task_is_obeyed(free, project):
    call = asyncio.create_task(bash(free, "touch on; sleep 600"))
    await until((project / "on").exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_host_that_gives_up_by_its_own_clock_gets_its_timeout(free):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await bash(free, "echo said; sleep 300")
    assert free.jobs.listed() == []


@pytest.mark.parametrize(
    "command",
    [
        "sleep 0; echo x",
        "for i in $(seq 2); do sleep 0; done",
        "until grep -q done build.log; do sleep 0.01; done",
        "timeout 20 bash -c 'until grep -q done build.log; do sleep 0.01; done'",
        "sleep 0; cat {output}",
        "if pgrep -f no-such-flag >/dev/null; then sleep 0; fi",
    ],
)
async def test_sleeping_for_background_work_is_answered(free, project, command):
    (project / "build.log").write_text("done")
    assert (await bash(free, command)).notes == ()
    begun = await bash(free, "tail -f build.log # no-such-flag", run_in_background=True)
    (note,) = (await bash(free, command.replace("{output}", begun.data["rawOutputPath"]))).notes
    assert begun.data["backgroundTaskId"] in note
    assert "no need to sleep" in note


async def test_a_loop_that_ends_with_the_work_it_waited_for_is_answered_all_the_same(free, project):
    ended = project / "build.ended"
    free.subscribe(lambda event: ended.touch() if isinstance(event, JobEnded) else None)
    begun = await bash(
        free, "until [ -e go ]; do sleep 0.01; done # build.ended", run_in_background=True
    )
    waited = await bash(free, "touch go; until [ -e build.ended ]; do sleep 0.01; done")
    assert free.jobs.running() == []
    (note,) = waited.notes
    assert f"You get a notice when {begun.data['backgroundTaskId']} ends" in note


@pytest.mark.parametrize(
    "command",
    [
        "until test -e ready; do sleep 0.01; done 2>/dev/null",
        "sleep 0; curl --version >/dev/null",
        "sleep 0.5 && grep -c x other.log || true",
        "echo no sleep 1 here",
        "cat build.log",
    ],
)
async def test_sleeping_for_something_else_is_nobodys_business(free, project, command):
    (project / "ready").touch()
    (project / "build.log").touch()
    begun = await bash(free, "tail -s 0.5 -f build.log 2>/dev/null", run_in_background=True)
    result = await bash(free, command)
    assert begun.ok
    assert result.ok
    assert result.notes == ()


@pytest.mark.proves("SH-1")
async def test_the_directory_carries_over_inside_the_roots_only(free, project, tmp_path):
    (project / "in").mkdir()
    (project / "out").symlink_to(tmp_path)
    (project / "round").symlink_to(project / "in")
    assert (await bash(free, "cd round")).data["nextCwd"] == str(project / "in")
    assert (await bash(free, "pwd")).data["stdout"] == str(project / "in")
    result = await bash(free, "cd ../out")
    assert f"Shell cwd was reset to {project}" in result.text
    assert (await bash(free, "(cd in); pwd")).data["stdout"] == str(project)
    assert (await bash(free, "cd in; false")).data["nextCwd"] == str(project / "in")
    assert (await bash(free, "cd ..", run_in_background=True)).data["nextCwd"] == str(
        project / "in"
    )
    assert free.workdir.current == str(project / "in")


async def test_a_directory_that_went_away_is_left(free, project):
    (project / "gone").mkdir()
    await bash(free, "cd gone")
    (project / "gone").rmdir()
    result = await bash(free, "ls")
    assert result.code == "shell.no_directory"
    assert f"Shell cwd was reset to {project}" in result.text
    assert (await bash(free, "pwd")).data["stdout"] == str(project)


async def test_the_directory_can_be_held(project):
    (project / "in").mkdir()
    settings = {"shell": {"carry_directory": False}}
    async with Session(project, allow=["Bash"], settings=settings) as session:
        assert (await bash(session, "cd in")).data["nextCwd"] == str(project)


@pytest.mark.proves("SH-6")
async def test_looking_commands_run_side_by_side_and_a_cd_keeps_its_place(free, project):
    (project / "in").mkdir()
    heard = set()
    free.subscribe(lambda e: heard.add(e.call_id) if isinstance(e, CallProgress) else None)
    look = "echo here; until test -e go; do sleep 0.01; done # {n}"
    running = asyncio.create_task(
        free.call_many(
            [("Bash", {"command": look.format(n=n)}) for n in range(2)]
            + [("Bash", {"command": "cd in"}), ("Bash", {"command": "pwd"})]
        )
    )
    # Both are at work before either may end.
    await until(lambda: len(heard) == 2)
    (project / "go").touch()
    results = await running
    assert [result.ok for result in results] == [True] * 4
    assert results[3].data["stdout"] == str(project / "in")


async def test_one_failure_does_not_stop_its_siblings(free):
    calls = [("Bash", {"command": "exit 1" if n % 7 == 0 else f"echo {n}"}) for n in range(20)]
    results = await free.call_many(calls)
    assert [r.ok for r in results] == [n % 7 != 0 for n in range(20)]


async def test_progress_shows_the_last_lines(free):
    seen = []
    free.subscribe(lambda e: seen.append(e.text) if isinstance(e, CallProgress) else None)
    await bash(free, "for i in 1 2 3 4 5; do echo line $i; sleep 0.25; done")
    assert 1 <= len(seen) <= 5
    assert seen[0].startswith("line 1")


async def test_a_command_that_waits_for_input_is_handed_back(free, monkeypatch):
    from handaxe.tools.shell.bash import foreground as running

    monkeypatch.setattr(running, "WAITING_S", 0.3)
    result = await bash(free, "printf 'Password: '; read -t 600 < <(sleep 600)")
    assert result.ok
    assert "seems to be waiting for input: 'Password:'" in result.text
    assert len(free.jobs.running()) == 1


@pytest.mark.proves("SH-3")
@pytest.mark.parametrize(
    ("printed", "seen"),
    [("\\xff", "�"), ("caf\\xe9", "caf�"), ("\\xa4 x", "� x"), ("\\xe2\\x82\\xac", "€")],
)
async def test_bytes_that_are_no_text_are_repaired_at_both_ends_too(free, printed, seen):
    whole = await bash(free, f"printf '{printed}'")
    job = await bash(free, f"printf '{printed}'", run_in_background=True)
    later = await free.call("TaskOutput", task_id=job.data["backgroundTaskId"])

    assert whole.data["stdout"] == seen
    assert later.data["task"]["output"] == seen


async def test_one_that_waits_and_cannot_move_is_ended_for_that(free, monkeypatch):
    from handaxe.tools.shell.bash import foreground as running

    monkeypatch.setattr(running, "WAITING_S", 0.3)
    result = await bash(free, "git --version; printf 'Password: '; read -t 600 < <(sleep 600)")

    assert result.code == "call.timed_out"
    assert "seems to be waiting for input: 'Password:'" in result.text
    assert "timed out" not in result.text
    assert "timedOutAfterMs" not in result.data
    assert free.jobs.listed() == []


async def test_too_much_background_work_is_refused_and_nothing_is_left_running(project):
    settings = {"shell": {"max_background": 1}}
    async with Session(project, allow=["Bash"], settings=settings) as session:
        await bash(session, "sleep 20", description="one", run_in_background=True)
        result = await bash(session, "sleep 20", run_in_background=True)
        assert result.code == "task.too_many"
        assert "one" in result.text
        # One that cannot move any more ends at its timeout.
        result = await bash(session, "read -t 20 < <(sleep 20)", timeout=300)
        assert result.code == "call.timed_out"


@pytest.mark.proves("SH-5")
async def test_commands_that_start_together_do_not_pass_the_limit_together(project):
    settings = {"shell": {"max_background": 3}}
    async with Session(project, allow=["Bash"], settings=settings) as session:
        calls = (bash(session, f"sleep 60.{n}", run_in_background=True) for n in range(6))
        results = await asyncio.gather(*calls)
        assert sorted(result.code or "" for result in results) == [
            "",
            "",
            "",
            *["task.too_many"] * 3,
        ]
        assert len(session.jobs.running()) == 3


async def test_background_work_of_all_sessions_of_a_user_has_a_limit(project, tmp_path):
    settings = {"shell": {"max_background_of_user": 2}}

    def opened() -> Session:
        return Session(project, allow=["Bash"], settings=settings, home=tmp_path / "home")

    async with opened() as one, opened() as other:
        for session in (one, other):
            assert (await bash(session, "sleep 60", run_in_background=True)).ok
        result = await bash(other, "sleep 60", run_in_background=True)
        assert result.code == "task.too_many"
        assert "1 of them in other sessions" in result.text
        await one.close()
        assert (await bash(other, "sleep 60", run_in_background=True)).ok
    assert list((tmp_path / "home/running").iterdir()) == []


@pytest.mark.parametrize(
    ("command", "counts"),
    [
        ("cat a.txt", True),
        ("/bin/cat ./a.txt", True),
        ("cat 'a.txt'", True),
        ("cat a.txt b.txt", False),
        ("cat -n a.txt", False),
        ("cat a.txt | head", False),
        ("cat < a.txt", False),
        ("X=1 cat a.txt", False),
        ("cat a.txt; true", False),
        ("cat $x a.txt", False),
        ("cat a.txt &", False),
        ("head -1 a.txt", False),
    ],
)
async def test_a_file_that_was_shown_whole_may_be_edited(command, counts, project):
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "b.txt").write_text("")
    async with Session(project, permission_mode="acceptEdits", allow=["Bash"]) as session:
        assert (await bash(session, command)).ok
        edit = {"file_path": "a.txt", "old_string": "one", "new_string": "1"}
        assert (await session.call("Edit", edit)).ok == counts
    async with Session(project, permission_mode="acceptEdits", deny=["Read(a.txt)"]) as session:
        assert (await bash(session, "cat a.txt")).code == "permission.denied"


async def test_a_file_that_was_not_shown_as_it_is_does_not_count_as_read(free, project):
    (project / "a.txt").write_bytes(b"one\r\x1b[31mtwo\n")
    (project / "b.txt").write_text("x" * 40_000)
    await bash(free, "cat b.txt")
    edit = {"file_path": "b.txt", "old_string": "x", "new_string": "y", "replace_all": True}
    assert (await free.call("Edit", edit)).code == "file.not_read"


class Previews(CommandPreviews):
    """Tries every command with the same outcome."""

    async def preview(self, command, timeout_s):
        hunk = DiffHunk(1, 1, 1, 1, ("-a", "+b"))
        return Preview(
            output=CommandOutput(
                head="said\n", tail="", total_bytes=5, total_lines=1, kept_bytes=5
            ),
            end=CommandEnd(how="exit", exit_code=0, duration_s=timeout_s),
            diffs=(Diff("/p/a.txt", (hunk,)),),
            others=("/p/run.sh becomes executable",),
            left_out=("/p/node_modules",),
        )


async def test_a_dry_run_shows_the_difference(free):
    del get_parts(free).pipeline_context.ports[CommandPreviews]
    assert (await bash(free, "make", dry_run=True)).code == "shell.no_preview"
    get_parts(free).pipeline_context.ports[CommandPreviews] = Previews()
    result = await bash(free, "make", dry_run=True)
    assert result.ok
    assert result.text == (
        "Nothing was changed. With exit code 0 the command would change:\n"
        "--- /p/a.txt\n+++ /p/a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n"
        "/p/run.sh becomes executable\nIt printed:\nsaid\nNot compared: /p/node_modules\n"
        f"[tried in {free.workdir.root}]"
    )
    assert result.data["dryRun"]
    assert result.data["changedFiles"] == ["/p/a.txt"]


def test_a_title_and_a_display_for_people():
    from handaxe.contract.display import Text
    from handaxe.contract.result import ToolResult
    from handaxe.tools.shell.bash import Bash, BashArgs

    tool = Bash()
    assert tool.title({"command": "ls -la\necho"}) == "Bash(ls -la)"
    assert tool.title({"command": "ls", "description": "List files"}) == "Bash(List files)"
    data = {
        "stdout": "a",
        "stderr": "n",
        "exitCode": 0,
        "durationMs": 12.0,
        "cwd": "/p",
        "totalLines": 1,
    }
    shown = tool.show(BashArgs(command="ls"), ToolResult("a", data=data))
    assert shown == (
        Text("$ ls"),
        Text("a"),
        Text("exit code 0, 0.0 s in /p", "muted"),
        Text("n", "warning"),
    )
    assert tool.summary(BashArgs(command="ls"), ToolResult("a", data=data)) == "exit code 0, 1 line"


async def test_where_a_background_command_runs_is_shown_apart_from_its_output(free, project):
    from handaxe.contract.display import Text
    from handaxe.tools.shell.bash import Bash, BashArgs

    args = {"command": "sleep 60", "run_in_background": True}
    result = await free.call("Bash", args)
    shown = Bash().show(BashArgs(**args), result)
    job_id, path = result.data["backgroundTaskId"], result.data["rawOutputPath"]
    assert [expect_type(Text, block).text for block in require(shown)] == [
        "$ sleep 60",
        f"running in the background as {job_id}, in {project}",
        f"output: {path}",
    ]


@pytest.fixture
async def unasked(project):
    async with Session(project, permission_mode="bypassPermissions") as opened:
        yield opened


@pytest.mark.proves("SH-8")
async def test_one_undo_restores_every_byte_a_command_destroyed(unasked, project):
    (project / "src").mkdir()
    (project / "src/a.py").write_bytes(b"x = 1\r\n")
    (project / "src/link").symlink_to("a.py")
    result = await bash(unasked, "rm -rf src && mkdir new && echo hi > new/b && exit 3")
    assert (result.ok, result.code) == (False, "shell.failed")
    assert not (project / "src").exists()
    undone = await unasked.undo()
    assert undone.ok, undone.text
    assert (project / "src/a.py").read_bytes() == b"x = 1\r\n"
    assert (project / "src/link").readlink().name == "a.py"
    assert not (project / "new").exists()


@pytest.mark.proves("SH-8")
async def test_what_a_background_command_changed_is_undone_with_its_call(unasked, project):
    (project / "a.txt").write_text("one\n")
    command = "while [ ! -e go ]; do sleep 0.02; done; echo two > a.txt; echo x > late"
    started = await bash(unasked, command, run_in_background=True)
    (project / "go").write_text("")
    await unasked.call("TaskOutput", task_id=started.data["backgroundTaskId"], block=True)
    assert (project / "a.txt").read_text() == "two\n"
    undone = await unasked.undo()
    assert undone.ok, undone.text
    assert (project / "a.txt").read_text() == "one\n"
    assert not (project / "late").exists()


async def test_sleep_is_woken_when_a_command_ends(free):
    started = await bash(free, "sleep 0.2", run_in_background=True)
    assert started.ok
    result = await free.call("Sleep", seconds=30)
    assert "has ended" in result.data["wokenBy"]


async def test_a_link_that_may_not_be_read_is_a_question_and_no_crash(project):
    (project / "out").symlink_to("/proc/1/root/etc")

    async with Session(project) as session:
        named = await session.call("Bash", command="ls /proc/1/root")
        linked = await session.call("Bash", command="cat out/passwd")
        read = await session.call("Read", file_path=str(project / "out/passwd"))
        listed = await session.call("Glob", pattern="*", path="out")

    assert {result.code for result in (named, linked, read, listed)} == {"permission.asked"}


@pytest.mark.proves("SH-5", "BT-14")
async def test_what_work_of_an_earlier_run_said_can_still_be_asked_for(project):
    async with Session(project, allow=["Bash"], session_id="s1") as session:
        ended = await bash(session, "echo quick; exit 7", run_in_background=True)
        stopped = await bash(session, "echo slow; sleep 300", run_in_background=True)
        await until(lambda: session.jobs.named(stopped.data["backgroundTaskId"])[0].output_bytes)
        await until(
            lambda: session.jobs.named(ended.data["backgroundTaskId"])[0].status == "failed"
        )

    async with Session(project, allow=["Bash"], session_id="s1") as session:
        seen = [
            (await session.call("TaskOutput", task_id=one.data["backgroundTaskId"])).data["task"]
            for one in (ended, stopped)
        ]
        again = await session.call("TaskOutput", task_id=ended.data["backgroundTaskId"])

    assert [task["output"] for task in seen] == ["quick", "slow"]
    assert [task["status"] for task in seen] == ["failed", "killed"]
    assert again.data["task"]["output"] == ""


@pytest.mark.proves("SH-5")
async def test_what_work_said_that_ended_with_its_host_can_still_be_asked_for(project):
    host = f"""
import asyncio, os, handaxe
async def main():
    async with handaxe.Session({str(project)!r}, allow=["Bash"], session_id="s2") as session:
        result = await session.call("Bash", command="echo out; sleep 300", run_in_background=True)
        job = result.data["backgroundTaskId"]
        while not session.jobs.named(job)[0].output_bytes:
            await asyncio.sleep(0.01)
        print(job, flush=True)
        os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", host], capture_output=True, text=True, check=False)

    async with Session(project, session_id="s2") as session:
        result = await session.call("TaskOutput", task_id=ran.stdout.strip())

    assert ran.returncode == -9, ran.stderr
    assert result.data["task"]["ended_by"] == "host_ended"
    assert (result.data["task"]["output"], result.data["task"]["total_bytes"]) == ("out", 4)


@pytest.mark.parametrize("tool", ["Bash", "Monitor"])
async def test_a_command_that_no_shell_can_be_given_is_refused_before_anybody_is_asked(
    project, tool
):
    asked = []

    async def yes(request):
        asked.append(request)
        return Allow()

    async with Session(project, on_ask=yes) as session:
        result = await session.call(tool, command="echo a\0b", description="d")

    assert result.code == "shell.bad_command"
    assert asked == []


@pytest.mark.parametrize(
    ("listed", "seen"), [(["MY_*"], []), ([], ["MY_THING"]), (None, ["MY_THING"])]
)
async def test_variables_that_settings_list_are_hidden_with_those_that_look_like_secrets(
    project, monkeypatch, listed, seen
):
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    monkeypatch.setenv("MY_THING", "two")
    shell = {} if listed is None else {"hidden_variables": listed}
    async with Session(project, allow=["Bash"], settings={"shell": shell}) as session:
        result = await bash(session, "env | grep -oE '^(MY_THING|OPENAI_API_KEY)' | sort")
    assert result.data["stdout"].split() == seen


needs_overlay = pytest.mark.skipif(find_overlay_program(()) is None, reason="no overlays here")


@needs_overlay
async def test_a_trial_that_takes_too_long_says_so(project):
    async with Session(project, allow=["Bash"], permission_mode="acceptEdits") as session:
        result = await bash(session, "echo a > made; sleep 300", dry_run=True, timeout=1500)

    assert (
        "The dry run was stopped after 1.5s; until then the command would have changed:"
        in result.text
    )
    assert (result.data["interrupted"], result.data["timedOutAfterMs"]) == (True, 1500)
    assert result.data["changedFiles"] == [f"{project}/made"]
    assert not (project / "made").exists()


@needs_overlay
async def test_a_trial_has_the_environment_of_the_real_thing(project, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("MINE", "mine")
    command = "echo [$OPENAI_API_KEY] $MINE $OWN $EDITOR $CLAUDE_CODE_SESSION_ID $0 $#"
    async with Session(project, allow=["Bash"], settings={"env": {"OWN": "own"}}) as session:
        real = await bash(session, command)
        tried = await bash(session, command, dry_run=True)

    assert real.data["stdout"] == f"[] mine own false {session.id} bash 0"
    assert tried.data["stdout"] == real.data["stdout"]
    missing = {"shownRanges", "rawOutputPath"}
    assert real.data.keys() - missing <= tried.data.keys()


@pytest.mark.proves("SH-1")
async def test_a_call_may_name_its_own_directory_and_the_session_stays_where_it_is(free, project):
    (project / "my app").mkdir()
    (project / "link").symlink_to("my app")
    for named in ("my app", f"{project}/my app", "link", "my app/."):
        result = await bash(free, "pwd; cd ..", cwd=named)
        assert result.data["stdout"] == f"{project}/my app"
        assert (result.data["cwd"], result.data["nextCwd"]) == (f"{project}/my app", str(project))
        assert f"the next command runs in {project}]" in result.text
    await bash(free, "cd 'my app'")
    result = await bash(free, "pwd; cd ..", cwd=f"{project}/my app")
    assert result.data["nextCwd"] == f"{project}/my app"
    started = await bash(free, "pwd", cwd=str(project), run_in_background=True)
    assert (started.data["cwd"], started.data["nextCwd"]) == (str(project), f"{project}/my app")
    assert (await bash(free, "pwd", cwd="")).data["stdout"] == f"{project}/my app"


@pytest.mark.proves("SH-1")
@pytest.mark.parametrize("named", ["/", "..", "out", "/etc", "~"])
async def test_a_directory_outside_the_roots_is_an_error_in_every_mode(project, named):
    (project / "out").symlink_to("/etc")
    async with Session(project, permission_mode="bypassPermissions") as session:
        result = await bash(session, "touch here", cwd=named)
        assert result.code == "shell.outside_roots"
        assert str(project) in result.text
        assert (await bash(session, "pwd")).data["stdout"] == str(project)


async def test_a_named_directory_that_is_not_there_moves_nobody(free, project):
    (project / "sub").mkdir()
    (project / "file").touch()
    await bash(free, "cd sub")
    for named in ("../gone", "../file"):
        result = await bash(free, "pwd", cwd=named)
        assert result.code == "shell.no_directory"
        assert "reset" not in result.text
    assert (await bash(free, "pwd")).data["stdout"] == f"{project}/sub"


@pytest.mark.proves("PM-3")
async def test_a_command_is_judged_where_it_will_run(project):
    (project / "sub").mkdir()
    (project / "sub" / "key").write_text("k")
    async with Session(project, deny=["Read(/sub/key)"], allow=["Bash(rm *)"]) as session:
        assert (await bash(session, "cat key", cwd="sub")).code == "permission.denied"
        assert (await bash(session, "cat ../../x", cwd="sub")).code == "permission.asked"
        assert (await bash(session, "ls ..", cwd="sub")).ok
        (project / "sub" / "old").write_text("work")
        assert (await bash(session, "rm old", cwd="sub")).ok
        await session.undo()
        assert (project / "sub" / "old").read_text() == "work"


async def test_task_output_says_when_a_file_lacks_a_part(project: Path):
    settings = {"shell": {"max_session_bytes": 1 << 20}}
    async with Session(project, permission_mode="bypassPermissions", settings=settings) as session:
        begun = await session.call(
            "Bash", command="yes no | head -c 3000000", run_in_background=True
        )
        told = await session.call("TaskOutput", task_id=begun.data["backgroundTaskId"], block=True)
    assert "<output_cut>The file lacks part of the output.</output_cut>" in told.text
    assert told.data["task"]["output_is_cut"] is True
