"""Instructions that count since a file was read: told once, told again after a summary.

They come as messages, so that nothing changes that was sent before.
"""

from collections.abc import Callable, Sequence

from handaxe.agent.memory_files import MemoryFiles
from handaxe.agent.prompt import MemoryText
from handaxe.contract.events import InstructionsHeard
from handaxe.session.read_ledger import ReadLedger


class NearbyMemory:
    """What one conversation hears of the files near those that were read in it."""

    def __init__(
        self,
        ledger: ReadLedger,
        emit: Callable[[InstructionsHeard], None],
        heard: Sequence[str] = (),
    ) -> None:
        """`heard` are the files that counted in an earlier run of the session."""
        self._ledger = ledger
        self._emit = emit
        self._heard_before = tuple(dict.fromkeys(heard))
        self._read: set[str] = set()
        self._texts: dict[str, str] = {}
        self._files: MemoryFiles | None = None

    async def follow(self, files: MemoryFiles) -> None:
        """Look for instructions from now on, beside those that always count."""
        self._files = files
        if self._heard_before:
            self._take((await files.again(self._heard_before)).texts)

    async def news(self) -> list[str]:
        """What there is to tell since more files were read; mostly nothing."""
        files = self._files
        if files is None:
            return []
        new = [path for path in self._ledger.paths() if path not in self._read]
        if not new:
            return []
        self._read.update(new)
        found = await files.near(new)
        self._take(found.texts)
        if found.texts:
            self._emit(InstructionsHeard(paths=tuple(text.path for text in found.texts)))
        return [_said(text.path, text.text) for text in found.texts] + list(found.notes)

    def reminders(self) -> list[str]:
        """All of it again, for a conversation that was made shorter."""
        return [_said(path, text) for path, text in self._texts.items()]

    def _take(self, texts: Sequence[MemoryText]) -> None:
        self._texts |= {text.path: text.text for text in texts}


def _said(path: str, text: str) -> str:
    return (
        f"Instructions from {path}, which count for files that you have read. They take "
        f"precedence over more general ones:\n\n{text.strip()}"
    )
