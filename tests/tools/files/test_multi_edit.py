"""MultiEdit: all edits of one file or none, with what Edit forgives and refuses."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handaxe import Deny, PermissionRequest, Session
from handaxe.contract.display import Diff


def edit(old: str, new: str, **more: object) -> dict[str, object]:
    return {"old_string": old, "new_string": new, **more}


@pytest.mark.proves("FT-17")
async def test_edits_are_made_in_order_each_on_what_the_one_before_left(session, project):
    file = project / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    await session.call("Read", file_path="a.txt")
    edits = [edit("one", "zwei"), edit("zwei\ntwo", "1\n2"), edit("e", "E", replace_all=True)]
    result = await session.call("MultiEdit", file_path="a.txt", edits=edits)
    assert result.ok, result.text
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthrEE"
    assert [one["matched_with"] for one in result.data["edits"]] == [
        "exact", "line_endings", "exact",
    ]  # fmt: skip
    assert [one["replacements"] for one in result.data["edits"]] == [1, 1, 2]
    assert result.data["matched_with"] == "line_endings"
    assert "Edit 2: old_string did not match exactly" in result.text
    [block] = result.display
    assert isinstance(block, Diff)
    undone = await session.call("Undo")
    assert undone.ok
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\nthree"


@pytest.mark.proves("FT-17")
@pytest.mark.parametrize(
    ("edits", "code", "number"),
    [
        ([edit("a", "A"), edit("missing", "x")], "edit.no_match", 1),
        ([edit("a", "A"), edit("b", "x")], "edit.many_matches", 1),
        ([edit("a", "A"), edit("c", "C"), edit("a", "x")], "edit.no_match", 2),
        ([edit("a", "A"), edit("c", "c")], "edit.no_change", 1),
        ([edit("a", "A"), edit("", "c")], "edit.empty_old_string", 1),
        ([edit("a", "A"), edit("A", "a")], "edit.no_change", None),
        ([], "edit.no_change", None),
        ([edit("", "c")], "file.exists", None),
    ],
)
async def test_one_edit_that_fails_leaves_the_file_as_it_was(session, project, edits, code, number):
    file = project / "a.txt"
    file.write_text("a b\nb c\n")
    await session.call("Read", file_path="a.txt")
    result = await session.call("MultiEdit", file_path="a.txt", edits=edits)
    assert result.code == code, result.text
    assert file.read_text() == "a b\nb c\n"
    assert result.data.get("edit") == number
    if number is not None:
        assert f"Edit {number + 1} of {len(edits)} failed" in result.text


async def test_an_empty_first_old_string_creates_a_file_that_later_edits_change(session, project):
    edits = [edit("", "one\ntwo\n"), edit("two", "three")]
    result = await session.call("MultiEdit", file_path="x/new.txt", edits=edits)
    assert result.ok, result.text
    assert (project / "x" / "new.txt").read_text() == "one\nthree\n"
    failed = await session.call(
        "MultiEdit", file_path="y.txt", edits=[edit("", "one\n"), edit("two", "2")]
    )
    assert failed.code == "edit.no_match"
    assert not (project / "y.txt").exists()


async def test_an_unread_or_changed_or_missing_file_is_refused(session, project):
    file = project / "a.txt"
    file.write_text("a\n")
    edits = [edit("a", "b")]
    assert (await session.call("MultiEdit", file_path="a.txt", edits=edits)).code == "file.not_read"
    await session.call("Read", file_path="a.txt")
    file.write_text("a changed\n")
    assert (await session.call("MultiEdit", file_path="a.txt", edits=edits)).code == "file.changed"
    missing = await session.call("MultiEdit", file_path="A.txt", edits=edits)
    assert missing.code == "file.not_found"
    assert "a.txt" in missing.text


async def test_the_same_edits_again_are_recognised(session, project):
    (project / "a.txt").write_text("alpha\nbeta\n")
    await session.call("Read", file_path="a.txt")
    edits = [edit("alpha", "gamma"), edit("beta", "delta")]
    assert (await session.call("MultiEdit", file_path="a.txt", edits=edits)).ok
    again = await session.call("MultiEdit", file_path="a.txt", edits=edits)
    assert again.ok
    assert again.data["alreadyApplied"]


async def test_the_question_shows_all_edits_together(project):
    (project / "a.txt").write_text("a\nb\n")
    asked = []

    async def on_ask(request: PermissionRequest) -> Deny:
        asked.append(request)
        return Deny()

    async with Session(project, on_ask=on_ask) as session:
        await session.call("Read", file_path="a.txt")
        edits = [edit("a", "A"), edit("b", "B")]
        await session.call("MultiEdit", file_path="a.txt", edits=edits)
        await session.call("MultiEdit", file_path="n.txt", edits=[edit("", "a"), edit("a", "B")])
    [[diff], [code]] = [request.preview for request in asked]
    assert diff.hunks[0].lines == ("-a", "-b", "+A", "+B")
    assert code.text == "B"


@settings(max_examples=60)
@given(st.text("ab\n", max_size=12), st.lists(st.tuples(st.text("ab\n", min_size=1, max_size=3),
       st.text("abc\n", max_size=3), st.booleans()), min_size=1, max_size=4))  # fmt: skip
@example("\n", [("\n", "aaa", False)] * 2)
async def test_many_edits_do_what_as_many_calls_of_edit_do(tmp_path_factory, text, edits):
    project = tmp_path_factory.mktemp("project")
    async with Session(
        project, permission_mode="acceptEdits", settings={"edit": {"tolerance": "exact"}}
    ) as session:
        for name in ("one.txt", "many.txt"):
            (project / name).write_text(text)
            await session.call("Read", file_path=name)
        wanted = [edit(old, new, replace_all=every) for old, new, every in edits]
        many = await session.call("MultiEdit", file_path="many.txt", edits=wanted)
        # Edit sees that it was made before, and says so; of several at once, each has to be made.
        are_made = True
        for one in wanted:
            result = await session.call("Edit", file_path="one.txt", **one)
            are_made = are_made and result.ok and not result.data.get("alreadyApplied")
        if are_made:
            assert (project / "many.txt").read_text() == (project / "one.txt").read_text()
        else:
            assert (project / "many.txt").read_text() == text
            assert not many.ok
