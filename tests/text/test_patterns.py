import contextlib
import fnmatch
import os
import random
import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.gitignore import (
    MAX_PATTERN_CHARS,
    BadGlobPattern,
    IgnoreFile,
    IgnorePattern,
    escape,
)
from handaxe.text.globs import GlobPattern, expand_braces

NAMES = st.text(alphabet="ab.c-", min_size=1, max_size=4).filter(lambda n: n not in {".", ".."})
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
SEGMENT_PATTERNS = (
    st.lists(
        st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]", "[a-c]", "-"]),
        min_size=1,
        max_size=4,
    )
    .map("".join)
    .filter(lambda pattern: pattern not in {".", ".."})
)


@pytest.mark.parametrize(
    ("pattern", "path", "is_dir", "expected"),
    [
        ("a.py", "a.py", False, True),
        ("a.py", "x/y/a.py", False, True),
        ("a.py", "a.pyc", False, False),
        ("/a.py", "a.py", False, True),
        ("/a.py", "x/a.py", False, False),
        ("x/a.py", "x/a.py", False, True),
        ("x/a.py", "y/x/a.py", False, False),
        ("build/", "build", True, True),
        ("build/", "build", False, False),
        ("build/", "x/build", True, True),
        ("*.log", "x/y.log", False, True),
        ("/*.log", "x/y.log", False, False),
        ("x/*.log", "x/y/z.log", False, False),
        ("x/**", "x/y/z", False, True),
        ("x/**", "x", True, False),
        ("**/x", "x", False, True),
        ("**/x", "a/b/x", False, True),
        ("a/**/b", "a/b", False, True),
        ("a/**/b", "a/x/y/b", False, True),
        ("a/**/b", "a/xb", False, False),
        ("**", "anything/at/all", False, True),
        ("a?c", "abc", False, True),
        ("a?c", "a/c", False, False),
        ("[a-c]x", "bx", False, True),
        ("[!a-c]x", "bx", False, False),
        ("[^a-c]x", "dx", False, True),
        ("[]x]", "]", False, True),
        ("[[:digit:]]", "7", False, True),
        ("[z-a]", "m", False, False),
        (r"\*", "*", False, True),
        (r"\*", "x", False, False),
        (r"\!x", "!x", False, True),
        ("a.b", "axb", False, False),
        ("A", "a", False, False),
        ("a[/]b", "a/b", False, False),
    ],
)
def test_an_ignore_pattern_matches_as_git_does(pattern, path, is_dir, expected):
    assert IgnorePattern(pattern).matches(path, is_dir=is_dir) is expected


def test_the_last_line_of_an_ignore_file_decides():
    ignored = IgnoreFile("# note\n*.log\n!keep.log\n\n/out/\n")
    assert ignored.verdict("a.log") is True
    assert ignored.verdict("x/keep.log") is False
    assert ignored.verdict("a.py") is None
    assert ignored.verdict("out", is_dir=True) is True


def test_nothing_comes_back_from_below_an_ignored_directory():
    ignored = IgnoreFile("out/\n!out/keep\n")
    assert ignored.is_ignored("out/keep")
    assert IgnoreFile("out/*\n!out/keep\n").is_ignored("out/keep") is False


def test_an_ignore_file_leaves_out_lines_that_are_no_pattern():
    ignored = IgnoreFile("[unclosed\nlone\\\n!\n/\n   \n\ufeffx\ny\r\nz  \nw\\ \n")
    assert not ignored.is_ignored("unclosed")
    assert ignored.is_ignored("y")
    assert ignored.is_ignored("z")
    assert ignored.is_ignored("w ")


