"""Variables of the environment: those that give settings, and those that commands do not get.

Files say it with more weight. A value that is none is left out: a mistyped variable must not keep a
session from opening.
"""

from collections.abc import Mapping
from typing import Any

KEYS_OF_VENDORS = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "GEMINI_API_KEY",
    "GOOGLE_API_KEY", "HANDAXE_*_KEY", "HANDAXE_*_TOKEN", "MISTRAL_API_KEY", "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
)  # fmt: skip
"""What no command needs to know, and what pays for the model."""
_NO_LIMIT = 1 << 62
_NUMBERS: dict[str, tuple[str, str, int]] = {
    "BASH_DEFAULT_TIMEOUT_MS": ("shell", "default_timeout_ms", _NO_LIMIT),
    "BASH_MAX_TIMEOUT_MS": ("shell", "max_timeout_ms", _NO_LIMIT),
    "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS": ("search", "timeout_s", _NO_LIMIT),
    "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": ("agents", "max_running", 1000),
    "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH": ("agents", "max_depth", 10),
}
"""By variable: the group, the key, and the most that the setting takes."""
_AT_ONCE = "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"
_MOST_AT_ONCE = 1000
_AUTO_BACKGROUND = "CLAUDE_AUTO_BACKGROUND_TASKS"
_AUTO_BACKGROUND_S = 120.0
_STAY = "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"
_SCRUB = "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"
_YES = frozenset({"1", "true", "yes", "on"})

CREDENTIALS = (
    "*_API_KEY", "*_AUTH_TOKEN", "*_ACCESS_KEY", "*_ACCESS_KEY_ID", "*_SECRET", "*_SECRET_*",
    "*_TOKEN", "*_PASSWORD", "*_PASSWD", "*_CREDENTIALS", "*_PRIVATE_KEY", "DATABASE_URL",
    "PGPASSWORD",
)  # fmt: skip
"""What commands do not get where credentials are to be kept from them."""


def given_by_variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that variables give, as plain data."""
    found: dict[str, dict[str, Any]] = {}
    for name, (group, key, most) in _NUMBERS.items():
        if number := _number(environment, name):
            found.setdefault(group, {})[key] = min(number, most)
    if _is_yes(environment, _AUTO_BACKGROUND):
        found.setdefault("agents", {})["auto_background_s"] = _AUTO_BACKGROUND_S
    if _is_yes(environment, _STAY):
        found.setdefault("shell", {})["carry_directory"] = False
    if _is_yes(environment, _SCRUB):
        found.setdefault("shell", {})["hidden_variables"] = list(CREDENTIALS)
    at_once = _number(environment, _AT_ONCE)
    return {**found, "max_parallel_calls": min(at_once, _MOST_AT_ONCE)} if at_once else {**found}


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _is_yes(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in _YES
