"""The program that command lines are handed to, as the settings write it, in words."""

import shlex

from handaxe.settings.model import ShellOptions


def words_of_prefix(options: ShellOptions) -> tuple[str, ...]:
    """The program and its first arguments; nothing where none is set, or it cannot be read."""
    try:
        return tuple(shlex.split(options.prefix or ""))
    except ValueError:
        # One quote too many: it can only be the path itself.
        return ((options.prefix or "").strip(),)
