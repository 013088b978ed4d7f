"""A request as texts that are the same in every run, without random names and secrets."""

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import msgspec

from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    VendorBlock,
)
from handaxe.contract.ports.model import (
    ModelEvent,
    ModelRequest,
    RequestOrigin,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolInputDelta,
    VendorBlockEnded,
)
from handaxe.text.sanitize import escape_surrogates

_SHOWN_CHARS = 200
_RANDOM_ID = (
    r"(?<![A-Za-z0-9])(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|a[0-9a-f]{16}"
    r"|hook-[0-9a-f]{16}|(?:bash|monitor)_[0-9a-f]{6}|call_[0-9a-f]{12}_\d+)(?![A-Za-z0-9])"
)
"""Ids of messages, sessions, agents, background commands and calls."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{12,64}")
"""A possible id of a call; shorter ones may be ordinary words."""
_MARK = re.compile(r"⟦(?:root|session|(?:call|id|temp) \d+)⟧")
T = TypeVar("T")


class NormalizedRequest:
    """The messages and tools of a request, with marks instead of random names."""

    def __init__(self, request: ModelRequest) -> None:
        origin = request.origin
        self.agent = origin.agent
        self.tools = tuple(tool.name for tool in request.tools)
        self.said = sum(isinstance(message, AssistantMessage) for message in request.messages)
        self._redact = origin.redact
        self._calls = _number_calls(request.messages)
        self._directories, self._pattern = _compile_places(origin)
        self._marks: dict[str, str] = {}
        self._values = {f"⟦{name}⟧": path for path, name in reversed(origin.places)}
        self._values |= {f"⟦call {number}⟧": call for call, (number, _) in self._calls.items()}
        self.messages = tuple(self._format(message) for message in request.messages)
        asked = [self.agent, self.tools, self.messages]
        self.digest = hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:32]

    def hide(self, events: Iterable[ModelEvent]) -> tuple[ModelEvent, ...]:
        """The events of an answer, without random names and secrets."""
        return _map_events(events, self.hide_text)

    def hide_text(self, text: str) -> str:
        """A text of an answer, without random names and secrets."""
        return self._normalize(text, learns=False)

    def restore(self, events: Iterable[ModelEvent]) -> tuple[ModelEvent, ...]:
        """The events of a recorded answer, with the names of this run."""
        return _map_events(events, self.restore_text)

    def restore_text(self, text: str) -> str:
        """A text of a recorded answer, with the names of this run."""
        return _MARK.sub(lambda mark: self._values.get(mark[0], mark[0]), text)

    def _format(self, message: Message) -> str:
        who = "user" if isinstance(message, UserMessage) else "assistant"
        return "\n".join((f"[{who}]", *(self._format_block(block) for block in message.content)))

    def _format_block(self, block: Any) -> str:  # noqa: ANN401 - the blocks of both messages
        match block:
            case TextBlock(text):
                return self._normalize(text)
            case ThinkingBlock(thinking):
                return f"[thinking]\n{self._normalize(thinking)}"
            case ToolUseBlock(call_id, name, given, broken):
                encoded = msgspec.json.encode(given, enc_hook=str, order="deterministic").decode()
                shown = self._normalize(encoded if broken is None else broken)
                return f"[call {self._calls[call_id][0]}: {name}]\n{shown}"
            case ToolResultBlock(call_id, content, is_error):
                number, tool = self._calls.get(call_id, (0, "unknown"))
                head = f"[{'error' if is_error else 'result'} of call {number}: {tool}]"
                return "\n".join((head, *(self._format_block(part) for part in content)))
            case ImageBlock(media_type, data):
                digest = hashlib.sha256(data.encode()).hexdigest()[:16]
                return f"[{media_type} {digest}]"
            case _:
                return self._normalize(str(block)) if isinstance(block, VendorBlock) else str(block)

    def _normalize(self, text: str, *, learns: bool = True) -> str:
        def name_call(match: re.Match[str]) -> str:
            known = self._calls.get(match[0])
            return match[0] if known is None else f"⟦call {known[0]}⟧"

        def name_value(match: re.Match[str]) -> str:
            value = match[0]
            if (name := self._directories.get(value)) is not None:
                return f"⟦{name}⟧"
            if value not in self._marks and learns:
                kind = "temp" if value.startswith("/") else "id"
                mark = f"⟦{kind} {len(self._marks) + 1}⟧"
                self._marks[value], self._values[mark] = mark, value
            return self._marks.get(value, value)

        clean = escape_surrogates(self._redact(text))
        return self._pattern.sub(name_value, _TOKEN.sub(name_call, clean))


def _number_calls(messages: Iterable[Message]) -> dict[str, tuple[int, str]]:
    """The number and the tool of every call, by id."""
    calls: dict[str, tuple[int, str]] = {}
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                calls.setdefault(block.id, (len(calls) + 1, block.name))
    return calls


def _compile_places(origin: RequestOrigin) -> tuple[dict[str, str], re.Pattern[str]]:
    """The names of directories, and a pattern for directories, temporary files and ids."""
    places = [(path, name) for path, name in origin.places if len(path) > 1]
    whole = {path: name for path, name in places if name != "temp"}
    longest_first = sorted(whole, key=len, reverse=True)
    parts = [rf"(?<![\w.-]){re.escape(path)}(?![\w-])" for path in longest_first]
    parts += [
        rf"(?<![\w.-]){re.escape(path)}/[^\s/\\'\"`:;,()\[\]{{}}<>|⟧]+"
        for path, name in places
        if name == "temp"
    ]
    return whole, re.compile("|".join((*parts, _RANDOM_ID)))


def _map_events(
    events: Iterable[ModelEvent], change: Callable[[str], str]
) -> tuple[ModelEvent, ...]:
    """The events with changed texts; the pieces of one text are changed together."""
    mapped: list[ModelEvent] = []
    run: list[ModelEvent] = []
    for event in events:
        if run and not _continues(run[-1], event):
            mapped += _map_pieces(run, change)
            run = []
        if isinstance(event, TextDelta | ThinkingDelta | ToolInputDelta):
            run.append(event)
        elif isinstance(event, ToolEnded):
            broken = None if event.broken is None else change(event.broken)
            given = _map_texts(event.input, change)
            mapped.append(msgspec.structs.replace(event, input=given, broken=broken))
        elif isinstance(event, VendorBlockEnded):
            mapped.append(msgspec.structs.replace(event, data=_map_texts(event.data, change)))
        else:
            mapped.append(event)
    return (*mapped, *_map_pieces(run, change))


def _continues(last: ModelEvent, event: ModelEvent) -> bool:
    if isinstance(last, ToolInputDelta) and isinstance(event, ToolInputDelta):
        return last.id == event.id
    return type(last) is type(event)


def _map_pieces(pieces: list[ModelEvent], change: Callable[[str], str]) -> list[ModelEvent]:
    """The pieces of a text, changed, and cut at about the same places."""
    if not pieces:
        return []
    first = pieces[0]
    field = "text" if isinstance(first, TextDelta) else "json"
    field = "thinking" if isinstance(first, ThinkingDelta) else field
    texts: list[str] = [getattr(piece, field) for piece in pieces]
    whole = "".join(texts)
    changed = change(whole)
    if changed == whole:
        return pieces
    mapped: list[ModelEvent] = []
    at = 0
    for number, (piece, text) in enumerate(zip(pieces, texts, strict=True), 1):
        end = len(changed) if number == len(pieces) else at + len(text)
        mapped.append(msgspec.structs.replace(piece, **{field: changed[at:end]}))
        at = end
    return mapped


def _map_texts(value: T, change: Callable[[str], str]) -> T:
    """A JSON value with all its texts changed."""
    found: Any = value
    if isinstance(value, str):
        found = change(value)
    elif isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        found = {change(key): _map_texts(one, change) for key, one in pairs.items()}
    elif isinstance(value, list):
        found = [_map_texts(one, change) for one in cast("list[Any]", value)]
    return cast("T", found)


def describe_difference(recorded: tuple[str, ...], now: tuple[str, ...]) -> str:
    """The first line in which two conversations differ, or an empty text."""
    for number, (old, new) in enumerate(zip(recorded, now, strict=False), 1):
        if old != new:
            return f"message {number}{_describe_line(old.splitlines(), new.splitlines())}"
    if len(recorded) == len(now):
        return ""
    longer, whose = (recorded, "recording") if len(recorded) > len(now) else (now, "request")
    extra = min(len(recorded), len(now))
    first = longer[extra][:_SHOWN_CHARS]
    return f"message {extra + 1}, which only the {whose} has:\n  {first!r}"


def _describe_line(old: list[str], new: list[str]) -> str:
    """The first line in which two messages differ, recorded and now."""
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    at = min(len(old), len(new)) if at is None else at
    head = next((line for line in reversed(new[: at + 1]) if re.fullmatch(r"\[.+\]", line)), "")
    was, is_now = (_cut(lines, other, at) for lines, other in ((old, new), (new, old)))
    return f", {head} line {at + 1}:\n  recorded: {was}\n  now:      {is_now}"


def _cut(lines: list[str], others: list[str], at: int) -> str:
    """The part of a line around the first character that differs."""
    if at >= len(lines):
        return "(no more lines)"
    line, other = lines[at], others[at] if at < len(others) else ""
    same = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), 0)
    start = max(0, same - _SHOWN_CHARS // 2)
    shown = line[start : start + _SHOWN_CHARS]
    left, right = "..." if start else "", "..." if start + _SHOWN_CHARS < len(line) else ""
    return f"{left}{shown!r}{right}"
