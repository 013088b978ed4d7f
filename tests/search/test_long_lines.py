"""Files with very long lines are searched in pieces, with the answer of a search of the whole."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_tree import counts, grep, lines, names, plant

from handaxe.contract.ports.search import TextQuery
from handaxe.search.deadline import SearchCancelled, SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.long_lines import (
    LONG_LINE_BYTES,
    OVERLAP_BYTES,
    WINDOW_BYTES,
    WINDOWS_AT_A_TIME,
    LongLine,
    Pieces,
    find_long_files,
)
from handaxe.search.rg.chunked_search import ChunkedSearch, PieceSearch
from handaxe.search.rg.rg_binary import find_ripgrep
from handaxe.search.rg.ripgrep import Ripgrep
from handaxe.search.rg_arguments import MatchMarks
from handaxe.search.walk.root import SearchPlace

RG = find_ripgrep(()) or pytest.fail("the tests need ripgrep")
MEGABYTE = 1 << 20
MOST_MB = 40
MEASURED = """
import asyncio, json, resource, sys
from pathlib import Path
from handaxe import Session

async def main():
    folder = Path(sys.argv[1])
    async with Session(folder / "tree", home=folder / "home") as session:
        idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        texts = []
        for options in json.loads(sys.argv[2]):
            result = await session.call("Grep", {"pattern": ".", **options})
            texts.append(result.text[:2000])
        ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps([idle / 1024, ours / 1024, children / 1024, texts]))

