"""Which file a call names, and which names it is told of."""

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
