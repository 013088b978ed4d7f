"""Glob through a whole session: text, data, permission."""

import os
from pathlib import Path

import pytest

from handaxe import Allow, Session


def plant(root: Path, names: list[str]) -> None:
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


async def test_text_is_relative_and_data_absolute(session, project):
    plant(project, ["new.py", "src/old.py", "x.txt"])

    result = await session.call("Glob", pattern="**/*.py")

    assert result.text == "new.py\nsrc/old.py"
    assert result.data["filenames"] == [f"{project}/new.py", f"{project}/src/old.py"]
    assert (result.data["numFiles"], result.data["totalMatches"]) == (2, 2)
    assert (result.data["truncated"], result.data["countIsComplete"]) == (False, True)


async def test_more_than_the_cap_says_how_many_and_how_to_narrow(session, project):
    plant(project, [f"{n}.txt" for n in range(120)])

    result = await session.call("Glob", pattern="*.txt")

    assert len(result.data["filenames"]) == 100
    assert (result.data["totalMatches"], result.data["truncated"]) == (120, True)
    note = "Showing files 1-100 of 120, the newest first. To continue: offset=100"
    assert note in result.text


@pytest.mark.proves("FT-15")
@pytest.mark.parametrize("limit", [1, 3, 7, 8, 1000])
async def test_pages_put_together_are_the_whole_list(session, project, limit):
    plant(project, [f"{n}.txt" for n in range(8)])
    for name in ("equal-b.txt", "equal-a.txt"):
        (project / name).write_text("")
        os.utime(project / name, (1_600_000_000, 1_600_000_000))
    whole = await session.call("Glob", pattern="*.txt", limit=0)
    listed, offset = [], 0

    while True:
        page = await session.call("Glob", pattern="*.txt", limit=limit, offset=offset)
        listed += page.data["filenames"]
        offset += page.data["numFiles"]
        assert page.data["totalMatches"] == 10
        assert page.data["truncated"] == (f"To continue: offset={offset}" in page.text)
        assert page.data.get("appliedLimit", limit) == limit
        assert "appliedOffset" not in page.data or page.data["appliedOffset"] < offset
        if not page.data["truncated"]:
            break

    assert listed == whole.data["filenames"]
    assert len(listed) == 10
    assert listed[-2].endswith("equal-a.txt")


async def test_a_page_behind_the_last_file_says_so(session, project):
    plant(project, ["a.txt", "b.txt"])

    behind = await session.call("Glob", pattern="*.txt", offset=2)
    nothing = await session.call("Glob", pattern="*.nothing", offset=2)

    assert behind.text.startswith("No entries at this offset\n\n[Only 2 files fit: offset=2 is")
    assert (behind.data["numFiles"], behind.data["totalMatches"]) == (0, 2)
    assert behind.data["truncated"] is False
    assert nothing.text == "No entries at this offset"


@pytest.mark.parametrize("bad", [{"limit": -1}, {"offset": -1}, {"limit": "many"}, {"offset": 1.5}])
async def test_a_page_that_cannot_be_is_refused(session, bad):
    result = await session.call("Glob", {"pattern": "*", **bad})

    assert result.code == "call.bad_input"
    assert next(iter(bad)) in result.text


async def test_ignored_matches_are_said(session, project):
    plant(project, ["build/a.py", "b.py"])
    (project / ".gitignore").write_text("build/\n")

    result = await session.call("Glob", pattern="**/*.py")
    included = await session.call("Glob", pattern="*.py", path="build")

    assert result.text.startswith("b.py\n\n[1 matching file not shown because of ignore files")
    assert result.data["ignoredMatches"] == 1
    assert included.text == "build/a.py"


async def test_nothing_found(session):
    result = await session.call("Glob", pattern="*.nothing")

    assert (result.text, result.data["numFiles"]) == ("No files found", 0)


async def test_absolute_patterns_and_paths(session, project):
    plant(project, ["src/a.py", "lib/b.py"])

    whole = await session.call("Glob", pattern=f"{project}/src/*.py")
    within = await session.call("Glob", pattern=f"{project}/**/*.py", path="lib")
    apart = await session.call("Glob", pattern=f"{project}/src/*.py", path="lib")

    assert whole.text == "src/a.py"
    assert within.text == "lib/b.py"
    assert apart.text == "No files found"


@pytest.mark.parametrize(
    "call_input",
    [
        {"pattern": "/etc/*"},
        {"pattern": "*", "path": "/etc"},
        {"pattern": "*", "path": ".."},
        {"pattern": "/**/passwd"},
        {"pattern": "/etc/*", "path": "."},
    ],
)
async def test_outside_the_working_directories_somebody_is_asked(session, call_input):
    assert (await session.call("Glob", call_input)).code == "permission.asked"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("[", r"\["), ("../*", "another directory"), ("src/", "src/**"), ("{a", r"\{"), ("", "'**'")],
)
async def test_a_bad_pattern_is_refused_with_advice(session, pattern, said):
    result = await session.call("Glob", pattern=pattern)

    assert result.code == "search.bad_pattern"
    assert said in result.text


