"""What holds for every decision, whatever the rules and whatever the call."""

import json

from hypothesis import given
from hypothesis import strategies as st

from handaxe.contract.decision import Allow, Ask, Deny
from handaxe.permission.decide import JudgedPath, PermissionQuery, decide
from handaxe.permission.policy import make_policy
from handaxe.rules.grammar import parse_rule
from handaxe.text.paths import is_inside, normalize

MODES = st.sampled_from(["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"])
TOOLS = st.sampled_from(
    ["Read", "Grep", "Write", "Edit", "NotebookEdit", "Own", "Bash", "mcp__a__b"]
)
PARTS = st.sampled_from(
    ["repo", "repo-evil", "src", "etc", "..", ".", "", "a.py", ".git", ".env", "x"]
)
PATHS = st.lists(PARTS, max_size=6).map(lambda parts: "/" + "/".join(parts))
SPECIFIERS = st.sampled_from(
    "- (*) (/src/**) (//etc/**) (a.py) (*.py) (src/**) (~/x) (**) (//**) ([x) (x:1) (../x/**) "
    "(/src/*.py) (**/x/**)".replace("-", "").split(" ")
)
RULES = st.tuples(
    st.sampled_from(["Read", "Edit", "Write", "Own", "Bash", "*", "mcp__a"]), SPECIFIERS
)
RULE_TEXTS = RULES.map("".join)
KINDS = st.sampled_from(["deny", "ask", "allow"])
RULE_LISTS = st.lists(st.tuples(RULE_TEXTS, KINDS), max_size=6)
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


@st.composite
def requests(draw, paths=PATHS):
    tool = draw(TOOLS)
    access = st.sampled_from(["read", "write"])
    judged = st.builds(
        JudgedPath,
        path=paths,
        real=paths,
        access=access,
        field=st.none(),
        hard_link_outside=st.booleans(),
    )
    return PermissionQuery(
        tool=tool,
        aliases=draw(st.sampled_from([(), ("Old",)])),
        read_only=draw(st.booleans()),
        paths=tuple(draw(st.lists(judged, max_size=3))),
        texts=tuple(draw(st.lists(st.sampled_from(["x", "rm -rf"]), max_size=1))),
        input=draw(st.sampled_from([{}, {"x": 1}])),
        confined=draw(st.booleans()),
    )


def policy_of(rules, mode):
    parsed = [parse_rule(text, kind, source="flags") for text, kind in rules]
    return make_policy(parsed, mode=mode, roots=["/repo"], home="/home/dev")


@given(requests(), RULE_LISTS, RULE_LISTS, MODES)
def test_deny_wins_whatever_else_is_added(request, rules, more, mode):
    if isinstance(decide(request, policy_of(rules, "bypassPermissions")), Deny):
        assert isinstance(decide(request, policy_of(rules + more, mode)), Deny)


@given(requests(), RULE_LISTS, RULE_TEXTS, MODES)
def test_an_allow_rule_never_makes_a_decision_stricter(request, rules, text, mode):
    before = decide(request, policy_of(rules, mode)).verdict
    after = decide(request, policy_of([*rules, (text, "allow")], mode)).verdict
    assert STRICTNESS[after] <= STRICTNESS[before]


@given(requests(), RULE_LISTS, RULE_TEXTS, st.sampled_from(["deny", "ask"]), MODES)
def test_a_forbidding_rule_never_makes_a_decision_milder(request, rules, text, kind, mode):
    before = decide(request, policy_of(rules, mode)).verdict
    after = decide(request, policy_of([*rules, (text, kind)], mode)).verdict
    assert STRICTNESS[after] >= STRICTNESS[before]


@given(st.lists(requests(), min_size=2, max_size=6), RULE_LISTS, MODES)
def test_what_was_decided_before_changes_no_decision(asked, rules, mode):
    policy = policy_of(rules, mode)
    for request in (*asked, *asked):
        assert decide(request, policy) == decide(request, policy_of(rules, mode))


