import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.rules.grammar import PermissionRule, parse_rule
from handaxe.rules.path_scopes import (
    Anchors,
    PathIndex,
    compile_scopes,
    split_path,
    suggest_scope,
)
from handaxe.rules.tool_families import Behaviour
from handaxe.text.paths import is_inside, normalize

ANCHORS = Anchors(project_root="/repo", cwd="/repo", home="/home/dev")
NAMES = st.sampled_from(["a", "b", "src", "x.py", "y.key", ".env", "a.b.py", "*", "[a]"])
PATHS = st.lists(NAMES, min_size=0, max_size=5).map(lambda names: "/" + "/".join(names))
PATTERNS = st.tuples(
    st.sampled_from(["", "./", "/", "//", "~/"]),
    st.lists(
        st.sampled_from(["a", "b", "src", "**", "*", "*.py", "x.*", "?", "[ab]", "..", ".", "*a*"]),
        min_size=1,
        max_size=4,
    ).map("/".join),
    st.sampled_from(["", "", "/", "/**"]),
).map("".join)


def covers(pattern, path, behaviour: Behaviour = "deny", anchors=ANCHORS, root=None):
    rule = PermissionRule("Read", pattern, "", behaviour, root=root)
    scopes, _ = compile_scopes(rule, anchors)
    return PathIndex(scopes).find(split_path(path)) is rule


@pytest.mark.parametrize(
    ("pattern", "path", "denies", "allows"),
    [
        # Anchors.
        ("//etc/passwd", "/etc/passwd", True, True),
        ("//etc/**", "/etc/ssl/cert", True, True),
        ("//etc/**", "/etcetera", False, False),
        ("//etc/**", "/etc", True, True),
        ("//**", "/", True, True),
        ("//**", "/any/thing", True, True),
        ("//**/.env", "/any/thing/.env", True, True),
        ("~/.ssh/**", "/home/dev/.ssh/id", True, True),
        ("~/.ssh/**", "/home/devil/.ssh/id", False, False),
        ("~/notes", "/home/dev/notes/a", True, True),
        ("~/notes", "/home/dev/x/notes", False, False),
        ("/src/**", "/repo/src/a.py", True, True),
        ("/src/**", "/repo/src", True, True),
        ("/src/**", "/repo/lib/src/a.py", False, False),
        ("/src/**", "/repo/src-evil/a.py", False, False),
        ("/src/**", "/src/a.py", False, False),
        ("/a.py", "/repo/a.py", True, True),
        ("/a.py", "/repo/x/a.py", False, False),
        ("/*.py", "/repo/a.py", True, True),
        ("/*.py", "/repo/x/a.py", False, False),
        # Relative to the session's directory.
        ("src/a.py", "/repo/src/a.py", True, True),
        ("src/a.py", "/repo/x/src/a.py", False, False),
        ("src/lib/**", "/repo/src/lib/x", True, True),
        ("src/lib/**", "/repo/x/src/lib/x", False, False),
        ("./src/a.py", "/repo/src/a.py", True, True),
        ("../other/**", "/other/x", True, True),
        ("../other/**", "/repo/other/x", False, False),
        ("src/../lib/a", "/repo/lib/a", True, True),
        ("*/../lib/a", "/repo/lib/a", False, False),
        # Bare names at any depth below it.
        (".env", "/repo/.env", True, True),
        (".env", "/repo/deep/down/.env", True, True),
        (".env", "/elsewhere/.env", False, False),
        ("*.key", "/repo/deep/x.key", True, True),
        ("*.key", "/repo/x.keys", False, False),
        ("node_modules", "/repo/a/node_modules/b/c.js", True, True),
        ("**/x.py", "/repo/a/b/x.py", True, True),
        ("**", "/repo/a", True, True),
        ("**", "/repo", True, True),
        ("**", "/other", False, False),
        ("/*", "/repo/a/b", True, True),
        # One directory and its content: narrow to allow, wide to deny.
        ("dir/**", "/repo/dir/x", True, True),
        ("dir/**", "/repo/sub/dir/x", True, False),
        ("./dir/**", "/repo/sub/dir/x", True, False),
        ("./name", "/repo/sub/name", True, False),
        ("./name", "/repo/name", True, True),
        ("build/", "/repo/build/x", True, True),
        ("build/", "/repo/build", True, False),
        ("build/", "/repo/x/build/y", True, True),
        # What is wrong is wide to deny and nothing to allow.
        ("[x", "/repo/[x", True, False),
        ("!x", "/repo/!x", True, False),
        ("/", "/repo/a", True, False),
        ("//", "/a", True, False),
        ("~", "/home/dev/a", True, False),
        (".", "/repo/a", True, False),
        # Characters are what they are.
        (r"a\*b", "/repo/a*b", True, True),
        (r"a\*b", "/repo/axb", False, False),
        ("a%20b", "/repo/a b", False, False),
        ("A.py", "/repo/a.py", False, False),
        ("a.py", "/repo/aXpy", False, False),
        ("a\nb", "/repo/a\nb", True, True),
        ("a", "/repo/a\n", False, False),
    ],
)
def test_a_scope_covers_a_place_and_what_lies_below(pattern, path, denies, allows):
    assert covers(pattern, path, "deny") is denies
    assert covers(pattern, path, "ask") is denies
    assert covers(pattern, path, "allow") is allows


