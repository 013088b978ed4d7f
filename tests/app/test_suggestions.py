"""What can be allowed with a question: narrow and wide, for the session or for longer."""

from typing import cast

import msgspec
import pytest

from handaxe import Allow, PermissionRequest, Session
from handaxe.contract.events import PermissionsChanged
from handaxe.contract.permission_updates import PermissionChange
from handaxe.frontends.mcp_server.elicitation import build_elicitation_form, read_answer
from handaxe.permission.decide import JudgedPath, PermissionQuery, decide
from handaxe.permission.policy import Mode, make_policy
from handaxe.permission.suggestions import (
    name_suggestions,
    propose_rules,
    suggest_permissions,
    to_updates,
)
from handaxe.rules.grammar import parse_rule

SKILL = "---\nname: {name}\ndescription: Greets.\n---\nSay hello.\n"


def policy_with(mode: Mode = "default", allow=()):
    rules = [parse_rule(text, "allow", source="flags") for text in allow]
    return make_policy(rules, mode=mode, roots=["/repo"], home="/home/dev")


def edit_of(path):
    return PermissionQuery(tool="Edit", paths=(JudgedPath(path, path, "write"),))


REQUESTS = {
    "edit below": edit_of("/repo/src/a.py"),
    "edit at the top": edit_of("/repo/a.py"),
    "edit outside": edit_of("/srv/a.py"),
    "read outside": PermissionQuery(
        tool="Read", read_only=True, paths=(JudgedPath("/srv/a", "/srv/a", "read"),)
    ),
    "skill": PermissionQuery(tool="Skill", read_only=True, texts=("deploy",)),
    "skill with arguments": PermissionQuery(
        tool="Skill", read_only=True, texts=("x:deploy now (all)",)
    ),
    "host": PermissionQuery(tool="WebFetch", read_only=True, hosts=("example.org",)),
    "web socket": PermissionQuery(tool="Monitor", read_only=True, hosts=("example.org",)),
    "MCP tool": PermissionQuery(tool="mcp__shop__buy", confined=False),
    "own tool": PermissionQuery(tool="act", confined=False),
}


def suggested(request, mode: Mode = "default"):
    policy = policy_with(mode)
    return suggest_permissions(request, policy, propose_rules(request, policy))


@pytest.mark.proves("PM-4")
@pytest.mark.parametrize("name", REQUESTS)
def test_whatever_is_accepted_would_have_let_the_call_run(name):
    request = REQUESTS[name]
    assert decide(request, policy_with()).verdict == "ask"
    offered = suggested(request)
    assert {one.destination for one in offered} == {"session", "localSettings", "userSettings"}
    for one in offered:
        policy = policy_with(cast("Mode", one.mode or "default"), one.rules)
        assert decide(request, policy).verdict == "allow", one
        assert one.sentence.startswith("Allow ")
        assert one.sentence.endswith(".")
    assert len(set(offered)) == len(offered)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("edit below", {"session": "acceptEdits", "session2": "Edit(/src/**)"}),
        ("edit at the top", {"session": "acceptEdits", "session2": "Edit(/a.py)"}),
        ("edit outside", {"session": "Edit(//srv/**)"}),
        ("skill", {"session": "Skill(deploy *)", "session2": "Skill"}),
        ("skill with arguments", {"session": "Skill(x:deploy *)", "session2": "Skill"}),
        ("host", {"session": "WebFetch(domain:example.org)"}),
        ("MCP tool", {"session": "mcp__shop__buy", "session2": "mcp__shop__*"}),
        ("own tool", {"session": "act"}),
    ],
)
def test_the_scopes_are_those_people_expect(name, expected):
    named = name_suggestions(suggested(REQUESTS[name]))
    session = {key: one for key, one in named.items() if key.startswith("session")}
    assert {key: one.mode or " ".join(one.rules) for key, one in session.items()} == expected


def test_a_skill_of_another_name_is_not_covered():
    rules = name_suggestions(suggested(REQUESTS["skill"]))["session"].rules
    for text, verdict in [("deploy", "allow"), ("deploy now", "allow"), ("deploy-all", "ask")]:
        request = PermissionQuery(tool="Skill", read_only=True, texts=(text,))
        assert decide(request, policy_with(allow=rules)).verdict == verdict


