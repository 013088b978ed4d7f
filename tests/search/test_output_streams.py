"""ripgrep's output means the same however it is cut into pieces."""

from hypothesis import given
from hypothesis import strategies as st

from handaxe.contract.ports.search import TextQuery
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.match_lines import LineReader, crop_to_matches
from handaxe.search.pagination import LinePage, UnorderedLines
from handaxe.search.rg_arguments import MatchMarks
from handaxe.search.rg_output import (
    MAX_LINE_BYTES,
    CountStream,
    HeadingStream,
    PathStream,
    make_path_key,
)

MARKS = MatchMarks(b"\x1dS\x1d", b"\x1dE\x1d", b"\x1dG\x1d")
OUTPUT = (
    b"./a.txt\x001:one \x1dS\x1dfoo\x1dE\x1d\r\n5-context\n--\r\n9:last\n\r\n"
    b"./dir/two\n\nlines\x003:x\n\n"
    b"./c\x007:end\n"
)
FILES = {
    b"a.txt": b"1:one \x1dS\x1dfoo\x1dE\x1d\r\n5-context\n--\r\n9:last\n",
    b"dir/two\n\nlines": b"3:x\n",
    b"c": b"7:end\n",
}

cuts = st.lists(st.integers(0, len(OUTPUT)), max_size=12).map(sorted)


def pieces(data: bytes, places: list[int]):
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        yield data[start:end]


@given(cuts)
def test_files_and_lines_do_not_depend_on_the_pieces(places):
    taken: dict[bytes, bytes] = {}

    def take(path: bytes, body: bytes) -> bool:
        taken[path] = taken.get(path, b"") + body
        assert body.endswith(b"\n")
        return False

    stream = HeadingStream(take, MARKS)
    for piece in pieces(OUTPUT, places):
        if piece:
            stream.feed(piece)
    stream.finish()

    assert taken == FILES


@given(cuts)
def test_paths_and_counts_do_not_depend_on_the_pieces(places):
    paths: list[bytes] = []
    pairs: list[tuple[bytes, int]] = []
    listed = PathStream(lambda found: bool(paths.extend(found)))
    counted = CountStream(lambda found: bool(pairs.extend(found)))
    for piece in pieces(b"./a\0./b\nc\0", [place // 12 for place in places]):
        listed.feed(piece)
    for piece in pieces(b"./a\x0012\r\n./b\nc\x003\n", [place // 6 for place in places]):
        counted.feed(piece)

    assert paths == [b"a", b"b\nc"]
    assert pairs == [(b"a", 12), (b"b\nc", 3)]


def test_an_endless_line_is_never_kept_whole():
    taken: list[bytes] = []
    stream = HeadingStream(lambda _, body: bool(taken.append(body)), MARKS)
    stream.feed(b"./a\x0012:")
    for _ in range(40):
        stream.feed(b"x" * 100_000)
        assert len(stream._rest) < 3 * MAX_LINE_BYTES
    stream.feed(b"\x1dS\x1dfoo\x1dE\x1d")
    for _ in range(40):
        stream.feed(b"y" * 100_000)
        assert len(stream._rest) < 3 * MAX_LINE_BYTES
    stream.feed(b"\n")
    stream.finish()

    (line,) = LineReader("/r/", MARKS, has_columns=False).read([(b"a", b"".join(taken))])[0]
    assert (line.path, line.line, line.is_cut, line.column) == ("/r/a", 12, True, None)
    ((start, end),) = line.ranges
    assert line.text[start:end] == "foo"
    assert len(b"".join(taken)) < MAX_LINE_BYTES


def test_paths_are_ordered_part_by_part():
    paths = [b"a-b/f", b"a/f", b"a.c", b"a"]

    assert sorted(paths, key=make_path_key) == [b"a", b"a/f", b"a-b/f", b"a.c"]


@given(st.text(min_size=501, max_size=900), st.data())
def test_a_window_shows_the_first_match(text, data):
    start = data.draw(st.integers(0, len(text) - 2))
    end = data.draw(st.integers(start + 1, min(len(text), start + 250)))

    shown, ranges = crop_to_matches(text, [(start, end)])

    assert len(shown) <= 502
    assert shown[slice(*ranges[0])] == text[start:end]


blocks = st.lists(
    st.tuples(st.sampled_from([b"a", b"a/b", b"a-b", b"b/c", b"c", b"secret"]), st.integers(1, 5)),
    max_size=40,
)


@given(blocks, st.integers(0, 12), st.integers(1, 12))
def test_a_pile_holds_the_page_in_whatever_order_files_come(taken, offset, limit):
    query = TextQuery(pattern="x", root="/", mode="content", offset=offset, limit=limit)
    screen = ExclusionFilter("/", denies=lambda path: path == "/secret")
    pile = UnorderedLines(query.end, screen)
    whole: dict[bytes, bytes] = {}
    for path, count in taken:
        first = whole.get(path, b"").count(b"\n") + 1
        body = b"".join(b"%d:x\n" % number for number in range(first, first + count))
        whole[path] = whole.get(path, b"") + body
        assert not pile.take(path, body)
    page, expected = LinePage(query, None), LinePage(query, screen)

    pile.flush_to(page)
    for path in sorted(whole, key=make_path_key):
        if expected.take(path, whole[path]):
            break

    assert b"".join(body for _, body in page.blocks) == b"".join(b for _, b in expected.blocks)
    assert page.has_more == expected.has_more == pile.is_overfull
