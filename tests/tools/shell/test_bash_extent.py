"""When Bash says that a command writes no more than its words name, and what that leaves as it is."""

import os
from pathlib import Path

import pytest
from tests.undo.commanding import whole_tree
from tests.undo.test_bounded_undo import records

from handaxe import Session


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def kinds_of(session: Session, home: Path, command: str, **more: object) -> list[str]:
    """How the changes of a command were recorded."""
    result = await session.call("Bash", command=command, **more)
    assert result.ok, result.text
    return [kind for kind in records(home) if kind in ("BeforeRecord", "TrackedRecord")]


@pytest.mark.proves("SH-8")
async def test_a_small_command_records_its_own_files_and_no_tree(project, home):
    (project / "a").write_text("one\n")
    before = whole_tree(project)
    async with Session(project, home=home, permission_mode="bypassPermissions") as session:
        command = "echo two >> a && mkdir -p d && cd d && mv ../a b"
        assert await kinds_of(session, home, command) == ["BeforeRecord"]
        assert (project / "d/b").read_text() == "one\ntwo\n"
        # It stands in d now, and so does the next one.
        assert await kinds_of(session, home, "touch c") == ["BeforeRecord", "BeforeRecord"]
        assert (project / "d/c").exists()
        for _ in range(2):
            assert (await session.undo()).ok
    assert whole_tree(project) == before
    assert not (home / "snapshots").exists()


async def test_order_and_permission_take_it_for_what_it_was(project, home):
    async with Session(project, home=home) as session:
        refused = await session.call("Bash", command="touch a")
        assert refused.code == "permission.asked"
    async with Session(project, home=home, allow=["Bash"]) as session:
        results = await session.call_many(
            [("Bash", {"command": "sleep 0.2; mkdir d; cd d"}), ("Bash", {"command": "touch a"})]
        )
        assert all(result.ok for result in results)
        assert (project / "d/a").exists()


async def test_own_functions_and_programs_of_the_project_are_not_the_well_known_ones(
    project, home, monkeypatch
):
    program = project / "bin/touch"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$1" > surprise\n')
    program.chmod(0o755)
    before = whole_tree(project)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    async with Session(project, home=home, allow=["Bash"]) as session:
        assert await kinds_of(session, home, "touch a") == ["TrackedRecord"]
        assert (project / "surprise").exists()
        assert (await session.undo()).ok
        assert whole_tree(project) == before
    settings = {"shell": {"snapshot": True}}
    async with Session(project, home=home / "2", allow=["Bash"], settings=settings) as session:
        assert await kinds_of(session, home / "2", "mkdir new") == ["TrackedRecord"]


async def test_what_hooks_change_after_a_command_is_undone_with_it_by_force(project, home):
    hook = {"type": "command", "command": "touch by-hook"}
    settings = {"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    async with Session(project, home=home, allow=["Bash"], settings=settings) as session:
        assert await kinds_of(session, home, "touch a") == ["TrackedRecord"]
        assert {path.name for path in project.iterdir()} == {"a", "by-hook"}
        [a, by_hook] = sorted(session.history()[0].changes, key=lambda one: one.file_path)
        # The words of the command name the one; nobody traces hooks.
        assert (a.ambiguous, bool(by_hook.ambiguous)) == ("", True)
        assert (await session.undo(force=True)).ok
        assert list(project.iterdir()) == []


async def test_background_work_is_compared_as_a_whole(project, home):
    async with Session(project, home=home, allow=["Bash"]) as session:
        kinds = await kinds_of(session, home, "touch a", run_in_background=True)
        assert kinds == ["TrackedRecord"]


async def test_a_project_behind_a_link_is_bounded_as_well(project, home, tmp_path):
    (tmp_path / "way").symlink_to(project)
    async with Session(tmp_path / "way", home=home, allow=["Bash"]) as session:
        assert await kinds_of(session, home, "touch a") == ["BeforeRecord"]
        assert (await session.undo()).ok
    assert list(project.iterdir()) == []
