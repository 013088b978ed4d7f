"""Config: settings as a model sees them, and changes that nobody makes without a yes."""

import json
from pathlib import Path

import pytest
from tests.expected_types import require

from handaxe import Allow, Deny, Session


async def yes(_request):
    return Allow()


def write(path: Path, data) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


@pytest.fixture
def own(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("HANDAXE_CONFIG_HOME", str(tmp_path / "own"))
    return tmp_path / "own" / "settings.json"


@pytest.mark.proves("BT-29")
async def test_it_lists_what_is_set_and_where(project, own):
    write(own, {"read": {"line_format": "tab"}, "theme": "dark"})
    async with Session(project, settings={"max_parallel_calls": 3}) as session:
        result = await session.call("Config")
    assert result.text.splitlines() == [
        "max_parallel_calls = 3 (flags)",
        f'read.line_format = "tab" ({own}:1)',
        f'theme = "dark" ({own}:1, not used by handaxe)',
    ]
    assert require(result.decision).verdict == "allow"


@pytest.mark.proves("BT-29")
async def test_it_shows_one_setting_with_its_meaning_or_a_group(project):
    async with Session(project, deny=[], settings={"permissions": {"deny": ["Bash"]}}) as session:
        one = await session.call("Config", key="read.line_format")
        group = await session.call("Config", key="permissions")
        unset = await session.call("Config", key="env.NOPE")
        foreign = await session.call("Config", key="theme")
    assert one.text.startswith('read.line_format = "arrow" (default)\n')
    assert group.data["value"] == {"deny": ["Bash"]}
    assert (unset.ok, foreign.ok) == (True, True)


@pytest.mark.proves("BT-29")
@pytest.mark.parametrize("scope", ["local", "project", "user"])
async def test_a_change_is_written_counts_at_once_and_can_be_undone(project, own, scope):
    files = {
        "local": project / ".handaxe" / "settings.local.json",
        "project": project / ".handaxe" / "settings.json",
        "user": own,
    }
    async with Session(project, on_ask=yes, trusted=True) as session:
        for value in ("tab", "arrow", "tab"):
            result = await session.call("Config", key="read.line_format", value=value, scope=scope)
            assert result.ok, result.text
            assert session.settings.read.line_format == value
        assert json.loads(files[scope].read_text()) == {"read": {"line_format": "tab"}}
        assert result.notes == ()
        assert (await session.undo()).ok
        assert json.loads(files[scope].read_text()) == {"read": {"line_format": "arrow"}}
        removed = await session.call("Config", key="read.line_format", remove=True, scope=scope)
        assert removed.ok, removed.text
    assert json.loads(files[scope].read_text()) == {}


@pytest.mark.proves("BT-29")
@pytest.mark.parametrize("scope", ["local", "project", "user"])
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "auto", "bypassPermissions"])
async def test_no_mode_and_no_rule_changes_settings_without_a_question(project, own, mode, scope):
    asked = []

    async def no(request):
        asked.append(request)
        return Deny("not today")

    async with Session(
        project, permission_mode=mode, allow=["Config", "Edit(//**)", "Write"], on_ask=no
    ) as session:
        call = {"key": "permissions.allow", "value": ["Bash"], "scope": scope}
        refused = await session.call("Config", call)
    # In plan mode nobody's yes would count, so nobody is asked.
    is_planning = mode == "plan"
    assert refused.code == ("permission.asked" if is_planning else "permission.denied")
    assert len(asked) == (0 if is_planning else 1)
    assert not own.exists()
    assert not (project / ".handaxe").exists()


async def test_a_rule_set_by_a_call_holds_for_the_next_call(project):
    (project / "a").write_text("x\n")
    async with Session(project, on_ask=yes) as session:
        await session.call("Config", key="permissions.deny", value=["Read(/a)"])
        assert (await session.call("Read", file_path="a")).code == "permission.denied"
        await session.call("Config", key="permissions.deny", remove=True)
        await session.call("Config", key="read.line_format", value="tab", scope="user")
        assert (await session.call("Read", file_path="a")).text == "1\tx"


async def test_without_anybody_to_ask_nothing_changes(project):
    async with Session(project, permission_mode="bypassPermissions") as session:
        result = await session.call("Config", key="model", value="x")
    assert result.code == "permission.asked"
    async with Session(project, permission_mode="dontAsk") as session:
        result = await session.call("Config", key="model", value="x")
    assert result.code == "permission.denied"


@pytest.mark.parametrize(
    ("call", "code", "told"),
    [
        ({"key": "read.lineformat"}, "setting.unknown", "`read.line_format`"),
        ({"key": "red", "value": 1}, "setting.unknown", "`read`"),
        ({"key": "read.line_format", "value": "tabb"}, "setting.bad_value", "`tab`"),
        ({"key": "permissions", "value": "x"}, "setting.bad_value", "permissions.deny"),
        ({"key": "permissions.deny", "value": "Bash"}, "setting.bad_value", "must be a list"),
        ({"key": "permissions.deny", "value": ["Bash(("]}, "setting.bad_value", "')'"),
        ({"value": "x"}, "setting.bad_value", "`key`"),
        ({"key": "model", "value": "x", "remove": True}, "setting.bad_value", "not both"),
    ],
)
async def test_nonsense_is_refused_before_anybody_is_asked(project, call, code, told):
    async def never(_request):
        raise AssertionError

    async with Session(project, on_ask=never) as session:
        result = await session.call("Config", call)
    assert result.code == code
    assert told in result.text


async def test_variables_are_named_and_their_values_are_not_shown(project, own):
    write(own, {"env": {"TOKEN": "s3cret"}})
    async with Session(project) as session:
        for call in ({}, {"key": "env"}, {"key": "env.TOKEN"}):
            result = await session.call("Config", call)
            assert "TOKEN" in result.text
            assert "s3cret" not in json.dumps(result.to_json())


async def test_a_change_that_does_not_count_says_so(project):
    async with Session(project, on_ask=yes, settings={"model": "mine"}) as session:
        overruled = await session.call("Config", key="model", value="other", scope="user")
        untrusted = await session.call("Config", key="max_parallel_calls", value=3)
    assert overruled.notes == ("It has no effect, because flags overrides it.",)
    assert "handaxe trust" in untrusted.notes[0]


async def test_a_file_that_is_not_json_is_left_alone(project, own):
    write(own, "{ broken")
    async with Session(project, on_ask=yes) as session:
        result = await session.call("Config", key="model", value="x", scope="user")
    assert result.code == "setting.not_written"
    assert own.read_text() == "{ broken"


async def test_a_link_in_the_project_leads_no_change_elsewhere(project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / ".handaxe").symlink_to(elsewhere)
    async with Session(project, on_ask=yes) as session:
        result = await session.call("Config", key="model", value="x")
    assert result.code == "setting.not_written"
    assert list(elsewhere.iterdir()) == []


async def test_the_rest_of_a_file_stays_as_it_was(project, own):
    write(own, '{\n\t"theme": "dark",\n\t"read": {"line_format": "tab"},\n\t"zzz": [1, "é"]\n}\n')
    async with Session(project, on_ask=yes) as session:
        await session.call("Config", key="read.line_format", value="arrow", scope="user")
    text = own.read_text()
    assert text.startswith('{\n\t"theme": "dark",\n\t"read": {\n\t\t"line_format": "arrow"')
    assert json.loads(text)["zzz"] == [1, "é"]
    assert "é" in text
