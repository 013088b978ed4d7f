"""What a missing path may have meant: told by every tool that names one, and nothing hidden."""

import pytest

from handaxe import Session

MISSING = {
    "Read": {"file_path": "{}"},
    "Edit": {"file_path": "{}", "old_string": "a", "new_string": "b"},
    "MultiEdit": {"file_path": "{}", "edits": [{"old_string": "a", "new_string": "b"}]},
    "NotebookEdit": {"notebook_path": "{}", "cell_id": "1", "new_source": "x"},
    "ApplyPatch": {"input": "*** Begin Patch\n*** Update File: {}\n-a\n+b\n*** End Patch"},
    "Grep": {"path": "{}", "pattern": "x"},
    "Glob": {"path": "{}", "pattern": "*"},
}


def fill(value, path):
    if isinstance(value, str):
        return value.replace("{}", path)
    return value


def name_missing(tool, path):
    return {name: fill(value, path) for name, value in MISSING[tool].items()}


@pytest.mark.proves("FT-5")
@pytest.mark.parametrize("tool", [tool for tool in MISSING if tool != "Glob"])
async def test_a_misspelt_directory_is_put_right_and_the_resolved_path_is_shown(
    session, project, tool
):
    (project / "src" / "library").mkdir(parents=True)
    (project / "src" / "library" / "a.ipynb").write_text("{}")
    result = await session.call(tool, name_missing(tool, "src/libary/a.ipynb"))
    assert result.code in ("file.not_found", "search.not_found")
    assert f"{project}/src/libary/a.ipynb" in result.text
    assert result.data["near"] == [f"{project}/src/library/a.ipynb"]
    assert f"Did you mean {project}/src/library/a.ipynb?" in result.text


@pytest.mark.proves("FT-5")
@pytest.mark.parametrize("tool", [tool for tool in MISSING if tool != "Glob"])
async def test_files_of_that_name_elsewhere_are_told(session, project, tool):
    for place in ("pkg/deep", "other"):
        (project / place).mkdir(parents=True)
        (project / place / "util.ipynb").write_text("{}")
    result = await session.call(tool, name_missing(tool, "pkg/util.ipynb"))
    assert result.data["elsewhere"] == [
        f"{project}/pkg/deep/util.ipynb", f"{project}/other/util.ipynb",
    ]  # fmt: skip
    assert f"{project}/pkg/deep/util.ipynb" in result.text


@pytest.mark.proves("FT-5")
@pytest.mark.parametrize("tool", ["Grep", "Glob"])
async def test_directories_of_that_name_elsewhere_are_told(session, project, tool):
    (project / "packages" / "core" / "sub").mkdir(parents=True)
    (project / "packages" / "core" / "sub" / "a.py").write_text("x")
    result = await session.call(tool, name_missing(tool, "core"))
    assert result.data["elsewhere"] == [f"{project}/packages/core"]
    assert f"What has that name: {project}/packages/core." in result.text


@pytest.mark.proves("FT-5")
async def test_denied_ignored_and_outside_files_are_never_told(project, tmp_path):
    outside = tmp_path / "outside"
    for directory in (outside, project / "private", project / "build", project / "open"):
        directory.mkdir(parents=True)
        (directory / "token.txt").write_text("secret")
    (project / ".gitignore").write_text("build/\n")
    (project / "leads").symlink_to(outside)
    rules = {"permissions": {"deny": ["Read(private/**)"]}}
    async with Session(project, permission_mode="acceptEdits", settings=rules) as session:
        for tool in ("Read", "Edit", "Grep"):
            result = await session.call(tool, name_missing(tool, "token.txt"))
            assert result.data["elsewhere"] == [f"{project}/open/token.txt"], tool
            assert result.data["near"] == []
            for hidden in ("private", "build", "outside", "leads"):
                assert f"{hidden}/token.txt" not in result.text
            near = await session.call(tool, name_missing(tool, "privat/token.txt"))
            assert near.data["near"] == [], tool
        asked = await session.call("Read", file_path=str(outside / "tokn.txt"))
        assert asked.code == "permission.asked"
        assert "token.txt" not in asked.text


async def test_odd_names_are_looked_for_as_they_are(session, project):
    for name in ("a[1]*.txt", "b\nc.txt", "{x}.txt"):
        (project / "sub").mkdir(exist_ok=True)
        (project / "sub" / name).write_text("x")
        result = await session.call("Read", file_path=f"{project}/{name}")
        [told] = result.data["elsewhere"]
        assert (await session.call("Read", file_path=told)).ok, name


async def test_where_nothing_is_near_nothing_is_told(session):
    result = await session.call("Read", file_path="no/such/thing.at.all")
    assert result.text.endswith("/no/such/thing.at.all.")
    assert result.data["near"] == result.data["elsewhere"] == []
