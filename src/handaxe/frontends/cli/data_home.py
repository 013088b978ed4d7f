"""The data directory for commands that open no session."""

from functools import cache
from pathlib import Path

from handaxe.frontends.cli.render import print_notice
from handaxe.storage.home import explain_temporary_home, find_data_home


def open_data_home() -> Path:
    """The data directory; prints a notice if it is temporary."""
    home = find_data_home()
    if (unsteady := explain_temporary_home(home)) is not None:
        _print_once(unsteady)
    return home


@cache
def _print_once(sentence: str) -> None:
    print_notice(sentence)
