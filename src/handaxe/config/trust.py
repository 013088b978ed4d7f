"""The effect of a project's own files: they can narrow, and widen only with trust.

The authors of the project wrote these files, the local one included. Until the user trusts the
folder, they may only forbid, and allow what the user allowed there as an answer. They may never
choose a looser mode for good, or pick programs or endpoints of the runtime. They may not change
settings that belong to all projects of a user.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from handaxe.config.keys import KeyPath
from handaxe.config.settings import WebOptions
from handaxe.config.source import RULES, SettingEntry, SettingsFragment, Source

if TYPE_CHECKING:
    from handaxe.contract.trust_gate import TrustRequest

FROM_THE_PROJECT: frozenset[Source] = frozenset({"project", "local"})
MODE: KeyPath = ("permissions", "defaultMode")
ALLOW = RULES[2]


class RequestFinder(Protocol):
    """Lists everything that the files of a project want done."""

    def __call__(
        self, root: str, fragments: Iterable[SettingsFragment], *, in_parts: bool = True
    ) -> "list[TrustRequest[Any]]":
        """`in_parts`: also the files of directories below the root."""
        ...


Refusal = Literal["untrusted", "changed", "never", "managed"]

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
"""Switches that only forbid when set this way. `sandbox.enabled` is not among them: sandboxed
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
        ("permissions", "classifier"),
        ("permissions", "classifierTimeoutS"),
        ("apiKeyHelper",),
        ("autoMemoryDirectory",),
        ("retention_days",),
        ("cleanupPeriodDays",),
        ("fileCheckpointingEnabled",),
        ("undo", "max_bytes"),
        ("undo", "retention_days"),
        ("read", "media_memory_bytes"),
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
        *(("web", option) for option in WebOptions.__struct_fields__),
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


_WEAKENING_IF: dict[KeyPath, bool] = {
    ("sandbox", "failIfUnavailable"): False,
    ("sandbox", "failIfWeak"): False,
    ("sandbox", "filesystem", "disabled"): True,
    ("sandbox", "filesystem", "hideSecrets"): False,
    ("sandbox", "network", "allowAllUnixSockets"): True,
}
_WEAKENING: frozenset[KeyPath] = frozenset(
    {
        ("sandbox", "bwrapPath"),
        ("sandbox", "excludedCommands"),
        ("sandbox", "network", "allowUnixSockets"),
    }
)
"""Options that take commands out of the sandbox or replace it. The places where commands may write,
read and connect are not among them. The user chooses working directories too, and managed settings
have switches of their own for the rest."""


class Trust(msgspec.Struct, frozen=True):
    """How far a project's own files may widen permissions."""

    is_trusted: bool = False
    approved: Mapping[str, str] = {}
    """The approvals of the user, by the keys and notes of requests."""
    rules: Mapping[str, Collection[str]] = {}
    """By settings file: the rules that the user allowed as an answer, which need no more trust."""
    root: str = ""

    def has(self, entry: SettingEntry) -> bool:
        """Whether the user approved this very value."""
        if entry.path == ALLOW and entry.value in self.rules.get(entry.origin.file or "", ()):
            return True
        if self.is_trusted and entry.path[0] == "env":
            from handaxe.config.env_vars import is_harmless

            if is_harmless(entry.path[1]):
                return True
        wish = build_trust_request(entry, self.root)
        return self.approved.get(wish.key) == wish.note


def build_trust_request(entry: SettingEntry, root: str) -> "TrustRequest[bool]":
    """The request of a project's file to use a value."""
    from handaxe.contract.trust_gate import TrustRequest

    file = entry.origin.file or entry.origin.source
    key = f"{file.removeprefix(f'{root}/')}:{entry.name}"
    if entry.kind == "item":
        # Items of a list have no name but what they say.
        key = f"{key}={TrustRequest(entry.value, None, key='').note}"
    return TrustRequest(
        wanted=True, nothing=False, key=key, shown=entry.value, file=str(entry.origin), root=root
    )


def list_trust_requests(
    fragments: Iterable[SettingsFragment], root: str
) -> "list[TrustRequest[bool]]":
    """All that a project's own files of settings want beyond what they may say anyway."""
    return [
        build_trust_request(entry, root)
        for fragment in fragments
        if fragment.source in FROM_THE_PROJECT
        for entry in fragment.entries
        if entry.kind != "unused" and not _is_never(entry) and not is_restriction(entry)
    ]


def find_refusal(
    entry: SettingEntry, below: Mapping[KeyPath, SettingEntry], trust: Trust
) -> Refusal | None:
    """Why a value does not count, given what the layers below it say; None if it counts."""
    source = entry.origin.source
    if entry.path in _POLICY_ONLY:
        return None if source == "policy" else "never"
    if source not in FROM_THE_PROJECT or entry.kind == "unused":
        return None
    if _is_never(entry):
        return "never"
    if is_restriction(entry) or _is_strict_mode(entry, below) or trust.has(entry):
        return None
    return "changed" if trust.is_trusted else "untrusted"


def can_weaken_sandbox(entry: SettingEntry) -> bool:
    """Whether a value weakens a sandbox that an organisation turned on, and is not its own."""
    if entry.origin.source == "policy":
        return False
    return entry.path in _WEAKENING or entry.value is _WEAKENING_IF.get(entry.path, _WEAKENING)


def _is_strict_mode(entry: SettingEntry, below: Mapping[KeyPath, SettingEntry]) -> bool:
    """Whether it is a mode that is in force anyway, or a stricter one."""
    if entry.path != MODE:
        return False
    earlier = below[MODE].value if MODE in below else "default"
    return entry.value == earlier or _STRICTNESS[entry.value] > _STRICTNESS[earlier]


def is_restriction(entry: SettingEntry) -> bool:
    """Whether a value can only narrow permissions."""
    return entry.path in _NARROWING or entry.value is _NARROWING_IF.get(entry.path, _NARROWING)


def _is_never(entry: SettingEntry) -> bool:
    path = entry.path
    if path in _NEVER or path in _POLICY_ONLY or entry.value is _NEVER_IF.get(path, _NEVER):
        return True
    if path == MODE:
        return _STRICTNESS[entry.value] < _STRICTNESS["acceptEdits"]
    if path[0] == "mcpServers":
        # A project's servers stand in `.mcp.json`, where each needs the user's yes.
        return True
    if path in _NEVER_SHARED:
        return entry.origin.source == "project"
    if path[0] == "env":
        from handaxe.config.env_vars import is_steering

        return is_steering(path[1])
    # A bare name asks the vendor the user has chosen; anything else chooses another one.
    return path == ("model",) and any(char in str(entry.value) for char in "/:")
