"""Text in files."""

import os

import pytest
from search_tree import counts, grep, lines, names, plant
from tests.waiting import HANG_S

from handaxe.contract.ports.search import BadQuery
from handaxe.search.local_search import LocalSearch


async def test_files_come_newest_first_and_equal_times_by_path(search, tmp_path):
    plant(tmp_path, {"new.txt": "foo", "b.txt": "foo", "a.txt": "foo", "no.txt": "bar"})
    os.utime(tmp_path / "a.txt", (1_699_999_999, 1_699_999_999))

    found = await grep(search, tmp_path, "foo")

    assert names(found, tmp_path) == ["new.txt", "a.txt", "b.txt"]
    assert found.total_files == 3


async def test_lines_come_in_path_order_part_by_part(search, tmp_path):
    plant(tmp_path, {"b.txt": "x foo\n", "a-b/f": "foo\n", "a/f": "foo\nfoo\n", "a.c": "foo"})

    found = await grep(search, tmp_path, "foo", mode="content")

    assert lines(found, tmp_path) == [
        "a/f:1:foo",
        "a/f:2:foo",
        "a-b/f:1:foo",
        "a.c:1:foo",
        "b.txt:1:x foo",
    ]
    assert (found.total_lines, found.total_files) == (5, 4)


async def test_lines_come_in_the_order_of_the_bytes_of_their_paths(search, tmp_path):
    raw = os.fsdecode(b"d/\xff/f")
    files = ["a-b/f", "a.b/f", "a/b", "a/é/f", "b", "c/b", "c/c/f", "d", "é/f", "z/f", "\U0001f600"]
    paths = [f"d/{name}" for name in files] + [raw]
    plant(tmp_path, dict.fromkeys(sorted(paths, key=hash), "foo\n"))

    found = await grep(search, tmp_path, "foo", mode="content")
    page = await grep(search, tmp_path, "foo", mode="content", limit=5)

    shown = [line.path.removeprefix(f"{tmp_path}/") for line in found.lines]
    assert shown == sorted(paths, key=lambda path: os.fsencode(path).split(b"/"))
    assert page.lines == found.lines[:5]


async def test_columns_and_ranges_are_told_in_characters(search, tmp_path):
    plant(tmp_path, {"a.txt": "é foo ü foo\n"})

    (line,) = (await grep(search, tmp_path, "fo+", mode="content")).lines

    assert (line.text, line.column, line.ranges) == ("é foo ü foo", 3, ((2, 5), (8, 11)))


async def test_counts_are_matching_lines(search, tmp_path):
    plant(tmp_path, {"a.txt": "foo foo\nfoo\n", "b/c.txt": "foo\n"})

    found = await grep(search, tmp_path, "foo", mode="count")

    assert counts(found, tmp_path) == {"a.txt": 2, "b/c.txt": 1}
    assert (found.total_matches, found.total_files) == (3, 2)


async def test_pages_join_to_the_whole_answer(search, tmp_path):
    plant(tmp_path, {f"d{n % 3}/f{n}.txt": "foo\nbar\nfoo\n" for n in range(10)})
    whole = lines(await grep(search, tmp_path, "foo", mode="content", limit=None), tmp_path)

    paged = []
    for offset in range(0, 25, 4):
        page = await grep(search, tmp_path, "foo", mode="content", limit=4, offset=offset)
        assert page.has_more == (offset + 4 < len(whole))
        paged += lines(page, tmp_path)

    assert paged == whole
    assert len(whole) == 20


async def test_pages_of_files_and_counts_know_the_total(search, tmp_path):
    plant(tmp_path, {f"f{n}.txt": "foo\n" * (n + 1) for n in range(5)})

    files = await grep(search, tmp_path, "foo", limit=2, offset=1)
    counted = await grep(search, tmp_path, "foo", mode="count", limit=2, offset=3)

    assert (names(files, tmp_path), files.total_files) == (["f1.txt", "f2.txt"], 5)
    assert files.has_more
    assert (counts(counted, tmp_path), counted.total_matches) == ({"f3.txt": 4, "f4.txt": 5}, 15)
    assert not counted.has_more


async def test_context_shows_lines_around_and_gaps(search, tmp_path):
    plant(tmp_path, {"a": "1\n2 foo\n3\n4\n5\n6 foo\n7\n", "b": "foo\n"})

    found = await grep(search, tmp_path, "foo", mode="content", before=1, after=1)

    assert lines(found, tmp_path) == [
        *("a-1-1", "a:2:2 foo", "a-3-3", "--", "a-5-5", "a:6:6 foo", "a-7-7"),
        *("--", "b:1:foo"),
    ]


