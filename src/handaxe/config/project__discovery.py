"""What a session finds by itself in the places where people keep it, beside settings files."""

from typing import Literal

import msgspec


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """Which of these files count; what is given to a session counts in any case."""

    skills: Literal["all", "added", "none"] = "all"
    """`added`: only skills of directories that were added by hand."""
    only_skills: frozenset[str] | None = None
    """Of the skills that are found, the names of those that count; None: all."""
    agents: bool = True
    styles: bool = True
    instructions: bool = True


EVERYTHING = Discovery()
ADDED_SKILLS = Discovery(skills="added", agents=False, styles=False, instructions=False)
NOTHING = Discovery(skills="none", agents=False, styles=False, instructions=False)
