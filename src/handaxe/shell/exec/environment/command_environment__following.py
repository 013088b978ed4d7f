"""Whether the environment of commands follows the user's own, and by which tools.

Looking costs a few looks at PATH, once per session; what the tools need is loaded where there is
one.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from handaxe.config.settings import ShellOptions
from handaxe.shell.exec.bash_binary import find_user_program
from handaxe.shell.exec.environment.command_environment import (
    NOTES_OF_ACTIVATORS,
    EnvironmentFilter,
)

if TYPE_CHECKING:
    from handaxe.shell.exec.environment.env_tools import Activator

_MISE_SIGNS = ("MISE_SHELL", "__MISE_DIFF", "__MISE_SESSION")
"""What `mise activate` leaves in the environment of a shell."""


class EnvironmentSync(msgspec.Struct, frozen=True, kw_only=True):
    """How the environment follows the user's own."""

    activators: "Sequence[Activator]" = ()
    """In the order in which they are asked, each over what the one before it said."""
    notes: Mapping[str, str] = {}
    """What they had written down for themselves when the session began."""
    sieve: EnvironmentFilter


def build_environment_sync(
    options: ShellOptions,
    inherited: Mapping[str, str],
    roots: Sequence[str],
    sieve: EnvironmentFilter,
) -> EnvironmentSync | None:
    """What a user with this environment has; None where it should stay as it is."""
    if options.activation == "off":
        return None
    path = inherited.get("PATH", "")
    direnv = find_user_program("direnv", path, roots)
    mise = None
    if any(inherited.get(name) for name in _MISE_SIGNS):
        mise = find_user_program("mise", path, roots)
    with_virtualenv = options.activation == "virtualenv"
    if not (direnv or mise or with_virtualenv):
        return EnvironmentSync(sieve=sieve)
    from handaxe.shell.exec.environment.env_tools import Direnv, Mise, Virtualenv

    # direnv puts back whole values, so it goes first: the others add to what they find.
    activators: list[Activator] = [] if direnv is None else [Direnv(direnv, inherited)]
    if mise is not None:
        activators.append(Mise(mise, inherited))
    if with_virtualenv:
        activators.append(Virtualenv(inherited))
    notes = {name: inherited[name] for name in NOTES_OF_ACTIVATORS if name in inherited}
    return EnvironmentSync(activators=activators, notes=notes, sieve=sieve)
