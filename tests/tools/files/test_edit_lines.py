"""EditLines: lines by number and tag, checked before anything is written, never guessed."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expected_types import require

from handaxe import Deny, PermissionRequest, Session
from handaxe.contract.display import Diff
from handaxe.text.line_tags import compute_tag, make_line_ref
from handaxe.text.line_window import split_lines

LINES = {"edit": {"format": "lines"}}


@pytest.fixture
async def session(project: Path) -> AsyncIterator[Session]:
    async with Session(project, permission_mode="acceptEdits", settings=LINES) as session:
        yield session


def refs(text: str) -> dict[int, str]:
    """The numbers and tags of a text's lines."""
    return {
        number: str(make_line_ref(number, line)) for number, line in enumerate(split_lines(text), 1)
    }


async def read(session: Session, name: str = "a.txt", **window: int) -> dict[int, str]:
    """What Read shows in front of each line."""
    result = await session.call("Read", file_path=name, **window)
    assert result.ok, result.text
    lines = [
        line for line in result.text.splitlines() if "→" in line and ":" in line.partition("→")[0]
    ]
    found = [line.partition("→")[0].strip() for line in lines]
    return {int(ref.partition(":")[0]): ref for ref in found}


async def change(session: Session, *changes: dict[str, str], name: str = "a.txt"):
    return await session.call("EditLines", file_path=name, changes=list(changes))


@pytest.mark.proves("FT-19")
async def test_lines_are_replaced_put_in_and_deleted_in_one_call(session, project):
    file = project / "a.txt"
    before = b"\xef\xbb\xbfone\r\ntwo\r\n\r\nthree\r\nfour"
    file.write_bytes(before)
    ref = await read(session)
    result = await change(
        session,
        {"first": ref[4], "text": ""},
        {"first": ref[1], "last": ref[2], "text": "1\n2\n2b\n"},
        {"after": ref[5], "text": "end"},
        {"after": "0", "text": "top"},
    )
    assert result.ok, result.text
    assert file.read_bytes() == b"\xef\xbb\xbftop\r\n1\r\n2\r\n2b\r\n\r\nfour\r\nend"
    assert "updated successfully with 4 changes. (+6 -4 lines)" in result.text
    # The numbers and tags that are told are those that Read shows now.
    now = await read(session)
    for number in (1, 2, 3, 4, 7):
        assert now[number] in result.text
    assert result.data["replacements"] == 4
    assert result.data["structuredPatch"]
    [block] = require(result.display)
    assert isinstance(block, Diff)
    assert (await session.call("Undo")).ok
    assert file.read_bytes() == before


@pytest.mark.proves("FT-19")
async def test_a_tag_that_does_not_fit_is_refused_with_what_is_there(session, project):
    file = project / "a.txt"
    file.write_text("one\ntwo\nthree\nfour\n")
    ref = await read(session)
    wrong = f"2:{compute_tag('three')}"
    result = await change(session, {"first": ref[1], "text": "1"}, {"first": wrong, "text": "2"})
    assert result.code == "edit.no_match"
    assert ref[2] in result.text
    assert result.data["wrong"] == [
        {"change": 1, "given": wrong, "found": ref[2], "moved_to": ref[3]}
    ]
    assert f"The only nearby line with that tag is {ref[3]}:" in result.text
    assert file.read_text() == "one\ntwo\nthree\nfour\n"


async def test_no_line_is_proposed_where_two_have_the_tag(session, project):
    (project / "a.txt").write_text("one\n}\ntwo\n}\n")
    await read(session)
    result = await change(session, {"first": f"1:{compute_tag('}')}", "text": "1"})
    assert result.code == "edit.no_match"
    assert result.data["wrong"][0]["moved_to"] is None
    assert "nearby line" not in result.text


async def test_a_line_that_moved_out_of_reach_is_not_proposed(session, project):
    (project / "a.txt").write_text("x\n" * 60 + "far\n")
    await read(session)
    result = await change(session, {"first": f"1:{compute_tag('far')}", "text": "1"})
    assert result.data["wrong"][0]["moved_to"] is None


