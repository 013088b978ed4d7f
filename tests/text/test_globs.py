"""What a walk may leave out because no match can lie there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.globs import GlobPattern

names = st.text(alphabet="abc.", min_size=1, max_size=3).filter(lambda name: name.strip("."))
parts = st.sampled_from(["a", "b", "*", "**", "a*", "[ab]", "{a,b/c}", "*.c"])


@given(
    st.lists(parts, min_size=1, max_size=4).map("/".join), st.lists(names, min_size=1, max_size=5)
)
def test_no_directory_above_a_match_is_left_out(text, path):
    pattern = GlobPattern(text)
    if pattern.matches("/".join(path)):
        assert all(pattern.can_match_below("/".join(path[:depth])) for depth in range(len(path)))
        assert path[-1].endswith(pattern.endings)


@pytest.mark.parametrize(
    ("text", "directory", "expected"),
    [
        ("src/*/a.py", "src", True),
        ("src/*/a.py", "lib", False),
        ("src/*/a.py", "src/x/y", False),
        ("src/**/a.py", "src/x/y", True),
        ("*.py", "src", False),
        ("{src,lib}/x/*", "lib/x", True),
        ("{src,lib}/x/*", "lib/y", False),
        ("/abs/**", "/abs/x", True),
        ("/abs/**", "/other", False),
    ],
)
def test_directories_that_cannot_hold_a_match_are_left_out(text, directory, expected):
    assert GlobPattern(text).can_match_below(directory) is expected


@pytest.mark.parametrize(
    ("pattern", "everywhere", "by_ending"),
    [
        ("**/*.py", True, True),
        ("**", True, True),
        ("src/**", True, True),
        ("src/**/*.{ts,tsx}", True, True),
        ("/abs/**/*", True, True),
        ("**/a*.py", True, False),
        ("**/x/*.py", True, False),
        ("**/name", True, False),
        ("src/*.py", False, False),
        ("{src,lib}/**/*.py", False, False),
        ("*.py", False, False),
    ],
)
def test_shortcuts_are_taken_only_where_they_hold(pattern, everywhere, by_ending):
    glob = GlobPattern(pattern)

    assert (glob.goes_everywhere, glob.endings_decide) == (everywhere, by_ending)