@given(requests(), RULE_LISTS, st.randoms(use_true_random=False), MODES)
def test_the_order_of_rules_does_not_matter(request, rules, random, mode):
    shuffled = list(rules)
    random.shuffle(shuffled)
    assert decide(request, policy_of(rules, mode)).verdict == (
        decide(request, policy_of(shuffled, mode)).verdict
    )


@given(requests(), st.sampled_from(["default", "acceptEdits", "plan", "dontAsk", "auto"]))
def test_without_rules_no_path_escapes_the_working_directories(request, mode):
    decision = decide(request, policy_of([], mode))
    if isinstance(decision, Allow):
        for judged in request.paths:
            assert is_inside(normalize(judged.path), "/repo")
            assert is_inside(normalize(judged.real), "/repo")


@given(requests(), st.sampled_from(["default", "dontAsk", "auto"]))
def test_an_allow_rule_reaches_no_farther_than_its_scope(request, mode):
    rules = [("Edit(/src/**)", "allow"), ("Read(//etc/x/**)", "allow")]
    if not isinstance(decide(request, policy_of(rules, mode)), Allow):
        return
    for judged in request.paths:
        for path in map(normalize, (judged.path, judged.real)):
            if judged.access == "write":
                assert is_inside(path, "/repo/src")
            else:
                assert is_inside(path, "/repo") or is_inside(path, "/etc/x")


@given(
    requests(), RULE_LISTS, st.sampled_from(["default", "acceptEdits", "plan", "auto", "dontAsk"])
)
def test_no_rule_approves_a_change_below_git(request, rules, mode):
    touches = any(
        judged.access == "write" and ".git" in normalize(end).split("/")
        for judged in request.paths
        for end in (judged.path, judged.real)
    )
    if touches:
        assert not isinstance(decide(request, policy_of(rules, mode)), Allow)


@given(requests(), RULE_LISTS)
def test_dont_ask_mode_never_asks_and_allows_nothing_more(request, rules):
    asked = decide(request, policy_of(rules, "default"))
    quiet = decide(request, policy_of(rules, "dontAsk"))
    assert not isinstance(quiet, Ask)
    assert isinstance(quiet, Allow) is isinstance(asked, Allow)


@given(requests(), RULE_LISTS, MODES)
def test_asking_twice_gives_the_same_answer(request, rules, mode):
    policy = policy_of(rules, mode)
    assert decide(request, policy) == decide(request, policy)


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(
    ["\0", "\ud800", "/" * 5000, "/a" * 3000, "x" * 20000, "/repo/" + "é" * 300, "(", ")", "\\"]
)
ANY_REQUEST = st.builds(
    PermissionQuery,
    tool=ANY_TEXT,
    aliases=st.lists(ANY_TEXT, max_size=1).map(tuple),
    read_only=st.booleans(),
    paths=st.lists(
        st.builds(
            JudgedPath,
            path=ANY_TEXT,
            real=ANY_TEXT,
            access=st.sampled_from(["read", "write"]),
            field=st.none(),
        ),
        max_size=2,
    ).map(tuple),
    texts=st.lists(ANY_TEXT, max_size=2).map(tuple),
    input=st.dictionaries(
        ANY_TEXT, st.none() | st.booleans() | st.integers() | ANY_TEXT, max_size=2
    ),
    confined=st.booleans(),
)
ANY_RULE = st.tuples(
    ANY_TEXT | st.builds("{}({})".format, st.sampled_from(["Read", "Edit", "Own"]), ANY_TEXT), KINDS
)


@given(ANY_REQUEST, st.lists(ANY_RULE, max_size=4), MODES)
def test_no_input_makes_a_decision_fail(request, rules, mode):
    policy = policy_of(rules, mode)
    decision = decide(request, policy)
    assert decision.reason
    assert decision.reason.isprintable()
    json.dumps(decision.to_json()).encode()
    assert isinstance(policy.book.problems, tuple)