@pytest.mark.parametrize("given_ref", ["9:aa", "9", "4:aa", "1", "2:zz"])
async def test_lines_that_are_not_there_and_numbers_without_tags_are_told(
    session, project, given_ref
):
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    ref = await read(session)
    result = await change(
        session, {"first": given_ref, "text": "x"}, {"after": given_ref, "text": "x"}
    )
    assert result.code == "edit.no_match"
    assert len(result.data["wrong"]) == 2
    assert ref[2] in result.text
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        ({"text": "x"}, "either `first`"),
        ({"first": "1:aa", "after": "1:aa", "text": "x"}, "either `first`"),
        ({"after": "1:aa", "last": "2:bb", "text": "x"}, "use `last` with `first`"),
        ({"first": "3:aa", "last": "2:bb", "text": "x"}, "comes before"),
        ({"first": "0:aa", "text": "x"}, "start at 1"),
        ({"first": "0", "last": "2:bb", "text": "x"}, "start at 1"),
        ({"first": "k3", "text": "x"}, "like `12:k3`"),
        ({"first": "", "text": "x"}, "like `12:k3`"),
        ({"first": "-2:k3", "text": "x"}, "like `12:k3`"),
        ({"after": "0", "text": ""}, "nothing to insert"),
        ({"first": "1:aa"}, "text"),
        ({"first": "1:aa", "text": "x", "new": "y"}, "new"),
    ],
)
async def test_changes_that_say_nothing_sensible_are_told_before_the_file_is_opened(
    session, project, one, problem
):
    result = await change(session, one)
    assert result.code == "call.bad_input"
    assert problem in result.text


@pytest.mark.proves("FT-19")
async def test_two_changes_of_one_line_are_refused(session, project):
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    ref = await read(session)
    for other in ({"first": ref[2], "text": "y"}, {"after": ref[1], "text": "y"}):
        result = await change(session, {"first": ref[1], "last": ref[2], "text": "x"}, other)
        assert result.code == "edit.overlap"
        assert result.data["changes"] == [0, 1]
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_nothing_to_do_is_told(session, project):
    (project / "a.txt").write_text("one\ntwo\n")
    ref = await read(session)
    assert (await change(session)).code == "edit.no_change"
    assert (await change(session, {"first": ref[2], "text": "two\n"})).code == "edit.no_change"


async def test_what_read_shows_may_be_given_as_it_stands(session, project):
    (project / "a.txt").write_text("one\ntwo\n")
    ref = await read(session)
    shown = f"     {ref[2]}→two"
    assert (await change(session, {"first": shown, "last": shown, "text": "2"})).ok
    assert (project / "a.txt").read_text() == "one\n2\n"


async def test_numbers_and_tags_never_get_into_the_file(session, project):
    (project / "a.txt").write_text("one\ntwo\n")
    ref = await read(session)
    result = await change(session, {"first": ref[2], "text": f"ok\n     {ref[2]}→2"})
    assert result.code == "call.bad_input"
    assert "without the numbers and tags" in result.text
    # What only looks like one is text.
    assert (await change(session, {"first": ref[2], "text": f"     7:{compute_tag('x')}→2"})).ok


@pytest.mark.proves("FT-19")
async def test_an_unread_changed_or_missing_file_is_refused(session, project):
    file = project / "a.txt"
    file.write_text("one\n")
    one = {"first": refs("one")[1], "text": "x"}
    assert (await change(session, one)).code == "file.not_read"
    await read(session)
    file.write_text("one more\n")
    stale = await change(session, one)
    assert stale.code == "file.changed"
    assert "+one more" in stale.text
    assert file.read_text() == "one more\n"
    missing = await change(session, one, name="A.txt")
    assert missing.code == "file.not_found"
    assert "a.txt" in missing.text


async def test_binary_files_and_directories_are_refused(session, project):
    (project / "a.bin").write_bytes(b"a\0b\n")
    (project / "d").mkdir()
    one = {"first": "1:aa", "text": "x"}
    assert (await change(session, one, name="d")).code == "file.is_directory"
    assert (await change(session, one, name="a.bin")).code == "file.not_read"
    # Read as text, then NUL came into it by a call of our own.
    (project / "a.txt").write_text("one\n")
    ref = await read(session)
    await session.call("Write", file_path="a.txt", content="a\0b\n")
    assert (await change(session, {"first": ref[1], "text": "x"})).code == "file.binary"


