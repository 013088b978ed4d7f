"""What is kept of a session's agents: how they stand, what they said, their logs."""

import os
from pathlib import Path

import msgspec

from handaxe.contract.ports.agents import AgentState
from handaxe.storage.home import make_private

STATE_NAME = "state.json"
OUTPUT_NAME = "output.md"


class AgentFiles:
    """The directory of all agents of one session."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def place_of(self, agent_id: str) -> Path:
        """Where one agent keeps its log and its results."""
        return self.directory / agent_id

    def output_of(self, agent_id: str) -> Path:
        """What an agent says, growing while it works."""
        return self.place_of(agent_id) / OUTPUT_NAME

    def keep(self, state: AgentState) -> None:
        """Write down how an agent stands; whole or not at all."""
        place = self.place_of(state.agent_id)
        make_private(place)
        fresh = place / f".{STATE_NAME}"
        fresh.write_bytes(msgspec.json.encode(state))
        os.replace(fresh, place / STATE_NAME)  # noqa: PTH105 - the atomic one, by its name

    def say(self, agent_id: str, text: str) -> None:
        """Add to what an agent said."""
        path = self.output_of(agent_id)
        make_private(path.parent)
        with path.open("a", encoding="utf-8", errors="backslashreplace") as output:
            output.write(text)

    def states(self) -> list[AgentState]:
        """Every agent that was ever started here, oldest first; unreadable ones are left out."""
        found: list[AgentState] = []
        for path in self.directory.glob(f"*/{STATE_NAME}"):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=AgentState))
            except (OSError, msgspec.DecodeError):
                continue
        return sorted(found, key=lambda state: (state.started_at, state.agent_id))
