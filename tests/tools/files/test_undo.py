"""Undo as the model calls it, and as the program that holds the session does."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import pytest
from tests.expected_types import require
from tests.waiting import until

from handaxe import Allow, Deny, Session, tool
from handaxe.contract.call import ToolCall


async def change(session: Session, path: Path, content: str) -> str:
    """Write a file, reading it first if it is there; the call's id."""
    if path.exists():
        await session.call("Read", file_path=str(path))
    result = await session.call("Write", file_path=str(path), content=content)
    assert result.ok, result.text
    return result.id


async def test_whoever_is_asked_sees_every_file_that_would_change(project):
    asked = []

    async def on_ask(request):
        asked.append(request)
        return Deny() if request.tool == "Undo" else Allow()

    (project / "kept.txt").write_text("old\n")
    (project / "gone.txt").write_text("x\n")
    async with Session(project, on_ask=on_ask) as session:
        command = "rm gone.txt; echo new > kept.txt; touch made.txt"
        assert (await session.call("Bash", command=command)).ok
        assert (await session.call("Undo")).code == "permission.denied"
        items, diff = asked[-1].preview
        assert set(items.items) == {
            f"would be recreated: {project}/gone.txt",
            f"would be restored: {project}/kept.txt (+1 -1 lines)",
            f"would be removed: {project}/made.txt",
        }
        assert diff.hunks[0].lines == ("-new", "+old")
        assert (project / "kept.txt").read_text() == "new\n"
        await session.undo()
    assert (project / "kept.txt").read_text() == "old\n"


@pytest.mark.proves("BT-32")
async def test_undo_puts_back_the_last_change_and_then_the_one_before(session, project):
    file = project / "a.txt"
    file.write_text("one\n")
    await change(session, file, "two\n")
    await change(session, file, "three\n")
    first = await session.call("Undo")
    assert (first.ok, file.read_text()) == (True, "two\n")
    second = await session.call("Undo")
    assert (second.ok, file.read_text()) == (True, "one\n")
    third = await session.call("Undo")
    assert third.code == "undo.nothing"


async def test_the_result_shows_what_was_put_back(session, project):
    file = project / "a.txt"
    file.write_text("one\ntwo\n")
    call_id = await change(session, file, "one\n2\n")
    result = await session.call("Undo")
    assert result.text == f"Undid: Write {call_id}.\nrestored: {file} (+1 -1 lines)"
    assert result.data["filePath"] == str(file)
    assert result.data["calls"] == [call_id]
    [hunk] = result.data["structuredPatch"]
    assert hunk["lines"] == [" one", "-2", "+two"]
    assert result.display is not None


async def test_going_back_to_a_call_undoes_everything_from_there_on(session, project):
    a, b = project / "a.txt", project / "b.txt"
    await change(session, a, "1\n")
    second = await change(session, a, "2\n")
    await change(session, b, "new\n")
    await change(session, a, "3\n")
    result = await session.call("Undo", call_id=second)
    assert result.ok, result.text
    assert a.read_text() == "1\n"
    assert not b.exists()


async def test_one_call_alone_can_be_undone(session, project):
    a, b = project / "a.txt", project / "b.txt"
    first = await change(session, a, "1\n")
    await change(session, b, "new\n")
    result = await session.call("Undo", call_id=first, only=True)
    assert result.ok, result.text
    assert (a.exists(), b.read_text()) == (False, "new\n")


async def test_one_call_alone_is_refused_if_a_later_one_changed_the_same_file(session, project):
    a = project / "a.txt"
    first = await change(session, a, "1\n")
    await change(session, a, "2\n")
    result = await session.call("Undo", call_id=first, only=True)
    assert result.code == "undo.conflict"
    assert a.read_text() == "2\n"


async def test_redo_takes_the_undo_back_and_undo_goes_again(session, project):
    a = project / "a.txt"
    await change(session, a, "1\n")
    await change(session, a, "2\n")
    assert (await session.call("Undo")).ok
    assert (await session.call("Undo")).ok
    assert (await session.call("Undo", redo=True)).ok
    assert a.read_text() == "1\n"
    assert (await session.call("Undo", redo=True)).ok
    assert a.read_text() == "2\n"
    assert (await session.call("Undo", redo=True)).code == "undo.nothing"
    assert (await session.call("Undo")).ok
    assert a.read_text() == "1\n"


async def test_what_somebody_else_changed_since_is_shown_and_kept(session, project):
    a = project / "a.txt"
    await change(session, a, "one\ntwo\n")
    a.write_text("one\nby hand\n")
    result = await session.call("Undo")
    assert result.code == "undo.conflict"
    assert "-two\n+by hand" in result.text
    assert "force" in result.text
    assert result.data["conflicts"][0]["filePath"] == str(a)
    assert a.read_text() == "one\nby hand\n"
    forced = await session.call("Undo", force=True)
    assert forced.ok, forced.text
    assert not a.exists()
    assert (await session.call("Undo", redo=True)).ok
    assert a.read_text() == "one\nby hand\n"


