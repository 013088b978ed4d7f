"""The program that command lines are handed to, as the settings write it, in words."""

from handaxe.config.settings import ShellOptions


def split_prefix(options: ShellOptions) -> tuple[str, ...]:
    """The program and its first arguments; nothing where none is set."""
    given = (options.prefix or "").strip()
    if not given:
        return ()
    import shlex

    try:
        return tuple(shlex.split(given))
    except ValueError:
        # One quote too many: it can only be the path itself.
        return (given,)