async def test_overlapping_context_is_shown_once(search, tmp_path):
    plant(tmp_path, {"a": "foo\n2\nfoo\n4\n5\nfoo\n"})

    found = await grep(search, tmp_path, "foo", mode="content", before=2, after=2)

    assert [line.line for line in found.lines] == [1, 2, 3, 4, 5, 6]


async def test_only_the_matching_part_with_its_column(search, tmp_path):
    plant(tmp_path, {"a.txt": "ü foo1 foo2\nfoo3\n"})

    found = await grep(search, tmp_path, r"foo\d", mode="content", only_matching=True)

    assert [(at.line, at.column, at.text) for at in found.lines] == [
        (1, 3, "foo1"),
        (1, 8, "foo2"),
        (2, 1, "foo3"),
    ]


@pytest.mark.parametrize("pattern", ["^$", "x*", r"\b", "y?", "x*$", "(?m)$"])
async def test_an_empty_match_is_a_matching_part_too(search, tmp_path, pattern):
    plant(tmp_path, {"a.txt": "a\n\nxx y\r\n\r\nlast"})

    found = await grep(search, tmp_path, pattern, mode="content", only_matching=True)

    assert "" in {line.text for line in found.lines}


async def test_a_match_can_go_across_lines(search, tmp_path):
    plant(tmp_path, {"a.txt": "one {\n  two\n}\nthree {\n}\n"})

    found = await grep(search, tmp_path, r"\{.*?two", mode="content", multiline=True)

    assert lines(found, tmp_path) == ["a.txt:1:one {", "a.txt:2:  two"]
    assert found.lines[0].ranges == ((4, 5),)
    assert names(await grep(search, tmp_path, r"\{\s+\}", multiline=True), tmp_path) == ["a.txt"]


async def test_without_multiline_no_match_goes_across_lines(search, tmp_path):
    plant(tmp_path, {"a.txt": "foo\nbar\n"})

    assert not (await grep(search, tmp_path, r"foo\s+bar")).entries
    assert not (await grep(search, tmp_path, r"foo[^x]bar")).entries


async def test_the_end_of_a_line_is_found_in_crlf_files_too(search, tmp_path):
    plant(tmp_path, {"a.txt": "foo;\r\nbar\r\n"})

    found = await grep(search, tmp_path, ";$", mode="content")

    assert [(line.line, line.text) for line in found.lines] == [(1, "foo;")]


async def test_case_matters_unless_told_otherwise(search, tmp_path):
    plant(tmp_path, {"a.txt": "Foo\n"})

    assert not (await grep(search, tmp_path, "foo")).entries
    assert (await grep(search, tmp_path, "foo", ignore_case=True)).entries


@pytest.mark.parametrize(
    "pattern", ["--pre=x", "-e", "--", "-f", "--files", "-", "--hostname-bin=/bin/false"]
)
async def test_patterns_are_data(search, tmp_path, pattern):
    plant(tmp_path, {"a.txt": f"with {pattern} in it\n", "b.txt": "without\n"})

    assert names(await grep(search, tmp_path, pattern), tmp_path) == ["a.txt"]


async def test_globs_and_types_are_data(search, tmp_path):
    plant(tmp_path, {"--pre=x": "foo\n", "a.txt": "foo\n"})

    assert names(await grep(search, tmp_path, "foo", glob="--pre=x"), tmp_path) == ["--pre=x"]
    with pytest.raises(BadQuery, match="unrecognized file type"):
        await grep(search, tmp_path, "foo", file_type="--pre=x")


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("*.{py,js}", ["a.py", "src/b.py", "src/d.js", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("**/deep/**", ["src/deep/c.py"]),
        ("!*.py", ["src/d.js"]),
        ("!src", ["a.py"]),
        ("/src/*.py", ["src/b.py"]),
        ("[ab].py", ["a.py", "src/b.py"]),
        ("[!a].py", ["src/b.py", "src/deep/c.py"]),
    ],
)
async def test_globs_filter(search, tmp_path, glob, expected):
    plant(tmp_path, dict.fromkeys(("a.py", "src/b.py", "src/deep/c.py", "src/d.js"), "foo\n"))

    found = await grep(search, tmp_path, "foo", glob=glob, mode="count")

    assert sorted(names(found, tmp_path)) == expected


async def test_an_absolute_glob_is_meant_from_the_root(search, tmp_path):
    plant(tmp_path, {"a.py": "foo\n", "src/b.py": "foo\n"})

    found = await grep(search, tmp_path, "foo", glob=f"{tmp_path}/src/*.py")

    assert names(found, tmp_path) == ["src/b.py"]


