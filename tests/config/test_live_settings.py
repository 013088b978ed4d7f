"""Settings at work in a session: rules, options, directories and modes, also while it runs."""

import json
from pathlib import Path

import pytest
from tests.expected_types import require

import handaxe
from handaxe import Session
from handaxe.app.services.sandbox import build_sandbox_policy
from handaxe.app.session import get_parts
from handaxe.config import settings_paths as places
from handaxe.contract.events import ModeChanged, SettingsChanged


def write(path: Path, data) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


def permissions(**options):
    return {"permissions": options}


@pytest.fixture
def own(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("HANDAXE_CONFIG_HOME", str(tmp_path / "own"))
    return tmp_path / "own" / "settings.json"


@pytest.fixture
def readme(project) -> str:
    (project / "README").write_text("hello\n")
    return "README"


@pytest.mark.proves("ST-2")
async def test_a_deny_rule_written_while_the_session_runs_holds_for_the_next_call(project, readme):
    file = project / ".claude" / "settings.json"
    async with Session(project) as session:
        for _ in range(5):
            assert (await session.call("Read", file_path=readme)).ok
            write(file, permissions(deny=["Read(/README)"]))
            denied = await session.call("Read", file_path=readme)
            assert (denied.code, require(denied.decision).source) == (
                "permission.denied",
                f"{file}:1",
            )
            file.unlink()


@pytest.mark.proves("ST-2")
async def test_a_file_that_breaks_keeps_its_deny_rules_and_whoever_listens_is_told(project, readme):
    file = project / ".claude" / "settings.json"
    write(file, permissions(deny=["Read(/README)"]))
    told = []
    async with Session(project) as session:
        session.subscribe(told.append)
        assert session.warnings == ()
        write(file, "{")
        assert (await session.call("Read", file_path=readme)).code == "permission.denied"
        (changed,) = [event for event in told if isinstance(event, SettingsChanged)]
        assert changed.files == (str(file),)
        assert "still apply" in changed.warnings[0]
        assert session.warnings == changed.warnings


async def test_options_change_while_the_session_runs(project, own, readme):
    async with Session(project) as session:
        assert (await session.call("Read", file_path=readme)).text == "     1→hello"
        write(own, {"read": {"line_format": "tab"}})
        assert (await session.call("Read", file_path=readme)).text == "1\thello"
        assert session.settings.read.line_format == "tab"


async def test_directories_come_and_go_while_the_session_runs(project, own, tmp_path):
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "a").write_text("x\n")
    async with Session(project) as session:
        read = {"file_path": str(beside / "a")}
        assert (await session.call("Read", read)).code == "permission.asked"
        write(own, permissions(additionalDirectories=[str(beside)]))
        assert (await session.call("Read", read)).ok
        write(own, {})
        assert (await session.call("Read", read)).code == "permission.asked"


async def test_rules_of_a_layer_do_not_touch_other_layers_or_grants(project, own, readme):
    write(own, permissions(allow=["Write"]))
    async with Session(project, deny=["Read(/x)"]) as session:
        session.permissions.grant(["Grep"])
        write(own, permissions(ask=["Read(README)"]))
        assert (await session.call("Read", file_path=readme)).code == "permission.asked"
        found = {(rule.text, rule.source) for rule in session.permissions.rules}
        assert found == {("Read(README)", "user"), ("Read(/x)", "flags"), ("Grep", "session")}


async def test_untrusted_files_cannot_widen_a_running_session(project):
    async with Session(project) as session:
        call = {"file_path": "a", "content": "x"}
        assert (await session.call("Write", call)).code == "permission.asked"
        write(project / ".claude/settings.json", permissions(allow=["Write"]))
        assert (await session.call("Write", call)).code == "permission.asked"
        assert "not been trusted" in session.warnings[0]
    async with Session(project, trusted=True) as session:
        assert (await session.call("Write", call)).ok


@pytest.mark.parametrize(
    ("project_mode", "given", "mode"),
    [
        ("plan", None, "plan"),
        ("plan", "acceptEdits", "acceptEdits"),
        ("acceptEdits", None, "default"),
        ("bypassPermissions", None, "default"),
    ],
)
async def test_a_projects_file_can_only_start_in_a_stricter_mode(
    project, project_mode, given, mode
):
    write(project / ".claude/settings.json", permissions(defaultMode=project_mode))
    async with Session(project, permission_mode=given) as session:
        assert session.permissions.mode == mode


async def test_settings_can_forbid_modes_at_the_start_and_later(project, own):
    write(own, permissions(disableBypassPermissionsMode="disable"))
    with pytest.raises(handaxe.SetupError, match="disableBypassPermissionsMode"):
        Session(project, permission_mode="bypassPermissions")
    async with Session(project) as session:
        with pytest.raises(handaxe.SetupError):
            session.set_mode("bypassPermissions")
    write(own, {})
    told = []
    async with Session(project, permission_mode="bypassPermissions") as session:
        session.subscribe(told.append)
        write(own, permissions(disableBypassPermissionsMode="disable"))
        result = await session.call("Write", file_path="a", content="x")
        assert result.code == "permission.asked"
        assert session.permissions.mode == "default"
    assert [event.mode for event in told if isinstance(event, ModeChanged)] == ["default"]


