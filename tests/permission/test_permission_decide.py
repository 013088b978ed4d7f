import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from handaxe.contract.decision import Allow, Ask, Deny
from handaxe.permission.decide import (
    JudgedPath,
    PermissionQuery,
    build_hidden_check,
    decide,
    is_binding,
    is_final,
    is_read_denied,
)
from handaxe.permission.policy import CurrentPolicy, make_policy
from handaxe.permission.suggestions import propose_rules
from handaxe.rules.grammar import parse_rule
from handaxe.rules.tool_families import Behaviour
from handaxe.session.permission_state import Mode, PermissionState, SourcedRule
from handaxe.session.workdir import Workdir

MODES: tuple[Mode, ...] = ("default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions")
READING = {"Read", "Glob", "Grep", "LineCount"}
TABLES = Path(__file__).with_name("tables")


def policy_with(*, mode: Mode = "default", deny=(), ask=(), allow=(), **places):
    kinds: dict[Behaviour, Sequence[str]] = {"deny": deny, "ask": ask, "allow": allow}
    rules = [
        parse_rule(text, kind, source="flags") for kind, texts in kinds.items() for text in texts
    ]
    places = {"roots": ["/repo", "/extra"], "home": "/home/dev", **places}
    return make_policy(rules, mode=mode, free_to_read=["/state/results"], **places)


def request_for(tool, path, **more):
    own, _, real = path.partition(" -> ")
    access = "read" if tool in READING else "write"
    judged = JudgedPath(path=own, real=real or own, access=access, field="file_path")
    return PermissionQuery(tool=tool, read_only=access == "read", paths=(judged,), **more)


def rows():
    for file in sorted(TABLES.glob("*.toml")):
        for table in tomllib.loads(file.read_text())["table"]:
            kinds = {kind: table.get(kind, []) for kind in ("deny", "ask", "allow")}
            for tool, path, verdicts in table["rows"]:
                words = verdicts.split()
                expected = dict(zip(MODES, words if len(words) > 1 else words * 6, strict=True))
                name = f"{file.stem}: {table['summary']} {tool} {path}"
                yield pytest.param(kinds, tool, path, expected, id=name)


@pytest.mark.parametrize(("kinds", "tool", "path", "expected"), list(rows()))
def test_every_row_of_the_tables_holds(kinds, tool, path, expected):
    found = {
        mode: decide(request_for(tool, path), policy_with(mode=mode, **kinds)) for mode in MODES
    }
    assert {mode: decision.verdict for mode, decision in found.items()} == expected
    assert all(decision.reason for decision in found.values())


def test_a_read_deny_refuses_an_edit_in_the_words_of_the_ecosystem():
    policy = policy_with(deny=["Read(.env)"])
    edited = decide(request_for("Edit", "/repo/.env"), policy)
    assert edited.reason.startswith(
        "File is covered by a Read deny rule in your permission settings and cannot be edited."
    )
    written = decide(request_for("Write", "/repo/.env"), policy)
    assert "and cannot be written." in written.reason
    assert (written.by, written.rule, written.source) == ("rule", "Read(.env)", "flags")


def test_a_decision_says_who_decided_and_what_would_change_it():
    policy = policy_with(allow=["Edit(/src/**)"])
    assert decide(request_for("Read", "/repo/a"), policy) == Allow("inside the project", "builtin")
    asked = decide(request_for("Write", "/repo/lib/a.py"), policy)
    assert asked == Ask(
        "Changing /repo/lib/a.py needs permission in default mode.",
        "mode",
        remedy="Use acceptEdits mode or add the allow rule Edit(/lib/**).",
    )
    assert asked.sentence == (
        "Changing /repo/lib/a.py needs permission in default mode. Use acceptEdits "
        "mode or add the allow rule Edit(/lib/**)."
    )
    outside = decide(request_for("Read", "/repo/x -> /etc/passwd"), policy)
    assert outside == Ask(
        "/repo/x leads to /etc/passwd, which is outside the working directories.",
        "builtin",
        remedy="Add the allow rule Read(//etc/**).",
    )
    allowed = decide(request_for("Edit", "/repo/src/a"), policy)
    assert (allowed.by, allowed.rule, allowed.source) == ("rule", "Edit(/src/**)", "flags")


