"""Counts read well for people and models, for one as for many."""

import pytest

from handaxe.text.escape import format_count


@pytest.mark.parametrize(
    ("number", "thing", "said"),
    [
        (0, "file", "0 files"),
        (1, "file", "1 file"),
        (2_000, "file", "2,000 files"),
        (3, "match", "3 matches"),
        (1, "directory", "1 directory"),
        (2, "directory", "2 directories"),
        (2, "day", "2 days"),
        (2, "more line", "2 more lines"),
    ],
)
def test_one_is_one_and_all_else_is_many(number: int, thing: str, said: str):
    assert format_count(number, thing) == said
