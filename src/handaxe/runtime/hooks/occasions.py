"""The events that hooks can be told about, and what each of them allows.

All names of the ecosystem are here; who owns an occasion fires it when it arrives.
"""

import msgspec

COMMAND_TIMEOUT_S = 600.0
CALLABLE_TIMEOUT_S = 60.0
PROMPT_TIMEOUT_S = 30.0
AGENT_TIMEOUT_S = 60.0


class Occasion(msgspec.Struct, frozen=True):
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
    """Whether a model or an agent may be asked; elsewhere there is nothing to say yes or no to."""
    is_local: bool = False
    """Whether no server may be asked: it would hold up every start."""
    prepares: bool = False
    """Whether hooks may leave variables for later commands, and name files to be watched."""
    timeout_s: float = COMMAND_TIMEOUT_S
    max_timeout_s: float | None = None


_TOOL = Occasion("tool_name", blocks=True, asks_models=True)
_OBSERVED = Occasion()

OCCASIONS: dict[str, Occasion] = {
    "SessionStart": Occasion("source", adds_stdout=True, is_local=True, prepares=True),
    "SessionEnd": Occasion("reason", timeout_s=1.5, max_timeout_s=60.0),
    "Setup": Occasion("trigger", is_local=True, prepares=True),
    "InstructionsLoaded": Occasion("load_reason"),
    "UserPromptSubmit": Occasion(
        blocks=True, guards=True, adds_stdout=True, timeout_s=30.0, asks_models=True
    ),
    "UserPromptExpansion": Occasion(
        "command_name", blocks=True, adds_stdout=True, asks_models=True
    ),
    "MessageDisplay": Occasion(timeout_s=10.0),
    "PreToolUse": Occasion("tool_name", blocks=True, guards=True, asks_models=True),
    "PermissionRequest": Occasion("tool_name", asks_models=True),
    "PermissionDenied": Occasion("tool_name", asks_models=True),
    "PostToolUse": _TOOL,
    "PostToolUseFailure": _TOOL,
    "PostToolBatch": Occasion(blocks=True, asks_models=True),
    "Notification": Occasion("notification_type"),
    "SubagentStart": Occasion("agent_type"),
    "SubagentStop": Occasion("agent_type", blocks=True, asks_models=True),
    "TaskCreated": Occasion(blocks=True, asks_models=True),
    "TaskCompleted": Occasion(blocks=True, asks_models=True),
    "Stop": Occasion(blocks=True, asks_models=True),
    "StopFailure": Occasion("error", literal=True),
    "TeammateIdle": Occasion(blocks=True, asks_models=True),
    "ConfigChange": Occasion("source", blocks=True),
    "CwdChanged": Occasion(prepares=True),
    "DirectoryAdded": Occasion("source"),
    "FileChanged": Occasion("file_path", literal=True, prepares=True),
    "WorktreeCreate": Occasion(blocks=True),
    "WorktreeRemove": _OBSERVED,
    "PreCompact": Occasion("trigger", blocks=True),
    "PostCompact": Occasion("trigger"),
    "Elicitation": Occasion("mcp_server_name", blocks=True),
    "ElicitationResult": Occasion("mcp_server_name", blocks=True),
}

TOOL_EVENTS = frozenset(name for name, o in OCCASIONS.items() if o.matched == "tool_name")
EVENTS = tuple(OCCASIONS)
