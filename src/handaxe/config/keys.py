"""The options of `model` as a table of keys, for readers and writers of single values."""

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from handaxe.config.settings import Settings

KeyPath = tuple[str, ...]
Kind = Literal["value", "list", "table"]


class SettingKey(msgspec.Struct, frozen=True):
    """One option."""

    path: KeyPath
    kind: Kind
    """`value` is one thing, `list` grows with every layer, `table` holds names of people's own."""
    type: Any
    """The type of the value, of one item, or of the value of one name."""
    doc: str
    default: Any

    @property
    def name(self) -> str:
        """As people write it: `permissions.allow`."""
        return ".".join(self.path)

    @property
    def has_lists(self) -> bool:
        """Whether a list stands behind every name of the table, as in `hooks`."""
        return self.kind == "table" and get_origin(self.type) is tuple


@cache
def list_keys() -> dict[KeyPath, SettingKey]:
    """Every option by its path."""
    return {key.path: key for key in _walk_keys(Settings, ())}


@cache
def list_groups() -> frozenset[KeyPath]:
    """Every path of a group of options, including the top."""
    return frozenset(path[:at] for path in list_keys() for at in range(len(path)))


def find_key(path: KeyPath) -> tuple[SettingKey, str | None] | None:
    """The option at a path, and the name within it if it is a table."""
    key = list_keys().get(path)
    if key is not None:
        return key, None
    table = list_keys().get(path[:-1])
    return (table, path[-1]) if table is not None and table.kind == "table" else None


def is_unused(path: KeyPath) -> bool:
    """Whether the ecosystem knows this key, or one that holds it, and handaxe has no use for it."""
    return any(path[at] in UNUSED.get(path[:at], ()) for at in range(len(path)))


def split_key(name: str) -> KeyPath:
    """The path of a key as people write it; behind a table's name dots belong to the name."""
    parts = tuple(name.split("."))
    for at in range(1, len(parts)):
        key = list_keys().get(parts[:at])
        if key is not None and key.kind == "table":
            return (*parts[:at], ".".join(parts[at:]))
    return parts


def find_nearest_key(path: KeyPath) -> str | None:
    """The key that was probably meant, in full."""
    from handaxe.text.escape import find_closest_name

    group = path[:-1]
    beside = {key[len(group)] for key in list_keys() if key[: len(group)] == group}
    near = find_closest_name(path[-1], sorted(beside | UNUSED.get(group, frozenset())))
    if near is not None:
        return ".".join((*group, near))
    # A name without its group, or in a wrong one: `deny` for `permissions.deny`.
    elsewhere = {key[-1]: ".".join(key) for key in list_keys()}
    near = find_closest_name(path[-1], elsewhere) or find_closest_name(
        ".".join(path), elsewhere.values()
    )
    return elsewhere.get(near, near) if near is not None else None


def list_choices(kind: Any) -> list[str]:  # noqa: ANN401 - any type
    """The words a value may be, where its type lists them."""
    if get_origin(kind) is Literal:
        return [str(option) for option in get_args(kind)]
    return [word for part in get_args(kind) for word in list_choices(part)]


def _walk_keys(options: type[msgspec.Struct], group: KeyPath) -> Iterator[SettingKey]:
    for field in msgspec.structs.fields(options):
        path = (*group, field.encode_name)
        kind, doc = _strip_annotation(field.type)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from _walk_keys(kind, path)
            continue
        default = field.default
        if default is msgspec.NODEFAULT:
            default = field.default_factory() if callable(field.default_factory) else None
        yield _make_key(path, field.type, kind, doc, default)


def _make_key(path: KeyPath, hint: Any, kind: Any, doc: str, default: object) -> SettingKey:  # noqa: ANN401
    listed = next(
        (part for part in (kind, *_get_union_members(kind)) if get_origin(part) is tuple), None
    )
    if listed is not None:
        return SettingKey(path, "list", get_args(listed)[0], doc, default)
    if get_origin(kind) is dict:
        return SettingKey(path, "table", get_args(kind)[1], doc, default)
    return SettingKey(path, "value", hint, doc, default)


def _strip_annotation(hint: Any) -> tuple[Any, str]:  # noqa: ANN401 - any type
    if get_origin(hint) is not Annotated:
        return hint, ""
    kind, *facts = get_args(hint)
    return kind, next((fact for fact in facts if isinstance(fact, str)), "")


