"""The events for hooks, and what each of them allows.

All names of the ecosystem are here; the module that owns an event fires it.
"""

import msgspec

from handaxe.text.sanitize import scrub, to_json_leaf

COMMAND_TIMEOUT_S = 600.0
CALLABLE_TIMEOUT_S = 60.0
PROMPT_TIMEOUT_S = 30.0
AGENT_TIMEOUT_S = 60.0


class HookEventSpec(msgspec.Struct, frozen=True):
    """What a hook can do at one event."""

    matched: str | None = None
    """The field a matcher looks at; None: matchers mean nothing here."""
    blocks: bool = False
    """Whether exit code 2 and `decision: block` count."""
    guards: bool = False
    """Whether a Python hook that fails stops what it guards, unless told otherwise."""
    adds_stdout: bool = False
    """Whether plain output is context for the model."""
    literal: bool = False
    """Whether only letters, digits and `_` make a matcher a list of names, with `|` alone."""
    asks_models: bool = False
    """Whether prompt and agent hooks are allowed; other events have nothing to decide."""
    is_local: bool = False
    """Whether no server may be asked: it would hold up every start."""
    prepares: bool = False
    """Whether hooks may leave variables for later commands, and name files to be watched."""
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
