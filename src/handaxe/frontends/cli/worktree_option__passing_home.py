"""A data directory that is gone after one run.

It knows what the user's own one knows of trust, logins and rules, and what is learnt about those
goes there; the session itself, its results and its undo end with the run.
"""

import tempfile
from pathlib import Path

from handaxe.config.rule_cache import DIRECTORY as LAST_RULES
from handaxe.config.trust_store import FILE_NAME as TRUST
from handaxe.storage.mcp_logins import DIRECTORY as LOGINS

_SHARED = TRUST, LOGINS, LAST_RULES


def create_ephemeral_home(own: Path) -> Path:
    """A new directory beside the user's own one; whoever made it removes it."""
    home = Path(tempfile.mkdtemp(prefix="handaxe-"))
    for name in _SHARED:
        if (own / name).exists():
            (home / name).symlink_to(own / name)
    return home