async def test_a_notebook_is_changed_by_cells_and_a_broken_one_by_lines(session, project):
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": ["x"], "outputs": [], "execution_count": None}  # fmt: skip
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    text = json.dumps(notebook, indent=1)
    (project / "a.ipynb").write_text(text)
    result = await session.call("Read", file_path="a.ipynb")
    assert ":aa→" not in result.text
    refused = await change(session, {"first": refs(text)[1], "text": "["}, name="a.ipynb")
    assert refused.code == "notebook.by_cells"
    assert "NotebookEdit" in refused.text
    (project / "b.ipynb").write_text("{\nbroken\n")
    ref = await read(session, "b.ipynb")
    assert (await change(session, {"first": ref[2], "text": "mended"}, name="b.ipynb")).ok


async def test_an_empty_file_is_filled_from_the_top(session, project):
    (project / "a.txt").write_bytes(b"\xff\xfe")
    await session.call("Read", file_path="a.txt")
    assert (await change(session, {"first": "1:aa", "text": "x"})).code == "edit.no_match"
    assert (await change(session, {"after": "0", "text": "ä\nb"})).ok
    assert (project / "a.txt").read_bytes() == b"\xff\xfe" + "ä\nb\n".encode("utf-16-le")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
async def test_other_encodings_have_tags_and_stay(session, project, encoding):
    text = "Grüße\r\nan alle\r\nBäume im Märzwald\r\n"
    (project / "a.txt").write_bytes(text.encode(encoding))
    ref = await read(session)
    assert ref == refs(text)
    assert (await change(session, {"first": ref[2], "text": "für\nalle"})).ok
    after = text.replace("an alle", "für\r\nalle")
    assert (project / "a.txt").read_bytes() == after.encode(encoding)


async def test_a_letter_that_the_encoding_lacks_is_refused(session, project):
    text = "Grüße an alle Bäume im Märzwald\n"
    (project / "a.txt").write_bytes(text.encode("latin-1"))
    ref = await read(session)
    assert (await change(session, {"first": ref[1], "text": "猫"})).code == "file.cannot_encode"


async def test_the_tag_of_a_long_line_is_that_of_all_of_it(session, project):
    text = "short\n" + "x" * 5_000 + "\nlast\n"
    (project / "a.txt").write_text(text)
    assert await read(session) == refs(text)
    assert (await read(session, offset=2, column=4_990))[2] == refs(text)[2]
    assert (await change(session, {"first": refs(text)[2], "text": "y"})).ok
    assert (project / "a.txt").read_text() == "short\ny\nlast\n"


async def test_a_line_too_long_to_be_read_has_no_tag(session, project):
    (project / "a.txt").write_bytes(b"first\n" + b"x" * (17 << 20) + b"\nlast\n")
    result = await session.call("Read", file_path="a.txt", offset=2, limit=1)
    assert result.text.startswith("     2→xx")
    assert "Line 2 has no tag" in result.text


async def test_a_file_of_100_000_lines(session, project):
    lines = [f"value_{number % 500} = {number}" for number in range(1, 100_001)]
    text = "\n".join(lines) + "\n"
    (project / "a.txt").write_text(text)
    ref = await read(session, offset=99_990)
    assert ref == {number: found for number, found in refs(text).items() if number >= 99_990}
    top = await read(session, limit=3)
    result = await change(
        session,
        {"first": ref[99_999], "last": ref[100_000], "text": "end"},
        {"after": top[2], "text": "x\ny"},
    )
    assert result.ok, result.text
    lines[99_998:] = ["end"]
    lines[2:2] = ["x", "y"]
    assert (project / "a.txt").read_text() == "\n".join(lines) + "\n"


@pytest.mark.proves("FT-19")
async def test_an_old_number_never_lands_on_a_line_that_only_looks_the_same(session, project):
    file = project / "a.txt"
    text = "a {\n}\n}\nb {\n}\n"
    file.write_text(text)
    ref = await read(session)
    assert (await change(session, {"after": ref[1], "text": "new"})).ok
    now = file.read_text()
    # Line 3 is a brace now, and line 3 was one before; which is meant nobody can know.
    result = await change(session, {"first": ref[3], "text": "X"})
    assert result.code == "edit.many_matches"
    assert result.data["lines"] == [4]
    assert file.read_text() == now
    # A range whose other end is beyond doubt is beyond doubt.
    moved = refs(now)
    assert (await change(session, {"first": moved[4], "last": moved[5], "text": "}\nc {"})).ok
    # What was shown again is meant as it was shown.
    ref = await read(session, offset=2, limit=3)
    assert (await change(session, {"first": ref[3], "text": "X"})).ok
    assert file.read_text() == "a {\nnew\nX\n}\nc {\n}\n"