REMEDIED = [
    (request_for("Write", "/repo/a.py"), {}),
    (request_for("Read", "/etc/passwd"), {}),
    (request_for("Read", "/repo/.env"), {}),
    (request_for("Read", "/repo/x"), {"deny": ["Read(x)"]}),
    (request_for("Edit", "/repo/x"), {"deny": ["Read(x)"]}),
    (request_for("Read", "/repo/x"), {"ask": ["Read(x)"]}),
    (request_for("Read", "/repo/\0"), {}),
    (request_for("Read", "x"), {}),
    (PermissionQuery("own", confined=False), {}),
    (PermissionQuery("WebFetch", read_only=True, hosts=("example.org",)), {}),
    (PermissionQuery("refund", confined=False, external=("shop-db",)), {}),
    (PermissionQuery("look", read_only=True, external=("shop-db",)), {}),
]


@pytest.mark.proves("PM-3")
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "auto", "dontAsk"])
@pytest.mark.parametrize(("request_", "rules"), REMEDIED)
def test_what_is_wrong_and_what_would_change_it_are_told_apart(request_, rules, mode):
    decision = decide(request_, policy_with(mode=mode, **rules))
    if decision.verdict == "allow":
        return
    assert decision.reason.endswith(".")
    assert decision.remedy.endswith(".")
    for word in ("approve", "the allow rule", "narrow", "Give "):
        assert word not in decision.reason
    assert decision.sentence == f"{decision.reason} {decision.remedy}"
    assert decision.to_json()["remedy"] == decision.remedy


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("Read", "/etc/passwd"),
        ("Write", "/repo/lib/a.py"),
        ("Write", "/repo/a.py"),
        ("Write", "/repo/we(ird) [x]/a*b.py"),
        ("Write", "/opt/x y/a"),
        ("Read", "/repo/.env"),
        ("Read", "/rooted"),
    ],
)
def test_the_rule_a_reason_proposes_works(tool, path):
    remedy = decide(request_for(tool, path), policy_with()).remedy
    proposed = remedy.split("the allow rule ")[1].removesuffix(".")
    assert decide(request_for(tool, path), policy_with(allow=[proposed])).verdict == "allow"


def test_a_hard_link_to_the_outside_asks_before_it_is_changed():
    for mode, expected in zip(MODES, ["ask", "ask", "ask", "deny", "ask", "allow"], strict=True):
        judged = JudgedPath("/repo/a", "/repo/a", "write", hard_link_outside=True)
        request = PermissionQuery(tool="Edit", paths=(judged,))
        assert decide(request, policy_with(mode=mode, allow=["Edit"])).verdict == expected


def test_reasons_show_what_cannot_be_seen():
    path = "/etc/\x1b[2K\u202efdp.exe\ud800"
    reason = decide(request_for("Read", path), policy_with()).reason
    assert reason.isprintable()
    assert "\\x1b[2K\\u202e" in reason
    assert len(decide(request_for("Read", "/" + "x" * 100_000), policy_with()).reason) < 2000


@pytest.mark.parametrize(
    ("tool", "read_only", "expected"),
    [
        ("Clock", True, "allow ask"),
        ("Deploy", False, "ask ask"),
        ("WebFetch", True, "ask ask"),
        ("WebSearch", True, "ask ask"),
        ("Skill", True, "ask ask"),
        ("Bash", True, "ask ask"),
        ("mcp__srv__get", True, "ask ask"),
        ("TaskList", True, "allow ask"),
    ],
)
def test_a_call_without_paths_is_free_only_if_it_changes_nothing(tool, read_only, expected):
    request = PermissionQuery(tool=tool, read_only=read_only)
    free = decide(request, policy_with()).verdict
    asked = decide(request, policy_with(ask=[tool])).verdict
    assert f"{free} {asked}" == expected
    assert decide(request, policy_with(allow=[tool])).verdict == "allow"
    assert decide(request, policy_with(allow=[tool], deny=["*"])).verdict == "deny"
    assert decide(request, policy_with(mode="dontAsk", ask=[tool])).verdict == "deny"


def test_plan_mode_asks_before_anything_that_may_change_something():
    plan = policy_with(mode="plan", allow=["Deploy", "Clock"])
    assert decide(PermissionQuery(tool="Deploy"), plan).verdict == "ask"
    assert decide(PermissionQuery(tool="Clock", read_only=True), plan).verdict == "allow"
    reading = JudgedPath("/repo/a", "/repo/a", "read")
    assert decide(PermissionQuery(tool="Edit", paths=(reading,)), plan).verdict == "allow"


