"""Help after a failed edit, as a model gets it: the mistake by name, and the call to send as it is."""

import pytest

from handaxe import Session

CONTENT = 'def f():\n    x = "a"\n\n    return x\n\n\nname = "Ame\u0301lie"\nquote = ‘a’\n'
MISTAKES = {
    "line_numbers": ('     2→    x = "a"\n     3→', '     2→    x = "b"\n     3→', "line numbers"),
    "escaped": ("def f():\\n    x", "def g():\\n    x", "with a backslash, such as \\n"),
    "blank_lines": ('    x = "a"\n    return x', '    x = "b"\n    return x', "blank lines"),
    "composition": ('name = "Amélie"', 'title = "Amélie"', "composed differently"),
}
RIGHT = {
    "line_numbers": CONTENT.replace('"a"', '"b"'),
    "escaped": CONTENT.replace("f()", "g()"),
    "blank_lines": CONTENT.replace('"a"', '"b"'),
    "composition": CONTENT.replace("name", "title"),
}


@pytest.mark.proves("FT-9")
@pytest.mark.parametrize("mistake", MISTAKES)
async def test_edit_names_the_mistake_and_the_call_it_proposes_lands(session, project, mistake):
    file = project / "a.py"
    file.write_text(CONTENT)
    await session.call("Read", file_path="a.py")
    old, new, named = MISTAKES[mistake]
    failed = await session.call("Edit", file_path="a.py", old_string=old, new_string=new)
    assert failed.code == "edit.no_match"
    assert named in failed.text
    assert f"Send: Edit(file_path={str(file)!r}, old_string=" in failed.text
    assert failed.data["mistakes"] == [mistake]
    assert file.read_text() == CONTENT
    landed = await session.call("Edit", failed.data["corrected"])
    assert landed.ok, landed.text
    assert landed.data["matched_with"] == "exact"
    assert file.read_text() == RIGHT[mistake]


@pytest.mark.proves("FT-9", "FT-8")
async def test_an_exact_search_says_that_the_quotes_differ(project):
    file = project / "a.py"
    file.write_text(CONTENT)
    exact = {"edit": {"tolerance": "exact"}}
    async with Session(project, permission_mode="acceptEdits", settings=exact) as session:
        await session.call("Read", file_path="a.py")
        edit = {"old_string": "quote = 'a'", "new_string": "quotes = 'a'"}
        failed = await session.call("Edit", file_path="a.py", **edit)
        assert failed.data["mistakes"] == ["quotes"]
        assert "edit.tolerance = exact" in failed.text
        assert "U+0027 APOSTROPHE where the file has U+2018" in failed.text
        assert (await session.call("Edit", failed.data["corrected"])).ok
    assert file.read_text() == CONTENT.replace("quote", "quotes")


@pytest.mark.proves("FT-9", "FT-17")
async def test_multi_edit_proposes_all_edits_with_each_mistake_put_right(session, project):
    file = project / "a.py"
    file.write_text(CONTENT)
    await session.call("Read", file_path="a.py")
    edits = [
        {"old_string": "def f():", "new_string": "def g():"},
        {"old_string": '     2→    x = "a"', "new_string": '     2→    x = "b"'},
        {"old_string": "x =", "new_string": "y ="},
        {"old_string": 'name = "Amélie"', "new_string": 'title = "Amélie"'},
    ]
    failed = await session.call("MultiEdit", file_path="a.py", edits=edits)
    assert failed.code == "edit.no_match"
    assert failed.data["mistakes"] == ["line_numbers"]
    assert "Edit 2 of 4 failed" in failed.text
    assert file.read_text() == CONTENT
    assert (await session.call("MultiEdit", failed.data["corrected"])).ok
    right = CONTENT.replace("f()", "g()").replace('x = "a"', 'y = "b"').replace("name", "title")
    assert file.read_text() == right


async def test_multi_edit_proposes_no_input_that_would_fail_again(session, project):
    (project / "a.py").write_text(CONTENT)
    await session.call("Read", file_path="a.py")
    edits = [
        {"old_string": "1→def f():", "new_string": "1→def g():"},
        {"old_string": "nowhere at all", "new_string": "x"},
    ]
    failed = await session.call("MultiEdit", file_path="a.py", edits=edits)
    assert failed.data["mistakes"] == ["line_numbers"]
    assert "corrected" not in failed.data
    assert "new_string='def g():'" in failed.text


@pytest.mark.proves("FT-9", "FT-18")
async def test_a_patch_with_line_numbers_is_answered_with_the_right_hunk(session, project):
    file = project / "a.py"
    file.write_text(CONTENT)
    await session.call("Read", file_path="a.py")
    patch = "*** Begin Patch\n*** Update File: a.py\n{}\n*** End Patch"
    wrong = ["      1→def f():", '-     2→    x = "a"', '+     2→    x = "b"']
    failed = await session.call("ApplyPatch", input=patch.format("\n".join(wrong)))
    assert failed.data["mistakes"] == ["line_numbers"]
    assert failed.data["corrected"] == {"lines": [" def f():", '-    x = "a"', '+    x = "b"']}
    assert 'the hunk with these lines:\n def f():\n-    x = "a"\n+    x = "b"' in failed.text
    lines = "\n".join(failed.data["corrected"]["lines"])
    assert (await session.call("ApplyPatch", input=patch.format(lines))).ok
    assert file.read_text() == CONTENT.replace('"a"', '"b"')


async def test_a_text_with_a_mistake_that_fits_twice_gets_no_call(session, project):
    (project / "a.py").write_text("x = 1\n\ny = 2\n\nx = 1\n")
    await session.call("Read", file_path="a.py")
    edit = {"old_string": "     1→x = 1", "new_string": "     1→x = 2"}
    failed = await session.call("Edit", file_path="a.py", **edit)
    assert failed.data == {"mistakes": ["line_numbers"], "lines": [1, 5]}
    assert "matches several places, on lines 1, 5" in failed.text
    everywhere = await session.call("Edit", file_path="a.py", **edit, replace_all=True)
    assert (await session.call("Edit", everywhere.data["corrected"])).ok
    assert (project / "a.py").read_text() == "x = 2\n\ny = 2\n\nx = 2\n"