def _get_union_members(kind: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any type
    return get_args(kind) if get_origin(kind) in {Union, types.UnionType} else ()


class BadSettingsJson(Exception):
    """The text is not JSON: on which line, and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


_TOP = """
    $schema advisorModel agentPushNotifEnabled allowAllClaudeAiMcps
    allowedChannelPlugins alwaysThinkingEnabled
    autoCompactWindow autoConnectIde autoInstallIdeExtension
    autoMode autoScrollEnabled autoUpdates autoUpdatesChannel availableModels
    awaySummaryEnabled awsAuthRefresh awsCredentialExport axScreenReader blockedMarketplaces
    browserExternalPageTools channelsEnabled claudeMd companyAnnouncements
    crossSessionInbound defaultShell dialogExpiry diffTool disableAgentView disableArtifact
    disableAutoMode disableBrowserExternalNavigation disableBundledSkills
    disableClaudeAiConnectors disableCommandPluginSources disableDeepLinkRegistration
    disableMobileSimulatorTools disableRemoteControl disableSideloadFlags
    disableWorkflows editorMode emojiCompletionEnabled
    enableArtifact enableWorkflows enabledPlugins enforceAvailableModels externalEditorContext
    extraKnownMarketplaces fallbackModel fastMode fastModePerSessionOptIn feedbackSurveyRate
    fileSuggestion footerLinksRegexes forceLoginGatewayUrl forceLoginMethod
    forceLoginOrgUUID forceRemoteSettingsRefresh gcpAuthRefresh includeCoAuthoredBy
    inputNeededNotifEnabled isolatePeerMachines keybindingFlavor
    minimumVersion modelOverrides otelHeadersHelper parentSettingsBehavior
    permissionExplainerEnabled pluginConfigs pluginSuggestionMarketplaces
    pluginTrustMessage policyHelper prUrlTemplate preferredNotifChannel prefersReducedMotion
    processWrapper promptSuggestionEnabled remote remoteControlAtStartup requiredMaximumVersion
    requiredMinimumVersion respondToBashCommands showClearContextOnPlanAccept
    showThinkingSummaries showTurnDuration skipAutoPermissionPrompt
    skipDangerousModePermissionPrompt
    skipWebFetchPreflight spellcheck spinnerTipsEnabled spinnerTipsOverride spinnerVerbs sshConfigs
    sshHostAllowlist statusLine strictKnownMarketplaces strictPluginOnlyCustomization
    subagentStatusLine switchModelsOnFlag syncClaudeAiSkills syntaxHighlightingDisabled
    teammateDefaultModel teammateMode terminalProgressBarEnabled terminalTitleFromRename theme
    todoFeatureEnabled tui ultracode useAutoModeDuringPlan verbose viewMode vimInsertModeRemaps
    voice voiceEnabled wheelScrollAccelerationEnabled workflowKeywordTriggerEnabled
    workflowSizeGuideline wslInheritsWindowsSettings
"""
_SANDBOX = """
    allowAppleEvents credentials enableWeakerNestedSandbox enableWeakerNetworkIsolation
    socatPath ripgrep
"""
_SANDBOX_NETWORK = """
    allowMachLookup httpProxyPort socksProxyPort tlsTerminate
"""

UNUSED: dict[tuple[str, ...], frozenset[str]] = {
    (): frozenset(_TOP.split()),
    ("sandbox",): frozenset(_SANDBOX.split()),
    ("sandbox", "network"): frozenset(_SANDBOX_NETWORK.split()),
    ("worktree",): frozenset({"bgIsolation"}),
    ("attribution",): frozenset({"sessionUrl"}),
}
"""Names that are known and not used, by their group."""

_RESTRICTING = """
    availableModels blockedMarketplaces disableArtifact disableAutoMode disableBundledSkills
    disableCommandPluginSources disableRemoteControl disableSideloadFlags disableWorkflows
    enforceAvailableModels forceLoginGatewayUrl forceLoginMethod forceLoginOrgUUID
    isolatePeerMachines processWrapper requiredMaximumVersion requiredMinimumVersion
    sshHostAllowlist strictKnownMarketplaces strictPluginOnlyCustomization
"""
RESTRICTING = frozenset(_RESTRICTING.split())
"""Unsupported names that restrict something. A warning says that they have no effect."""

_TOOLS = """
    Agent Artifact AskUserQuestion Bash BashOutput Brief Cd Config CronCreate CronDelete CronList
    Edit EndConversation EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Glob Grep KillShell
    LS LSP ListAgents ListMcpResourcesTool MCPSearch Monitor MultiEdit NotebookEdit NotebookRead
    PowerShell Projects PushNotification REPL Read ReadMcpResourceDirTool ReadMcpResourceTool
    RefreshMcpTools RemoteTrigger ReportFindings ScheduleWakeup SendMessage SendUserFile
    ShareOnboardingGuide ShowOnboardingRolePicker Skill SlashCommand Sleep StructuredOutput Task
    TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoWrite ToolSearch Undo
    WaitForMcpServers WebFetch WebSearch Workflow Write
"""
TOOL_NAMES = frozenset(_TOOLS.split())
"""Tools that a rule may name whether or not this session offers them."""