asyncio.run(main())
"""


def search_in_pieces(root: Path, pattern: str, **query):
    """An answer in which every file with a long line is searched in pieces."""
    whole = TextQuery(pattern=pattern, root=str(root), **query)
    watch = SearchDeadline(whole.timeout_s)
    with SearchPlace(str(root), is_file=False, respect_ignore=True) as place:
        search = Ripgrep(RG, whole, place, watch, ExclusionFilter(str(root)))
        search._launch.find_long_lines()
        assert search._launch.long_files
        return search.answer()


LONG = "x" * 100_000 + " needle " + "y" * 100_000 + " needle"
TREE = {
    "a.txt": "needle\n",
    "long.txt": f"first needle\nhay\n{LONG}\nlast\nthe needle\n",
    "z.txt": "hay\nneedle\n",
}


@pytest.mark.parametrize("mode", ["files", "count", "content"])
@pytest.mark.parametrize("options", [{}, {"multiline": True}, {"ignore_case": True}, {"limit": 2}])
@pytest.mark.parametrize("pattern", ["needle", "^x", "needle$", "no such thing", "^first|^last"])
def test_pieces_give_the_answer_of_the_whole(tmp_path, mode, options, pattern):
    root = plant(tmp_path, TREE)
    query = {"mode": mode, "root": str(root), "pattern": pattern, **options}
    with SearchPlace(str(root), is_file=False, respect_ignore=True) as place:
        whole = Ripgrep(
            RG, TextQuery(**query), place, SearchDeadline(20), ExclusionFilter(str(root))
        ).answer()

    cut = search_in_pieces(root, pattern, mode=mode, **options)

    assert names(cut, root) == names(whole, root)
    assert counts(cut, root) == counts(whole, root)
    assert [(x.path, x.line) for x in cut.lines] == [(x.path, x.line) for x in whole.lines]
    assert [x.text for x in cut.lines if not x.is_cut] == [
        x.text for x in whole.lines if not x.is_cut
    ]
    assert (cut.has_more, cut.is_complete) == (whole.has_more, True)


def test_a_window_shows_the_first_match_of_a_long_line(tmp_path):
    root = plant(tmp_path, TREE)

    found = search_in_pieces(root, "needle", mode="content", glob="long.txt")

    first, long, last = found.lines
    assert [first.text, last.text] == ["first needle", "the needle"]
    assert (long.line, long.is_cut, long.text.count("needle")) == (3, True, 1)
    (start, end), *_ = long.ranges
    assert long.text[start:end] == "needle"
    assert long.text.startswith("…x")


def test_every_matching_part_of_a_long_line_is_told_once_with_its_column(tmp_path):
    line = "é" * 60_000 + "needle" + "é" * 40_000 + "needle"
    root = plant(tmp_path, {"long.txt": f"{line}\n"})

    found = search_in_pieces(root, "needle", mode="content", only_matching=True)

    assert [(x.line, x.column, x.text) for x in found.lines] == [
        (1, 60_001, "needle"),
        (1, 100_007, "needle"),
    ]


@pytest.mark.parametrize("pattern", [".", "e+", "needle", "^x", "needle$"])
async def test_a_search_of_the_whole_shows_the_same_lines(search, tmp_path, pattern):
    root = plant(tmp_path, TREE)

    for mode in ("files", "count"):
        cut = search_in_pieces(root, pattern, mode=mode)
        found = await grep(search, root, pattern, mode=mode)
        assert (names(found, root), counts(found, root)) == (names(cut, root), counts(cut, root))
    cut = search_in_pieces(root, pattern, mode="content")
    found = await grep(search, root, pattern, mode="content")
    assert lines(found, root) == lines(cut, root)


def test_a_long_line_that_fits_in_no_memory_is_found_by_itself(tmp_path):
    files = {"long": b"a" * 200_000, "binary": b"a" * 200_000 + b"\0", "lines": b"a\n" * 100_000}
    wide = "a" * 100_000
    plant(tmp_path, {**files, "wide": wide.encode("utf-16"), "nul": b"\0" + b"a" * 200_000})
    fd = os.open(tmp_path, os.O_RDONLY)

    found = find_long_files([*files, "wide", "nul", "gone"], fd, SearchDeadline(20))

    os.close(fd)
    assert found == ["long", "binary"]


lengths = st.sampled_from(
    [0, 1, 80, LONG_LINE_BYTES - 1, LONG_LINE_BYTES, LONG_LINE_BYTES + 1, 3 * WINDOW_BYTES, 300_000]
)


@given(st.lists(st.tuples(lengths, st.sampled_from(["a", "é", "𝄞"])), max_size=6), st.booleans())
def test_pieces_hold_every_byte_once_and_windows_what_is_around(parts, has_end):
    text = "\n".join(char * (length // len(char.encode())) for length, char in parts)
    data = text.encode() + (b"\n" if has_end else b"")
    fd = os.memfd_create("pieces")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    told: dict[int, bytes] = {}

    for piece in Pieces(fd, encoding=None, most_bytes=1 << 18):
        if isinstance(piece, LongLine):
            for window in piece.windows:
                window.data.decode()
                own = window.data[window.begin : window.end]
                assert window.begin in {0, *range(OVERLAP_BYTES, OVERLAP_BYTES + 4)}
                assert window.column == len(told.get(piece.line, b"").decode()) - len(
                    window.data[: window.begin].decode()
                )
                told[piece.line] = told.get(piece.line, b"") + own
        else:
            whole = piece.data.removesuffix(b"\n").split(b"\n")
            told.update(enumerate(whole, piece.first_line))

    os.close(fd)
    expected = data.removesuffix(b"\n").split(b"\n") if data else []
    assert [told[line] for line in sorted(told)] == expected


class Interrupted(PieceSearch):
    """Finds nothing, and ends the search meanwhile."""

    whole_bytes = 1 << 18

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end
        self.searched = 0

    def bodies(self, texts: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        self.searched += len(texts)
        self._end()
        return iter(())

    def count(self, text: bytes) -> int:
        return 0


def interrupted(
    root: Path, watch: SearchDeadline, end: Callable[[], object]
) -> tuple[ChunkedSearch, Interrupted]:
    (root / "long").write_bytes(b"a" * 16 * MEGABYTE)
    pieces = Interrupted(end)
    query = TextQuery(pattern="x", root=str(root), mode="count")
    fd = os.open(root, os.O_RDONLY)
    return ChunkedSearch(query, MatchMarks.create(), pieces, fd, watch), pieces


def test_a_cancelled_search_goes_to_the_end_of_no_long_line(tmp_path):
    watch = SearchDeadline(20)
    search, pieces = interrupted(tmp_path, watch, watch.cancel)

    with pytest.raises(SearchCancelled):
        search.count("long")

    os.close(search._directory)
    assert pieces.searched == WINDOWS_AT_A_TIME


def test_a_long_line_is_left_when_the_time_is_up(tmp_path):
    watch = SearchDeadline(20)
    search, pieces = interrupted(tmp_path, watch, lambda: setattr(watch, "_ends_at", 0))

    assert search.count("long") == 0

    os.close(search._directory)
    assert (pieces.searched, search.is_complete) == (WINDOWS_AT_A_TIME, False)


def test_a_line_of_four_megabytes_takes_little_memory(tmp_path):
    (tmp_path / "tree").mkdir()
    line = b"abcdefgh xyz 123" * (4 * MEGABYTE // 16)
    (tmp_path / "tree/long.txt").write_bytes(b"first\n" + line + b"\nlast\n")
    content = {"output_mode": "content"}
    options = [content, {**content, "-o": True}, {**content, "multiline": True}, {}]
    command = [sys.executable, "-c", MEASURED, str(tmp_path), json.dumps(options)]

    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    idle, ours, children, texts = json.loads(said)

    assert "long.txt:2:abcdefgh" in texts[0]
    assert ours - idle < MOST_MB
    # A child has the memory of its parent until it becomes ripgrep.
    assert children < max(ours, MOST_MB)