async def test_a_deletion_that_is_sent_again_deletes_no_other_line(session, project):
    file = project / "a.txt"
    file.write_text("}\n}\n}\nx\n")
    ref = await read(session)
    again = {"first": ref[1], "text": ""}
    assert (await change(session, again)).ok
    result = await change(session, again)
    assert result.code == "edit.many_matches"
    assert "no longer exists" in result.text
    assert file.read_text() == "}\n}\nx\n"
    # What was told of the new lines counts as shown, and what is beyond doubt is taken.
    told = await change(session, {"first": f"3:{compute_tag('x')}", "text": "}\ny"})
    assert f"now 3:{compute_tag('}')} 4:{compute_tag('y')}" in told.text
    assert (await change(session, {"first": f"3:{compute_tag('}')}", "text": "z"})).ok
    assert file.read_text() == "}\n}\nz\ny\n"


async def test_changes_by_other_tools_move_the_numbers_too(session, project):
    file = project / "a.txt"
    file.write_text("a\n}\n}\nb\n}\n")
    ref = await read(session)
    edit = {"file_path": "a.txt", "old_string": "a\n", "new_string": ""}
    assert (await session.call("Edit", **edit)).ok
    assert (await change(session, {"first": ref[2], "text": "X"})).code == "edit.many_matches"
    assert (await session.call("Undo")).ok
    assert (await change(session, {"first": ref[4], "text": "B"})).ok
    assert file.read_text() == "a\n}\n}\nB\n}\n"


async def test_a_number_that_was_told_to_have_moved_is_taken(session, project):
    file = project / "a.txt"
    file.write_text("one\ntwo\nthree\nfour\n")
    ref = await read(session)
    told = await change(session, {"first": ref[1], "text": "1\n1b\n1c"})
    assert "Lines after it: +2." in told.text
    assert (await change(session, {"first": f"6:{compute_tag('four')}", "text": "4"})).ok
    old = await change(session, {"first": ref[3], "text": "3"})
    assert old.code == "edit.no_match"
    assert old.data["wrong"][0]["moved_to"] == f"5:{compute_tag('three')}"


async def test_after_write_lines_have_to_be_shown_again(session, project):
    (project / "a.txt").write_text("}\n}\n")
    ref = await read(session)
    await session.call("Write", file_path="a.txt", content="x\n}\n}\n")
    result = await change(session, {"first": ref[2], "text": "y"})
    assert result.code == "file.not_read"
    ref = await read(session)
    assert (await change(session, {"first": ref[2], "text": "y"})).ok
    assert (project / "a.txt").read_text() == "x\ny\n}\n"


async def test_numbers_are_remembered_when_a_session_goes_on(project):
    (project / "a.txt").write_text("a\n}\n}\n")
    options = {"permission_mode": "acceptEdits", "settings": LINES, "session_id": "goes-on"}
    async with Session(project, **options) as session:
        ref = await read(session)
        assert (await change(session, {"after": "0", "text": "top"})).ok
    async with Session(project, **options) as session:
        result = await change(session, {"first": ref[3], "text": "X"})
    assert result.code == "edit.many_matches"