async def test_what_somebody_else_changed_between_two_calls_is_kept_too(session, project):
    a = project / "a.txt"
    first = await change(session, a, "one\n")
    a.write_text("by hand\n")
    await change(session, a, "two\n")
    result = await session.call("Undo", call_id=first)
    assert result.code == "undo.conflict"
    assert "-one\n+by hand" in result.text
    assert (await session.call("Undo")).ok
    assert a.read_text() == "by hand\n"


async def test_a_file_put_back_by_hand_is_no_conflict(session, project):
    a = project / "a.txt"
    a.write_text("one\n")
    await change(session, a, "two\n")
    a.write_text("one\n")
    result = await session.call("Undo")
    assert (result.ok, "already as before" in result.text) == (True, True)


async def test_a_touched_file_is_no_conflict(session, project):
    a = project / "a.txt"
    a.write_text("one\n")
    await change(session, a, "two\n")
    os.utime(a, (1, 1))
    assert (await session.call("Undo")).ok
    assert a.read_text() == "one\n"


async def test_creation_is_undone_with_the_directories_it_made_and_no_others(session, project):
    (project / "kept").mkdir()
    await change(session, project / "kept" / "made" / "deep" / "a.txt", "x")
    assert (await session.call("Undo")).ok
    assert [str(p.relative_to(project)) for p in project.rglob("*")] == ["kept"]


async def test_a_directory_somebody_else_uses_by_now_stays(session, project):
    await change(session, project / "made" / "a.txt", "x")
    (project / "made" / "other.txt").write_text("y")
    assert (await session.call("Undo")).ok
    assert [p.name for p in (project / "made").iterdir()] == ["other.txt"]


async def test_failed_calls_leave_nothing_to_undo(session, project):
    a = project / "a.txt"
    a.write_text("one\n")
    await session.call("Read", file_path=str(a))
    failed = await session.call("Edit", file_path=str(a), old_string="none", new_string="x")
    assert failed.code == "edit.no_match"
    assert session.history() == []
    assert (await session.call("Undo")).code == "undo.nothing"


async def test_an_unknown_call_is_named_with_those_that_are_known(session, project):
    known = await change(session, project / "a.txt", "x")
    result = await session.call("Undo", call_id="call_nope")
    assert result.code == "undo.unknown_call"
    assert known in result.text


async def test_after_an_undo_the_next_edit_needs_no_read_if_the_change_was_shown(session, project):
    a = project / "a.txt"
    a.write_text("one\ntwo\n")
    await session.call("Read", file_path=str(a))
    await session.call("Edit", file_path=str(a), old_string="two", new_string="2")
    assert (await session.call("Undo")).ok
    again = await session.call("Edit", file_path=str(a), old_string="two", new_string="zwei")
    assert again.ok, again.text
    assert a.read_text() == "one\nzwei\n"


async def test_after_an_undo_that_shows_no_lines_the_file_has_to_be_read(session, project):
    a = project / "a.txt"
    await change(session, a, "one\n")
    assert (await session.call("Undo")).ok
    assert (await session.call("Undo", redo=True)).ok
    result = await session.call("Edit", file_path=str(a), old_string="one", new_string="two")
    assert result.code == "file.not_read"


async def test_undo_asks_for_the_files_it_would_change(project):
    asked = []

    async def on_ask(request):
        asked.append((request.tool, request.reason))
        return Allow()

    a = project / "a.txt"
    async with Session(project, on_ask=on_ask) as session:
        await change(session, a, "x")
        result = await session.call("Undo")
    assert result.ok, result.text
    assert [tool for tool, _ in asked] == ["Write", "Undo"]
    assert str(a) in asked[1][1]


async def test_undo_keeps_to_the_rules_for_the_files_it_would_change(project, tmp_path):
    a = project / "a.txt"
    async with Session(project, permission_mode="acceptEdits", session_id="one") as session:
        await change(session, a, "x")
    async with Session(
        project, permission_mode="acceptEdits", session_id="one", deny=["Edit(/a.txt)"]
    ) as session:
        result = await session.call("Undo")
    assert (result.code, a.read_text()) == ("permission.denied", "x")


async def test_undo_is_refused_where_nobody_is_there_to_ask(project):
    a = project / "a.txt"
    async with Session(project, session_id="one", permission_mode="acceptEdits") as session:
        await change(session, a, "x")
    async with Session(project, session_id="one", permission_mode="default") as session:
        result = await session.call("Undo")
        assert (result.code, a.read_text()) == ("permission.asked", "x")
        by_owner = await session.undo()
    assert (by_owner.ok, a.exists()) == (True, False)
    assert require(by_owner.decision).by == "user"


