"""Which file a call names, and which names it is told of."""

from urllib.parse import quote

import pytest

from handaxe import Session

CALLS = {
    "Read": {},
    "Write": {"content": "x"},
    "Edit": {"old_string": "", "new_string": "x"},
    "MultiEdit": {"edits": [{"old_string": "", "new_string": "x"}]},
}


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("end", ["/", "//", "/."])
async def test_the_path_of_a_directory_names_no_file(session, project, tool, end):
    (project / "there.txt").write_text("a\n")
    (project / "dir").mkdir()
    await session.call("Read", file_path="there.txt")
    codes = {
        name: (await session.call(tool, {"file_path": name + end, **CALLS[tool]})).code
        for name in ("there.txt", "new", "dir")
    }
    assert codes == {
        "there.txt": "file.bad_path", "new": "file.bad_path", "dir": "file.is_directory",
    }  # fmt: skip
    assert (project / "there.txt").read_text() == "a\n"
    assert not (project / "new").exists()


@pytest.mark.proves("FT-5")
@pytest.mark.parametrize("deny", ["Read(**/*.key)", "Read(report.key)"])
async def test_near_names_are_only_those_that_may_be_read(project, deny):
    (project / "report.key").write_text("secret")
    (project / "report.txt").write_text("plain")
    async with Session(project, deny=[deny]) as session:
        result = await session.call("Read", file_path="report.ky")
    assert result.code == "file.not_found"
    assert result.data["near"] == [f"{project}/report.txt"]
    assert "report.key" not in result.text


@pytest.mark.parametrize("form", ["file://{}", "FILE://{}", "file://localhost{}", "file:{}"])
@pytest.mark.parametrize(
    ("tool", "field", "more"),
    [
        ("Read", "file_path", {}),
        ("Write", "file_path", {"content": "x"}),
        ("Glob", "path", {"pattern": "*"}),
        ("Bash", "cwd", {"command": "ls"}),
    ],
)
async def test_an_address_is_no_path_and_the_refusal_says_which_path_is_meant(
    project, form, tool, field, more
):
    (project / "ä b.txt").write_text("there\n")
    address = form.format(quote(f"{project}/ä b.txt"))
    async with Session(project, permission_mode="acceptEdits") as session:
        refused = await session.call(tool, {field: address, **more})
        assert refused.code == "file.bad_path"
        assert f"{str(project / 'ä b.txt')!r}" in refused.text
    assert [path.name for path in project.iterdir()] == ["ä b.txt"]


async def test_a_path_is_literal_also_where_it_looks_encoded(project):
    (project / "a%20b.txt").write_text("literal\n")
    (project / "a b.txt").write_text("decoded\n")
    async with Session(project) as session:
        assert "literal" in (await session.call("Read", file_path="a%20b.txt")).text
        (project / "file:").mkdir()
        (project / "file:" / "x").write_text("odd but there\n")
        assert "odd but there" in (await session.call("Read", file_path="./file:/x")).text
        for address in ("file://elsewhere/x", "file:///a%00b"):
            refused = await session.call("Read", file_path=address)
            assert (refused.code, "absolute path" in refused.text) == ("file.bad_path", True)


@pytest.mark.parametrize("form", ["file://{}", "file://localhost{}", "file:{}"])
async def test_a_root_may_be_named_by_its_address(tmp_path, form):
    project = tmp_path / "my project#1"
    project.mkdir()
    async with Session(form.format(quote(str(project)))) as session:
        assert session.workdir.root == str(project)