async def test_a_hook_that_changes_the_file_moves_the_numbers(project):
    script = project / "format.sh"
    script.write_text("#!/bin/sh\nsed -i '1i // formatted' a.txt\n")
    hook = {"type": "command", "command": f"sh {script}"}
    options = {**LINES, "hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [hook]}]}}
    file = project / "a.txt"
    file.write_text("a\n}\n}\nlast\n")
    async with Session(
        project, permission_mode="acceptEdits", settings=options, trusted=True
    ) as session:
        ref = await read(session)
        result = await change(session, {"first": ref[1], "text": "A"})
        assert "A hook changed the file afterwards" in result.text
        assert file.read_text() == "// formatted\nA\n}\n}\nlast\n"
        result = await change(session, {"first": ref[3], "text": "X"})
        assert result.code == "edit.many_matches"
        assert (await change(session, {"first": f"5:{compute_tag('last')}", "text": "end"})).ok


@pytest.mark.proves("RG-7")
@pytest.mark.parametrize("name", ["Edit", "EditLines", "MultiEdit"])
async def test_a_rule_for_one_format_is_a_rule_for_all(project, name):
    (project / "secret").mkdir()
    for path in ("a.txt", "secret/a.txt"):
        (project / path).write_text("one\n")
    one = {"first": refs("one")[1], "text": "1"}
    rules: dict[str, Any] = {"allow": [f"{name}(*.txt)"], "deny": [f"{name}(secret/**)"]}
    async with Session(project, settings=LINES, **rules) as session:
        for path in ("a.txt", "secret/a.txt"):
            await session.call("Read", file_path=path)
        assert (await change(session, one)).ok
        denied = await change(session, one, name="secret/a.txt")
    assert denied.code == "permission.denied", denied.text
    assert (project / "secret/a.txt").read_text() == "one\n"


async def test_the_question_shows_the_change(project):
    (project / "a.txt").write_text("a\nb\n")
    asked = []

    async def on_ask(request: PermissionRequest) -> Deny:
        asked.append(request)
        return Deny()

    async with Session(project, on_ask=on_ask, settings=LINES) as session:
        ref = await read(session)
        await change(session, {"first": ref[2], "text": "B"}, {"after": ref[2], "text": "c"})
    [[diff]] = [request.preview for request in asked]
    assert diff.hunks[0].lines == (" a", "-b", "+B", "+c")


@pytest.mark.proves("FT-19", "RG-7")
@pytest.mark.parametrize("tools", [None, "edit", "Read,Edit", "Read,EditLines"])
async def test_tags_are_shown_to_those_who_use_them_and_to_nobody_else(project, tools):
    text = "one\n\ttwo\n" + "x" * 3_000 + "\n"
    (project / "a.txt").write_text(text)
    plain = []
    for form in ("auto", "replace", "multi", "patch"):
        async with Session(project, tools="full", settings={"edit": {"format": form}}) as session:
            result = await session.call("Read", file_path="a.txt")
            plain.append(result.text)
    assert len(set(plain)) == 1
    assert plain[0].startswith("     1→one\n     2→\ttwo\n")
    async with Session(project, tools=tools, settings=LINES) as session:
        shown = (await session.call("Read", file_path="a.txt")).text
    for number, ref in refs(text).items():
        assert f"{ref}→" in shown
        shown = shown.replace(f"{ref}→", f"{number}→")
    assert shown == plain[0]


@pytest.mark.parametrize("options", [{"tools": "read-only"}, {"deny": ["Edit"]}, {"tools": "Read,MultiEdit"}])  # fmt: skip
async def test_who_may_not_edit_lines_sees_no_tags(project, options):
    (project / "a.txt").write_text("one\n")
    async with Session(project, settings=LINES, **options) as session:
        result = await session.call("Read", file_path="a.txt")
    assert result.text == "     1→one"


async def test_tags_go_with_tabs_as_well(project):
    (project / "a.txt").write_text("one\n")
    settings = {**LINES, "read": {"line_format": "tab"}}
    async with Session(project, settings=settings) as session:
        result = await session.call("Read", file_path="a.txt")
    assert result.text == f"1:{compute_tag('one')}\tone"


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(["a", "}", ""]), min_size=3, max_size=7),
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from(["x", "", "\n", "a\n}"])), min_size=2, max_size=5),
)  # fmt: skip
async def test_one_change_after_the_other_by_old_numbers_is_right_or_refused(
    tmp_path_factory, lines, wanted
):
    """Numbers of the first Read, in a file full of lines that are alike."""
    project = tmp_path_factory.mktemp("project")
    file = project / "a.txt"
    file.write_text("".join(f"{line}\n" for line in lines))
    marked = [(number, line) for number, line in enumerate(lines, 1)]
    async with Session(
        project, permission_mode="acceptEdits", settings=LINES, home=project / ".home"
    ) as session:
        ref = await read(session)
        for number, text in wanted:
            if number not in ref:
                continue
            result = await change(session, {"first": ref[number], "text": text})
            if not result.ok:
                continue
            # The line that was last shown under the number with this text.
            shown = (number, lines[number - 1])
            [at] = [i for i, (old, line) in enumerate(marked) if (old, line) == shown]
            new = split_lines(text)
            told = {(at + 1 + i, line) for i, line in enumerate(new)}
            marked = [(0, line) if (old, line) in told else (old, line) for old, line in marked]
            marked[at : at + 1] = sorted(told)
            assert file.read_text() == "".join(f"{line}\n" for _, line in marked)
