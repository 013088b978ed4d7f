"""Layers joined: who wins, what is put together, and what a project may not say."""

import json

import pytest

from handaxe.config import layers as joining
from handaxe.config.source import Origin, read_data, read_text
from handaxe.config.trust import Trust, list_trust_requests

CHOOSING = (
    "XDG_CONFIG_HOME", "PYTEST_PLUGINS", "PYTEST_ADDOPTS", "DOCKER_HOST", "CC", "CXX", "MAKEFLAGS",
    "MAKEFILES", "CFLAGS", "LDFLAGS", "KUBECONFIG", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN",
    "RUSTFLAGS", "CMAKE_TOOLCHAIN_FILE", "ZDOTDIR", "CLASSPATH", "MAVEN_ARGS", "GRADLE_USER_HOME",
    "BUNDLE_GEMFILE", "GEM_PATH", "COMPOSER_HOME", "PHP_INI_SCAN_DIR", "DJANGO_SETTINGS_MODULE",
    "FLASK_APP", "TF_CLI_CONFIG_FILE", "ANSIBLE_CONFIG", "PGHOST", "PGSERVICEFILE",
    "YARN_RC_FILENAME", "ESLINT_USE_FLAT_CONFIG", "CURL_HOME", "WGETRC", "GNUPGHOME", "PERL5OPT",
    "LUA_INIT", "JULIA_LOAD_PATH", "R_PROFILE_USER", "TERMINFO", "LOCPATH", "GCONV_PATH",
    "HOSTALIASES", "SSL_CERT_FILE", "DATABASE_URL", "VIMINIT", "DOTNET_STARTUP_HOOKS",
    "CORECLR_PROFILER", "ERL_FLAGS", "MIX_HOME", "TOX_CONFIG_FILE", "npm_config_registry",
)  # fmt: skip
HOOK = {"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}


def trusting(fragments):
    approved = {wish.key: wish.note for wish in list_trust_requests(fragments, "")}
    return Trust(is_trusted=True, approved=approved)


def merge(fragments, trust=None):
    return joining.merge(fragments, trusting(fragments) if trust is None else trust)


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
        *({"env": {name: "x"}} for name in CHOOSING),
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
    merged = merge([layer("project", **data)], None if trusted else Trust())
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


WEAKENING = {
    "bwrapPath": "/tmp/bwrap",
    "excludedCommands": ["x"],
    "failIfUnavailable": False,
    "failIfWeak": False,
    "filesystem": {"disabled": True, "hideSecrets": False},
    "network": {"allowAllUnixSockets": True, "allowUnixSockets": ["/x"]},
}


@pytest.mark.parametrize("source", ["user", "project", "local", "flags"])
def test_nobody_else_weakens_a_managed_sandbox(source):
    managed = layer("policy", sandbox={"enabled": True, "excludedCommands": ["y"]})
    merged = merge([layer(source, sandbox=WEAKENING), managed])
    assert merged.settings.sandbox == merge([managed]).settings.sandbox
    whys = {why for _, why in ignored(merged)}
    assert whys <= {"managed", "never"}
    assert len(ignored(merged)) == 8
    free = merge([layer("user", sandbox={"enabled": True, **WEAKENING})])
    assert free.settings.sandbox.bwrap_path == "/tmp/bwrap"


def test_the_user_may_say_anything():
    data = {"permissions": {"defaultMode": "bypassPermissions"}, "env": {"PATH": "x"}}
    merged = merge([layer("user", **data)], Trust())
    assert merged.ignored == ()


def test_what_is_trusted_is_known_by_what_it_says_and_nothing_else():
    trust = trusting([layer("project", hooks={"Stop": [HOOK]}, model="a", env={"A": "1"})])
    same = [layer("project", env={"A": "1"}, model="a", hooks={"Stop": [HOOK]})]
    assert merge(same, trust).ignored == ()
    other = {"hooks": {"Stop": [{**HOOK, "matcher": "x"}]}, "model": "b", "env": {"A": "2"}}
    merged = merge([layer("project", **other, permissions={"allow": ["Bash"]})], trust)
    changed = ("hooks.Stop", "model", "env.A", "permissions.allow")
    assert ignored(merged) == {(name, "changed") for name in changed}
    assert merge([layer("user", **other)], trust).ignored == ()


def test_a_harmless_variable_of_a_trusted_project_may_have_another_value():
    trust = trusting([layer("project", env={"NODE_ENV": "test", "MODE": "a"})])
    merged = merge([layer("project", env={"NODE_ENV": "production", "MODE": "b"})], trust)
    assert merged.settings.env == {"NODE_ENV": "production"}
    assert merge([layer("project", env={"NODE_ENV": "x"})], Trust()).settings.env == {}


def test_what_the_user_allowed_as_an_answer_counts_in_that_file_without_more_trust():
    def local(file, **data):
        return read_text(json.dumps(data), source="local", file=file)

    rules = {"allow": ["Bash(make)", "Bash(rm:*)"], "additionalDirectories": ["/x"]}
    trust = Trust(rules={"/p/settings.local.json": {"Bash(make)": 1.0}})
    merged = merge([local("/p/settings.local.json", permissions=rules)], trust)
    assert merged.settings.permissions.allow == ("Bash(make)",)
    assert merged.settings.permissions.additional_directories == ()
    elsewhere = merge([local("/q/settings.local.json", permissions=rules)], trust)
    assert elsewhere.settings.permissions.allow == ()
