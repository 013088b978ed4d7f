"""The file types ripgrep knows, for when there is no ripgrep to ask.

`file_types.txt` is what `rg --type-list` prints, so that both engines read the same names alike.
"""

from functools import lru_cache
from pathlib import Path

FileTypes = dict[str, tuple[str, ...]]


@lru_cache(maxsize=1)
def load_file_types() -> FileTypes:
    """The patterns of every type, by its name."""
    text = Path(__file__).with_name("file_types.txt").read_text(encoding="utf-8")
    types: FileTypes = {}
    for line in text.splitlines():
        name, _, globs = line.partition(": ")
        types[name] = tuple(globs.split(", "))
    return types
