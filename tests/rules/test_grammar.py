import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.rules.grammar import PermissionRule, format_rule, parse_rule, split_rules

TOOL_NAMES = st.from_regex(r"\A[A-Za-z][A-Za-z0-9_-]{0,20}\Z")
SPECIFIERS = st.text(min_size=1, max_size=40).filter(lambda text: text.strip() not in {"", "*"})


@pytest.mark.parametrize(
    ("text", "tool", "specifier"),
    [
        ("Bash", "Bash", None),
        ("Bash()", "Bash", None),
        ("Bash(*)", "Bash", None),
        (" Read ", "Read", None),
        ("Bash(npm run test:*)", "Bash", "npm run test:*"),
        ('Bash(python -c "print(1)")', "Bash", 'python -c "print(1)"'),
        (r"Bash(echo \(x\))", "Bash", "echo (x)"),
        (r"Read(a\\b)", "Read", r"a\b"),
        (r"Read(a\*b)", "Read", r"a\*b"),
        ("Read(//etc/**)", "Read", "//etc/**"),
        ("Task(explore)", "Agent", "explore"),
        ("Task", "Agent", None),
        ("KillShell", "TaskStop", None),
        ("WebFetch(domain:example.com)", "WebFetch", "domain:example.com"),
        ("mcp__files__read", "mcp__files__read", None),
        ("mcp__*", "mcp__*", None),
        ("Skill(deploy *)", "Skill", "deploy *"),
    ],
)
def test_a_rule_is_a_tool_and_perhaps_a_specifier(text, tool, specifier):
    rule = parse_rule(text)
    assert (rule.tool, rule.specifier, rule.problem) == (tool, specifier, None)
    assert rule.text == text


@pytest.mark.parametrize(
    "text", ["", "   ", "(x)", "Bash(x", r"Bash(x\)", "Bash(x) y", "Bash x", "Bash)", "a b(c)"]
)
def test_malformed_text_is_a_rule_that_matches_nothing_and_says_why(text):
    rule = parse_rule(text, "allow")
    assert rule.is_dead
    assert not rule.is_whole_tool
    assert rule.problem
    assert repr(text) in rule.problem


@pytest.mark.parametrize(
    ("text", "behaviour", "is_dead"),
    [
        ("*", "deny", False),
        ("*", "allow", True),
        ("mcp__*", "ask", False),
        ("mcp__*", "allow", True),
        ("mcp__srv__*", "allow", False),
        ("mcp__srv__get_*", "allow", False),
        ("mcp__s*__get", "allow", True),
        ("Web*", "allow", True),
        ("Web*", "deny", False),
        ("Web*(x)", "deny", True),
        ("Read(file_path:/etc/passwd)", "deny", True),
        ("Bash(command:rm)", "deny", True),
        ("Bash(command:*)", "deny", False),
        ("mcp__srv__tool(x:1)", "allow", True),
        ("mcp__srv__tool(x:1)", "deny", False),
    ],
)
def test_a_rule_that_would_reach_too_far_is_left_out(text, behaviour, is_dead):
    rule = parse_rule(text, behaviour)
    assert rule.is_dead is is_dead
    assert (rule.problem is not None) is is_dead


@pytest.mark.parametrize(
    ("text", "behaviour", "param"),
    [
        ("Bash(run_in_background:true)", "deny", ("run_in_background", "true")),
        ("Agent(model:opus)", "ask", ("model", "opus")),
        ("Agent(model:opus)", "allow", None),
        ("WebFetch(domain:x.org)", "deny", None),
        ("Bash(npm run x)", "deny", None),
    ],
)
def test_deny_and_ask_rules_can_name_an_input(text, behaviour, param):
    assert parse_rule(text, behaviour).param == param


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        ("A, B(x y) C", ["A", "B(x y)", "C"]),
        ("Bash(git log:*),Read", ["Bash(git log:*)", "Read"]),
        ("Bash(a, b)  ,, Edit(/src/**)", ["Bash(a, b)", "Edit(/src/**)"]),
        ("Bash(f(x, y) z) Q", ["Bash(f(x, y) z)", "Q"]),
        (r"Bash(echo \() Read", [r"Bash(echo \()", "Read"]),
        (r"Bash(echo \)) Read", [r"Bash(echo \))", "Read"]),
        ("\tA\nB ", ["A", "B"]),
        ("", []),
        ("A) B", ["A)", "B"]),
        ("Bash(x Read", ["Bash(x Read"]),
    ],
)
def test_a_command_line_value_is_split_outside_parentheses(value, rules):
    assert split_rules(value) == rules


@given(TOOL_NAMES, st.none() | SPECIFIERS)
def test_reading_a_formatted_rule_gives_the_rule(tool, specifier):
    tool = parse_rule(tool).tool
    rule = PermissionRule(tool=tool, specifier=specifier, text="")
    again = parse_rule(format_rule(rule))
    assert (again.tool, again.specifier) == (tool, specifier)
    assert parse_rule(format_rule(again)) == again


@given(st.text(max_size=60), st.sampled_from(["allow", "ask", "deny"]))
def test_any_text_can_be_read_as_a_rule(text, behaviour):
    rule = parse_rule(text, behaviour)
    assert rule.text == text
    assert rule.is_dead <= (rule.problem is not None)
    split_rules(text)


def test_a_rule_tells_where_it_was_written():
    assert parse_rule("Bash", source="flags").origin == "flags"
    file = "/h/.x/settings.json"
    assert parse_rule("Bash", source="user", source_file=file).origin == file
    rule = parse_rule("Bash", source="user", source_file="/h/.x/settings.json", source_line=12)
    assert rule.origin == f"{file}:12"
