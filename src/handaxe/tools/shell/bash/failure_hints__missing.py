"""Which program a command did not find, by what was said about it."""

import re

NOT_FOUND = 127
"""The exit code by which shells say that there is no such program."""

# Bash says it in the user's language; what stands around it tells.
_COMPLAINTS = re.compile(
    r"^bash: \S+ \d+: (?P<bash>[^\s:/]+): [^:\n]+$"
    r"|: \d+: (?P<dash>[^\s:/]+): not found$"
    r"|: command not found: (?P<zsh>[^\s:/]+)$"
    r"|\benv: [‘'`](?P<env>[^\s:/]+)[’']: ",
    re.MULTILINE,
)


def find_missing_program(said: str) -> str | None:
    """The name of the last one; None where nothing was said."""
    named = [found[found.lastgroup or 0] for found in _COMPLAINTS.finditer(said)]
    return named[-1] if named else None
