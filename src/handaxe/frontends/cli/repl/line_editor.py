"""Line editors: with history and completion if the extra `terminal` is there, else plain."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from handaxe.disk.private import make_private
from handaxe.frontends.cli.exit_codes import Terminated
from handaxe.frontends.cli.render import write_out
from handaxe.frontends.cli.tty_input import read_line, read_typed_input

MAX_PATHS = 50
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv"}


class Interrupted(Exception):
    """The user pressed Ctrl-C."""


class LineEditor(Protocol):
    """Reads one prompt after another."""

    @property
    def has_text(self) -> bool:
        """Whether the line has text, if that is known."""
        ...

    def take_text(self) -> str:
        """The text of a cancelled line, to continue from."""
        ...

    async def read(self, prompt: Callable[[], str], typed: str = "") -> str | None:
        """The entered text, starting with `typed`; None at the end.

        Raises:
            Interrupted: Ctrl-C.
        """
        ...


class PlainEditor:
    """Lines edited by the terminal."""

    def __init__(self) -> None:
        self._typed = ""

    @property
    def has_text(self) -> bool:
        """Whether a cancelled line continues; the terminal hides the rest."""
        return bool(self._typed)

    def take_text(self) -> str:
        """The typed text, also of a line that the terminal still edits."""
        return self._typed + read_typed_input()

    async def read(self, prompt: Callable[[], str], typed: str = "") -> str | None:
        """One line, or several pasted lines."""
        self._typed = typed
        write_out(prompt() + typed)
        sys.stdout.flush()
        line = await read_line(whole_paste=True)
        return None if line is None else typed + line


class RichEditor:
    """Line editing, history and completion with prompt-toolkit."""

    def __init__(
        self,
        history: Path,
        *,
        commands: Callable[[], Sequence[str]],
        root: Callable[[], str],
        on_mode: Callable[[], None],
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

        class _Words(Completer):
            def get_completions(
                self,
                document: Document,
                complete_event: CompleteEvent,  # noqa: ARG002
            ) -> Iterator[Completion]:
                for start, text in find_completions(
                    document.text_before_cursor, commands(), root()
                ):
                    yield Completion(text, start_position=start)

        keys = KeyBindings()

        @keys.add("s-tab")
        def _next_mode(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - bound to a key
            on_mode()
            event.app.invalidate()

        @keys.add("escape", "enter")
        def _new_line(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - bound to a key
            event.current_buffer.insert_text("\n")

        make_private(history.parent)
        history.touch(mode=0o600)
        self._session: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)),
            completer=_Words(),
            complete_while_typing=False,
            key_bindings=keys,
            enable_history_search=True,
        )

    @property
    def has_text(self) -> bool:
        """Whether the line has text."""
        return bool(self._session.default_buffer.text)

    def take_text(self) -> str:
        """The text of the line."""
        return self._session.default_buffer.text

    async def read(self, prompt: Callable[[], str], typed: str = "") -> str | None:
        """One prompt; Alt-Enter and pasting add lines."""
        try:
            return await self._session.prompt_async(prompt, default=typed, handle_sigint=False)
        except EOFError:
            return None
        except Terminated:
            raise
        except KeyboardInterrupt:
            raise Interrupted from None


def create_line_editor(
    history: Path,
    *,
    commands: Callable[[], Sequence[str]],
    root: Callable[[], str],
    on_mode: Callable[[], None],
) -> LineEditor:
    """The best line editor for this terminal."""
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    if is_dumb or find_spec("prompt_toolkit") is None:
        return PlainEditor()
    return RichEditor(history, commands=commands, root=root, on_mode=on_mode)


def find_completions(text: str, commands: Sequence[str], root: str) -> Iterator[tuple[int, str]]:
    """Completions of the word before the cursor: commands after `/`, paths after `@`."""
    if text.startswith("/") and " " not in text:
        for name in commands:
            if name.startswith(text[1:]):
                yield -len(text), f"/{name} "
        return
    word = text.rsplit(maxsplit=1)[-1] if text and not text[-1].isspace() else ""
    if not word.startswith("@"):
        return
    folder, _, start = word[1:].rpartition("/")
    try:
        entries = sorted(Path(root, folder).iterdir())
    except OSError:
        return
    fitting = [e for e in entries if e.name.startswith(start) and e.name not in _SKIPPED]
    for entry in fitting[:MAX_PATHS]:
        path = f"{folder}/{entry.name}" if folder else entry.name
        yield -len(word), f"@{path}{'/' if entry.is_dir() else ' '}"
