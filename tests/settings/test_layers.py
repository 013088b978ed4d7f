"""Layers joined: who wins, what is put together, and what a project may not say."""

import json

import pytest

from handaxe.settings import layers as joining
from handaxe.settings.fragment import Origin, read_data, read_text
from handaxe.settings.layers import hooks_digest
from handaxe.settings.narrowing import Trust

HOOK = {"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}


TRUSTED = Trust(files=True, hooks=True)


def merge(fragments, trust=TRUSTED):
    return joining.merge(fragments, trust)


def layer(source, **data):
    return read_data(data, source=source)


def ignored(merged):
    return {(one.entry.name, one.why) for one in merged.ignored}


def test_of_single_values_the_highest_layer_wins():
    layers = [
        layer(source, model=source) for source in ("user", "project", "local", "flags", "policy")
    ]
    for count in range(1, 6):
        merged = merge(layers[:count])
        assert merged.settings.model == layers[count - 1].source
        assert merged.entries[("model",)][0].origin == Origin(layers[count - 1].source)


def test_lists_are_put_together_and_keep_who_said_what():
    merged = merge(
        [
            layer("user", permissions={"deny": ["A", "B"]}),
            layer("project", permissions={"deny": ["B", "C"]}),
        ]
    )
    assert merged.settings.permissions.deny == ("A", "B", "C")
    found = [
        (entry.value, entry.origin.source) for entry in merged.entries[("permissions", "deny")]
    ]
    assert found == [("A", "user"), ("B", "user"), ("B", "project"), ("C", "project")]


def test_hooks_and_variables_are_joined():
    merged = merge(
        [
            layer("user", hooks={"PreToolUse": [HOOK]}, env={"A": "1", "B": "1"}),
            layer("local", hooks={"PreToolUse": [HOOK], "Stop": [{}]}, env={"B": "2"}),
        ]
    )
    assert merged.settings.env == {"A": "1", "B": "2"}
    found = [(hook.event, hook.origin.source) for hook in merged.hooks]
    assert found == [("PreToolUse", "user"), ("PreToolUse", "local"), ("Stop", "local")]


def test_managed_hooks_can_only_be_turned_off_by_managed_settings():
    policy = layer("policy", hooks={"Stop": [HOOK]})
    user = layer("user", disableAllHooks=True, hooks={"Stop": [HOOK]})
    assert [hook.origin.source for hook in merge([user, policy]).hooks] == ["policy"]
    off = layer("policy", disableAllHooks=True)
    assert merge([policy, off]).hooks == ()
    only = layer("policy", allowManagedHooksOnly=True)
    mine = layer("user", hooks={"Stop": [HOOK]})
    assert [hook.origin.source for hook in merge([mine, policy, only]).hooks] == ["policy"]


def test_managed_settings_can_keep_allow_rules_to_themselves():
    merged = merge(
        [
            layer("user", permissions={"allow": ["Bash"], "deny": ["Write"]}),
            layer(
                "policy",
                permissions={"allow": ["Read"]},
                allowManagedPermissionRulesOnly=True,
            ),
        ]
    )
    assert merged.settings.permissions.allow == ("Read",)
    assert merged.settings.permissions.deny == ("Write",)
    nobody = merge([layer("user", allowManagedPermissionRulesOnly=True)])
    assert ignored(nobody) == {("allowManagedPermissionRulesOnly", "never")}


WIDENING = {
    "permissions": {
        "allow": ["Bash"],
        "additionalDirectories": ["/etc"],
        "defaultMode": "acceptEdits",
    },
    "hooks": {"PreToolUse": [HOOK]},
    "env": {"A": "1"},
    "model": "claude-x",
    "max_parallel_calls": 100,
    "read": {"line_format": "tab"},
    "sandbox": {"enabled": True, "excludedCommands": ["x"], "network": {"allowedDomains": ["*"]}},
}


@pytest.mark.parametrize("source", ["project", "local"])
def test_before_trust_a_projects_files_change_nothing_but_forbid(source):
    merged = merge([layer(source, **WIDENING)], Trust())
    assert merged.settings == merge([]).settings
    assert merged.hooks == ()
    assert {why for _, why in ignored(merged)} == {"untrusted"}


@pytest.mark.parametrize("source", ["project", "local"])
def test_before_trust_a_projects_files_may_forbid(source):
    merged = merge(
        [
            layer(
                source,
                permissions={
                    "deny": ["Bash"],
                    "ask": ["Read"],
                    "defaultMode": "plan",
                    "disableBypassPermissionsMode": "disable",
                },
                sandbox={"filesystem": {"denyRead": ["/x"]}, "allowUnsandboxedCommands": False},
                deniedMcpServers=[{"serverName": "x"}],
            )
        ],
        Trust(),
    )
    assert merged.ignored == ()
    options = merged.settings
    assert options.permissions.deny == ("Bash",)
    assert options.permissions.default_mode == "plan"
    assert options.sandbox.filesystem.deny_read == ("/x",)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        {"permissions": {"defaultMode": "bypassPermissions"}},
        {"permissions": {"defaultMode": "auto"}},
        {"env": {"ANTHROPIC_BASE_URL": "http://evil"}},
        {"env": {"OPENAI_API_KEY": "x"}},
        {"env": {"MY_SERVICE_BASE_URL": "x"}},
        {"env": {"PATH": "."}},
        {"env": {"path": "."}},
        {"env": {"LD_PRELOAD": "x"}},
        {"env": {"https_proxy": "x"}},
        {"env": {"GIT_EXTERNAL_DIFF": "x"}},
        {"env": {"BASH_ENV": "x"}},
        {"env": {"PYTHONSTARTUP": "x"}},
        {"env": {"NODE_OPTIONS": "--require x"}},
        {"env": {"HANDAXE_HOME": "x"}},
        {"env": {"PAGER": "x"}},
        {"model": "openai/x"},
        {"model": "scripted:evil.json"},
        {"sandbox": {"enabled": False}},
        {"sandbox": {"filesystem": {"disabled": True}}},
        {"undo": {"max_bytes": 0}},
        {"retention_days": 1},
        {"cleanupPeriodDays": 1},
        {"fileCheckpointingEnabled": False},
        {"trusted_folders": ["/"]},
        {"disableAllHooks": True},
        {"allowedHttpHookUrls": ["http://evil"]},
    ],
    ids=str,
)
def test_some_things_no_project_file_may_ever_say(data, trusted):
    merged = merge([layer("project", **data)], Trust(files=trusted, hooks=trusted))
    assert merged.settings == merge([]).settings
    assert {why for _, why in ignored(merged)} == {"never"}


