"""The file of a recording: one line of JSON for each exchange.

A line holds the messages that are new since the exchange before, and the events of the answer.
Secrets of the session are removed, and names that differ from run to run are replaced.
"""

import logging
import os
import stat
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.contract.ports.model import Failure, Model, ModelEvent
from handaxe.models.normalized_request import NormalizedRequest

FORMAT = 2


class RecordedFailure(msgspec.Struct, frozen=True):
    """The failure that ended an exchange."""

    failure: Failure
    sentence: str
    status: int | None = None


class RecordedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    format: int = FORMAT
    model: str
    context_tokens: int
    request: str
    """The digest of the request."""
    said: int
    """The number of responses in the conversation before."""
    run: str = ""
    """The recording run that wrote it; several runs may write to one file."""
    agent: str = ""
    """The agent: empty for the main agent, otherwise the calls that started it."""
    kept: int = 0
    """The number of messages that repeat the agent's request before."""
    asked: tuple[str, ...] = ()
    """The messages after those."""
    tools: tuple[str, ...] | None = None
    """The tools of the request; None means those of the request before."""
    events: tuple[ModelEvent, ...]
    failed: RecordedFailure | None = None


class Recording:
    """The open file of a recording."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; a `SetupError` if it cannot be a recording."""
        self.path = path
        self.problem = ""
        """Why the recording is not complete; empty if it is."""
        self._run = os.urandom(4).hex()
        self._last: dict[str, NormalizedRequest] = {}
        self._fd = _open_for_more(path)

    def add(
        self,
        model: Model,
        asked: NormalizedRequest,
        events: tuple[ModelEvent, ...],
        failed: RecordedFailure | None,
    ) -> None:
        """Write one exchange; an error of the disk ends the recording, not the session."""
        if self.problem or self._fd < 0:
            return
        last = self._last.get(asked.agent)
        before = () if last is None else last.messages
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, asked.messages, strict=False))
        kept = sum(1 for _ in same)
        exchange = RecordedExchange(
            model=model.name,
            context_tokens=model.context_tokens,
            request=asked.digest,
            said=asked.said,
            run=self._run,
            agent=asked.agent,
            kept=kept,
            asked=asked.messages[kept:],
            tools=None if last is not None and last.tools == asked.tools else asked.tools,
            events=asked.hide(events),
            failed=failed
            and msgspec.structs.replace(failed, sentence=asked.hide_text(failed.sentence)),
        )
        self._last[asked.agent] = asked
        self._write(msgspec.json.encode(exchange) + b"\n")

    def _write(self, line: bytes) -> None:
        end = os.lseek(self._fd, 0, os.SEEK_END)
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            self.problem = f"The recording {self.path} is not complete: {error.strerror}."
            logging.getLogger(__name__).warning(self.problem)
            # Half a line would damage the line after it.
            os.ftruncate(self._fd, end)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RecordedConversation:
    """An exchange with the whole conversation before it."""

    def __init__(
        self, line: int, exchange: RecordedExchange, before: "RecordedConversation | None"
    ) -> None:
        self.line = line
        self.exchange = exchange
        asked_before = before.messages if before is not None else ()
        kept = asked_before[: exchange.kept]
        self.messages: tuple[str, ...] = (*kept, *exchange.asked)
        inherited = before.tools if before is not None else ()
        self.tools = inherited if exchange.tools is None else exchange.tools


def load_recording(path: Path) -> Iterator[RecordedConversation]:
    """The exchanges of a file; a `SetupError` if it is not a recording."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SetupError(f"The recording {path} is not a file.")
        content = path.read_bytes()
    except OSError as error:
        raise SetupError(f"The recording {path} cannot be read: {error.strerror}.") from error
    before: dict[tuple[str, str], RecordedConversation] = {}
    is_empty = True
    for number, line in enumerate(_cut_torn_end(content).splitlines(), 1):
        if not line.strip():
            continue
        exchange = _decode(line, path, number)
        where = exchange.run, exchange.agent
        before[where] = played = RecordedConversation(number, exchange, before.get(where))
        is_empty = False
        yield played
    if is_empty:
        raise SetupError(f"The recording {path} is empty.")


def _decode(line: bytes, path: Path, number: int) -> RecordedExchange:
    try:
        exchange = msgspec.json.decode(line, type=RecordedExchange)
    except msgspec.DecodeError as error:
        raise SetupError(f"The recording {path} is damaged in line {number}: {error}.") from error
    if exchange.format > FORMAT:
        raise SetupError(f"The recording {path} was made by a newer version of handaxe.")
    return exchange


def _cut_torn_end(content: bytes) -> bytes:
    """The content without a last line that is not complete."""
    whole, newline, rest = content.rpartition(b"\n")
    if not rest:
        return content
    try:
        msgspec.json.decode(rest, type=RecordedExchange)
    except msgspec.DecodeError:
        return whole + newline if newline else content
    return content


def _open_for_more(path: Path) -> int:
    """Open a recording, or create a file that only its owner can read."""
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise SetupError(f"The recording {path} is not a file. Name a file.")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SetupError(
            f"The recording {path} cannot be written: {why}. "
            "Name a file in a directory that exists and that you may write to."
        ) from error
    try:
        _check_content(path, fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check_content(path: Path, fd: int) -> None:
    """Raise an error if the file is not a recording, and remove an incomplete last line."""
    content = path.read_bytes()
    if not content.strip():
        return
    kept = _cut_torn_end(content)
    first = kept.lstrip().partition(b"\n")[0]
    try:
        msgspec.json.decode(first, type=RecordedExchange)
    except msgspec.DecodeError:
        raise SetupError(f"{path} is not a recording. Name another file.") from None
    if len(kept) < len(content):
        os.ftruncate(fd, len(kept))
    elif not kept.endswith(b"\n"):
        os.write(fd, b"\n")