def test_a_tool_that_may_change_anything_is_not_free_for_the_path_it_names():
    wild = {"confined": False}
    edits = policy_with(mode="acceptEdits", allow=["Edit(/src/**)"])
    assert decide(request_for("Deploy", "/repo/src/a", **wild), edits).verdict == "ask"
    named = policy_with(allow=["Deploy(/src/**)"])
    assert decide(request_for("Deploy", "/repo/src/a", **wild), named).verdict == "allow"
    assert decide(request_for("Deploy", "/repo/lib/a", **wild), named).verdict == "ask"


def test_every_path_of_a_call_has_to_pass():
    def copy(source, target):
        paths = (JudgedPath(source, source, "read"), JudgedPath(target, target, "write"))
        return PermissionQuery(tool="Copy", paths=paths)

    policy = policy_with(allow=["Edit(/out/**)"], deny=["Read(/secret/**)"])
    assert decide(copy("/repo/a", "/repo/out/a"), policy).rule == "Edit(/out/**)"
    assert decide(copy("/etc/a", "/repo/out/a"), policy).verdict == "ask"
    assert decide(copy("/repo/a", "/repo/lib/a"), policy).verdict == "ask"
    assert decide(copy("/repo/secret/a", "/repo/out/a"), policy).verdict == "deny"


@pytest.mark.parametrize(
    ("tool", "text", "deny", "allow", "expected"),
    [
        (
            "WebFetch",
            "https://docs.python.org/3",
            [],
            ["WebFetch(domain:docs.python.org)"],
            "allow",
        ),
        ("WebFetch", "https://python.org/", [], ["WebFetch(domain:*.python.org)"], "ask"),
        ("WebFetch", "https://a.evil.org", ["WebFetch(domain:*.evil.org)"], ["WebFetch"], "deny"),
        ("Agent", "explore", [], ["Task(explore)"], "allow"),
        ("Agent", "explorer", [], ["Agent(explore)"], "ask"),
        ("Task", "explore", ["Agent(explore)"], [], "deny"),
        ("Agent", "explore", ["Task"], ["Agent"], "deny"),
        ("Skill", "deploy prod", [], ["Skill(deploy *)"], "allow"),
        ("Skill", "deploy prod", [], ["Skill(deploy)"], "ask"),
        ("mcp__srv__get", "{}", [], ["mcp__srv"], "allow"),
        ("mcp__srv__get", "{}", [], ["mcp__srv__*"], "allow"),
        ("mcp__srv__get", "{}", [], ["mcp__srv__get_*"], "ask"),
        ("mcp__srv2__get", "{}", [], ["mcp__srv"], "ask"),
        ("mcp__srv__get", "{}", ["mcp__*"], ["mcp__srv__get"], "deny"),
        ("mcp__srv__get", "{}", [], ["mcp__*"], "ask"),
        ("Bash", "rm -rf /", ["Bash(rm:*)"], ["Bash"], "deny"),
        ("Bash", "rm   -rf /", ["Bash(rm:*)"], ["Bash"], "deny"),
        ("Bash", "ls", [], ["Bash(ls:*)"], "ask"),
        ("Bash", "ls", [], ["Bash(*)"], "allow"),
    ],
)
def test_rules_match_the_texts_of_a_call(tool, text, deny, allow, expected):
    policy = policy_with(deny=deny, allow=allow)
    assert decide(PermissionQuery(tool=tool, texts=(text,)), policy).verdict == expected


