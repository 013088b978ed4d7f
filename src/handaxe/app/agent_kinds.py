"""The types of agents that count for a project: the host's, files near to far, built-in ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from handaxe.agent.kinds import BadAgentFile, built_in_kinds, kinds_from, read_kind
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import AgentKind


class AgentKinds:
    """Read once; what is wrong with a file is said and stops nothing else."""

    def __init__(
        self,
        given: Mapping[str, Any] | None,
        directories: Sequence[Path],
        users: Sequence[str] = (),
    ) -> None:
        """`directories` are searched in order; the first file of a name counts.

        Files below `users` are the user's own; those of a project may not choose a vendor.
        """
        found: dict[str, AgentKind] = {}
        self.problems: list[str] = []
        try:
            own = kinds_from((given or {}).items())
        except BadAgentFile as error:
            raise SetupError(str(error)) from None
        for kind in own:
            found[kind.name] = kind
        for path in (path for place in directories for path in sorted(place.rglob("*.md"))):
            try:
                kind, remarks = read_kind(path.read_text(encoding="utf-8"), str(path))
            except (BadAgentFile, OSError, UnicodeError) as error:
                self.problems.append(f"An agent file was skipped. {error}")
                continue
            self.problems += remarks
            is_own = any(path.is_relative_to(user) for user in users)
            if kind.model and not is_own and any(char in kind.model for char in "/:"):
                self.problems.append(f"{path}: a project may not choose a vendor; `model` ignored")
                kind = msgspec.structs.replace(kind, model=None)
            found.setdefault(kind.name, kind)
        for kind in built_in_kinds():
            found.setdefault(kind.name, kind)
        self._kinds = tuple(sorted(found.values(), key=lambda kind: kind.name))

    def __call__(self) -> tuple[AgentKind, ...]:
        """All types, sorted by name."""
        return self._kinds


def agent_directories(directory: str, root: str, users: Sequence[str]) -> list[Path]:
    """Where files of agents may lie: from the working directory up to the project, then the user's.

    Above the project's root the search goes on to the root of its repository.
    """
    places: list[Path] = []
    here = Path(directory)
    for place in (here, *here.parents):
        places += (place / ".handaxe" / "agents", place / ".claude" / "agents")
        is_repository = (place / ".git").exists()
        if is_repository or (place == Path(root) and not _is_in_repository(place)):
            break
    places += [Path(user) / "agents" for user in users]
    return [place for place in dict.fromkeys(places) if place.is_dir()]


def _is_in_repository(place: Path) -> bool:
    return any((above / ".git").exists() for above in place.parents)
