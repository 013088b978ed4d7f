"""Files that hooks want to hear of: looked at between calls, and only if there is such a hook."""

from collections.abc import Iterable, Iterator
from typing import Literal, cast

from handaxe.config.file_watch import Stamp, read_stamp

Change = Literal["add", "change", "unlink"]
MAX_FILES = 1_000
"""Each costs a look before every call."""


class FileWatcher:
    """The files that matchers name, in the session's directory, and those that hooks name."""

    def __init__(self, matchers: Iterable[str], directory: str, named: Iterable[str] = ()) -> None:
        names = (name.strip() for text in matchers for name in text.split("|"))
        self._names = tuple(name for name in names if name not in {"", "*"} and "/" not in name)
        self._directory = directory
        self.named = tuple(named)
        """Full paths that hooks named last."""
        self._stamps: dict[str, Stamp | None] = {}
        self._place()

    def watch(self, paths: object) -> None:
        """From now on these beside what matchers name; what is no full path is left out."""
        given = cast("list[object]", paths) if isinstance(paths, list) else []
        self.named = tuple(p for p in given if isinstance(p, str) and p.startswith("/"))[:MAX_FILES]
        self._place()

    def changes(self, directory: str) -> Iterator[tuple[str, Change]]:
        """What happened to which file since the last look."""
        for path, before in self._stamps.items():
            now = read_stamp(path)
            if now != before:
                self._stamps[path] = now
                yield path, "add" if before is None else "unlink" if now is None else "change"
        if directory != self._directory:
            self._directory = directory
            self._place()

    def _place(self) -> None:
        known = self._stamps
        wanted = (*(f"{self._directory.rstrip('/')}/{name}" for name in self._names), *self.named)
        self._stamps = {path: known[path] if path in known else read_stamp(path) for path in wanted}
