"""Grep through a whole session: text, data, permission."""

import asyncio
import os
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.contract.ports.search import FileMatch, TextFound
from handaxe.search.rg import exclusion_probe
from handaxe.search.walk import tree_scan
from handaxe.tools.search.grep_output import SearchOutput


def plant(root: Path, files: dict[str, str]) -> None:
    for age, (name, content) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


async def test_files_are_the_default_and_data_holds_absolute_paths(session, project):
    plant(project, {"a.py": "foo\n", "src/b.py": "foo\n", "c.py": "bar\n"})

    result = await session.call("Grep", pattern="foo")

    assert result.text == "a.py\nsrc/b.py"
    assert result.data["mode"] == "files_with_matches"
    assert result.data["filenames"] == [f"{project}/a.py", f"{project}/src/b.py"]
    assert (result.data["numFiles"], result.data["totalFiles"]) == (2, 2)


async def test_content_has_paths_numbers_and_typed_matches(session, project):
    plant(project, {"a.py": "x\na foo\n"})

    result = await session.call("Grep", pattern="fo+", output_mode="content")

    assert result.text == result.data["content"] == "a.py:2:a foo"
    assert result.data["matches"] == [
        {
            "file": f"{project}/a.py",
            "line": 2,
            "column": 3,
            "text": "a foo",
            "ranges": [[2, 5]],
            "isMatch": True,
        }
    ]
    assert (result.data["numLines"], result.data["numMatches"]) == (1, 1)


async def test_line_numbers_can_be_left_out(session, project):
    plant(project, {"a.py": "x\nfoo\ny\n"})

    result = await session.call("Grep", {"pattern": "foo", "output_mode": "content", "-n": False})
    around = await session.call(
        "Grep", {"pattern": "foo", "output_mode": "content", "-C": "1", "-n": "false"}
    )

    assert result.text == "a.py:foo"
    assert around.text == "a.py-x\na.py:foo\na.py-y"


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({"-A": 1}, [3, 4]),
        ({"-B": 1}, [2, 3]),
        ({"-C": 1}, [2, 3, 4]),
        ({"context": 2}, [1, 2, 3, 4, 5]),
        ({"-C": 2, "-A": 0}, [1, 2, 3]),
    ],
)
async def test_context_options(session, project, options, numbers):
    plant(project, {"a": "1\n2\nfoo\n4\n5\n"})

    result = await session.call("Grep", {"pattern": "foo", "output_mode": "content", **options})

    assert [match["line"] for match in result.data["matches"]] == numbers


async def test_counts_come_with_the_total_of_all_pages(session, project):
    plant(project, {f"f{n}": "foo\n" * 3 for n in range(4)})

    result = await session.call("Grep", pattern="foo", output_mode="count", head_limit=2, offset=1)

    assert result.text.startswith("f1:3\nf2:3\n\n[12 matching lines in 4 files in all.]")
    assert (result.data["numMatches"], result.data["totalFiles"]) == (12, 4)
    assert (result.data["appliedLimit"], result.data["appliedOffset"]) == (2, 1)


async def test_a_cut_page_says_how_to_go_on(session, project):
    plant(project, {"a": "foo\n" * 300})

    first = await session.call("Grep", pattern="foo", output_mode="content")
    second = await session.call("Grep", pattern="foo", output_mode="content", offset=250)
    past = await session.call("Grep", pattern="foo", output_mode="content", offset=300)

    assert "[Showing lines 1-250. To continue: offset=250]" in first.text
    assert (first.data["numLines"], first.data["truncated"]) == (250, True)
    assert (second.data["numLines"], second.data["truncated"]) == (50, False)
    assert past.text.startswith("No entries at this offset")


async def test_zero_as_limit_shows_all_without_taking_all_apart(session, project):
    plant(project, {"a": "foo - x\n" * 1500, "b": "foo\n"})

    result = await session.call("Grep", pattern="foo", output_mode="content", head_limit=0)

    lines = result.data["content"].splitlines()
    assert len(lines) == 1501
    assert (lines[0], lines[1499], lines[1500]) == ("a:1:foo - x", "a:1500:foo - x", "b:1:foo")
    assert (result.data["numLines"], len(result.data["matches"])) == (1501, 1000)


async def test_nothing_found_says_so_and_what_ignored_files_hold(session, project):
    plant(project, {".gitignore": "build/\n", "build/x.js": "foo\nfoo\n"})

    files = await session.call("Grep", pattern="foo")
    lines = await session.call("Grep", pattern="foo", output_mode="content")
    nothing = await session.call("Grep", pattern="no such text")

    assert files.text.startswith("No files found\n\n[0 matches; 2 matches in 1 ignored file.")
    assert "path='build/x.js'" in files.text
    assert lines.text.startswith("No matches found\n\n[0 matches; 2 matches in 1 ignored file.")
    assert nothing.ok
    assert nothing.text.startswith("No files found")
    included = await session.call("Grep", pattern="foo", path="build")
    assert included.text == "build/x.js"


