"""What a command was proved to write at most: an upper bound, as its text names it.

Not what it surely writes, and not what it may: order and permission go by `Effects` as ever.
Whoever keeps files for undo need not keep more than this. Paths are absolute, and no link in them
was followed: where links lead counts at the moment the command runs.
"""

from typing import Literal

import msgspec

Kind = Literal["fills", "removes", "moves"]
"""What a place may be after an act.

`fills`: files and directories are made and written into, nothing else becomes of what is there.
`removes`: it may be gone, or a plain file. `moves`: it may be anything, such as a link or another
directory.
"""


class Act(msgspec.Struct, frozen=True):
    """The writes of one program, or of one redirection."""

    kind: Kind
    places: tuple[str, ...] = ()
    """These, and what a link of that name leads to."""
    trees: tuple[str, ...] = ()
    """The same with everything below."""
    into: tuple[tuple[str, str], ...] = ()
    """Trees that are put at a target, or in it under a name, if one is given, where it is a
    directory."""
    makes_parents: bool = False
    """Directories that are missing on the way are made."""
    files_only: bool = False
    """A directory among them would be closed to its owner."""
    scratch: tuple[str, ...] = ()
    """Names, as patterns, of what the program leaves beside its files when it is killed."""


class Extent(msgspec.Struct, frozen=True):
    """Everything that one command writes, act after act."""

    cwd: str
    """Where it runs, which has to be a real path."""
    acts: tuple[Act, ...]
    programs: frozenset[str]
    """Names of programs of which it was assumed that they are the well-known ones."""
    is_confined: bool = False
    """Outside the working directories it may see other files than are there."""
