"""Which program a command did not find, by what was said about it."""

import re

from handaxe.shell.reach import programs_of

NOT_FOUND = 127
"""The exit code by which shells say that there is no such program."""

_COMPLAINTS = re.compile(
    r"line \d+: (?P<bash>[^\s:/]+): command not found$"
    r"|: \d+: (?P<dash>[^\s:/]+): not found$"
    r"|\benv: [‘'`](?P<env>[^\s:/]+)[’']: ",
    re.MULTILINE,
)


def missing_program(command: str, said: str) -> str | None:
    """The name of it; None where that cannot be told."""
    last = None
    for last in _COMPLAINTS.finditer(said):
        pass
    if last is not None:
        return last[last.lastgroup or 0]
    # Shells say it in the user's language.
    programs = programs_of(command)
    (only,) = programs if len(programs) == 1 else ("",)
    return only or None
