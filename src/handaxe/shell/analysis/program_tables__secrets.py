"""Variable names that look as if their value must not be printed, and names that may be set."""

from __future__ import annotations

import re

from handaxe.shell.analysis.program_tables import split_names
from handaxe.text.secrets import is_secret_name

__all__ = ["HARMLESS", "is_harmless_prefix", "is_own_variable", "is_secret_name"]

HARMLESS = split_names(
    "NODE_ENV CI LANG LC_ALL TZ NO_COLOR FORCE_COLOR PYTHONUNBUFFERED LC_CTYPE LC_COLLATE "
    "LC_MESSAGES LC_NUMERIC LC_TIME LC_MONETARY COLUMNS CLICOLOR CLICOLOR_FORCE "
    "RUST_BACKTRACE PYTHONDONTWRITEBYTECODE PYTHONIOENCODING GIT_OPTIONAL_LOCKS"
)
"""Names whose value cannot change which program runs or what it may do."""

_OWN_UPPER = split_names(
    "FILE FILES DIR DIRS N I J X Y NAME NAMES COUNT TOTAL SRC DST DEST OUT PATTERN VERSION "
    "LINE LINES_ RESULT RESULTS BRANCH COMMIT SHA FROM TO START ITEM MSG MESSAGE EXT ROOT_DIR"
)
_HARMLESS_VALUE = r"(?a)[\w.+:@,/ -]*"


def is_own_variable(name: str) -> bool:
    """Whether setting `name` in the shell can influence nothing but this command's own text."""
    if name in HARMLESS or name in _OWN_UPPER:
        return True
    return (
        name.islower() and not name.endswith("proxy") and name not in ("histchars", "auto_resume")
    )


def is_harmless_prefix(name: str, value: str | None) -> bool:
    """Whether `name=value` before a program leaves what runs as it is."""
    return name in HARMLESS and value is not None and bool(re.fullmatch(_HARMLESS_VALUE, value))