@pytest.mark.parametrize(("kind", "expected"), [("py", ["a.py", "b.pyi"]), ("make", ["Makefile"])])
async def test_types_filter(search, tmp_path, kind, expected):
    plant(tmp_path, dict.fromkeys(("a.py", "b.pyi", "c.txt", "Makefile"), "foo\n"))

    assert names(await grep(search, tmp_path, "foo", file_type=kind), tmp_path) == expected


async def test_hidden_files_are_searched_and_version_control_is_not(search, tmp_path):
    hidden = {".hidden": "foo\n", ".config/a": "foo\n"}
    plant(tmp_path, {**hidden, **{f"{vcs}/config": "foo\n" for vcs in (".git", ".hg", ".jj")}})

    found = await grep(search, tmp_path, "foo")

    assert names(found, tmp_path) == [".hidden", ".config/a"]
    assert names(await grep(search, tmp_path, "foo", glob="**/config"), tmp_path) == []


async def test_ignored_files_are_left_out_also_outside_a_repository(search, tmp_path):
    plant(
        tmp_path,
        {
            ".gitignore": "build/\n*.log\n!keep.log\n",
            "build/a.txt": "foo\n",
            "x.log": "foo\n",
            "keep.log": "foo\n",
            "src/.ignore": "gen.py\n",
            "src/gen.py": "foo\n",
            "src/a.py": "foo\n",
        },
    )

    found = await grep(search, tmp_path, "foo")

    assert names(found, tmp_path) == ["keep.log", "src/a.py"]
    assert found.skipped.ignored == 3
    everything = await grep(search, tmp_path, "foo", respect_ignore=False)
    assert everything.total_files == 5


async def test_the_kinds_of_ignore_files_are_asked_in_order(search, tmp_path):
    plant(
        tmp_path,
        {".gitignore": "a\nb\n", ".ignore": "!a\n", ".rgignore": "!b\nc\n", "c": "foo\n"}
        | {"a": "foo\n", "b": "foo\n"},
    )

    assert sorted(names(await grep(search, tmp_path, "foo"), tmp_path)) == ["a", "b"]


async def test_a_repository_inside_is_ruled_by_the_ignore_files_around_it(search, tmp_path):
    plant(
        tmp_path,
        {
            ".gitignore": "*.log\n",
            "inner/.git/HEAD": "",
            "inner/a.log": "foo\n",
            "inner/b": "foo\n",
        },
    )

    assert names(await grep(search, tmp_path, "foo"), tmp_path) == ["inner/b"]


async def test_ignore_files_above_the_root_count(search, tmp_path):
    plant(tmp_path, {".gitignore": "/sub/gen\n*.tmp\n", "sub/gen/a": "foo\n", "sub/b.tmp": "foo\n"})
    plant(tmp_path, {"sub/c": "foo\n"})

    assert names(await grep(search, tmp_path / "sub", "foo"), tmp_path) == ["sub/c"]


@pytest.mark.parametrize("rule", ["build/", "build/**", "build/*", "/build"])
async def test_a_directory_is_searched_even_if_those_above_ignore_it(search, tmp_path, rule):
    plant(tmp_path, {".gitignore": f"{rule}\n", "build/a.txt": "foo\n", "build/sub/b": "foo\n"})

    found = await grep(search, tmp_path / "build", "foo")

    assert names(found, tmp_path) == ["build/a.txt", "build/sub/b"]


async def test_a_file_named_by_path_is_searched_even_if_ignored(search, tmp_path):
    plant(tmp_path, {".gitignore": "a.log\n", "a.log": "foo\n"})

    found = await grep(search, tmp_path / "a.log", "foo", is_file=True, mode="content")

    assert lines(found, tmp_path) == ["a.log:1:foo"]


async def test_a_second_look_tells_of_matches_in_ignored_files(search, tmp_path):
    plant(tmp_path, {".gitignore": "build/\n*.log\n", "build/a": "foo\nfoo\n", "b.log": "foo\n"})
    plant(tmp_path, {"src.txt": "bar\n"})

    for mode in ("files", "content", "count"):
        (look,) = (await grep(search, tmp_path, "foo", mode=mode)).elsewhere
        assert (look.reason, look.matches, look.files) == ("ignored", 3, 2)
        assert look.example == f"{tmp_path}/b.log"


async def test_a_second_look_tells_of_matches_in_binary_files(search, tmp_path):
    plant(tmp_path, {"a.bin": b"\0\0foo\0", "b.bin": b"\0bar", "c.txt": "bar"})

    found = await grep(search, tmp_path, "foo", mode="content")

    assert [(look.reason, look.files) for look in found.elsewhere] == [("binary", 1)]
    assert found.skipped.binary == 2


