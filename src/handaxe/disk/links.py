"""Where the links of a path lead; it opens nothing and decides nothing."""

import os
from pathlib import Path

_MOST_LINKS = 40


def end_of_links(path: str | os.PathLike[str]) -> str:
    """The path with every link followed; one that may not be read stands for itself.

    `os.path.realpath` gives up on such a link, which anybody can name: `/proc/1/root` is one.
    """
    try:
        return os.path.realpath(path)
    except OSError:
        text = os.fspath(path)
        return _link_by_link(text if text.startswith("/") else f"{Path.cwd()}/{text}")


def _link_by_link(path: str) -> str:
    real, left = "", path.split("/")[::-1]
    followed = 0
    while left:
        name = left.pop()
        if name in {"", "."}:
            continue
        if name == "..":
            real = real.rpartition("/")[0]
            continue
        here = f"{real}/{name}"
        try:
            target = os.readlink(here) if followed < _MOST_LINKS else None
        except OSError:
            target = None
        if target is None:
            real = here
            continue
        followed += 1
        real = "" if target.startswith("/") else real
        left += target.split("/")[::-1]
    return real or "/"