async def test_the_setting_can_switch_ignore_files_off(project):
    plant(project, {".gitignore": "*.log\n", "a.log": "foo\n"})

    async with Session(project, settings={"search.respect_ignore": False}) as session:
        result = await session.call("Grep", pattern="foo")

    assert result.text == "a.log"


async def test_what_a_read_rule_denies_leaves_no_trace(project):
    plant(project, {"secret/key.txt": "password\n", "a.txt": "other\n", "b.pem": "password\n"})

    async with Session(project, deny=["Read(secret/**)", "Read(*.pem)"]) as session:
        answers = [
            await session.call("Grep", {"pattern": pattern, "output_mode": mode})
            for mode in ("files_with_matches", "content", "count")
            for pattern in ("password", "no such text at all")
        ]
        named = await session.call("Grep", pattern="password", path="secret")

    assert all("secret" not in result.text and "pem" not in result.text for result in answers)
    # Whether hidden files match must not show: both questions get the same answer.
    for hit, miss in zip(answers[::2], answers[1::2], strict=True):
        assert (hit.text, hit.data) == (miss.text, miss.data)
    assert named.code == "permission.denied"


@pytest.mark.parametrize(
    ("call_input", "said"),
    [
        ({"pattern": "foo("}, r"pattern: foo\("),
        ({"pattern": "fn() {"}, r"pattern: fn() \{"),
        ({"pattern": "[ab"}, r"pattern: \[ab"),
        ({"pattern": "(?<=x)y"}, "pattern: xy"),
        ({"pattern": r"a\nb"}, "multiline=true"),
        ({"pattern": "x", "type": "tsx"}, "type='ts'"),
        ({"pattern": "x", "type": "pythn"}, "type='python'"),
        ({"pattern": "x", "glob": "[a"}, r"glob: \[a"),
    ],
)
async def test_a_bad_question_is_answered_with_a_better_one(session, call_input, said):
    result = await session.call("Grep", call_input)

    assert result.code == "search.bad_pattern"
    assert said in result.text


async def test_a_missing_path_names_a_near_one(session, project):
    plant(project, {"source/a.py": "foo\n"})

    result = await session.call("Grep", pattern="foo", path="sources")

    assert result.code == "search.not_found"
    assert f"Did you mean {project}/source?" in result.text


async def test_outside_the_working_directories_somebody_is_asked(session, tmp_path):
    for path in ("/etc", str(tmp_path / "elsewhere")):
        result = await session.call("Grep", pattern="root", path=path)
        assert result.code == "permission.asked"


