"""Which file versions a session has seen."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.expected_types import require

from handaxe.contract.ports.files import FileVersion
from handaxe.session.read_ledger import KEPT_CONTENT_BYTES, LineChange, ReadLedger, merge, shift

RANGES = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 10)), max_size=6).map(
    lambda pairs: [(first, first + length) for first, length in pairs]
)


def lines_of(ranges):
    return {line for first, last in ranges for line in range(first, last + 1)}


def version(digest="a", path="/p/a"):
    return FileVersion(path, digest, 1, 1)


@given(RANGES)
def test_merged_ranges_hold_the_same_lines_in_order_and_apart(ranges):
    merged = merge(*ranges)
    assert lines_of(merged) == lines_of(ranges)
    assert all(a[1] + 1 < b[0] for a, b in pairwise(merged))


@given(RANGES.filter(bool), st.integers(1, 50), st.integers(0, 5), st.integers(0, 5))
def test_an_edit_moves_what_was_seen_and_adds_what_was_written(ranges, first, gone, come):
    shifted = lines_of(shift(merge(*ranges), LineChange(first, gone, come)))
    before = {line for line in lines_of(ranges) if line < first}
    after = {line - gone + come for line in lines_of(ranges) if line >= first + gone}
    assert shifted == before | after | set(range(first, first + come))


def test_windows_of_one_version_add_up_and_a_new_version_starts_again():
    ledger = ReadLedger()
    ledger.record_read(version(), total_lines=4, lines=(1, 2))
    assert not require(ledger.find("/p/a")).is_whole
    ledger.record_read(version(), total_lines=4, lines=(3, 4))
    assert require(ledger.find("/p/a")).is_whole
    ledger.record_read(version("b"), total_lines=4, lines=(1, 2))
    assert not require(ledger.find("/p/a")).is_whole


def test_a_file_seen_whole_stays_whole_when_a_part_is_read_again():
    ledger = ReadLedger()
    ledger.record_read(version(), total_lines=4)
    ledger.record_read(version(), total_lines=4, lines=(2, 2))
    assert require(ledger.find("/p/a")).is_whole


def test_nothing_is_announced_twice():
    heard = []
    ledger = ReadLedger(heard.append)
    for _ in range(3):
        ledger.record_read(version(), total_lines=4, lines=(1, 2))
    assert len(heard) == 1


def test_a_ledger_rebuilt_from_its_announcements_is_the_same():
    heard = []
    ledger = ReadLedger(heard.append)
    ledger.record_read(version("a", "/p/a"), total_lines=9, lines=(1, 2))
    ledger.record_read(version("b", "/p/b"), total_lines=9)
    ledger.record_edit(version("c", "/p/a"), [LineChange(1, 1, 3)], content=None)
    ledger.forget("/p/b")
    rebuilt = ReadLedger()
    for event in heard:
        rebuilt.replay(event)
    for path in ("/p/a", "/p/b"):
        assert rebuilt.find(path) == ledger.find(path)


def test_kept_contents_are_bounded():
    ledger = ReadLedger()
    for number in range(100):
        ledger.record_read(version("a", f"/p/{number}"), content=b"x" * 200_000)
    kept = [number for number in range(100) if ledger.content(f"/p/{number}")]
    assert len(kept) * 200_000 <= KEPT_CONTENT_BYTES
    assert kept[-1] == 99
