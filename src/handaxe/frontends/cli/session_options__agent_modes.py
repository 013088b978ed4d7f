"""`--bare` and `--safe-mode`: how much a run looks for beside what its options say."""

import argparse
import json
import os
from pathlib import Path

import msgspec

from handaxe.config.project__discovery import ADDED_SKILLS, EVERYTHING, NOTHING, Discovery
from handaxe.contract.faults import SetupError

BARE_VARIABLE = "CLAUDE_CODE_SIMPLE"
SAFE_VARIABLE = "CLAUDE_CODE_SAFE_MODE"
BARE_TOOLS = "Bash,Read,Edit"
_YES = frozenset({"1", "true", "yes", "on"})


def apply_mode(arguments: argparse.Namespace) -> Discovery:
    """Change the other options as the mode wants; what a session may still find by itself.

    The variables are set for whatever the run starts, so that an agent within is no different.
    """
    if arguments.bare or is_env_true(BARE_VARIABLE):
        os.environ[BARE_VARIABLE] = "1"
        arguments.strict_mcp_config = True
        if arguments.setting_sources is None:
            arguments.setting_sources = ""
        if arguments.tools is None:
            arguments.tools = BARE_TOOLS
        found = ADDED_SKILLS
    elif arguments.safe_mode or is_env_true(SAFE_VARIABLE):
        os.environ[SAFE_VARIABLE] = "1"
        arguments.strict_mcp_config, arguments.mcp_config = True, []
        arguments.settings = _disable_hooks(arguments.settings)
        found = NOTHING
    else:
        found = EVERYTHING
    if arguments.disable_slash_commands:
        return msgspec.structs.replace(found, skills="none")
    return found


def is_env_true(variable: str) -> bool:
    """Whether a variable of the environment says yes."""
    return os.environ.get(variable, "").strip().lower() in _YES


def _disable_hooks(given: str | None) -> str:
    """The value of `--settings`, with no hook in force."""
    text = given or "{}"
    try:
        if not text.lstrip().startswith("{"):
            text = Path(text).read_text(encoding="utf-8")
        options = json.loads(text)
        options["disableAllHooks"] = True
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(f"--settings: {given} cannot be read ({error}).") from None
    return json.dumps(options)
