"""A command runs and others change files meanwhile: undo takes back what the command did, no more."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.undo.undoable import shift_clock
from tests.waiting import until

from handaxe import Effects, Session
from handaxe.app.session import get_parts
from handaxe.app.undo_commands import choose_session_to_undo, find_past_sessions
from handaxe.contract.ports.undo import UndoRequest
from handaxe.contract.result import ToolResult
from handaxe.shell.analysis import analyze
from handaxe.storage.home import find_data_home

UNSEEN = "no process of the call was seen writing it"


def open_session(project: Path, **settings) -> Session:
    return Session(project, permission_mode="bypassPermissions", settings=settings)


class Meeting:
    """A command that waits in the middle, for others to do something."""

    def __init__(self, session: Session, project: Path) -> None:
        self._session = session
        self._place = project.parent
        self._task: asyncio.Task[ToolResult] | None = None

    async def begin(self, first: str, then: str = "true") -> None:
        """Start a command, of which nobody knows what it writes, and wait for its first half."""
        started, go = self._place / "started", self._place / "go"
        wait = f"touch {started}; until [ -e {go} ]; do sleep 0.02; done"
        command = f"eval '{first}'; {wait}; {then}; rm {started} {go}"
        self._task = asyncio.create_task(self._session.call("Bash", command=command))
        await until(started.exists)

    async def finish(self) -> ToolResult:
        (self._place / "go").touch()
        assert self._task is not None
        result = await self._task
        assert result.ok, result.text
        return result


@pytest.fixture
def files(project: Path) -> Path:
    for name in ("a", "g", "h"):
        (project / name).write_text(f"{name}\n")
    return project


@pytest.fixture
def clock():
    """Sets the time of day."""
    yield lambda days: shift_clock(days * 86_400)
    shift_clock(0)


@pytest.fixture
async def met(files: Path):
    """A session after a command that wrote `a`, while a person saved `h` and a session edited `g`."""
    async with open_session(files) as session, open_session(files) as other:
        meeting = Meeting(session, files)
        await meeting.begin("echo mine >> a; mkdir new; echo n > new/n")
        (files / "h").write_text("h\nof a person\n")
        await other.call("Read", file_path="g")
        edited = await other.call("Edit", file_path="g", old_string="g", new_string="G")
        assert edited.ok, edited.text
        yield session, other, await meeting.finish()


@pytest.mark.proves("SH-8", "SS-4")
async def test_undo_takes_back_what_the_command_wrote_and_nothing_else(met, files):
    session, other, result = met
    [note] = [note for note in result.notes if note.startswith("Ambiguous")]
    assert f"{files}/h ({UNSEEN})" in note
    assert f"{files}/g (session {other.id} changed it)" in note
    undone = await session.undo()
    assert undone.ok, undone.text
    texts = {name: (files / name).read_text() for name in ("a", "g", "h")}
    assert texts == {"a": "a\n", "g": "G\n", "h": "h\nof a person\n"}
    assert not (files / "new").exists()
    assert f"ambiguous, not restored: {files}/h ({UNSEEN})" in undone.text
    [g, h] = sorted(undone.data["ambiguous"], key=lambda one: one["filePath"])
    assert (g["filePath"], g["sessionId"]) == (f"{files}/g", other.id)
    assert (h["filePath"], h["sessionId"], h["reason"]) == (f"{files}/h", "", UNSEEN)
    assert "+of a person" in h["diff"]
    # What the other session did is its own to undo.
    assert (await other.undo()).ok
    assert (files / "g").read_text() == "g\n"


async def test_a_change_of_others_is_put_back_when_it_is_named(met, files):
    session, _, _ = met
    assert (await session.undo()).ok
    named = await session.undo(paths=["h"])
    assert named.ok, named.text
    assert (files / "h").read_text() == "h\n"
    assert (files / "g").read_text() == "G\n"
    again = await session.undo(redo=True)
    assert again.ok, again.text
    assert (files / "h").read_text() == "h\nof a person\n"
    nothing = await session.undo(paths=["nothing"])
    assert nothing.code == "undo.nothing"
    assert nothing.text.startswith("No change of these paths is left to undo")


async def test_force_puts_back_what_an_undo_left_alone_before_it_goes_on(met, files):
    session, _, _ = met
    assert (await session.undo()).ok
    forced = await session.undo(force=True)
    assert forced.ok, forced.text
    assert (files / "h").read_text() == "h\n"
    assert (files / "g").read_text() == "g\n"
    assert (await session.undo(force=True)).code == "undo.nothing"


async def test_what_the_command_and_another_session_wrote_is_ambiguous_and_told(files):
    async with open_session(files) as session, open_session(files) as other:
        meeting = Meeting(session, files)
        await meeting.begin("echo mine >> g")
        await other.call("Read", file_path="g")
        assert (await other.call("Edit", file_path="g", old_string="g", new_string="G")).ok
        await meeting.finish()
        refused = await session.undo()
        assert refused.code == "undo.ambiguous"
        assert f"session {other.id} changed it" in refused.text


async def test_part_of_a_call_can_be_undone_first_and_the_rest_later(met, files):
    session, _, _ = met
    assert (await session.undo(paths=["new"])).ok
    assert not (files / "new").exists()
    assert (files / "a").read_text() == "a\nmine\n"
    assert not session.history()[0].undone
    assert (await session.undo()).ok
    assert (files / "a").read_text() == "a\n"


async def test_the_command_line_shows_them_and_takes_them_by_name_or_force(met, files):
    async def handaxe(*words: str) -> tuple[int | None, str]:
        argv = (sys.executable, "-m", "handaxe", *words)
        process = await asyncio.create_subprocess_exec(*argv, cwd=files, stdout=PIPE)
        said, _ = await process.communicate()
        return process.returncode, said.decode()

    _, history = await handaxe("history", "--diff")
    assert f"modified  {files}/h  (ambiguous: {UNSEEN})" in history
    assert "+of a person" in history
    assert f"modified  {files}/a\n" in history
    call_id = met[0].history()[0].call_id
    code, said = await handaxe("undo", call_id, "--json")
    assert code == 0
    data = json.loads(said)["data"]
    assert [one["filePath"] for one in data["ambiguous"]] == [f"{files}/g", f"{files}/h"]
    assert (files / "h").read_text() == "h\nof a person\n"
    code, said = await handaxe("undo", call_id, "--path", "h")
    assert (code, (files / "h").read_text()) == (0, "h\n")
    assert f"restored: {files}/h" in said
    code, _ = await handaxe("undo", call_id, "--force")
    assert (code, (files / "g").read_text()) == (0, "g\n")


@pytest.mark.parametrize("days", [-40, 40])
async def test_what_others_did_before_is_not_taken_for_theirs_when_the_clock_is_set(
    files, clock, days
):
    async with open_session(files) as session, open_session(files) as other:
        assert (await other.call("Read", file_path="a")).ok
        assert (await other.call("Edit", file_path="a", old_string="a", new_string="A")).ok
        clock(days)
        assert (await session.call("Bash", command="eval 'echo mine >> a'")).ok
        undone = await session.undo()
        assert undone.data["ambiguous"] == []
        assert (files / "a").read_text() == "A\n"


@pytest.mark.parametrize("days", [-40, 40])
async def test_what_others_did_meanwhile_stays_theirs_when_the_clock_is_set(files, clock, days):
    async with open_session(files) as session, open_session(files) as other:
        meeting = Meeting(session, files)
        await meeting.begin("echo mine >> a; echo mine >> g")
        clock(days)
        assert (await other.call("Read", file_path="g")).ok
        assert (await other.call("Edit", file_path="g", old_string="g", new_string="G")).ok
        await meeting.finish()
        undone = await session.undo()
        assert [one["filePath"] for one in undone.data["ambiguous"]] == [f"{files}/g"]
        assert (files / "a").read_text() == "a\n"
        assert (files / "g").read_text() == "G\nmine\n"


async def test_without_a_trace_nothing_is_proved_and_undo_says_so(files):
    async with open_session(files, undo={"trace_commands": False}) as session:
        result = await session.call("Bash", command="eval 'echo mine >> a'")
        assert any("the writer is unknown" in note for note in result.notes)
        refused = await session.undo()
        assert (refused.ok, refused.code) == (False, "undo.ambiguous")
        assert (files / "a").read_text() == "a\nmine\n"
        [one] = refused.data["ambiguous"]
        assert (one["filePath"], "+mine" in one["diff"]) == (f"{files}/a", True)
        assert (await session.undo(force=True)).ok
        assert (files / "a").read_text() == "a\n"


async def test_the_next_process_says_of_a_command_without_a_trace_why_it_is_not_undone(files):
    async with open_session(files, undo={"trace_commands": False}) as session:
        await session.call("Bash", command="eval 'echo mine >> a'")
    past = find_past_sessions(find_data_home(), root=files)
    refused = await choose_session_to_undo(past, UndoRequest()).undo(UndoRequest())
    assert (refused.ok, refused.code) == (False, "undo.ambiguous")


async def test_a_command_that_wrote_nothing_is_not_what_undo_means(files):
    async with open_session(files) as session:
        await session.call("Write", file_path="w", content="w\n")
        meeting = Meeting(session, files)
        await meeting.begin("true")
        (files / "h").write_text("h\nof a person\n")
        await meeting.finish()
        assert [call.tool for call in session.history()] == ["Write", "Bash"]
        assert (await session.undo()).ok
        assert not (files / "w").exists()
        assert (files / "h").read_text() == "h\nof a person\n"


async def test_what_two_commands_at_once_write_belongs_to_each(files):
    async with open_session(files) as session:
        sign = files.parent / "sign"
        command = f"eval 'until [ -e {sign} ]; do sleep 0.02; done; echo b >> h; rm {sign}'"
        await session.call("Bash", command=command, run_in_background=True)
        meeting = Meeting(session, files)
        await meeting.begin("echo mine >> a", f"touch {sign}; while [ -e {sign} ]; do :; done")
        await meeting.finish()
        await until(lambda: len(session.history()) == 2)
        background = session.history()[0]
        assert [change.file_path for change in background.changes] == [f"{files}/h"]
        undone = await session.undo(background.call_id, only=True)
        assert undone.ok, undone.text
        assert ((files / "a").read_text(), (files / "h").read_text()) == ("a\nmine\n", "h\n")


async def test_a_file_with_two_names_is_written_by_either(files):
    (files / "b").hardlink_to(files / "a")
    async with open_session(files) as session:
        result = await session.call("Bash", command="eval 'echo mine >> a'")
        assert not result.notes
        assert (await session.undo()).ok
        assert (files / "b").read_text() == "a\n"


async def test_what_another_session_wrote_is_not_taken_back_whatever_the_words_say(files):
    async with open_session(files) as session, open_session(files) as other:
        record = get_parts(session).session_context.checkpoints
        effects = Effects(
            reads_everything=True,
            writes_everything=True,
            extent=analyze("rm -f g a", str(files), "/nowhere").extent,
        )
        await record.before("c1", "Bash", effects)
        await other.call("Read", file_path="g")
        assert (await other.call("Write", file_path="g", content="of another\n")).ok
        (files / "a").unlink()
        [note] = await record.after("c1")
        assert f"{files}/g (session {other.id} changed it)" in note
        assert (await session.undo()).ok
        texts = {name: (files / name).read_text() for name in ("a", "g")}
        assert texts == {"a": "a\n", "g": "of another\n"}


async def test_words_that_say_what_is_written_are_enough(files):
    (files / "many").mkdir()
    for number in range(60):
        (files / f"many/{number}").touch()
    async with open_session(files, undo={"trace_commands": False}) as session:
        # From here on the whole tree is compared for as many files as these.
        await session.call("Bash", command="eval true")
        result = await session.call("Bash", command="rm -rf many")
        assert not result.notes
        assert (await session.undo()).ok
        assert sum(1 for _ in (files / "many").iterdir()) == 60


async def test_odd_names_are_shown_as_searches_show_them_and_taken_back_like_that(files):
    names = ("\udcff.txt", "two\nlines.txt")
    quoted = [rf"$'{files}/\xff.txt'", rf"$'{files}/two\nlines.txt'"]
    script = f"for name in {names!a}: open(name, 'w').close()"
    async with open_session(files, undo={"trace_commands": False}) as session:
        result = await session.call("Bash", command=f"{sys.executable} - <<'E'\n{script}\nE")
        [note] = [note for note in result.notes if note.startswith("Ambiguous")]
        refused = await session.undo()
        assert refused.code == "undo.ambiguous"
        assert sorted(one["filePath"] for one in refused.data["ambiguous"]) == quoted
        [call] = session.history()
        assert sorted(change.file_path for change in call.changes) == quoted
        assert all(name in note and name in refused.text for name in quoted)
        for path in (quoted[0], f"{files}/{names[1]}"):
            undone = await session.undo(paths=[path])
            assert undone.ok, undone.text
    assert not any((files / name).exists() for name in names)


async def test_a_path_that_is_not_utf8_can_be_undone_by_its_very_name(files):
    async with open_session(files) as session:
        made = await session.call("Write", file_path=r"$'\xff.txt'", content="x\n")
        assert made.ok, made.text
        undone = await session.undo(paths=[f"{files}/\udcff.txt"])
        assert undone.ok, undone.text
    assert not (files / "\udcff.txt").exists()
