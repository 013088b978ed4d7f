"""Instructions that apply after a file was read: sent once, and again after a summary.

They are sent as messages, so that earlier messages do not change.
"""

from collections.abc import Callable, Sequence

from handaxe.agent.memory.instruction_files import InstructionFiles
from handaxe.agent.system_prompt import MemoryText
from handaxe.contract.events import InstructionsHeard
from handaxe.hooks.notify import notify_hooks
from handaxe.pipeline.context import PipelineContext
from handaxe.session.read_ledger import ReadLedger


class NestedMemory:
    """The nested instructions of one conversation."""

    def __init__(
        self,
        ledger: ReadLedger,
        emit: Callable[[InstructionsHeard], object],
        heard: Sequence[str] = (),
        loaded: Callable[[MemoryText, str], None] = lambda _, __: None,
    ) -> None:
        """`heard` are the files that applied in an earlier run of the session.

        `loaded` is called for every newly applied file, with the reason.
        """
        self._loaded = loaded
        self._ledger = ledger
        self._emit = emit
        self._heard_before = tuple(dict.fromkeys(heard))
        self._read: set[str] = set()
        self._texts: dict[str, MemoryText] = {}
        self._files: InstructionFiles | None = None

    async def follow(self, files: InstructionFiles) -> None:
        """Use these instruction files from now on."""
        self._files = files
        if self._heard_before:
            self._take((await files.again(self._heard_before)).texts)

    async def news(self) -> list[str]:
        """New instructions since more files were read; mostly empty."""
        files = self._files
        if files is None:
            return []
        new = [path for path in self._ledger.paths() if path not in self._read]
        if not new:
            return []
        self._read.update(new)
        found = await files.load_nested(new)
        self._take(found.texts)
        for text in found.texts:
            self._loaded(text, "path_glob_match" if text.globs else "nested_traversal")
        if found.texts:
            self._emit(InstructionsHeard(paths=tuple(text.path for text in found.texts)))
        return [_format_instructions(text.path, text.text) for text in found.texts] + list(
            found.notes
        )

    def reminders(self) -> list[str]:
        """All of them again, for a shortened conversation."""
        for text in self._texts.values():
            self._loaded(text, "compact")
        return [_format_instructions(text.path, text.text) for text in self._texts.values()]

    def _take(self, texts: Sequence[MemoryText]) -> None:
        self._texts |= {text.path: text for text in texts}


def notify_instructions_loaded(context: PipelineContext, text: MemoryText, reason: str) -> None:
    """Report to hooks that an instruction file applies."""
    about = {
        "globs": list(text.globs),
        "trigger_file_path": text.reader,
        "parent_file_path": text.importer,
    }
    notify_hooks(
        context,
        "InstructionsLoaded",
        file_path=text.path,
        memory_type=text.scope.capitalize(),
        load_reason="include" if text.importer and reason != "compact" else reason,
        **{name: value for name, value in about.items() if value},
    )


def _format_instructions(path: str, text: str) -> str:
    return (
        f"Instructions from {path}, which apply to files that you have read. They take "
        f"precedence over more general ones:\n\n{text.strip()}"
    )
