"""What hooks change beside their yes: rules, the mode, directories; for now or for good."""

import asyncio
import json
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.app.session import get_parts
from handaxe.config import settings_paths as places
from handaxe.config.settings_paths import get_own_file
from handaxe.contract.events import HookRan, PermissionsChanged
from handaxe.storage.sessions import read_events

pytestmark = pytest.mark.proves("HK-1")


def hooks_that_change(*changes):
    answer = {"decision": {"behavior": "allow", "updatedPermissions": list(changes)}}
    line = f"printf %s '{json.dumps({'hookSpecificOutput': answer})}'"
    once = f"[ -e ../done ] || {{ touch ../done; {line}; }}"
    return {"PermissionRequest": [{"hooks": [{"type": "command", "command": once}]}]}


def rules(kind, *texts, behavior="allow", destination="session"):
    listed = []
    for text in texts:
        tool, _, content = text.partition("(")
        listed.append(
            {"toolName": tool, "ruleContent": content[:-1]} if content else {"toolName": tool}
        )
    return {"type": kind, "rules": listed, "behavior": behavior, "destination": destination}


async def write(session, name, content="x\n"):
    result = await session.call("Write", file_path=name, content=content)
    return result.code or "ok"


async def changed(session):
    await asyncio.sleep(0)
    get_parts(session).recorder.flush()
    found = read_events(get_parts(session).session_context.data_home, session.id)
    return [event for event in found if isinstance(event, PermissionsChanged)]


async def test_rules_that_a_hook_adds_hold_for_the_session_and_are_in_the_log(project):
    hooks = hooks_that_change(
        rules("addRules", "Edit(/new/**)"),
        rules("addRules", "Edit(/new/secret/**)", behavior="deny"),
        rules("addRules", "Edit(/new/odd/**)", behavior="ask"),
    )
    async with Session(project, hooks=hooks) as session:
        assert await write(session, "first.txt") == "ok"
        assert await write(session, "new/a.txt") == "ok"
        assert await write(session, "new/secret/a.txt") == "permission.denied"
        assert await write(session, "new/odd/a.txt") == "permission.asked"
        assert await write(session, "other.txt") == "permission.asked"
        (event,) = await changed(session)
    assert (event.by, len(event.changes), event.not_made) == ("hook", 3, ())
    assert event.changes[0].rules[0].text == "Edit(/new/**)"
    async with Session(project) as session:
        assert await write(session, "new/b.txt") == "permission.asked"


@pytest.mark.parametrize("destination", ["localSettings", "projectSettings", "userSettings"])
async def test_rules_in_files_hold_in_later_sessions(project, destination):
    hooks = hooks_that_change(rules("addRules", "Edit(/new/**)", destination=destination))
    async with Session(project, hooks=hooks) as session:
        assert await write(session, "first.txt") == "ok"
        assert await write(session, "new/a.txt") == "ok"
    async with Session(project) as session:
        assert await write(session, "new/b.txt") == "ok"
        assert await write(session, "other.txt") == "permission.asked"
        (rule,) = [r for r in session.permissions.rules if r.behaviour == "allow"]
        assert f"{rule.source}Settings" == destination
    (project.parent / "done").unlink()
    hooks = hooks_that_change(rules("removeRules", "Edit(/new/**)", destination=destination))
    async with Session(project, hooks=hooks) as session:
        assert await write(session, "second.txt") == "ok"
        assert await write(session, "new/c.txt") == "permission.asked"


async def test_rules_are_replaced_and_removed_only_where_they_are_meant(project):
    hooks = hooks_that_change(
        rules("addRules", "Edit(/a.txt)", "Edit(/b.txt)"),
        rules("addRules", "Edit(/c.txt)", behavior="deny"),
        rules("replaceRules", "Edit(/b.txt)"),
        rules("removeRules", "Edit(/given.txt)"),
    )
    async with Session(project, hooks=hooks, allow="Edit(/given.txt)") as session:
        assert await write(session, "first.txt") == "ok"
        assert await write(session, "a.txt") == "permission.asked"
        assert await write(session, "b.txt") == "ok"
        assert await write(session, "c.txt") == "permission.denied"
        assert await write(session, "given.txt") == "ok"