def test_the_mode_is_offered_only_where_it_would_help():
    assert all(one.mode is None for one in suggested(REQUESTS["edit outside"]))
    assert all(one.mode is None for one in suggested(edit_of("/srv/x"), "acceptEdits"))
    assert all(one.mode is None for one in suggested(REQUESTS["read outside"]))


@pytest.mark.parametrize("name", REQUESTS)
def test_suggestions_are_changes_in_the_shape_of_the_ecosystem(name):
    offered = suggested(REQUESTS[name])
    changes = [msgspec.convert(update, PermissionChange) for update in to_updates(offered)]
    for one, change in zip(offered, changes, strict=True):
        assert change.destination == one.destination
        assert tuple(rule.text for rule in change.rules) == one.rules
        assert (change.type, change.mode) == (
            ("setMode", one.mode) if one.mode else ("addRules", None)
        )


def test_a_form_offers_the_same_list():
    offered = suggested(REQUESTS["edit below"])
    request = PermissionRequest("1", "Edit", {}, "because", suggestions=offered)
    answers = build_elicitation_form(request)["requestedSchema"]["properties"]["answer"]
    assert answers["enum"] == ["once", "session", "session2", "project", "always", "no"]
    assert answers["enumNames"][1:-1] == [one.answer for one in offered]
    for name, one in name_suggestions(offered).items():
        given = {"action": "accept", "content": {"answer": name}}
        assert read_answer(given, request) == one.accept("The user approved it.", by="user")
    given = {"action": "accept", "content": {"answer": "session3"}}
    assert not isinstance(read_answer(given, request), Allow)


class Person:
    """Answers the first question with one of the suggestions, and counts the questions."""

    def __init__(self, choice):
        self.choice = choice
        self.asked = []

    async def __call__(self, request):
        self.asked.append(request)
        named = name_suggestions(request.suggestions)
        return named[self.choice].accept() if named else Allow()


@pytest.mark.proves("PM-4")
async def test_all_edits_of_the_session_are_allowed_by_one_answer(project):
    person, events = Person("session"), []
    async with Session(project, on_ask=person) as session:
        session.subscribe(events.append)
        for path in ("a.txt", "src/b.txt", "other/c.txt"):
            assert (await session.call("Write", file_path=path, content="x")).ok
        assert len(person.asked) == 1
        assert session.permissions.mode == "acceptEdits"
        await session.call("Write", file_path=".git/hooks/x", content="x")
        assert len(person.asked) == 2
        assert person.asked[1].suggestions == ()
    # Everything has been told when the session is closed.
    (changed,) = [event for event in events if isinstance(event, PermissionsChanged)]
    assert changed.changes[0].mode == "acceptEdits"


async def test_one_directory_is_allowed_by_one_answer(project):
    person = Person("session2")
    async with Session(project, on_ask=person) as session:
        for path in ("src/a.txt", "src/b.txt", "src/deep/c.txt"):
            assert (await session.call("Write", file_path=path, content="x")).ok
        assert len(person.asked) == 1
        await session.call("Write", file_path="top.txt", content="x")
        assert len(person.asked) == 2
        assert session.permissions.mode == "default"


@pytest.mark.parametrize(("choice", "asked"), [("session", 2), ("session2", 1)])
async def test_one_skill_or_every_skill_is_allowed_by_one_answer(project, choice, asked):
    for name in ("greet", "part"):
        directory = project / ".claude" / "skills" / name
        directory.mkdir(parents=True)
        (directory / "SKILL.md").write_text(SKILL.format(name=name))
    person = Person(choice)
    async with Session(project, on_ask=person) as session:
        for given in ({"skill": "greet"}, {"skill": "greet", "args": "twice"}, {"skill": "part"}):
            result = await session.call("Skill", **given)
            assert result.ok, result.text
    assert len(person.asked) == asked


async def test_a_mode_that_may_not_be_chosen_changes_nothing(project):
    async def on_ask(request):
        return Allow(remember="session", mode="bypassPermissions")

    settings = {"permissions": {"disableBypassPermissionsMode": "disable"}}
    async with Session(project, on_ask=on_ask, settings=settings) as session:
        assert (await session.call("Write", file_path="a.txt", content="x")).ok
        assert session.permissions.mode == "default"
