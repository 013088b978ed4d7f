"""Lines and keys of the terminal; reading can be cancelled at any time.

A thread in `readline` could not be stopped and would take the next line.
"""

import asyncio
import os
import re
import select
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TextIO

ESCAPE = "\x1b"
"""The result of `ask_line` after Esc."""
_PIECE_BYTES = 4096
_PASTE_S = 0.03
# Arrows and other keys that send a sequence; Alt-Enter is a line for later.
_KEY_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|O.?|[\r\n])", re.DOTALL)


async def ask_line(prompt: str, stream: TextIO) -> str | None:
    """Show a prompt and read a line; `ESCAPE` for Esc, None at the end.

    Esc ends a line as Enter does. Input typed before the prompt is discarded.
    """
    with _escape_ends_line() as is_ended_by_escape:
        discard_typed_input()
        stream.write(prompt)
        stream.flush()
        line = await _read_answer() if is_ended_by_escape else await read_line()
        if line == ESCAPE:
            stream.write("\n")
        return line


async def _read_answer() -> str | None:
    loop, fd, text = asyncio.get_running_loop(), sys.stdin.fileno(), ""
    while True:
        piece = await _read_chunk(loop, fd, None)
        if not piece:
            return text or None
        text += piece.decode(errors="replace")
        if text.endswith(ESCAPE):
            await asyncio.sleep(_PASTE_S)
            text = _KEY_CODE.sub("", text + read_typed_input())
        if ESCAPE in text:
            return ESCAPE
        if "\n" in text:
            return text.partition("\n")[0]


@contextmanager
def _escape_ends_line() -> Generator[bool]:
    """Let Esc end a line inside this block; yields whether it does."""
    old = _set_line_end(ESCAPE)
    try:
        yield old is not None
    finally:
        if old is not None:
            _set_line_end(old)


def _set_line_end(key: str) -> str | None:
    """Let a key end lines besides Enter. Return the previous key, or None without a terminal."""
    with suppress(ImportError, OSError, ValueError):
        import termios

        fd = sys.stdin.fileno()
        with suppress(termios.error):
            attributes = termios.tcgetattr(fd)
            keys = attributes[6]
            old, keys[termios.VEOL] = keys[termios.VEOL], key.encode("latin-1")
            termios.tcsetattr(fd, termios.TCSANOW, attributes)
            return old.decode("latin-1")
    return None


async def read_line(*, whole_paste: bool = False) -> str | None:
    """The next line; None at the end of the input.

    With `whole_paste`, lines that arrive together count as one.
    """
    loop = asyncio.get_running_loop()
    fd = sys.stdin.fileno()
    data = b""
    while True:
        piece = await _read_chunk(
            loop, fd, _PASTE_S if whole_paste and data.endswith(b"\n") else None
        )
        if piece is None:
            break
        if piece == b"":
            return data.decode(errors="replace") if data else None
        data += piece
        if data.endswith(b"\n") and not whole_paste:
            break
    return data.decode(errors="replace").rstrip("\n")


def read_typed_input() -> str:
    """Typed input that was not read yet, also of an unfinished line."""
    with suppress(ImportError, OSError, ValueError):
        import termios
        import tty

        fd = sys.stdin.fileno()
        with suppress(termios.error):
            old = termios.tcgetattr(fd)
            # While the terminal edits a line, it can be read only after its end.
            tty.setcbreak(fd, termios.TCSANOW)
            try:
                if select.select([fd], [], [], 0)[0]:
                    return os.read(fd, _PIECE_BYTES).decode(errors="replace")
            finally:
                termios.tcsetattr(fd, termios.TCSANOW, old)
    return ""


def discard_typed_input() -> None:
    """Discard typed input that was not read yet."""
    with suppress(ImportError, OSError, ValueError):
        import termios

        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def _read_chunk(
    loop: asyncio.AbstractEventLoop, fd: int, limit_s: float | None
) -> bytes | None:
    """The next input; None after the time limit."""
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, wake)
    try:
        await asyncio.wait_for(ready, limit_s)
        return os.read(fd, _PIECE_BYTES)
    except TimeoutError:
        return None
    except OSError:
        return b""
    finally:
        loop.remove_reader(fd)


class KeyWatcher:
    """Keys pressed while the agent works: Esc stops it, the rest is kept for the next prompt."""

    def __init__(self, on_escape: Callable[[], object]) -> None:
        self._on_escape = on_escape
        self._is_wanted = self._is_watching = False
        self._pauses = 0
        self._old: list[object] | None = None
        self.typed = ""
        """Input typed meanwhile."""

    @contextmanager
    def watched(self) -> Generator[None]:
        """Watch the keys inside this block."""
        self._is_wanted = True
        self._start()
        try:
            yield
        finally:
            self._is_wanted = False
            self._stop()

    @contextmanager
    def pause_keys(self) -> Generator[None]:
        """Let a prompt read the terminal inside this block, which may outlast `watched`."""
        self._pauses += 1
        self._read_last_keys()
        self._stop()
        try:
            yield
        finally:
            self._pauses -= 1
            self._start()

    def take(self) -> str:
        """Return and clear the input typed meanwhile."""
        typed, self.typed = self.typed, ""
        return typed

    def _start(self) -> None:
        if self._pauses or not self._is_wanted:
            return
        with suppress(ImportError, OSError, NotImplementedError, ValueError):
            import termios
            import tty

            fd = sys.stdin.fileno()
            self._old = termios.tcgetattr(fd)
            tty.setcbreak(fd, termios.TCSANOW)
            asyncio.get_running_loop().add_reader(fd, self._read)
            self._is_watching = True

    def _stop(self) -> None:
        if not self._is_watching or self._old is None:
            return
        import termios

        self._is_watching = False
        fd = sys.stdin.fileno()
        asyncio.get_running_loop().remove_reader(fd)
        # Pending keys stay for the next reader.
        with suppress(OSError, termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, self._old)  # pyright: ignore[reportArgumentType] - what tcgetattr gave

    def _read_last_keys(self) -> None:
        """Read pending keys: they were typed before the prompt appeared."""
        with suppress(OSError, ValueError):
            if self._is_watching and select.select([sys.stdin.fileno()], [], [], 0)[0]:
                self._read()

    def _read(self) -> None:
        try:
            text = os.read(sys.stdin.fileno(), _PIECE_BYTES).decode(errors="replace")
        except OSError:
            text = ""
        if not text:
            # The terminal is closed.
            self._stop()
            return
        keys = _KEY_CODE.sub("", text)
        self.typed += keys.replace(ESCAPE, "")
        if "\x7f" in self.typed:
            self.typed = _apply_backspaces(self.typed)
        if ESCAPE in keys:
            # Keys pressed just before or after may arrive together with Esc.
            self._on_escape()


def _apply_backspaces(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\x7f":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)