def test_ignore_files_agree_with_git_on_random_trees(tmp_path):
    rng = random.Random(20)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in (random_path(rng) for _ in range(120)):
        file = tmp_path / name
        if not any(parent.is_file() for parent in file.parents) and not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    tree = [
        (os.path.relpath(os.path.join(root, name), tmp_path), name in directories)
        for root, directories, files in os.walk(tmp_path)
        for name in (*directories, *files)
        if ".git" not in Path(root).parts and name != ".git"
    ]
    for _ in range(60):
        text = "".join(random_line(rng) + "\n" for _ in range(rng.randint(1, 5)))
        (tmp_path / ".gitignore").write_text(text)
        expected = ignored_by_git(tmp_path, [path for path, _ in tree])
        ours = IgnoreFile(text)
        found = {path for path, is_dir in tree if ours.is_ignored(path, is_dir=is_dir)}
        assert found == expected, text


def random_path(rng):
    names = ["a", "b", "ab", "a.b", "ba", "c d", "[x]", "a]"]
    return "/".join(rng.choice(names) for _ in range(rng.randint(1, 4)))


def random_line(rng):
    pieces = ["a", "b", "*", "?", "[ab]", "[!a]", "[a-c]", ".", "c", " ", "\\a", "**", "\\*", "["]
    segments = [
        "**" if rng.random() < 0.25 else "".join(rng.choices(pieces, k=rng.randint(1, 3)))
        for _ in range(rng.randint(1, 4))
    ]
    return (
        rng.choice(["", "", "!"])
        + rng.choice(["", "", "/"])
        + "/".join(segments)
        + rng.choice(["", "", "/"])
    )


def ignored_by_git(root, paths):
    answer = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "check-ignore", "-z", "--stdin", "--no-index"],
        cwd=root,
        input="\0".join(paths) + "\0",
        capture_output=True,
        text=True,
        check=False,
    )
    return set(answer.stdout.split("\0")) - {""}


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("src/**", "src/deep/a.py", True),
        ("src/**", "src", False),
        ("**", "src/a.py", True),
        ("*", ".hidden", True),
        ("*.{py,js}", "a.js", True),
        ("*.{py,js}", "a.ts", False),
        ("{src,test/{unit,e2e}}/*.py", "test/e2e/a.py", True),
        ("{src,test/{unit,e2e}}/*.py", "test/a.py", False),
        ("{a,}b", "b", True),
        (r"\{a\}", "{a}", True),
        ("[{]a", "{a", True),
        ("[!ab]", "c", True),
        ("[!ab]", "a", False),
        ("A.py", "a.py", False),
        ("./src/../lib/*.py", "lib/a.py", True),
        ("/repo/src/*.py", "/repo/src/a.py", True),
        ("/repo/src/*.py", "repo/src/a.py", False),
        ("/**/*.py", "/x/a.py", True),
        ("a**b", "axxb", True),
        ("a**b", "a/b", False),
    ],
)
def test_a_glob_matches_from_the_search_directory(pattern, path, expected):
    assert GlobPattern(pattern).matches(path) is expected


def test_a_glob_that_ends_in_a_slash_names_directories():
    assert GlobPattern("src/").matches("src", is_dir=True)
    assert not GlobPattern("src/").matches("src")