async def test_the_owner_can_undo_where_the_model_has_no_such_tool(project):
    async with Session(project, permission_mode="acceptEdits", tools="edit") as session:
        await change(session, project / "a.txt", "x")
        assert (await session.call("Undo")).code == "call.unknown_tool"
        assert (await session.undo()).ok
    assert not (project / "a.txt").exists()


async def test_the_owner_undoes_from_a_call_on(session, project):
    a = project / "a.txt"
    first = await change(session, a, "1\n")
    await change(session, a, "2\n")
    assert (await session.undo(first)).ok
    assert not a.exists()


async def test_history_tells_what_calls_changed(session, project):
    a = project / "a.txt"
    a.write_text("one\n")
    edited = await change(session, a, "two\n")
    await session.undo()
    edit, undo = session.history(diffs=True)
    assert (edit.call_id, edit.tool, edit.undone) == (edited, "Write", True)
    assert (edit.changes[0].change, edit.changes[0].file_path) == ("modified", str(a))
    assert edit.changes[0].diff.endswith("-one\n+two\n")
    assert (undo.tool, undo.undoes, undo.undone) == ("Undo", (edited,), False)


async def test_what_an_after_hook_changed_in_the_file_belongs_to_the_call(project):
    a = project / "a.txt"

    async def tidy(event):
        a.write_text(a.read_text().upper())

    async with Session(
        project, permission_mode="acceptEdits", hooks={"PostToolUse": [tidy]}
    ) as session:
        await change(session, a, "x\n")
        assert a.read_text() == "X\n"
        assert (await session.undo()).ok
    assert not a.exists()


async def test_undo_waits_for_the_calls_of_its_message(session, project):
    a = project / "a.txt"
    results = await session.call_many(
        [("Write", {"file_path": str(a), "content": "x"}), ("Undo", {})]
    )
    assert [result.ok for result in results] == [True, True]
    assert not a.exists()


async def test_the_same_undo_call_again_undoes_nothing_more(session, project):
    a = project / "a.txt"
    await change(session, a, "1\n")
    await change(session, a, "2\n")
    call = ToolCall("same", "Undo", {})
    assert (await session.run(call)).ok
    assert (await session.run(call)).ok
    assert a.read_text() == "1\n"


async def test_a_file_behind_a_link_is_put_back_and_the_link_stays(session, project):
    (project / "real.txt").write_text("one\n")
    (project / "link.txt").symlink_to("real.txt")
    await change(session, project / "link.txt", "two\n")
    assert (await session.undo()).ok
    assert (project / "link.txt").is_symlink()
    assert (project / "real.txt").read_text() == "one\n"


async def test_a_hard_linked_file_is_put_back_for_both_names(session, project):
    (project / "a.txt").write_text("one\n")
    os.link(project / "a.txt", project / "b.txt")
    await change(session, project / "a.txt", "two\n")
    assert (project / "b.txt").read_text() == "two\n"
    result = await session.undo()
    assert result.ok, result.text
    assert (project / "b.txt").read_text() == "one\n"
    assert (project / "a.txt").stat().st_nlink == 2


@tool
async def slowly(
    path: Annotated[str, "Where."], signal: Annotated[str, "Until this is there."]
) -> str:
    """Write a file, then wait."""
    Path(path).write_text("half\n")
    await until(Path(signal).exists)
    Path(path).write_text("whole\n")
    return "done"


@pytest.mark.proves("SH-8")
async def test_the_owners_undo_waits_for_a_call_that_changes_something(project, tmp_path):
    file, go = project / "a.txt", tmp_path / "go"
    file.write_text("before\n")
    mode = "bypassPermissions"
    async with Session(
        project, home=tmp_path / "h", tools=["Undo", slowly], permission_mode=mode
    ) as s:
        running = asyncio.create_task(s.call("slowly", path=str(file), signal=str(go)))
        await until(lambda: file.read_text() == "half\n")
        undoing = asyncio.create_task(s.undo(force=True))
        await asyncio.sleep(0.05)
        assert not undoing.done()
        go.touch()
        assert (await running).ok
        result = await undoing
        assert result.ok, result.text
        assert file.read_text() == "before\n"


async def test_an_undo_from_within_a_call_does_not_wait_for_that_call(project, tmp_path):
    held = []

    @tool
    async def back(path: Annotated[str, "Where."]) -> str:
        """Undo the last change."""
        return (await held[0].undo()).text

    file = project / "a.txt"
    mode = "bypassPermissions"
    async with Session(
        project, home=tmp_path / "h", tools=["Write", back], permission_mode=mode
    ) as s:
        held.append(s)
        await change(s, file, "new\n")
        result = await s.call("back", path=str(file))
        assert "Undid: Write" in result.text
        assert not file.exists()
