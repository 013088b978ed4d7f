"""The variables of a directory, as the user's own prompt would have them there.

Nothing is asked where the user has none of the tools that give directories variables, and an
answer holds until a file it rests on changes. What a tool may say is bounded: what is hidden from
commands stays hidden, and what every command is told stays as it is.
"""

import asyncio
from collections.abc import Mapping

import msgspec

from handaxe.shell.exec.environment.command_environment import EnvironmentSync
from handaxe.shell.exec.environment.env_probe import Ask
from handaxe.shell.exec.environment.env_tools import (
    ActivationResult,
    Signature,
    read_file_signature,
)
from handaxe.text.ansi import to_plain_text

MAX_CHARS = 100_000
"""Linux starts no program with a longer variable than 128 KiB."""
MAX_KEPT = 256


class _Kept(msgspec.Struct, frozen=True):
    rests_on: Signature
    watched: tuple[Signature | None, ...]
    answer: ActivationResult


class Activation:
    """What holds in which directory, asked when a command runs there."""

    def __init__(self, following: EnvironmentSync, ask: Ask) -> None:
        self._activators = following.activators
        self._notes = following.notes
        self._may_set = following.env_filter.can_change
        self._removes = following.env_filter.is_removed_secret
        self.removed: set[str] = set()
        """Variables that were not set because their names look like secrets."""
        self._ask = ask
        self._kept: dict[tuple[int, str], _Kept] = {}
        self._lock = asyncio.Lock()
        self._told: set[str] = set()
        self._untold: list[str] = []

    async def at(self, directory: str, env: Mapping[str, str]) -> dict[str, str]:
        """The environment of commands in a directory, where elsewhere it is `env`."""
        found = dict(env)
        for number, activator in enumerate(self._activators):
            signature = activator.signature(directory)
            if signature is not None:
                rests_on = (*signature, found.get("PATH"))
                answer = await self._answer(number, directory, rests_on, found)
                self._apply(answer, found, env)
        return found

    def take_notes(self) -> tuple[str, ...]:
        """What the model should know, each thing once."""
        notes, self._untold = tuple(self._untold), []
        return notes

    async def _answer(
        self, number: int, directory: str, rests_on: Signature, env: Mapping[str, str]
    ) -> ActivationResult:
        async with self._lock:
            kept = self._kept.get((number, directory))
            if (
                kept is not None
                and kept.rests_on == rests_on
                and kept.watched == tuple(map(read_file_signature, kept.answer.watched))
            ):
                return kept.answer
            whole = {**env, **self._notes}
            answer = await self._activators[number].answer(directory, whole, self._ask)
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            watched = tuple(map(read_file_signature, answer.watched))
            self._kept[number, directory] = _Kept(rests_on, watched, answer)
            self._tell(answer.problem)
            return answer

    def _tell(self, problem: str) -> None:
        told = to_plain_text(problem.encode())
        if told and told not in self._told:
            self._told.add(told)
            self._untold.append(told)

    def _apply(
        self, answer: ActivationResult, found: dict[str, str], env: Mapping[str, str]
    ) -> None:
        for name, value in answer.variables.items():
            if not self._may_set(name):
                if value is not None and self._removes(name):
                    self.removed.add(name)
                continue
            if value is None:
                # What another one has set meanwhile is not the one to be taken back.
                if found.get(name) == env.get(name):
                    found.pop(name, None)
            elif name and "\0" not in value and "=" not in name and len(value) <= MAX_CHARS:
                found[name] = value