async def test_a_link_out_of_the_project_asks(session, project, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.txt").write_text("foo\n")
    (project / "out").symlink_to(tmp_path / "outside")

    assert (await session.call("Grep", pattern="foo", path="out")).code == "permission.asked"
    assert (await session.call("Grep", pattern="foo")).text.startswith("No files found")


async def test_a_special_file_is_refused_at_once(session, project):
    os.mkfifo(project / "fifo")

    result = await session.call("Grep", pattern="foo", path="fifo")

    assert result.code == "file.not_regular"


async def test_names_no_text_can_show_are_escaped(session, project):
    (project / os.fsdecode(b"bad\xff\n.txt")).write_text("foo\n")

    for mode in ("files_with_matches", "content", "count"):
        result = await session.call("Grep", pattern="foo", output_mode=mode)
        assert result.text.startswith("$'bad\\xff\\n.txt'")
        assert result.data["filenames"] == [f"$'{project}/bad\\xff\\n.txt'"]


async def test_long_lines_are_cut_and_that_is_said(session, project):
    plant(project, {"a.js": "x" * 5000 + "foo" + "y" * 5000 + "\n"})

    result = await session.call("Grep", pattern="foo", output_mode="content")

    assert len(result.text) < 700
    assert "[1 long line cut to what is around the match.]" in result.text
    assert result.data["matches"][0]["column"] == 5001


async def test_a_comma_between_globs_is_explained(session, project):
    plant(project, {"a.js": "foo\n"})

    result = await session.call("Grep", pattern="foo", glob="*.js,*.ts")

    assert "glob='{*.js,*.ts}'" in result.text


async def test_a_binary_file_named_by_path_is_told_about(session, project):
    (project / "a.bin").write_bytes(b"\0\0foo\0")

    result = await session.call("Grep", pattern="foo", path="a.bin", output_mode="content")

    assert "1 binary file with a match" in result.text


async def test_many_searches_at_once_all_answer(session, project):
    plant(project, {f"d{n}/f.txt": f"foo {n}\n" for n in range(20)})

    calls = [("Grep", {"pattern": f"foo {n}$"}) for n in range(20)]
    async with asyncio.timeout(60):
        results = await session.call_many(calls)

    assert [result.text for result in results] == [f"d{n}/f.txt" for n in range(20)]


async def test_a_human_sees_lists_and_tables(session, project):
    plant(project, {"a.py": "foo\n"})

    for mode, kind in (("files_with_matches", "Items"), ("content", "Text"), ("count", "Table")):
        call_input = {"pattern": "foo", "output_mode": mode}
        result = await session.call("Grep", call_input)
        display = session.presenter().present_result(result, call_input).blocks
        assert type(display[0]).__name__ == kind


async def test_an_answer_in_a_large_tree_says_what_was_not_even_counted(
    session, project, monkeypatch
):
    monkeypatch.setattr(tree_scan, "SMALL_TREE", 0)
    monkeypatch.setattr(exclusion_probe, "QUIET_BYTES", 0)
    for limit in ("SURVEY_S", "SURVEY_SHARE", "LOOK_S"):
        monkeypatch.setattr(f"handaxe.search.rg.fallback.{limit}", 0)
    plant(project, {"a/b/c": "bar\n"})

    nothing = await session.call("Grep", pattern="foo")
    something = await session.call("Grep", pattern="bar")

    note = (
        "[Not searched and not counted: ignored and binary files, files such as .env, links; a path "
        "further down counts them.]"
    )
    assert nothing.text == f"No files found\n\n{note}"
    assert something.text == f"a/b/c\n\n{note}"
    for result in (nothing, something):
        assert result.data["skipped"] == {
            "tooLarge": 0,
            "unreadable": 0,
            "denied": False,
            "notCounted": ["ignored", "binary", "links", "withheld"],
        }


async def test_ignored_entries_near_the_root_of_a_large_tree_are_told(
    session, project, monkeypatch
):
    monkeypatch.setattr(tree_scan, "SMALL_TREE", 0)
    monkeypatch.setattr(exclusion_probe, "QUIET_BYTES", 0)
    plant(project, {".gitignore": "dist/\n*.log\n", "dist/x": "", "y.log": "", "a/b/c": "bar\n"})

    result = await session.call("Grep", pattern="bar")

    assert "[Not searched: at least 2 ignored entries.]" in result.text
    assert (
        "[Not searched and not counted: binary files, files such as .env, links; a path"
        in result.text
    )
    assert result.data["skipped"]["atLeast"] == ["ignored"]


async def test_nothing_found_tells_of_binary_files_and_links(session, project):
    (project / "a.bin").write_bytes(b"\0")
    (project / "link").symlink_to("a.bin")

    result = await session.call("Grep", pattern="foo")

    assert "[Not searched: 1 binary file, 1 link.]" in result.text
    assert result.data["skipped"]["links"] == 1


async def test_a_deadline_is_not_mistaken_for_an_answer(project):
    plant(project, {"a/b": "foo\n"})

    async with Session(project, settings={"search.timeout_s": 0.000_001}) as session:
        files = await session.call("Grep", pattern="foo")
        lines = await session.call("Grep", pattern="foo", output_mode="content")

    assert files.text.startswith("No files found so far\n\n[Stopped after 1e-06 s;")
    assert lines.text.startswith("No matches found so far\n\n[Stopped after 1e-06 s;")
    assert not files.data["isComplete"]


async def test_a_back_reference_is_told_from_look_around(session):
    result = await session.call("Grep", pattern=r"(a)\1")

    assert result.code == "search.bad_pattern"
    assert "back-reference" in result.data["advice"]
    assert "look-around" not in result.data["advice"]


@pytest.mark.proves("FT-16")
async def test_matches_are_counted_without_the_lines_around_them_on_pages_of_any_length(
    session, project
):
    plant(project, {"a.txt": "foo\nx\ny\n" * 700})

    result = await session.call(
        "Grep", {"pattern": "foo", "output_mode": "content", "-A": 1, "head_limit": 0}
    )

    assert result.data["numMatches"] == 700
    assert len(result.data["matches"]) < 1_400


async def test_what_people_see_of_many_lines_is_all_of_them(session, project):
    plant(project, {"a.txt": "foo\n" * 1_200})
    call_input = {"pattern": "foo", "output_mode": "content", "head_limit": 0}

    result = await session.call("Grep", call_input)
    shown, *_ = session.presenter().present_result(result, call_input).blocks

    assert shown.text.count("\n") == 1_199
    assert shown.text.endswith("a.txt:1200:foo")


@pytest.mark.proves("FT-16")
def test_totals_of_a_search_that_ran_out_of_time_are_not_called_all():
    found = TextFound(
        entries=[FileMatch("/p/a", 3)], total_files=7, total_matches=9, has_more=True,
        is_complete=False, unvisited=[f"/p/d{n}" for n in range(9)],
    )  # fmt: skip
    answer = SearchOutput(
        found=found, mode="count", offset=0, limit=1, numbered=True, has_context=False,
        cwd="/p", timeout_s=1, glob=None,
    )  # fmt: skip

    result = answer.result()

    assert "[9 matching lines in 7 files so far.]" in result.text
    assert "Showing files 1-1 of 7 found so far." in result.text
    assert "in all" not in result.text
    assert result.data["unvisited"] == found.unvisited


@pytest.mark.proves("FT-16", "FT-12")
@pytest.mark.parametrize(
    ("word", "encoding"),
    [
        ("Größe", "cp1252"), ("русский", "cp1251"), ("русский", "koi8-r"), ("русский", "cp866"),
        ("русский", "iso8859-5"), ("日本語", "shift_jis"), ("日本語", "euc-jp"), ("中文", "gbk"),
    ],
)  # fmt: skip
async def test_a_file_in_a_legacy_encoding_is_searched_in_it(session, project, word, encoding):
    lines = {
        "Größe": "Größe ändern für Straße und Äpfel, Öl, Übermut\n",
        "русский": "Привет мир, это русский текст для проверки\n",
        "日本語": "これは日本語のテキストです。文字コードの判定\n",
        "中文": "这是一个中文文本文件,用来测试编码检测功能\n",
    }
    (project / "sub").mkdir()
    (project / "sub" / "old.txt").write_bytes(lines[word].encode(encoding))
    (project / "new.txt").write_text("naïve\n")

    named = await session.call("Grep", pattern=word, path="sub/old.txt", output_mode="content")
    assert named.text == f"sub/old.txt:1:{lines[word].strip()}"
    found = await session.call("Grep", pattern=word)
    assert "0 matches in UTF-8; 1 match in 1 file of another encoding." in found.text
    assert "path='sub/old.txt'" in found.text
    assert found.data["elsewhere"][0]["reason"] == "encoding"
    none = await session.call("Grep", pattern="überall")
    assert "encoding" not in none.text


async def test_files_that_a_rule_denies_are_not_looked_at_for_their_encoding(project):
    (project / "old.txt").write_bytes("Größe ändern für Straße\n".encode("cp1252"))
    async with Session(project, deny=["Read(old.txt)"]) as session:
        result = await session.call("Grep", pattern="Größe")
    assert "encoding" not in result.text


async def test_files_that_may_hold_secrets_are_left_out_and_that_is_said(session, project):
    plant(project, {".env": "KEY=hidden\n", "a.txt": "KEY=shown\n"})

    found = await session.call("Grep", pattern="KEY", output_mode="content")

    assert found.text == (
        "a.txt:1:KEY=shown\n\n"
        "[Not searched: 1 file such as .env. Such files may hold secrets, and Read asks for them.]"
    )
    assert found.data["skipped"]["withheld"] == 1


async def test_a_read_rule_that_allows_lets_grep_search_such_a_file(project):
    plant(project, {".env": "KEY=one\n", "sub/.env": "KEY=two\n"})

    async with Session(project, allow=["Read(/.env)"]) as session:
        found = await session.call("Grep", pattern="KEY", output_mode="content")

    assert ".env:1:KEY=one" in found.text
    assert "two" not in found.text
    assert found.data["skipped"]["withheld"] == 1


async def test_permission_decides_about_such_a_file_that_is_named(session, project):
    plant(project, {".env": "KEY=hidden\n"})

    refused = await session.call("Grep", pattern="KEY", path=".env", output_mode="content")
    async with Session(project, allow=["Read"]) as allowed:
        shown = await allowed.call("Grep", pattern="KEY", path=".env", output_mode="content")

    assert not refused.ok
    assert "hidden" not in refused.text
    assert shown.text == ".env:1:KEY=hidden"


async def test_bypassed_permissions_leave_nothing_out(project):
    plant(project, {".env": "KEY=hidden\n"})

    async with Session(project, permission_mode="bypassPermissions") as session:
        found = await session.call("Grep", pattern="KEY", output_mode="content")

    assert found.text == ".env:1:KEY=hidden"
