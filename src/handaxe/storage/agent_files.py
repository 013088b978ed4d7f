"""The files of a session's agents: their state, their last messages, their logs."""

import contextlib
import os
from pathlib import Path

import msgspec

from handaxe.contract.ports.agents import AgentState
from handaxe.storage.home import make_private_directory
from handaxe.text.redact import Redactor

STATES_NAME = "states.jsonl"
OUTPUT_NAME = "output.md"
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_decoder = msgspec.json.Decoder(AgentState)


class AgentFiles:
    """The directory of all agents of one session."""

    def __init__(self, directory: Path, redactor: Redactor | None = None) -> None:
        """`redactor` removes secrets from kept text."""
        self.directory = directory
        self._redactor = Redactor() if redactor is None else redactor

    def place_of(self, agent_id: str) -> Path:
        """Where one agent keeps its log and its results."""
        return self.directory / agent_id

    def output_of(self, agent_id: str) -> Path:
        """The messages of an agent, appended while it works."""
        return self.place_of(agent_id) / OUTPUT_NAME

    def keep(self, state: AgentState) -> None:
        """Record the state of an agent. The last line of an agent counts."""
        make_private_directory(self.directory)
        # One write to a file opened for appending: whole lines, whoever else writes.
        place = os.open(self.directory / STATES_NAME, _APPEND, 0o600)
        try:
            os.write(place, b"\n" + self._redactor.redact_json(msgspec.json.encode(state)))
        finally:
            os.close(place)

    def say(self, agent_id: str, text: str) -> None:
        """Add to what an agent said."""
        path = self.output_of(agent_id)
        make_private_directory(path.parent)
        place = os.open(path, _APPEND, 0o600)
        with os.fdopen(place, "a", encoding="utf-8", errors="backslashreplace") as output:
            output.write(self._redactor.redact(text))

    def states(self) -> list[AgentState]:
        """Every agent that was ever started here, oldest first; unreadable ones are left out."""
        found: dict[str, AgentState] = {}
        try:
            lines = (self.directory / STATES_NAME).read_bytes().splitlines()
        except OSError:
            return []
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError):
                state = _decoder.decode(line)
                found[state.agent_id] = state
        return list(found.values())
