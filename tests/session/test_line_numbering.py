"""Numbers of lines after a session's own changes: where a shown line may be now."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.contract.ports.files import FileVersion
from handaxe.session.line_numbering import LineNumberHistory, join_tags
from handaxe.session.read_ledger import LineChange, ReadLedger


def version(digest: str) -> FileVersion:
    return FileVersion("/a", digest, 1, 1)


def lines(numbering: LineNumberHistory | ReadLedger, *key: Any) -> list[int | str] | None:
    """What a number may stand for, up to the newest that was shown: lines, or tags of the gone."""
    meanings = numbering.find_candidates(*key)
    found: list[int | str] = []
    for meaning in meanings.lines:
        found.append(meaning.gone if meaning.line is None else meaning.line)
        if meaning.is_shown:
            return found
    assert not meanings.is_complete
    return None


@pytest.mark.proves("FT-19")
def test_a_number_may_mean_the_line_it_is_and_the_lines_it_was():
    numbering = LineNumberHistory()
    numbering.move([(5, 0, 2, "")])
    assert lines(numbering, 4) == [4, 4]
    assert lines(numbering, 5) == [5, 7]
    numbering.move([(1, 2, 1, "a2b3"), (10, 1, 3, "c4")])
    # Line 5 of today's numbering, of the second, and of the first.
    assert lines(numbering, 5) == [5, 4, 6]
    assert lines(numbering, 2) == [2, "b3", "b3"]
    assert lines(numbering, 10) == [10, "c4", 13]


def test_lines_that_are_shown_again_mean_themselves():
    numbering = LineNumberHistory()
    numbering.move([(1, 0, 1, "")])
    numbering.show(10, 20)
    assert lines(numbering, 15) == [15]
    assert lines(numbering, 21) == [21, 22]
    numbering.move([(15, 1, 2, "a2")])
    # What was shown first is still known, in case it is meant by its tag.
    assert [m.line for m in numbering.find_candidates(15).lines] == [15, None, 17]
    numbering.reset()
    assert lines(numbering, 15) is None
    numbering.show(10, 20)
    assert lines(numbering, 15) == [15]
    assert lines(numbering, 21) is None


def test_changes_that_move_nothing_change_no_number():
    numbering = LineNumberHistory()
    numbering.move([(1, 2, 2, join_tags(["a", "b"])), (7, 1, 1, join_tags(["c"]))])
    assert lines(numbering, 9) == [9, 9]
    assert lines(numbering, 2) == [2, join_tags(["b"])]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 3)), max_size=5))
def test_a_line_that_was_shown_is_always_followed(moves):
    numbering = LineNumberHistory()
    content = list(range(10))
    for wanted, most, came in moves:
        at = min(wanted, len(content))
        went = min(most, len(content) - at)
        content[at : at + went] = [-1] * came
        numbering.move([(at + 1, went, came, "a2" * went)])
        for line in range(10):
            shown = numbering.find_candidates(line + 1).lines[-1]
            assert shown.is_shown
            assert shown.line == (content.index(line) + 1 if line in content else None)


def test_the_ledger_knows_numbers_only_of_files_that_were_shown_with_tags():
    announced = []
    ledger = ReadLedger(announced.append)
    ledger.record_read(version("1"), total_lines=9)
    ledger.record_edit(version("2"), [LineChange(1, 0, 1)], content=None)
    assert lines(ledger, "/a", 5) == [5]
    assert [event.moved for event in announced] == [None, None]
    ledger.record_read(version("2"), total_lines=10, shown=(1, 10))
    ledger.record_edit(version("3"), [LineChange(1, 0, 1)], content=None)
    assert lines(ledger, "/a", 5) == [5, 6]
    ledger.record_read(version("3"), total_lines=11, lines=(4, 6), shown=(4, 6))
    assert lines(ledger, "/a", 5) == [5]
    assert lines(ledger, "/a", 7) == [7, 8]
    again = ReadLedger()
    for event in announced:
        again.replay(event)
    assert lines(again, "/a", 5) == [5]
    assert lines(again, "/a", 7) == [7, 8]
    # Somebody else's content: nothing is known but what is shown of it.
    ledger.record_read(version("4"))
    assert lines(ledger, "/a", 5) is None
    ledger.record_read(version("5"), total_lines=20, lines=(5, 6), shown=(5, 6))
    assert lines(ledger, "/a", 5) == [5]
    assert lines(ledger, "/a", 7) is None
    ledger.record_read(version("5"), total_lines=20, shown=(1, 20))
    assert lines(ledger, "/a", 7) == [7]
    ledger.forget("/a")
    assert lines(ledger, "/a", 7) == [7]
