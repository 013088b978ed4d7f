"""A command goes on in the background while other calls change the same paths."""

import shlex
from pathlib import Path

import pytest
from tests.undo.commanding import whole_tree
from tests.waiting import until

from handaxe import Session


def open_session(project: Path, **settings) -> Session:
    return Session(
        project,
        permission_mode="bypassPermissions",
        session_id="going-on",
        settings={"undo": {"shell_ahead": False} | settings},
    )


class Background:
    """A command in the background that does one thing after the other, each when it is told to."""

    def __init__(self, session: Session, project: Path) -> None:
        self._session = session
        self._signs = project.parent
        self._done = 0
        self.call_id = ""

    async def begin(self, *steps: str) -> None:
        lines = [
            f"until [ -e {self._signs}/go{at} ]; do sleep 0.02; done; {step}; "
            f"touch {self._signs}/done{at}"
            for at, step in enumerate(steps)
        ]
        command = f"eval {shlex.quote('; '.join(lines))}"
        result = await self._session.call("Bash", command=command, run_in_background=True)
        assert result.ok, result.text
        self.call_id = result.id

    async def resume_call(self) -> None:
        (self._signs / f"go{self._done}").touch()
        await until((self._signs / f"done{self._done}").exists)
        self._done += 1


@pytest.fixture
def files(project: Path) -> Path:
    (project / "a").write_text("a\n")
    (project / "d/e").mkdir(parents=True)
    (project / "d/b").write_text("b\n")
    (project / "d/e/c").write_text("c\n")
    return project


async def edit(session: Session, path: str, old: str, new: str) -> None:
    await session.call("Read", file_path=path)
    edited = await session.call("Edit", file_path=path, old_string=old, new_string=new)
    assert edited.ok, edited.text


async def undo_and_look(session: Session, project: Path, *args: str, **options) -> dict:
    undone = await session.undo(*args, **options)
    assert undone.ok, undone.text
    return whole_tree(project)


def find_changed(session: Session, call_id: str) -> set[str]:
    [call] = [call for call in session.history() if call.call_id == call_id]
    return {Path(change.file_path).name for change in call.changes}


@pytest.mark.proves("SH-8", "SS-4")
async def test_what_was_written_while_it_ran_and_it_removed_comes_back(files):
    trees = [whole_tree(files)]
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("rm -r d")
        written = await session.call("Write", file_path="d/new.txt", content="precious\n" * 9_000)
        assert written.ok, written.text
        trees.append(whole_tree(files))
        await edit(session, "d/b", "b", "edited")
        trees.append(whole_tree(files))
        await background.resume_call()
    async with open_session(files) as session:
        assert find_changed(session, background.call_id) == {"d", "b", "e", "c", "new.txt"}
        for expected in reversed(trees):
            assert await undo_and_look(session, files) == expected


async def test_what_it_wrote_over_an_edit_is_its_own_change(files):
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("echo clobbered > a")
        await edit(session, "a", "a", "edited")
        await background.resume_call()
    async with open_session(files) as session:
        assert find_changed(session, background.call_id) == {"a"}
        await undo_and_look(session, files, background.call_id, only=True)
        assert (files / "a").read_text() == "edited\n"
        await undo_and_look(session, files)
        assert (files / "a").read_text() == "a\n"


async def test_it_is_taken_back_together_with_an_edit_that_it_wrote_over(files):
    before = whole_tree(files)
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("echo clobbered > a")
        await edit(session, "a", "a", "edited")
        await background.resume_call()
    after = whole_tree(files)
    async with open_session(files) as session:
        assert await undo_and_look(session, files, background.call_id) == before
        assert await undo_and_look(session, files, redo=True) == after


async def test_what_a_later_command_appended_is_counted_once(files):
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("echo background >> a", "true")
        await background.resume_call()
        later = await session.call("Bash", command="eval 'echo later >> a'")
        await background.resume_call()
    async with open_session(files) as session:
        calls = [call.call_id for call in session.history()]
        assert calls == [background.call_id, later.id]
        await undo_and_look(session, files)
        assert (files / "a").read_text() == "a\nbackground\n"
        await undo_and_look(session, files)
        assert (files / "a").read_text() == "a\n"


async def test_what_it_changed_before_an_edit_belongs_to_it(files):
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("echo background >> a", "true")
        await background.resume_call()
        await edit(session, "a", "background", "edited")
        await background.resume_call()
    async with open_session(files) as session:
        await undo_and_look(session, files)
        assert (files / "a").read_text() == "a\nbackground\n"
        await undo_and_look(session, files)
        assert (files / "a").read_text() == "a\n"


@pytest.mark.proves("SH-8", "SS-4")
async def test_calls_that_took_turns_are_taken_back_together_or_not_at_all(files):
    before = whole_tree(files)
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("echo 1 >> a", "echo 3 >> a")
        await background.resume_call()
        await edit(session, "a", "1\n", "1\n2\n")
        await background.resume_call()
    async with open_session(files) as session:
        after = whole_tree(files)
        for call in session.history():
            refused = await session.undo(call.call_id, only=True)
            assert refused.code == "undo.conflict", refused.text
        assert (await session.undo()).code == "undo.conflict"
        assert whole_tree(files) == after
        assert await undo_and_look(session, files, background.call_id) == before


async def test_directories_made_for_a_file_are_of_the_call_that_wrote_it(files):
    before = whole_tree(files)
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("rm -r new")
        assert (await session.call("Write", file_path="new/er/f", content="f\n")).ok
        between = whole_tree(files)
        await background.resume_call()
        await until(lambda: len(session.history()) == 2)
        assert find_changed(session, background.call_id) == {"new", "er", "f"}
        assert await undo_and_look(session, files) == between
        assert await undo_and_look(session, files) == before


async def test_without_a_trace_what_it_removed_comes_back_when_that_is_forced(files):
    async with open_session(files, trace_commands=False) as session:
        background = Background(session, files)
        await background.begin("rm -r d")
        assert (await session.call("Write", file_path="d/new.txt", content="precious\n")).ok
        between = whole_tree(files)
        await background.resume_call()
    async with open_session(files) as session:
        assert (
            await undo_and_look(session, files, background.call_id, only=True, force=True)
            == between
        )


async def test_it_can_be_undone_again_after_it_went_on(files):
    before = whole_tree(files)
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("echo 1 >> a", "echo 2 >> a")
        await background.resume_call()
        await session.call("Bash", command="eval 'echo x > x'")
        assert await undo_and_look(session, files, background.call_id) == before
        await background.resume_call()
    async with open_session(files) as session:
        assert (files / "a").read_text() == "a\n2\n"
        assert await undo_and_look(session, files, background.call_id, only=True) == before


async def test_what_two_commands_wrote_at_once_is_nobodys_alone(files):
    async with open_session(files) as session:
        background = Background(session, files)
        await background.begin("echo background >> a")
        signs = files.parent
        wait = f"touch {signs}/go0; until [ -e {signs}/done0 ]; do sleep 0.02; done"
        result = await session.call("Bash", command=f"eval 'echo mine >> a; {wait}'")
        reason = "another command of the session wrote it at the same time"
        assert any(reason in note for note in result.notes)
        refused = await session.undo(result.id)
        assert refused.code == "undo.ambiguous"
        assert reason in refused.text
        assert (files / "a").read_text() == "a\nmine\nbackground\n"