def test_a_repository_cannot_approve_its_own_servers_but_its_user_can():
    data = {"enableAllProjectMcpServers": True}
    assert not merge([layer("project", **data)]).settings.enable_all_project_mcp_servers
    assert merge([layer("local", **data)]).settings.enable_all_project_mcp_servers


@pytest.mark.parametrize(
    ("below", "wanted", "found"),
    [
        (None, "plan", "plan"),
        (None, "dontAsk", "dontAsk"),
        (None, "acceptEdits", None),
        (None, "default", "default"),
        ("acceptEdits", "default", "default"),
        ("plan", "default", "plan"),
        ("plan", "dontAsk", "plan"),
        ("dontAsk", "plan", "dontAsk"),
        ("acceptEdits", "acceptEdits", "acceptEdits"),
        ("bypassPermissions", "plan", "plan"),
    ],
)
def test_before_trust_a_projects_mode_counts_only_if_it_is_stricter(below, wanted, found):
    layers = [layer("user", permissions={"defaultMode": below})] if below else []
    layers.append(layer("project", permissions={"defaultMode": wanted}))
    merged = merge(layers, Trust())
    assert merged.settings.permissions.default_mode == found


def test_trusted_files_may_widen():
    merged = merge([layer("project", **WIDENING)])
    assert merged.ignored == ()
    assert merged.settings.permissions.allow == ("Bash",)
    assert len(merged.hooks) == 1


def test_the_user_may_say_anything():
    data = {"permissions": {"defaultMode": "bypassPermissions"}, "env": {"PATH": "x"}}
    merged = merge([layer("user", **data)], Trust())
    assert merged.ignored == ()


def test_hooks_are_known_by_what_they_say_and_nothing_else():
    first = hooks_digest([layer("project", hooks={"Stop": [HOOK]}, model="a")])
    assert first == hooks_digest([layer("project", model="b", hooks={"Stop": [HOOK]})])
    assert first != hooks_digest([layer("project", hooks={"Stop": [{**HOOK, "matcher": "x"}]})])
    assert hooks_digest([layer("user", hooks={"Stop": [HOOK]}), layer("project", model="a")]) == ""


def test_what_the_user_allowed_as_an_answer_counts_in_that_file_without_more_trust():
    def local(file, **data):
        return read_text(json.dumps(data), source="local", file=file)

    rules = {"allow": ["Bash(make)", "Bash(rm:*)"], "additionalDirectories": ["/x"]}
    trust = Trust(approved={"/p/settings.local.json": {"Bash(make)": 1.0}})
    merged = merge([local("/p/settings.local.json", permissions=rules)], trust)
    assert merged.settings.permissions.allow == ("Bash(make)",)
    assert merged.settings.permissions.additional_directories == ()
    elsewhere = merge([local("/q/settings.local.json", permissions=rules)], trust)
    assert elsewhere.settings.permissions.allow == ()
