"""The hook events, and what hooks can do at each.

All names of the ecosystem are here; the owner of an occasion sends its event.
"""

import msgspec

from handaxe.text.sanitize import scrub, to_json_leaf

COMMAND_TIMEOUT_S = 600.0
CALLABLE_TIMEOUT_S = 60.0
PROMPT_TIMEOUT_S = 30.0
AGENT_TIMEOUT_S = 60.0


class HookEventSpec(msgspec.Struct, frozen=True):
    """The abilities of a hook at one event."""

    matched: str | None = None
    """The field that matchers apply to; None: matchers have no meaning."""
    blocks: bool = False
    """Whether exit code 2 and `decision: block` are allowed."""
    guards: bool = False
    """Whether a failing Python hook stops what it guards by default."""
    adds_stdout: bool = False
    """Whether plain output is context for the model."""
    literal: bool = False
    """Whether a matcher of letters, digits and `_` is a list of names, separated by `|` only."""
    asks_models: bool = False
    """Whether models and agents can be asked; other events have no decision."""
    is_local: bool = False
    """Whether servers are excluded, because they would delay every start."""
    prepares: bool = False
    """Whether hooks may set variables for later commands and name files to watch."""
    timeout_s: float = COMMAND_TIMEOUT_S
    max_timeout_s: float | None = None


_TOOL = HookEventSpec("tool_name", blocks=True, asks_models=True)
_OBSERVED = HookEventSpec()

OCCASIONS: dict[str, HookEventSpec] = {
    "SessionStart": HookEventSpec("source", adds_stdout=True, is_local=True, prepares=True),
    "SessionEnd": HookEventSpec("reason", timeout_s=1.5, max_timeout_s=60.0),
    "Setup": HookEventSpec("trigger", is_local=True, prepares=True),
    "InstructionsLoaded": HookEventSpec("load_reason"),
    "UserPromptSubmit": HookEventSpec(
        blocks=True, guards=True, adds_stdout=True, timeout_s=30.0, asks_models=True
    ),
    "UserPromptExpansion": HookEventSpec(
        "command_name", blocks=True, adds_stdout=True, asks_models=True
    ),
    "MessageDisplay": HookEventSpec(timeout_s=10.0),
    "PreToolUse": HookEventSpec("tool_name", blocks=True, guards=True, asks_models=True),
    "PermissionRequest": HookEventSpec("tool_name", asks_models=True),
    "PermissionDenied": HookEventSpec("tool_name", asks_models=True),
    "PostToolUse": _TOOL,
    "PostToolUseFailure": _TOOL,
    "PostToolBatch": HookEventSpec(blocks=True, asks_models=True),
    "Notification": HookEventSpec("notification_type"),
    "SubagentStart": HookEventSpec("agent_type"),
    "SubagentStop": HookEventSpec("agent_type", blocks=True, asks_models=True),
    "TaskCreated": HookEventSpec(blocks=True, asks_models=True),
    "TaskCompleted": HookEventSpec(blocks=True, asks_models=True),
    "Stop": HookEventSpec(blocks=True, asks_models=True),
    "StopFailure": HookEventSpec("error", literal=True),
    "TeammateIdle": HookEventSpec(blocks=True, asks_models=True),
    "ConfigChange": HookEventSpec("source", blocks=True),
    "CwdChanged": HookEventSpec(prepares=True),
    "DirectoryAdded": HookEventSpec("source"),
    "FileChanged": HookEventSpec("file_path", literal=True, prepares=True),
    "WorktreeCreate": HookEventSpec(blocks=True),
    "WorktreeRemove": _OBSERVED,
    "PreCompact": HookEventSpec("trigger", blocks=True),
    "PostCompact": HookEventSpec("trigger"),
    "Elicitation": HookEventSpec("mcp_server_name", blocks=True),
    "ElicitationResult": HookEventSpec("mcp_server_name", blocks=True),
}

TOOL_EVENTS = frozenset(name for name, o in OCCASIONS.items() if o.matched == "tool_name")
EVENTS = tuple(OCCASIONS)


_encoder = msgspec.json.Encoder(enc_hook=to_json_leaf)


def encode_event(event: object) -> bytes:
    """The event as JSON, whatever values a host program put into it."""
    try:
        return _encoder.encode(event)
    except Exception:  # noqa: BLE001 - code of whoever made the values may run here
        return _encoder.encode(scrub(msgspec.to_builtins(scrub(event), enc_hook=to_json_leaf)))