async def test_nothing_is_told_of_ignored_files_without_a_match(search, tmp_path):
    plant(tmp_path, {".gitignore": "build/\n", "build/a": "bar\n"})

    found = await grep(search, tmp_path, "foo")

    assert (found.elsewhere, found.skipped.ignored) == ([], 1)


async def test_links_are_not_followed(search, tmp_path):
    plant(tmp_path, {"root/a.txt": "foo\n", "outside/secret.txt": "foo\n"})
    root = tmp_path / "root"
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "leak.txt").symlink_to(tmp_path / "outside/secret.txt")
    (root / "loop").symlink_to(root)

    assert names(await grep(search, root, "foo"), root) == ["a.txt"]


async def test_special_files_do_not_block(search, tmp_path):
    plant(tmp_path, {"a.txt": "foo\n"})
    os.mkfifo(tmp_path / "fifo")

    assert names(await grep(search, tmp_path, "foo", timeout_s=HANG_S), tmp_path) == ["a.txt"]


async def test_names_that_are_no_utf8_or_hold_line_breaks(search, tmp_path):
    plant(tmp_path, {os.fsdecode(b"bad\xff.txt"): "foo\n", "two\n\nlines.txt": "foo\n"})

    for mode in ("files", "count"):
        found = await grep(search, tmp_path, "foo", mode=mode)
        assert sorted(names(found, tmp_path)) == ["bad\udcff.txt", "two\n\nlines.txt"]
    found = await grep(search, tmp_path, "foo", mode="content")
    assert sorted(line.path for line in found.lines) == sorted(
        [f"{tmp_path}/bad\udcff.txt", f"{tmp_path}/two\n\nlines.txt"]
    )


async def test_bytes_that_are_no_utf8_are_shown_replaced(search, tmp_path):
    plant(tmp_path, {"a.txt": b"caf\xe9 foo\n"})

    (line,) = (await grep(search, tmp_path, "foo", mode="content")).lines

    assert line.text == "caf\ufffd foo"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
async def test_marked_encodings_are_read(search, tmp_path, encoding):
    text = "first\nfoo bar\n"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    plant(tmp_path, {"a.txt": (mark + text).encode(encoding)})

    assert lines(await grep(search, tmp_path, "^foo", mode="content"), tmp_path) == [
        "a.txt:2:foo bar"
    ]


async def test_a_long_line_is_shown_around_its_match(search, tmp_path):
    plant(tmp_path, {"a.txt": "x" * 3_000_000 + "needle" + "y" * 3_000_000 + "\n"})

    (line,) = (await grep(search, tmp_path, "needle", mode="content")).lines

    assert line.is_cut
    ((start, end),) = line.ranges
    assert line.text[start:end] == "needle"
    assert line.text == "…" + "x" * 200 + "needle" + "y" * 294 + "…"


async def test_a_line_of_moderate_length_keeps_its_column(search, tmp_path):
    plant(tmp_path, {"a.txt": "x" * 1000 + "needle\n"})

    (line,) = (await grep(search, tmp_path, "needle", mode="content")).lines

    assert (line.column, line.is_cut, line.text.endswith("needle")) == (1001, True, True)


@pytest.mark.parametrize(
    "pattern", ["(", "a)", "[a", "a{", "*a", "(?=x)y", "(?<!x)y", r"\1", "[z-a]", "a\\", r"\y"]
)
async def test_a_pattern_that_cannot_be_read_is_refused(search, tmp_path, pattern):
    plant(tmp_path, {"a.txt": "foo\n"})

    with pytest.raises(BadQuery) as refused:
        await grep(search, tmp_path, pattern)

    assert refused.value.part == "pattern"
    assert "error" in refused.value.diagnostic


@pytest.mark.parametrize("pattern", [r"foo\nbar", r"foo\r\nbar", "foo\r"])
async def test_a_line_break_in_a_pattern_needs_multiline(search, tmp_path, pattern):
    plant(tmp_path, {"a.txt": "foo\nbar\n", "b.txt": "foo\r\nbar\r\n"})

    for mode in ("files", "content"):
        with pytest.raises(BadQuery, match="not allowed in a regex"):
            await grep(search, tmp_path, pattern, mode=mode)
    assert (await grep(search, tmp_path, pattern, multiline=True)).entries


@pytest.mark.parametrize("glob", ["[", "{a", "a[b"])
async def test_a_glob_that_cannot_be_read_is_refused(search, tmp_path, glob):
    plant(tmp_path, {"a.txt": "foo\n"})

    with pytest.raises(BadQuery) as refused:
        await grep(search, tmp_path, "foo", glob=glob)

    assert refused.value.part == "glob"