async def test_a_missing_directory_names_a_near_one(session, project):
    plant(project, ["source/a.py", "file.txt"])

    missing = await session.call("Glob", pattern="*", path="sorce")
    no_directory = await session.call("Glob", pattern="*", path="file.txt")

    assert missing.code == no_directory.code == "search.not_found"
    assert f"{project}/source" in missing.text


async def test_what_a_read_rule_denies_leaves_no_trace(project):
    plant(project, ["secret/key.txt", "a.txt", "b.pem"])

    async with Session(project, deny=["Read(secret/**)", "Read(*.pem)"]) as session:
        for pattern in ("**/*", "**/*.txt", "*.pem", "s*/*"):
            result = await session.call("Glob", pattern=pattern)
            assert "key" not in result.text
            assert "b.pem" not in result.text
        named = await session.call("Glob", pattern="*", path="secret")

    assert named.code == "permission.denied"


async def test_names_no_text_can_show_are_escaped(session, project):
    plant(project, [os.fsdecode(b"bad\xff.txt"), "two\nlines.txt"])

    result = await session.call("Glob", pattern="*.txt")

    assert result.text == "$'bad\\xff.txt'\n$'two\\nlines.txt'"
    assert result.data["filenames"][0] == f"$'{project}/bad\\xff.txt'"


async def test_a_working_directory_opened_through_a_link(tmp_path):
    plant(tmp_path, ["real/a.py"])
    (tmp_path / "link").symlink_to("real")

    async with Session(tmp_path / "link") as session:
        result = await session.call("Glob", pattern=f"{tmp_path}/link/*.py")

    assert result.text == "a.py"


async def test_an_ignored_file_that_is_named_in_full_is_listed(session, project):
    plant(project, ["z.log", "y.log", "src/x.log"])
    (project / ".gitignore").write_text("*.log\n")

    some = await session.call("Glob", pattern="*.log")
    named = await session.call("Glob", pattern="z.log")
    absolute = await session.call("Glob", pattern=f"{project}/src/x.log")
    two = await session.call("Glob", pattern="{z,y}.log")

    assert (some.data["numFiles"], some.data["ignoredMatches"]) == (0, 2)
    assert "name the file in full" in some.text
    assert some.data["ignoredExample"] in {f"{project}/y.log", f"{project}/z.log"}
    assert named.text == "z.log"
    assert absolute.text == "src/x.log"
    assert two.text == "z.log\ny.log"


async def test_a_pattern_can_begin_at_home(project, tmp_path, monkeypatch):
    home = tmp_path / "some [home]"
    plant(home, ["notes/a.md"])
    monkeypatch.setenv("HOME", str(home))
    asked: list[str] = []

    async def yes(request):
        asked.append(request.reason)
        return Allow()

    async with Session(project, on_ask=yes) as session:
        found = await session.call("Glob", pattern="~/notes/*.md")
        inside = await session.call("Glob", pattern="~/notes/*.md", path=str(home))
    async with Session(project) as session:
        refused = await session.call("Glob", pattern="~/notes/*.md")

    assert found.data["filenames"] == inside.data["filenames"] == [f"{home}/notes/a.md"]
    assert asked
    assert refused.code == "permission.asked"


async def test_data_says_how_long_it_took(session):
    result = await session.call("Glob", pattern="*")

    assert result.data["durationMs"] >= 0


async def test_a_pattern_that_begins_in_a_denied_directory_says_that_files_are_left_out(project):
    plant(project, ["secret/a.txt"])

    async with Session(project, deny=["Read(secret/**)"]) as session:
        result = await session.call("Glob", pattern="secret/*")

    assert result.data["filenames"] == []
    assert result.data["skipped"]["denied"] is True
    assert "a.txt" not in result.text


@pytest.mark.parametrize(
    "call",
    [
        {"pattern": ".git/**"},
        {"pattern": "*", "path": ".git"},
        {"pattern": "**/config", "path": ".git/hooks", "ignored": True},
        {"pattern": "sub/.SVN/*"},
    ],
)
async def test_version_control_directories_are_not_listed_and_that_is_said(session, project, call):
    for name in (".git/config", ".git/hooks/config", "sub/.svn/config"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")

    found = await session.call("Glob", call)

    assert found.data["filenames"] == []
    assert "[Version control directories such as .git are not listed.]" in found.text


async def test_names_of_files_that_may_hold_secrets_are_listed_unless_read_denies_them(project):
    (project / ".env").write_text("")

    async with Session(project) as session:
        shown = await session.call("Glob", pattern=".env*")
    async with Session(project, deny=["Read(.env)"]) as session:
        hidden = await session.call("Glob", pattern=".env*")

    assert [len(shown.data["filenames"]), len(hidden.data["filenames"])] == [1, 0]
