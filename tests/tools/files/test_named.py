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
async def test_the_address_of_a_file_names_it_in_calls_and_for_roots(tmp_path, form):
    project = tmp_path / "my project#1"
    project.mkdir()
    (project / "ä b.txt").write_text("there\n")
    address = form.format(quote(str(project)))
    root = address if form[:5] == "file:" else project
    async with Session(root, permission_mode="acceptEdits") as session:
        read = await session.call("Read", file_path=f"{address}/{quote('ä b.txt')}")
        assert (read.ok, read.data["file"]["filePath"]) == (True, f"{project}/ä b.txt")
        assert (await session.call("Write", file_path=f"{address}/new.txt", content="x")).ok
        found = await session.call("Glob", pattern="*", path=address)
        assert set(found.data["filenames"]) == {f"{project}/ä b.txt", f"{project}/new.txt"}
    assert sorted(path.name for path in project.iterdir()) == ["new.txt", "ä b.txt"]


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("file:///etc/hosts", "permission.denied"),
        ("file:///%2e%2e/etc/hosts", "permission.denied"),
        ("file:///other/%2e%2e/x", "permission.asked"),
        ("file://elsewhere/x", "file.bad_path"),
        ("file:///a%00b", "file.bad_path"),
    ],
)
async def test_an_address_is_judged_by_the_file_it_stands_for(project, address, code):
    async with Session(project, permission_mode="acceptEdits", deny=["Read(//etc/**)"]) as session:
        assert (await session.call("Write", file_path=address, content="x")).code == code
    assert list(project.iterdir()) == []