def test_a_rule_of_a_users_file_starts_at_that_file():
    assert covers("/x", "/home/dev/.handaxe/x", root="/home/dev/.handaxe")
    assert not covers("/x", "/repo/x", root="/home/dev/.handaxe")


def test_a_deny_rule_does_not_move_with_the_sessions_directory():
    moved = Anchors(project_root="/repo", cwd="/repo/sub", home="/home/dev")
    assert covers("secret/key", "/repo/secret/key", anchors=moved)
    assert covers("secret/key", "/repo/sub/secret/key", anchors=moved)
    assert not covers("secret/key", "/repo/secret/key", "allow", moved)


@given(PATTERNS, PATHS, st.sampled_from(["deny", "allow"]))
def test_an_index_of_many_scopes_finds_what_each_alone_finds(pattern, path, behaviour):
    others = ["Read(q/**)", "Read(*.zz)", "Read(//zz/a)", "Read(**/zz/**)", "Read(?zz)"]
    rules = [parse_rule(text, behaviour) for text in (*others, f"Read({pattern})")]
    index = PathIndex(scope for rule in rules for scope in compile_scopes(rule, ANCHORS)[0])
    for place in (path, f"/repo{path}".rstrip("/"), f"/home/dev{path}".rstrip("/")):
        alone = any(
            PathIndex([scope]).find(split_path(place)) is not None
            for rule in rules
            for scope in compile_scopes(rule, ANCHORS)[0]
        )
        assert (index.find(split_path(place)) is not None) is alone


@given(PATTERNS, PATHS)
def test_what_is_allowed_is_denied_by_the_same_words(pattern, path):
    for place in (path, f"/repo{path}".rstrip("/"), f"/home/dev{path}".rstrip("/")):
        if covers(pattern, place, "allow"):
            assert covers(pattern, place, "deny")


@given(
    st.sampled_from(["//etc/x", "/src", "~/notes"]),
    st.lists(st.sampled_from(["..", ".", "", "x", "etc", "src", "src-evil", "repo"]), max_size=8),
)
def test_no_path_escapes_a_literal_scope(pattern, names):
    homes = {"//etc/x": "/etc/x", "/src": "/repo/src", "~/notes": "/home/dev/notes"}
    home = homes[pattern]
    path = normalize(f"{home}/" + "/".join(names))
    assert covers(f"{pattern}/**", path, "allow") is is_inside(path, home)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4), st.booleans())
def test_a_suggested_scope_covers_the_path_it_was_made_for(names, is_inside_project):
    joined = "/".join(name.replace("/", "_").replace("\0", "_") for name in names)
    path = normalize(f"/repo/{joined}" if is_inside_project else f"/var/{joined}")
    assert covers(suggest_scope(path, ANCHORS), path, "allow")
