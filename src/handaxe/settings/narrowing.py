"""What a project's own files may say: they can narrow, and widen only as far as they are trusted.

Whoever wrote the project wrote these files, the local one included, so until the user trusts the
folder they may only forbid, and allow what the user allowed there as an answer. Some things they
may never do: choose a looser mode for good, pick programs or endpoints of the runtime, or touch
what belongs to all projects of a user.
"""

import re
from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from handaxe.settings.fragment import RULES, Entry, Source
from handaxe.settings.keys import KeyPath

FROM_THE_PROJECT: frozenset[Source] = frozenset({"project", "local"})
MODE: KeyPath = ("permissions", "defaultMode")
ALLOW = RULES[2]

Refusal = Literal["untrusted", "never"]

_STRICTNESS = {
    "bypassPermissions": 0,
    "auto": 1,
    "acceptEdits": 2,
    "default": 3,
    "manual": 3,
    "plan": 4,
    "dontAsk": 4,
}
_NARROWING: frozenset[KeyPath] = frozenset(
    {
        ("permissions", "deny"),
        ("permissions", "ask"),
        ("permissions", "disableBypassPermissionsMode"),
        ("permissions", "disableAutoMode"),
        ("sandbox", "filesystem", "denyRead"),
        ("sandbox", "filesystem", "denyWrite"),
        ("sandbox", "network", "deniedDomains"),
        ("deniedMcpServers",),
        ("disabledMcpjsonServers",),
    }
)
_NARROWING_IF: dict[KeyPath, bool] = {
    ("autoMemoryEnabled",): False,
    ("sandbox", "failIfUnavailable"): True,
    ("sandbox", "failIfWeak"): True,
    ("sandbox", "autoAllowBashIfSandboxed"): False,
    ("sandbox", "allowUnsandboxedCommands"): False,
    ("sandbox", "network", "strictAllowlist"): True,
    ("sandbox", "filesystem", "hideSecrets"): True,
}
"""Switches that only forbid when set this way. `sandbox.enabled` is none of them: sandboxed
commands may run without a question."""
_NEVER_IF: dict[KeyPath, bool] = {
    ("permissions", "askIrreversible"): False,
    ("autoMemoryEnabled",): True,
    ("sandbox", "enabled"): False,
    ("sandbox", "failIfUnavailable"): False,
    ("sandbox", "failIfWeak"): False,
    ("sandbox", "filesystem", "disabled"): True,
    ("sandbox", "filesystem", "hideSecrets"): False,
}
_NEVER: frozenset[KeyPath] = frozenset(
    {
        ("trusted_folders",),
        ("apiKeyHelper",),
        ("autoMemoryDirectory",),
        ("retention_days",),
        ("cleanupPeriodDays",),
        ("fileCheckpointingEnabled",),
        ("undo", "max_bytes"),
        ("undo", "retention_days"),
        ("shell", "activation"),
        ("shell", "hidden_variables"),
        ("shell", "max_kept_bytes"),
        ("shell", "pass_variables"),
        ("shell", "prefix"),
        ("shell", "program"),
        ("shell", "max_session_bytes"),
        ("disableAllHooks",),
        ("allowedHttpHookUrls",),
        ("httpHookAllowedEnvVars",),
        ("allowedMcpServers",),
        ("sandbox", "bwrapPath"),
    }
)
_NEVER_SHARED: frozenset[KeyPath] = frozenset(
    {("enableAllProjectMcpServers",), ("enabledMcpjsonServers",)}
)
"""A repository may not approve its own servers; the local file records what its user approved."""
_POLICY_ONLY: frozenset[KeyPath] = frozenset(
    {
        ("allowManagedHooksOnly",),
        ("allowManagedPermissionRulesOnly",),
        ("allowManagedMcpServersOnly",),
        ("sandbox", "filesystem", "allowManagedReadPathsOnly"),
        ("sandbox", "network", "allowManagedDomainsOnly"),
    }
)
_STEERING_VARIABLE = (
    r"PATH|HOME|SHELL|ENV|BASH_ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|IFS|CDPATH|TMPDIR"
    r"|(LD|DYLD|GIT|SSH|HANDAXE|ANTHROPIC|OPENAI|CLAUDE|AWS|GOOGLE|GCLOUD|AZURE)_.*"
    r"|(PYTHON|NODE|PERL|RUBY|JAVA|_JAVA|JDK_JAVA|NPM_CONFIG|PIP|UV|CARGO|RUSTC)_?.*"
    r"|(.*_)?(PROXY|BASE_URL|API_BASE|ENDPOINT|API_KEY|AUTH_TOKEN|PRELOAD|OPTIONS|OPTS)"
    r"|(.*_)?(PAGER|EDITOR|BROWSER|VISUAL|ASKPASS)|RIPGREP_CONFIG_PATH|LESSOPEN|LESSCLOSE"
)


class Trust(msgspec.Struct, frozen=True):
    """How far a project's own files may widen what is allowed."""

    files: bool = False
    hooks: bool = False
    approved: Mapping[str, Collection[str]] = {}
    """By settings file: the rules that the user allowed as an answer, which need no more trust."""


def is_steering(variable: str) -> bool:
    """Whether a variable chooses what runs, or where requests go."""
    return re.fullmatch(_STEERING_VARIABLE, variable, re.IGNORECASE) is not None


def refusal(entry: Entry, below: Mapping[KeyPath, Entry], trust: Trust) -> Refusal | None:
    """Why a value does not count, given what the layers below it say; None if it counts."""
    source = entry.origin.source
    if entry.path in _POLICY_ONLY:
        return None if source == "policy" else "never"
    if source not in FROM_THE_PROJECT or entry.kind == "unused":
        return None
    if _is_never(entry):
        return "never"
    if entry.path == MODE:
        return _mode_refusal(entry, below, is_trusted=trust.files)
    counts = trust.hooks if entry.path[0] == "hooks" else trust.files
    if counts or _only_forbids(entry) or _is_approved(entry, trust):
        return None
    return "untrusted"


def _is_approved(entry: Entry, trust: Trust) -> bool:
    is_rule = entry.path == ALLOW and entry.kind == "item"
    return is_rule and entry.value in trust.approved.get(entry.origin.file or "", ())


def _only_forbids(entry: Entry) -> bool:
    return entry.path in _NARROWING or entry.value is _NARROWING_IF.get(entry.path, _NARROWING)


def _is_never(entry: Entry) -> bool:
    path = entry.path
    if path in _NEVER or entry.value is _NEVER_IF.get(path, _NEVER):
        return True
    if path[0] == "mcpServers":
        # A project's servers stand in `.mcp.json`, where each needs the user's yes.
        return True
    if path in _NEVER_SHARED:
        return entry.origin.source == "project"
    if path[0] == "env":
        return is_steering(path[1])
    # A bare name asks the vendor the user has chosen; anything else chooses another one.
    return path == ("model",) and any(char in str(entry.value) for char in "/:")


def _mode_refusal(
    entry: Entry, below: Mapping[KeyPath, Entry], *, is_trusted: bool
) -> Refusal | None:
    strictness = _STRICTNESS[entry.value]
    if strictness < _STRICTNESS["acceptEdits"]:
        return "never"
    earlier = below[MODE].value if MODE in below else "default"
    # The mode that is in force anyway needs no trust, and no warning.
    if is_trusted or entry.value == earlier or strictness > _STRICTNESS[earlier]:
        return None
    return "untrusted"