@pytest.mark.parametrize(
    ("host", "deny", "ask", "allow", "expected"),
    [
        ("example.org", [], [], [], "ask"),
        ("example.org", [], [], ["Bash", "Edit", "Read"], "ask"),
        ("example.org", [], [], ["Monitor"], "allow"),
        ("example.org", [], [], ["Monitor(domain:example.org)"], "allow"),
        ("example.org", [], [], ["WebFetch(domain:Example.org.)"], "allow"),
        ("example.org", [], [], ["WebFetch"], "allow"),
        ("example.org", [], [], ["Monitor(example.org)"], "ask"),
        ("example.org", [], [], ["Monitor(domain:*.org)"], "allow"),
        ("example.org", [], [], ["Monitor(domain:*.example.org)"], "ask"),
        ("evil-example.org", [], [], ["Monitor(domain:example.org)"], "ask"),
        ("example.org", ["Monitor(domain:example.org)"], [], ["Monitor"], "deny"),
        ("a.example.org", ["WebFetch(domain:*.example.org)"], [], ["Monitor"], "deny"),
        ("example.org", ["WebFetch"], [], ["Monitor(domain:example.org)"], "deny"),
        ("example.org", ["Web*"], [], ["Monitor(domain:example.org)"], "deny"),
        ("example.org", ["Bash"], [], ["Monitor(domain:example.org)"], "allow"),
        ("example.org", [], ["WebFetch(domain:*)"], ["Monitor"], "ask"),
        ("localhost", [], [], ["Monitor(domain:*)"], "ask"),
        ("localhost", [], [], ["Monitor(domain:localhost)"], "allow"),
        ("build.internal", [], [], ["WebFetch(domain:*.internal)"], "ask"),
        ("127.0.0.1", [], [], ["Monitor(domain:*.0.0.1)"], "ask"),
        ("[::1]", [], [], ["WebFetch(domain:*)"], "ask"),
        ("[::1]", [], [], ["Monitor(domain:[::1])"], "allow"),
        ("localhost", ["Monitor(domain:*)"], [], ["Monitor"], "deny"),
        ("[::1]", ["Monitor(domain:*)"], [], ["Monitor"], "deny"),
        ("", [], [], ["Monitor(domain:*)"], "ask"),
    ],
)
def test_a_host_is_judged_by_rules_for_domains(host, deny, ask, allow, expected):
    rules = {"deny": deny, "ask": ask, "allow": allow}
    request = PermissionQuery(tool="Monitor", read_only=True, hosts=(host,))
    # Twice, since answers are kept.
    for _ in range(2):
        assert decide(request, policy_with(**rules)).verdict == expected
    unasked = "deny" if expected == "ask" else expected
    assert decide(request, policy_with(**rules, mode="dontAsk")).verdict == unasked
    # Listening changes nothing, so plan mode asks as others do, and a person may say yes.
    planned = decide(request, policy_with(**rules, mode="plan"))
    assert planned.verdict == expected
    assert not is_final(planned)
    assert decide(request, policy_with(**rules, mode="acceptEdits")).verdict == expected
    bypassed = expected if expected == "deny" or ask else "allow"
    assert decide(request, policy_with(**rules, mode="bypassPermissions")).verdict == bypassed


def test_every_host_of_a_call_has_to_pass():
    request = PermissionQuery(tool="Monitor", read_only=True, hosts=("a.org", "b.org"))
    assert decide(request, policy_with(allow=["Monitor(domain:b.org)"])).verdict == "ask"
    assert decide(request, policy_with(allow=["Monitor(domain:*)"])).verdict == "allow"


def test_a_rule_for_hosts_says_nothing_of_commands():
    rules = policy_with(deny=["Monitor(domain:*)"], allow=["Monitor(domain:ls)"]).book
    assert rules.list_command_rules("Monitor") == {"deny": (), "ask": (), "allow": ()}


@pytest.mark.parametrize("host", ["example.org", "localhost", "127.0.0.1", "[::1]"])
def test_the_rule_that_is_offered_for_a_host_works(host):
    request = PermissionQuery(tool="Monitor", read_only=True, hosts=(host,))
    decision = decide(request, policy_with())
    proposed = decision.remedy.split("the allow rule ")[1].removesuffix(".")
    (offered,) = propose_rules(request, policy_with())
    assert offered.rule == proposed
    assert decide(request, policy_with(allow=[proposed])).verdict == "allow"


def test_deny_rules_can_name_an_input_value():
    policy = policy_with(deny=["Agent(model:op*)", "Bash(run_in_background:true)"], allow=["Agent"])
    opus = PermissionQuery(tool="Agent", texts=("x",), input={"model": "opus"})
    other = PermissionQuery(tool="Agent", texts=("x",), input={"model": "haiku"})
    assert (decide(opus, policy).verdict, decide(other, policy).verdict) == ("deny", "allow")
    background = PermissionQuery(tool="Bash", texts=("ls",), input={"run_in_background": True})
    assert decide(background, policy).verdict == "deny"


def test_an_input_rule_holds_for_tools_with_paths_too():
    policy = policy_with(deny=["Write(force:true)"], mode="acceptEdits")
    for _ in range(2):
        plain = request_for("Write", "/repo/a", input={})
        forced = request_for("Write", "/repo/a", input={"force": True})
        assert decide(plain, policy).verdict == "allow"
        assert decide(forced, policy).verdict == "deny"


def test_commands_are_matched_by_whoever_reads_commands():
    seen = []

    def matches(specifier, command, behaviour):
        seen.append((specifier, command, behaviour))
        return behaviour == "allow"

    policy = policy_with(deny=["Bash(rm *)"], allow=["Bash(ls *)"], matches_command=matches)
    assert decide(PermissionQuery(tool="Bash", texts=("ls -l",)), policy).verdict == "allow"
    assert seen == [("rm *", "ls -l", "deny"), ("ls *", "ls -l", "allow")]
    listed = policy.book.list_command_rules()
    assert [rule.text for rule in listed["deny"]] == ["Bash(rm *)"]