async def test_managed_settings_can_keep_arguments_from_allowing(project, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "MANAGED_DIRECTORIES", (str(tmp_path / "managed"),))
    write(
        tmp_path / "managed" / "managed-settings.json",
        {**permissions(deny=["Edit(/x)"]), "allowManagedPermissionRulesOnly": True},
    )
    async with Session(project, allow=["Write"], deny=["Read(/y)"]) as session:
        assert (await session.call("Write", file_path="a", content="")).code == "permission.asked"
        found = {(rule.text, rule.source) for rule in session.permissions.rules}
        assert found == {("Edit(/x)", "policy"), ("Read(/y)", "flags")}


async def test_a_session_can_be_opened_without_any_settings_file(project, own, readme):
    write(own, permissions(deny=["Read"]))
    write(project / ".claude/settings.json", permissions(deny=["Read"]))
    async with Session(project, setting_sources=()) as session:
        assert (await session.call("Read", file_path=readme)).ok


@pytest.fixture
def managed(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(places, "MANAGED_DIRECTORIES", (str(tmp_path / "managed"),))
    return tmp_path / "managed" / "managed-settings.json"


@pytest.mark.parametrize("is_only", [True, False])
async def test_managed_settings_can_be_the_only_ones_to_allow_servers(
    project, managed, own, is_only
):
    listed = [{"serverName": "theirs"}]
    write(managed, {"allowManagedMcpServersOnly": is_only, "allowedMcpServers": listed})
    write(own, {"allowedMcpServers": [{"serverName": "mine"}]})
    servers = {name: {"command": "true"} for name in ("theirs", "mine", "other")}
    async with Session(project, mcp_servers=servers) as session:
        blocked = {s.name for s in require(session.mcp).status() if s.status == "disabled"}
    assert blocked == ({"mine", "other"} if is_only else {"other"})


def test_managed_settings_can_be_the_only_ones_to_open_places(project, managed, own):
    files = {"allowRead": ["/a"], "allowManagedReadPathsOnly": True}
    write(managed, {"sandbox": {"filesystem": files}})
    write(own, {"sandbox": {"enabled": True, "filesystem": {"allowRead": ["/b"]}}})
    session = Session(project)
    policy = build_sandbox_policy(
        get_parts(session).configuration,
        session.workdir,
        get_parts(session).session_context.policy(),
        temp_directory="/tmp/x",
        aside_directory="/tmp/y",
    )
    assert policy.allow_read[0] == "/a"
    assert "/b" not in policy.allow_read
    assert session.warnings == ()


async def test_a_restriction_without_effect_is_told(project, own):
    write(own, {"enforceAvailableModels": True, "theme": "dark", "sshHostAllowlist": ["a"]})
    async with Session(project) as session:
        assert session.warnings == (
            f"{own}:1: `enforceAvailableModels` has no effect: handaxe does not enforce it.",
            f"{own}:1: `sshHostAllowlist` has no effect: handaxe does not enforce it.",
        )


async def test_a_rule_that_names_no_tool_is_told_with_the_nearest_name(project, own):
    write(own, permissions(deny=["Raed(/x)", "mcp__a__b", "Write(", "Foo*"]))
    async with Session(project) as session:
        malformed, unknown = session.warnings
    assert malformed == f"{own}:1: The deny rule 'Write(' does not end with its ')'."
    assert unknown == (
        f"{own}:1: The deny rule 'Raed(/x)' has no effect: there is no tool 'Raed'."
        " Did you mean 'Read'?"
    )


async def test_a_resumed_session_keeps_its_mode_over_the_files(project, own):
    write(own, permissions(defaultMode="plan"))
    async with Session(project, session_id="one") as session:
        session.set_mode("acceptEdits")
        await session.call("Write", file_path="a", content="x")
    async with Session(project, session_id="one") as session:
        assert session.permissions.mode == "acceptEdits"


async def test_settings_given_as_an_object_or_as_data_are_the_same(project):
    for given in (handaxe.Settings(max_parallel_calls=3), {"max_parallel_calls": 3}):
        async with Session(project, settings=given) as session:
            assert session.settings == handaxe.Settings(max_parallel_calls=3)


@pytest.mark.proves("ST-2")
@pytest.mark.parametrize("is_directory", [False, True])
async def test_a_settings_file_behind_a_link_to_nowhere_goes_on_denying(
    project, readme, tmp_path, is_directory
):
    real, own = tmp_path / "real", project / ".claude"
    write(real / "settings.json", permissions(deny=["Read(/README)"]))
    link, target = (own, real) if is_directory else (own / "settings.json", real / "settings.json")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    async with Session(project) as session:
        assert (await session.call("Read", file_path=readme)).code == "permission.denied"
        real.rename(tmp_path / "elsewhere")
        assert (await session.call("Read", file_path=readme)).code == "permission.denied"
    async with Session(project) as session:
        assert (await session.call("Read", file_path=readme)).code == "permission.denied"
        told, *_ = [text for text in session.warnings if "leads nowhere" in text]
        assert told.startswith(f"{own}/settings.json: it cannot be read")
        write(tmp_path / "elsewhere" / "settings.json", permissions(deny=[]))
        (tmp_path / "elsewhere").rename(real)
        assert (await session.call("Read", file_path=readme)).ok


async def test_a_remembered_rule_about_an_unknown_tool_is_told_without_a_line(project):
    file = project / ".claude" / "settings.json"
    write(file, permissions(deny=["Raed(/x)"]))
    async with Session(project):
        pass
    write(file, permissions(dney=[]))
    async with Session(project) as session:
        (told,) = [text for text in session.warnings if "there is no tool 'Raed'" in text]
        assert told.startswith(f"{file}: The deny rule 'Raed(/x)'")