async def test_a_hook_can_change_the_mode_unless_settings_forbid_it(project):
    def mode(name, destination="session"):
        return {"type": "setMode", "mode": name, "destination": destination}

    async with Session(project, hooks=hooks_that_change(mode("acceptEdits"))) as session:
        assert await write(session, "first.txt") == "ok"
        assert session.permissions.mode == "acceptEdits"
        assert await write(session, "second.txt") == "ok"
    (project.parent / "done").unlink()
    wanted = (
        mode("bypassPermissions"),
        mode("nonsense"),
        mode("bypassPermissions", "localSettings"),
        mode("auto", "projectSettings"),
        mode("plan", "localSettings"),
    )
    settings = {"permissions": {"disableBypassPermissionsMode": "disable"}}
    async with Session(project, hooks=hooks_that_change(*wanted), settings=settings) as session:
        result = await session.call("Write", file_path="third.txt", content="x\n")
        assert result.ok
        assert session.permissions.mode == "plan"
        (event,) = await changed(session)
        assert [change.mode for change in event.changes] == ["plan"]
        assert len(event.not_made) == 4
        assert "forbid bypassPermissions" in result.notes[0]
    async with Session(project) as session:
        assert session.permissions.mode == "plan"


async def test_directories_come_and_go(project, tmp_path):
    outside, listed = tmp_path / "outside", tmp_path / "listed"
    for place in (outside, listed):
        place.mkdir()
        (place / "f.txt").write_text("x\n")

    def places_of(kind, *paths, destination="session"):
        return {"type": kind, "directories": list(map(str, paths)), "destination": destination}

    async def reads(session, place):
        return (await session.call("Read", file_path=str(place / "f.txt"))).ok

    hooks = hooks_that_change(
        places_of("addDirectories", outside, project / "missing"),
        places_of("addDirectories", outside),
        places_of("addDirectories", listed, destination="userSettings"),
        places_of("addDirectories", listed, destination="localSettings"),
    )
    async with Session(project, hooks=hooks) as session:
        assert await write(session, "first.txt") == "ok"
        assert await reads(session, outside)
        assert await reads(session, listed)
        settings = project / ".claude" / "settings.local.json"
        settings.parent.mkdir()
        settings.write_text('{"permissions": {"deny": ["Bash"]}}')
        assert await reads(session, outside), "a change of settings forgets no directory"
        (event,) = await changed(session)
        assert "is not a directory" in event.not_made[0]
        assert "is not trusted" in event.not_made[1]
    (project.parent / "done").unlink()
    hooks = hooks_that_change(
        places_of("removeDirectories", outside),
        places_of("removeDirectories", listed, destination="userSettings"),
    )
    async with Session(project, hooks=hooks, add_dirs=[outside]) as session:
        assert await reads(session, listed)
        assert await write(session, "second.txt") == "ok"
        assert not await reads(session, outside)
        assert not await reads(session, listed)
        assert await write(session, "third.txt") == "permission.asked"


async def test_a_projects_own_hook_reaches_no_farther_than_the_project(project):
    hooks = hooks_that_change(
        rules("addRules", "Edit", destination="userSettings"),
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        rules("addRules", "Edit(/new/**)"),
    )
    file = Path(get_own_file(str(project), "project"))
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": hooks}))
    async with Session(project, trusted=True) as session:
        assert await write(session, "first.txt") == "ok"
        assert await write(session, "new/a.txt") == "ok"
        assert session.permissions.mode == "default"
        (event,) = await changed(session)
        assert len(event.not_made) == 2
    assert not Path(get_own_file(str(project), "user")).exists()
    (project.parent / "done").unlink()
    async with Session(project, trusted=False) as session:
        assert await write(session, "new/b.txt") == "permission.asked"
        assert await changed(session) == []


async def test_what_managed_settings_forbid_no_answer_allows(project, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "MANAGED_DIRECTORIES", (str(tmp_path / "managed"),))
    managed = tmp_path / "managed" / "managed-settings.json"
    managed.parent.mkdir()
    forbidden = f"Edit(/{project}/never/**)"
    policy = {"permissions": {"deny": [forbidden]}}
    managed.write_text(json.dumps(policy))
    hooks = hooks_that_change(
        rules("addRules", "Edit"), rules("removeRules", forbidden, behavior="deny")
    )
    async with Session(project, hooks=hooks) as session:
        assert await write(session, "first.txt") == "ok"
        assert await write(session, "second.txt") == "ok"
        assert await write(session, "never/a.txt") == "permission.denied"
    (project.parent / "done").unlink()
    managed.write_text(json.dumps({**policy, "allowManagedPermissionRulesOnly": True}))
    async with Session(project, hooks=hooks) as session:
        assert await write(session, "third.txt") == "ok"
        assert await write(session, "fourth.txt") == "permission.asked"
        (event,) = await changed(session)
        assert "only managed settings may add allow rules" in event.not_made[0]


