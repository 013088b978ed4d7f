"""One file, value by value: what is wrong is named and left out, the rest counts."""

import re

import msgspec
import pytest

from handaxe.config.keys import find_nearest_key, list_keys, split_key
from handaxe.config.layers import merge
from handaxe.config.settings import Settings
from handaxe.config.source import read_data, read_text
from handaxe.config.trust import Trust


def problems_of(text):
    return [str(problem) for problem in read_text(text, source="user", file="s.json").problems]


def settings_of(*fragments):
    return merge(fragments, Trust()).settings


MISTAKES = """
{"permisions": {}}                        there is no setting `permisions`; did you mean `permissions`?
{"permissions": {"alow": []}}             there is no setting `permissions.alow`; did you mean `permissions.allow`?
{"deny": []}                              there is no setting `deny`; did you mean `permissions.deny`?
{"sandbox": {"networks": {}}}             there is no setting `sandbox.networks`; did you mean `sandbox.network`?
{"zzzzqqq": 1}                            there is no setting `zzzzqqq`
{"read": 3}                               `read` must be an object, not 3
{"read": {"line_format": "tabb"}}         `read.line_format` must be `arrow` or `tab`, not "tabb"; did you mean `tab`?
{"permissions": {"allow": ["Read", 3]}}   `permissions.allow` item 2 must be a text, not 3
{"permissions": {"allow": "Read"}}        `permissions.allow` must be a list, not "Read"
{"max_parallel_calls": 0}                 `max_parallel_calls` must be a whole number >= 1, not 0
{"cleanupPeriodDays": 0}                  `cleanupPeriodDays` must be a whole number >= 1, not 0
{"sandbox": {"enabled": "yes"}}           `sandbox.enabled` must be true or false, not "yes"
{"env": {"A": [1]}}                       `env.A` must be a text, not [1]
{"env": 1}                                `env` must be an object, not 1
{"hooks": {"Stop": [4]}}                  `hooks.Stop` item 1 must be an object, not 4
{"hooks": {"Stop": {}}}                   `hooks.Stop` must be a list, not {}
"""


@pytest.mark.proves("ST-2")
@pytest.mark.parametrize("row", MISTAKES.strip().splitlines())
def test_a_mistake_is_told_with_file_line_and_nearest_key(row):
    text, told = re.split(r"  +", row, maxsplit=1)
    # The mistake is the innermost value, so it stands on the last line.
    spread = text.replace("{", "{\n").replace("[", "[\n")
    line = spread.rstrip("}] ").count("\n") + 1
    (problem,) = problems_of(text)
    assert problem == f"s.json:1: {told}"
    (problem,) = problems_of(spread)
    where, _, said = problem.partition(": ")
    assert said == told
    assert 2 <= int(where.removeprefix("s.json:")) <= line


@pytest.mark.proves("ST-2")
def test_one_bad_value_disables_nothing_beside_it():
    text = """{
        "permissions": {"deny": [1, "Read(/a)", null], "alow": 2, "ask": ["Bash"]},
        "model": 4, "env": {"A": "x", "B": {}}
    }"""
    found = settings_of(read_text(text, source="user"))
    assert found.permissions.deny == ("Read(/a)",)
    assert found.permissions.ask == ("Bash",)
    assert found.env == {"A": "x"}
    assert len(problems_of(text)) == 5


@pytest.mark.proves("ST-2")
def test_a_deny_rule_without_its_brackets_still_denies_and_an_allow_rule_does_not_allow():
    found = read_text('{"permissions": {"deny": "Bash", "allow": "Write"}}', source="user")
    assert settings_of(found).permissions.deny == ("Bash",)
    assert settings_of(found).permissions.allow == ()
    assert len(found.problems) == 2


def test_the_ecosystems_own_keys_are_taken_as_they_are():
    text = """{
      "$schema": "https://example.org/s.json", "includeCoAuthoredBy": false,
      "statusLine": {"type": "command"}, "apiKeyHelper": "/bin/x", "outputStyle": "Explanatory",
      "enabledPlugins": {"a@b": true}, "worktree": {"baseRef": "head"},
      "autoMode": {"classifyAllShell": true}, "cleanupPeriodDays": 20,
      "sandbox": {"enabled": true, "ignoreViolations": {"x": ["y"]},
                  "network": {"httpProxyPort": 8080}},
      "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command"}]}]},
      "permissions": {"allow": ["Bash(npm run *)"], "disableBypassPermissionsMode": "disable"},
      "allowedMcpServers": []
    }"""
    found = read_text(text, source="user")
    assert found.problems == ()
    assert settings_of(found).retention_days == 20
    # An empty list of what is allowed allows nothing; it is not the same as no list.
    assert settings_of(found).allowed_mcp_servers == ()
    assert settings_of().allowed_mcp_servers is None


def test_numbers_among_variables_become_texts():
    assert settings_of(read_text('{"env": {"PORT": 80, "ON": true}}', source="user")).env == {
        "PORT": "80",
        "ON": "true",
    }


def test_dotted_keys_stand_for_nested_ones():
    found = settings_of(read_data({"read.line_format": "tab", "read": {}, "env.A.B": "c"}))
    assert found.read.line_format == "tab"
    assert found.env == {"A.B": "c"}


def test_null_means_not_set():
    found = read_text('{"model": null, "permissions": null, "env": null}', source="user")
    assert (found.entries, found.problems) == ((), ())


def test_plain_data_of_a_settings_object_gives_the_same_object():
    wanted = Settings(max_parallel_calls=3, env={"A": "b"}, trusted_folders=("/x",))
    assert settings_of(read_data(msgspec.to_builtins(wanted))) == wanted


def test_every_option_has_a_meaning_and_reads_its_own_default():
    for key in list_keys().values():
        assert key.doc, key.name
        assert key.doc.endswith("."), key.name
        assert split_key(key.name) == key.path
    assert settings_of() == Settings()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Permissions", "permissions"),
        ("read.lineFormat", "read.line_format"),
        ("line_format", "read.line_format"),
        ("sandbox.deniedDomains", "sandbox.network.deniedDomains"),
        ("includeCoauthoredby", "includeCoAuthoredBy"),
    ],
)
def test_the_nearest_key_is_found_in_other_groups_too(wrong, right):
    assert find_nearest_key(split_key(wrong)) == right