async def test_what_no_command_line_can_carry_is_refused(search, tmp_path):
    for bad in ("a\0b", "\ud800", "x" * 100_000):
        with pytest.raises(BadQuery):
            await grep(search, tmp_path, bad)


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        (r"\bfoo\b", ["a foo b"]),
        (r"fo{1,2}", ["a foo b", "food"]),
        (r"^foo", ["food"]),
        (r"b$", ["a foo b"]),
        (r"foo|bar", ["a foo b", "food", "bar"]),
        (r"(?i)FOO", ["a foo b", "food"]),
        (r"f(?i:OO)d", ["food"]),
        (r"[[:digit:]]+", ["x12"]),
        (r"\d\d", ["x12"]),
        (r"[^a-z\d ]", ["é_"]),
        (r"\w_", ["é_"]),
        (r"\x66oo", ["a foo b", "food"]),
        (r"a.*b", ["a foo b"]),
        (r"o**d", ["food"]),
        (r"(?P<n>o)(?<m>d)", ["food"]),
        (r"\p{L}_", ["é_"]),
        ("é", ["é_"]),
        (r"\<foo\>", ["a foo b"]),
        (r"", ["a foo b", "food", "bar", "x12", "é_"]),
    ],
)
async def test_the_dialect_is_ripgreps(search, tmp_path, pattern, matching):
    plant(tmp_path, {"a.txt": "a foo b\nfood\nbar\nx12\né_\n"})

    found = await grep(search, tmp_path, pattern, mode="content")

    assert [line.text for line in found.lines] == matching


async def test_what_a_rule_hides_never_appears(search, tmp_path):
    plant(tmp_path, {"secret/a.txt": "foo\n", "b.txt": "foo\n", ".gitignore": "x.log\n"})
    plant(tmp_path, {"x.log": "only here\n"})
    hidden = LocalSearch(hidden=lambda: lambda path: "/secret" in path or path.endswith("x.log"))

    for mode in ("files", "count"):
        found = await grep(hidden, tmp_path, "foo", mode=mode)
        assert (names(found, tmp_path), found.total_files) == (["b.txt"], 1)
    found = await grep(hidden, tmp_path, "foo", mode="content")
    assert (lines(found, tmp_path), found.total_lines) == (["b.txt:1:foo"], 1)
    assert found.skipped.denied
    assert (await grep(hidden, tmp_path, "only here")).elsewhere == []


async def test_all_lines_of_a_long_answer(search, tmp_path):
    plant(tmp_path, {f"f{n:02}": "foo - bar\n" * 500 for n in range(10)})

    found = await grep(search, tmp_path, "foo", mode="content", limit=None)

    assert (found.shown_lines, found.total_lines, len(found.lines)) == (5000, 5000, 1000)
    assert sum(more.text.count("\n") for more in found.more_lines) == 4000
    assert found.more_lines[0].text.startswith("1:foo - bar\n2:foo - bar\n")


async def test_no_time_at_all_still_gives_an_answer(search, tmp_path):
    plant(tmp_path, {f"d{n}/a.txt": "foo\n" for n in range(50)})

    found = await grep(search, tmp_path, "foo", mode="content", timeout_s=0.000_001)

    assert not found.is_complete
    assert found.unvisited


@pytest.mark.proves("FT-16")
@pytest.mark.parametrize("multiline", [False, True])
async def test_the_matching_part_stands_among_the_lines_around_it(search, tmp_path, multiline):
    plant(tmp_path, {"a": "1\n2 foo foo\n3\n4\n5\n6 foo\n", "b": "foo\n"})

    found = await grep(
        search, tmp_path, "fo+", mode="content", only_matching=True, multiline=multiline,
        before=1, after=1,
    )  # fmt: skip

    assert lines(found, tmp_path) == [
        "a-1-1", "a:2:foo", "a:2:foo", "a-3-3", "--", "a-5-5", "a:6:foo", "--", "b:1:foo",
    ]  # fmt: skip
    assert [line.column for line in found.lines if line.is_match and line.line] == [3, 7, 3, 1]


async def test_the_matching_part_looks_the_same_after_the_typed_lines(search, tmp_path):
    plant(tmp_path, {"a": "1:2:foo\n" * 1_500})

    found = await grep(search, tmp_path, "1:2:fo+", mode="content", only_matching=True, limit=None)

    assert found.more_lines[0].text == "".join(f"{n}:1:2:foo\n" for n in range(1_001, 1_501))