@pytest.mark.parametrize(
    ("rule", "hidden", "shown"),
    [
        ("Write", ["Write"], ["Edit", "WriteX"]),
        ("Write()", ["Write"], []),
        ("Write(*)", ["Write"], []),
        ("Write(/x)", [], ["Write"]),
        ("Task", ["Agent", "Task"], []),
        ("mcp__srv", ["mcp__srv__a", "mcp__srv__b__c"], ["mcp__srv2__a", "Read"]),
        ("mcp__*", ["mcp__srv__a"], ["Read"]),
        ("Web*", ["WebFetch", "WebSearch"], ["Read"]),
        ("*", ["Read", "mcp__a__b"], []),
        ("Bash(rm *)", [], ["Bash"]),
        ("Write(", [], ["Write"]),
    ],
)
def test_a_blanket_deny_hides_a_tool_and_a_scoped_one_keeps_it(rule, hidden, shown):
    policy = policy_with(deny=[rule])
    assert [name for name in (*hidden, *shown) if build_hidden_check(policy)(name)] == hidden
    assert not any(build_hidden_check(policy_with(ask=[rule]))(name) for name in hidden)


def test_search_results_can_be_asked_for_what_read_denies():
    policy = policy_with(deny=["Read(/secret/**)", "Read(*.pem)"])
    assert is_read_denied(policy, "/repo/secret/a")
    assert is_read_denied(policy, "/repo/link", "/repo/secret/a")
    assert not is_read_denied(policy, "/repo/a")
    assert not is_read_denied(policy_with(), "/repo/a")


def test_the_current_policy_follows_state_and_directories():
    state = PermissionState(rules=[SourcedRule("Edit(/src/**)", "allow", "flags")])
    workdir = Workdir(["/repo"], home="/home/dev")
    current = CurrentPolicy(state, workdir)
    first = current()
    assert current() is first
    assert decide(request_for("Write", "/repo/src/a"), first).verdict == "allow"
    state.set_mode("acceptEdits")
    assert decide(request_for("Write", "/repo/lib/a"), current()).verdict == "allow"
    assert current().book is first.book
    state.add_rules([SourcedRule("Edit(/lib/**)", "deny", "project", "/repo/.x/settings.json", 7)])
    refused = decide(request_for("Write", "/repo/lib/a"), current())
    assert (refused.verdict, refused.source) == ("deny", "/repo/.x/settings.json:7")
    workdir.roots = ("/repo", "/more")
    assert decide(request_for("Read", "/more/a"), current()).verdict == "allow"


def test_a_users_rule_starts_at_its_file_and_a_projects_rule_at_the_project():
    state = PermissionState(
        rules=[
            SourcedRule("Read(/x)", "deny", "user", file="/home/dev/.handaxe/settings.json"),
            SourcedRule("Read(/y)", "deny", "project", file="/repo/.handaxe/settings.json"),
        ]
    )
    policy = CurrentPolicy(state, Workdir(["/repo"], home="/home/dev"))()
    denied = [
        path
        for path in ("/repo/x", "/repo/y", "/home/dev/.handaxe/x", "/repo/.handaxe/y")
        if isinstance(decide(request_for("Read", path), policy), Deny)
    ]
    assert denied == ["/repo/y", "/home/dev/.handaxe/x"]


def test_a_rule_book_lists_what_is_wrong_with_its_rules():
    policy = policy_with(allow=["Edit([x)", "Bash(", "*", "Read(/ok)"], deny=["Read(file_path:a)"])
    problems = policy.book.problems
    assert len(problems) == 4
    assert all(problem.endswith(".") for problem in problems)


@pytest.mark.parametrize(
    ("tool", "path", "binding"),
    [
        ("Read", "/repo/a", False),
        ("Read", "/etc/passwd", False),
        ("Write", "/repo/a", False),
        ("Write", "/repo/.git/config", True),
        ("Write", "/repo/asked", True),
        ("Write", "/repo/denied", True),
    ],
)
def test_a_hook_cannot_answer_for_rules_and_protected_paths(tool, path, binding):
    policy = policy_with(ask=["Edit(asked)"], deny=["Edit(denied)"])
    assert is_binding(decide(request_for(tool, path), policy)) is binding
