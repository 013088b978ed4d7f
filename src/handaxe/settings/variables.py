"""Settings that the ecosystem gives by variables of the environment; files say it with more weight.

A value that is none is left out: a mistyped variable must not keep a session from opening.
"""

from collections.abc import Mapping
from typing import Any

_MILLISECONDS: dict[str, tuple[str, str]] = {
    "BASH_DEFAULT_TIMEOUT_MS": ("shell", "default_timeout_ms"),
    "BASH_MAX_TIMEOUT_MS": ("shell", "max_timeout_ms"),
}
_SEARCH_SECONDS = "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS"
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
    for name, (group, key) in _MILLISECONDS.items():
        text = environment.get(name, "").strip()
        if text.isascii() and text.isdigit() and int(text) > 0:
            found.setdefault(group, {})[key] = int(text)
    seconds = environment.get(_SEARCH_SECONDS, "").strip()
    if seconds.isascii() and seconds.isdigit() and int(seconds) > 0:
        found["search"] = {"timeout_s": int(seconds)}
    if _is_yes(environment, _STAY):
        found.setdefault("shell", {})["carry_directory"] = False
    if _is_yes(environment, _SCRUB):
        found.setdefault("shell", {})["hidden_variables"] = list(CREDENTIALS)
    return found


def _is_yes(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in _YES