@pytest.mark.parametrize(
    ("pattern", "directory", "max_depth"),
    [
        ("*.py", "", 1),
        ("src/*.py", "src", 2),
        ("src/app/**/*.py", "src/app", None),
        ("src/a.py", "src", 2),
        ("{src,test}/*.py", "", 2),
        ("src/{a,b}/*.py", "src", 3),
        ("src/{a,b/c}.py", "src", 3),
        ("/repo/x/*", "/repo/x", 3),
        ("/*", "/", 1),
        (r"a\*b/c", "a*b", 2),
        ("**", "", None),
    ],
)
def test_a_glob_knows_where_a_walk_starts_and_ends(pattern, directory, max_depth):
    glob = GlobPattern(pattern)
    assert (glob.literal_directory, glob.max_depth) == (directory, max_depth)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "[a",
        "a\\",
        "{a",
        "a}",
        "{a,b",
        "a\0b",
        "[[:nothing:]]",
        "../*.py",
        "*/../x",
        "{/a,b}",
        ".",
        "/",
        "x" * (MAX_PATTERN_CHARS + 1),
        "{a,b}" * 10,
        "{" * 2000,
    ],
)
def test_a_bad_glob_is_refused_with_a_sentence(pattern):
    with pytest.raises(BadGlobPattern) as refused:
        GlobPattern(pattern)
    assert refused.value.sentence.startswith("The pattern ")
    assert refused.value.sentence.endswith(".")
    assert len(refused.value.sentence) < 300


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/**/**/*a*a*a*a*a*a*a*a*b", "/".join(["a" * 200] * 20)),
        ("*a" * 100 + "*b", "a" * 3000),
        ("**/a/" * 50 + "**/b", "a/" * 1500 + "c"),
        ("**/*a*a*/" * 30 + "b", "aaaa/" * 600 + "c"),
        ("?" * 200 + "*" * 200 + "b", "a" * 3000),
        ("**/" * 500 + "x", "a/" * 1500 + "y"),
        ("[!b]*" * 300 + "b", "a" * 3000),
        ("{*a*,*b*,*c*}{*a*,*b*,*c*}{*a*,*b*,*c*}d", "abc" * 1000),
    ],
)
@pytest.mark.timeout(10)
def test_no_pattern_makes_a_match_explode(pattern, path):
    assert not GlobPattern(pattern).matches(path)


@given(SEGMENT_PATTERNS, NAMES)
def test_a_single_segment_agrees_with_fnmatch(pattern, name):
    expected = fnmatch.fnmatchcase(name, pattern)
    assert GlobPattern(f"x/{pattern}").matches(f"x/{name}") is expected
    assert IgnorePattern(f"x/{pattern}").matches(f"x/{name}") is expected


@given(st.lists(SEGMENT_PATTERNS, min_size=1, max_size=4), PATHS)
def test_a_glob_without_deep_stars_agrees_with_pathlib(segments, path):
    segments = [re.sub(r"\*+", "*", segment) for segment in segments]
    pattern = "/".join(segments)
    same_depth = len(PurePosixPath(path).parts) == len(segments)
    expected = same_depth and PurePosixPath(path).match(pattern)
    assert GlobPattern(pattern).matches(path) is expected


@given(
    st.lists(st.one_of(st.just("**"), SEGMENT_PATTERNS), min_size=1, max_size=6),
    PATHS,
)
def test_deep_stars_agree_with_a_plain_recursive_matcher(segments, path):
    segments = [part if part == "**" else re.sub(r"\*+", "*", part) for part in segments]
    expected = matches_slowly(segments, path.split("/"))
    assert GlobPattern("/".join(segments)).matches(path) is expected


def matches_slowly(segments, names):
    if not segments:
        return not names
    head, *rest = segments
    if head != "**":
        fits = bool(names) and fnmatch.fnmatchcase(names[0], head)
        return fits and matches_slowly(rest, names[1:])
    if not rest:
        return bool(names)
    return any(matches_slowly(rest, names[skip:]) for skip in range(len(names) + 1))


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_refused(text):
    for kind in (GlobPattern, IgnorePattern):
        with contextlib.suppress(BadGlobPattern):
            kind(text).matches("a/b")
    IgnoreFile(text).is_ignored("a/b")


@given(st.text(min_size=1, max_size=20).filter(lambda name: "/" not in name and "\0" not in name))
def test_an_escaped_name_matches_itself_and_nothing_near(name):
    if name in {".", ".."}:
        return
    pattern = GlobPattern(f"x/{escape(name)}")
    assert pattern.matches(f"x/{name}")
    assert not pattern.matches(f"x/{name}x")


def brace_groups(inner):
    return st.lists(inner, min_size=1, max_size=3).map(lambda items: "{" + ",".join(items) + "}")


@given(st.recursive(st.sampled_from(["a", "b", "c"]), brace_groups))
def test_braces_expand_to_every_choice(pattern):
    as_regex = pattern.replace("{", "(?:").replace("}", ")").replace(",", "|")
    assert all(re.fullmatch(as_regex, spelling) for spelling in expand_braces(pattern))