async def test_a_yes_that_does_not_count_changes_nothing(project):
    hooks = hooks_that_change(rules("addRules", "Edit"))
    async with Session(project, hooks=hooks, ask="Edit(/asked.txt)") as session:
        assert await write(session, "asked.txt") == "permission.asked"
        assert await write(session, "other.txt") == "permission.asked"
        assert await changed(session) == []


@pytest.mark.parametrize(
    "change",
    [
        {"type": "wild"},
        {"type": "addRules", "rules": [{"toolName": "Edit"}]},
        {"type": "addRules", "rules": [{"toolName": ""}], "behavior": "allow"},
        {"type": "setMode"},
        {"type": "setMode", "mode": "plan", "destination": "everywhere"},
        {"type": "addDirectories", "directories": [""]},
        "rules",
    ],
)
async def test_a_change_in_another_shape_is_a_failure_of_the_hook_and_no_yes(project, change):
    async with Session(project, hooks=hooks_that_change(change)) as session:
        heard = []
        session.subscribe(heard.append)
        assert await write(session, "a.txt") == "permission.asked"
        await asyncio.sleep(0)
        assert [e.outcome for e in heard if isinstance(e, HookRan)] == ["failed"]


@pytest.mark.parametrize("watched", [False, True])
async def test_changes_of_calls_that_ask_side_by_side_are_all_made(project, watched):
    async def allow_this_one(event):
        name = Path(event["tool_input"]["file_path"]).name
        change = rules("addRules", f"Edit(/{name})", destination="localSettings")
        return {"hookSpecificOutput": {"decision": {
            "behavior": "allow", "updatedPermissions": [change]}}}  # fmt: skip

    async def watch(event):
        return None

    hooks = {
        "PermissionRequest": [allow_this_one],
        **({"ConfigChange": [watch]} if watched else {}),
    }
    async with Session(project, hooks=hooks) as session:
        calls = [("Write", {"file_path": f"{n}.txt", "content": "x"}) for n in range(8)]
        assert all(result.ok for result in await session.call_many(calls))
    async with Session(project) as session:
        assert len([rule for rule in session.permissions.rules if rule.source == "local"]) == 8


@pytest.mark.parametrize("plan", ["# Do it", "# Do it well"])
async def test_a_hook_can_agree_to_a_plan_and_choose_the_mode_for_its_work(project, plan):
    async def agree(event):
        change = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
        decision = {"behavior": "allow", "updatedPermissions": [change]}
        if answers:
            decision["updatedInput"] = {"plan": plan}
        return {"hookSpecificOutput": {"decision": decision}}

    answers = False
    hooks = {"PermissionRequest": [{"matcher": "ExitPlanMode", "hooks": [agree]}]}
    async with Session(project, hooks=hooks, permission_mode="plan") as session:
        result = await session.call("ExitPlanMode", plan="# Do it")
        assert (result.code, session.permissions.mode) == ("permission.asked", "plan")
        answers = True
        result = await session.call("ExitPlanMode", plan="# Do it")
        assert result.ok, result.text
        assert result.data["plan"] == plan
        assert session.permissions.mode == "acceptEdits"
        assert await write(session, "new.txt") == "ok"


async def test_changes_wait_until_the_rewritten_call_is_allowed_too(project):
    async def elsewhere(event):
        decision = {
            "behavior": "allow",
            "updatedInput": {"file_path": str(project / "denied.txt"), "content": "x"},
            "updatedPermissions": [rules("addRules", "Edit(/*.txt)")],
        }
        return {"hookSpecificOutput": {"decision": decision}}

    hooks = {"PermissionRequest": [elsewhere]}
    async with Session(project, hooks=hooks, deny="Edit(/denied.txt)") as session:
        assert await write(session, "a.txt") == "permission.denied"
        assert await changed(session) == []
