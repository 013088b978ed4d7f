"""A model that never says the same twice, and the recorded work of an agent that asks it."""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path

from handaxe import Agent, Session
from handaxe.contract.content import TextBlock
from handaxe.contract.messages import AssistantMessage, TokenUsage, UserMessage
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
)
from handaxe.models.normalized_request import NormalizedRequest
from handaxe.models.recording import ReplayModel

TURNS = 20
FAMILIES = (4, 9, 15)
"""The turns in which three agents are started with the same words."""
LOOK = "Look around."
COMMANDS = (
    'echo "$RANDOM" > noise.txt; echo done',
    "f=$(mktemp); echo $f; rm $f",
    "pwd; ls",
    "sleep 0.0$((RANDOM % 3)); echo slept",
    "cat missing.txt",
)


class Improviser(Model):
    """Answers with random words, ids, paths and pauses, as a real model could."""

    name = "improviser"

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._random = random.Random(seed)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """A turn of the main agent, or of one that looks around."""
        said = sum(isinstance(message, AssistantMessage) for message in request.messages)
        first = request.messages[0]
        assert isinstance(first, UserMessage)
        is_looking = any(isinstance(b, TextBlock) and LOOK in b.text for b in first.content)
        words = [self._random.choice(("so", "then", "well", "now", "yes")) for _ in range(9)]
        yield TextDelta(f"{self._random.random()} in {str(self._root)[:9]}")
        await asyncio.sleep(self._random.random() / 50)
        yield TextDelta(f"{str(self._root)[9:]}: {' '.join(words)}")
        ends = said >= self._random.randint(1, 3) if is_looking else said >= TURNS - 1
        if not ends:
            for event in self._call(said, request, is_looking=is_looking):
                yield event
        yield MessageEnded("end_turn" if ends else "tool_use", TokenUsage(output_tokens=9))

    def _call(self, said: int, request: ModelRequest, *, is_looking: bool) -> list[ModelEvent]:
        if not is_looking and said in FAMILIES:
            agent = {"description": "look", "prompt": LOOK, "run_in_background": False}
            return [event for _ in range(3) for event in self._make_call("Agent", agent)]
        agent_ids = re.findall(r"agentId: (\w+)", str(request.messages))
        if agent_ids and said % 5 == 2:
            return self._make_call("TaskOutput", {"task_id": self._random.choice(agent_ids)})
        path = str(self._root / f"{self._random.choice('abc')}.txt")
        if said % 4 == 1 and not is_looking:
            text = f"{self._random.random()}\n"
            return self._make_call("Write", {"file_path": path, "content": text})
        if said % 4 == 2:
            return self._make_call("Read", {"file_path": path})
        return self._make_call("Bash", {"command": self._random.choice(COMMANDS)})

    def _make_call(self, tool: str, given: dict[str, object]) -> list[ModelEvent]:
        import json

        # Some servers give every call the same id.
        call_id = self._random.choice(("call_0", f"toolu_{self._random.randbytes(9).hex()}"))
        text = json.dumps(given)
        return [
            ToolStarted(call_id, tool),
            *(ToolInputDelta(call_id, text[at : at + 7]) for at in range(0, len(text), 7)),
            ToolEnded(call_id, tool, given),
        ]


class UnevenModel(Model):
    """A replay that sometimes waits, so that agents end in another order than before."""

    def __init__(self, replay: ReplayModel, seed: int) -> None:
        self.name, self.context_tokens = replay.name, replay.context_tokens
        self._replay, self._random = replay, random.Random(seed)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The recorded answer, at a pace of its own."""
        await asyncio.sleep(self._random.choice((0, 0, 0.002, 0.01)))
        async for event in self._replay.stream(request):
            yield event


async def work(model: Model, root: Path, home: Path, record: Path | None = None) -> list[str]:
    """The whole conversation as the recording would know it, and how it ended."""
    options = {"permission_mode": "bypassPermissions", "home": home}
    async with (
        Session(root, **options) as session,
        Agent(model, session, record=record) as agent,
    ):
        final = await agent.ask("Work.")
        request = ModelRequest(messages=agent.messages, origin=agent.workplace.origin)
        return [final.terminal_reason, *final.errors, *NormalizedRequest(request).messages]


async def record_work(place: Path, seed: int) -> tuple[Path, list[str]]:
    """A recording in a project of its own, and the conversation in it."""
    root, file = place / "recorded" / "project", place / "talk.jsonl"
    root.mkdir(parents=True)
    return file, await work(Improviser(root, seed), root, place / "recorded-home", file)


async def replay_work(file: Path, place: Path, seed: int) -> list[str]:
    """The conversation played strictly in another project."""
    root = place / f"replayed{seed}" / "elsewhere"
    root.mkdir(parents=True)
    model = UnevenModel(ReplayModel(file, strict=True), seed)
    return await work(model, root, place / f"replayed-home{seed}")
