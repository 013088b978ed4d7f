"""A small tree to search, and the engines that have to agree on it."""

import os
from collections.abc import Mapping
from pathlib import Path

from handaxe.contract.ports.search import NameQuery, TextQuery
from handaxe.search.local_search import LocalSearch


def plant(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, each a second older than the one before."""
    for age, (name, content) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return root


async def grep(search: LocalSearch, root: Path, pattern: str, **query):
    return await search.find_text(TextQuery(pattern=pattern, root=str(root), **query))


async def glob(search: LocalSearch, root: Path, pattern: str, **query):
    return await search.find_names(NameQuery(pattern=pattern, root=str(root), **query))


def opened_path(directory: int | str) -> str:
    """The path of a directory that is open, or named."""
    path = f"/proc/self/fd/{directory}" if isinstance(directory, int) else directory
    return os.path.realpath(path)


def names(found, root: Path) -> list[str]:
    """The paths of an answer, relative to the root."""
    paths = found.paths if hasattr(found, "paths") else [entry.path for entry in found.entries]
    return [path.removeprefix(f"{root}/") for path in paths]


def counts(found, root: Path) -> dict[str, int]:
    return {entry.path.removeprefix(f"{root}/"): entry.count for entry in found.entries}


def lines(found, root: Path) -> list[str]:
    """The lines of an answer, as `path:12:text`."""
    shown = []
    for line in found.lines:
        sign = ":" if line.is_match else "-"
        path = line.path.removeprefix(f"{root}/")
        shown.append(f"{path}{sign}{line.line}{sign}{line.text}" if line.line else "--")
    return shown
