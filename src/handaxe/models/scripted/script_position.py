"""The position of each conversation in a script, and the texts it captured."""

import re
import zlib
from typing import Any, cast

import msgspec

from handaxe.contract.content import TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    TokenUsage,
    ToolResultBlock,
    UserMessage,
)
from handaxe.contract.ports.model import ModelFailed, ModelRequest
from handaxe.models.scripted.script import ModelScript, ScriptedTurn, has_match
from handaxe.text.tokens import estimate_tokens

_HOLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_MAX_SHOWN_CHARS = 400


class ScriptedConversations:
    """All conversations of one scripted model.

    Agents are recognised by their first message. Each run of a subagent has its own position in
    the script; the main agent has only one.
    """

    def __init__(self, script: ModelScript) -> None:
        self._turns = {
            agent: tuple(turn for turn in script.turn if turn.agent == agent)
            for agent in ("", *(turn.agent for turn in script.turn))
        }
        self._agents = script.agents
        self._open: dict[tuple[str, str], list[ScriptedConversation]] = {}

    def step(self, request: ModelRequest) -> "ScriptedStep":
        """The turn that answers `request`."""
        first = extract_text(
            next((m for m in request.messages if isinstance(m, UserMessage)), None)
        )
        agent = self._find_agent(first, "\n".join(request.system))
        said = sum(isinstance(message, AssistantMessage) for message in request.messages)
        known = self._open.setdefault((agent, first if agent else ""), [])
        for conversation in known:
            if not agent or conversation.said == said:
                break
        else:
            conversation = ScriptedConversation(agent, self._turns[agent], first, len(known), said)
            known.append(conversation)
        conversation.said = said
        return conversation.step(request)

    def _find_agent(self, first: str, system: str) -> str:
        for agent in self._turns:
            if not agent:
                continue
            match = self._agents.get(agent)
            wanted = match.match if match else agent
            in_system = match.system if match else ""
            if (wanted or in_system) and has_match(first, wanted) and has_match(system, in_system):
                return agent
        return ""


class ScriptedConversation:
    """A position in the script, and the texts captured so far."""

    def __init__(
        self, agent: str, turns: tuple[ScriptedTurn, ...], first: str, number: int, said: int
    ) -> None:
        self.said = said
        """How many responses the next request will hold."""
        self.input_tokens = 0
        self._agent = agent
        self._turns = turns
        self._at = 0
        for _ in range(said):
            # A conversation that was resumed: its turns are behind it.
            self._at = self._after(self._at)
        self._asked = said
        self._captured = {"first.text": first}
        self._tag = f"{zlib.crc32(first.encode('utf-8', 'replace')):08x}_{number}"

    def step(self, request: ModelRequest) -> "ScriptedStep":
        """The next turn that fits, with captured texts filled in."""
        last = _collect_unanswered(request)
        text = "\n".join(extract_text(message) for message in last)
        at = self._find(text)
        turn = self._turns[at]
        for wanted in turn.expected:
            if not has_match(text, wanted):
                raise self._build_mismatch(at, f"expects {wanted!r}", text)
        self._remember(turn, at, last, text)
        self._asked += 1
        self._at = self._after(at)
        filled = cast("dict[str, Any]", self._filled(msgspec.to_builtins(turn), at))
        return ScriptedStep(
            self, msgspec.convert(filled, ScriptedTurn), f"{self._tag}_{self._asked}", text
        )

    def _find(self, text: str) -> int:
        at = self._at
        while at < len(self._turns) and self._turns[at].when:
            if has_match(text, self._turns[at].when):
                return at
            at += 1
        if at >= len(self._turns):
            whose = f" of {self._agent}" if self._agent else ""
            raise ModelFailed(
                "script_ended",
                f"The script{whose} has no turn {at + 1}; "
                f"the last message says: {_quote_text(text)}",
            )
        return at

    def _after(self, at: int) -> int:
        if at >= len(self._turns):
            return at
        turn = self._turns[at]
        if turn.go_to:
            return next(i for i, each in enumerate(self._turns) if each.label == turn.go_to)
        at += 1
        # Consecutive turns with a condition are alternatives.
        while turn.when and at < len(self._turns) and self._turns[at].when:
            at += 1
        return at

    def _remember(self, turn: ScriptedTurn, at: int, last: list[UserMessage], text: str) -> None:
        self._captured["last.text"] = text
        content = [block for message in last for block in message.content]
        results = [block for block in content if isinstance(block, ToolResultBlock)]
        for number, block in enumerate(results, 1):
            self._captured[f"result.{number}"] = _extract_result_text(block)
        for name, pattern in turn.capture.items():
            found = re.search(pattern, text, re.MULTILINE)
            if found is None:
                raise self._build_mismatch(at, f"captures {name!r} with {pattern!r}", text)
            self._captured[name] = found[found.re.groups and 1]

    def _filled(self, value: Any, at: int) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return _HOLE.sub(lambda hole: self._value(hole[1], at), value)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {key: self._filled(inner, at) for key, inner in fields.items()}
        if isinstance(value, list | tuple):
            return [self._filled(inner, at) for inner in cast("list[Any]", value)]
        return value

    def _value(self, name: str, at: int) -> str:
        if name not in self._captured:
            known = ", ".join(sorted(self._captured))
            raise self._build_mismatch(at, f"uses {{{{{name}}}}}, known are: {known}", "")
        return self._captured[name]

    def _build_mismatch(self, at: int, wish: str, text: str) -> ModelFailed:
        whose = f" of {self._agent}" if self._agent else ""
        but = f", but the last message says: {_quote_text(text)}" if text else ""
        return ModelFailed("bad_request", f"script mismatch: turn {at + 1}{whose} {wish}{but}")


class ScriptedStep:
    """One turn, ready to be streamed."""

    def __init__(
        self, conversation: ScriptedConversation, turn: ScriptedTurn, tag: str, text: str
    ) -> None:
        self.turn = turn
        self.message_id = f"msg_{tag}"
        self._conversation = conversation
        self._tag = tag
        self._read = estimate_tokens(text)
        self.usage = turn.usage or self._estimate_usage()

    def call_id(self, number: int) -> str:
        """A unique id for a call."""
        return f"call_{self._tag}_{number}"

    def done(self) -> None:
        """Count the turn, which was streamed completely."""
        self._conversation.said += 1
        spent = self.usage
        self._conversation.input_tokens = spent.input_tokens + spent.output_tokens

    def _estimate_usage(self) -> TokenUsage:
        turn = self.turn
        raw = msgspec.json.encode([call.input for call in turn.call]) if turn.call else b""
        written = estimate_tokens(turn.thinking + turn.text) + estimate_tokens(raw.decode())
        read = self._conversation.input_tokens + self._read
        return TokenUsage(input_tokens=read, output_tokens=written)


def _collect_unanswered(request: ModelRequest) -> list[UserMessage]:
    """The messages since the last response of the model."""
    last: list[UserMessage] = []
    for message in reversed(request.messages):
        if not isinstance(message, UserMessage):
            break
        last.insert(0, message)
    return last


def extract_text(message: Message | None) -> str:
    """All text of a message, with results."""
    if message is None:
        return ""
    texts: list[str] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif isinstance(block, ToolResultBlock):
            texts.append(_extract_result_text(block))
    return "\n".join(texts)


def _extract_result_text(block: ToolResultBlock) -> str:
    return "\n".join(part.text for part in block.content if isinstance(part, TextBlock))


def _quote_text(text: str) -> str:
    cut = text[:_MAX_SHOWN_CHARS]
    return repr(cut) if len(text) <= _MAX_SHOWN_CHARS else f"{cut!r}..."
