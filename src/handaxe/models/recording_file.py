"""The file of a recording: one line of JSON for each exchange.

A line holds what was asked, as far as the exchange before it did not ask the same, and the events
it was answered with. Secrets that the session knows are taken out, and names that differ from run
to run are replaced.
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
    """How an exchange ended that did not end well."""

    failure: Failure
    sentence: str
    status: int | None = None


class RecordedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    format: int = FORMAT
    model: str
    context_tokens: int
    request: str
    """The digest of what was asked."""
    said: int
    """How many responses the conversation already held."""
    run: str = ""
    """Which recording run wrote it; several may have written to one file."""
    agent: str = ""
    """Whose request it was: empty for the main agent, otherwise the calls that led to it."""
    kept: int = 0
    """How many messages of the agent's request before were asked again."""
    asked: tuple[str, ...] = ()
    """The messages after those."""
    tools: tuple[str, ...] | None = None
    """The tools it was offered; None: those of the request before."""
    events: tuple[ModelEvent, ...]
    failed: RecordedFailure | None = None


class Recording:
    """The file of a recording, open for more."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; a `SetupError` if it cannot be a recording."""
        self.path = path
        self.problem = ""
        """Why the recording lacks what came last; empty while nothing is missing."""
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
        """Write one exchange; a disk that takes no more ends the recording, not the work."""
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
            # Half a line would spoil what comes after it.
            os.ftruncate(self._fd, end)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RecordedConversation:
    """An exchange with the whole conversation that it answered."""

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
    """The exchanges of a file; a `SetupError` if it is no recording."""
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
    """The content without a last line that a killed process did not finish."""
    whole, newline, rest = content.rpartition(b"\n")
    if not rest:
        return content
    try:
        msgspec.json.decode(rest, type=RecordedExchange)
    except msgspec.DecodeError:
        return whole + newline if newline else content
    return content


def _open_for_more(path: Path) -> int:
    """The file to write to: a new one that only its owner reads, or one that is a recording."""
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
    """Refuse to write after what is no recording, and end what a killed process began."""
    content = path.read_bytes()
    if not content.strip():
        return
    kept = _cut_torn_end(content)
    first = kept.lstrip().partition(b"\n")[0]
    try:
        msgspec.json.decode(first, type=RecordedExchange)
    except msgspec.DecodeError:
        raise SetupError(
            f"{path} is not a recording, so nothing is written to it. Name another file."
        ) from None
    if len(kept) < len(content):
        os.ftruncate(fd, len(kept))
    elif not kept.endswith(b"\n"):
        os.write(fd, b"\n")
