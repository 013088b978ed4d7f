"""How a path that was found is written down.

In text it is relative to the working directory where it lies inside, absolute elsewhere; data
holds absolute paths. Both can be given to every tool as they stand: what no text can show is
quoted, and what would mean something else at the beginning of a path comes after `./`.
"""

from collections.abc import Iterable

from handaxe.text.paths__path_quoting import quote_path


def format_path(path: str, directory: str) -> str:
    """A path as text shows it to whoever works in `directory`."""
    prefix = directory if directory.endswith("/") else directory + "/"
    return quote_path(_make_relative(path, prefix))


def format_paths(paths: Iterable[str], directory: str) -> list[str]:
    """The same of many paths, which is quick as long as all of them can be shown as they are."""
    prefix = directory if directory.endswith("/") else directory + "/"
    return escape_paths(_make_relative(path, prefix) for path in paths)


def escape_paths(paths: Iterable[str]) -> list[str]:
    """Many paths, each as it can be given back."""
    found = list(paths)
    joined = "".join(found)
    if joined.isprintable() and "$'" not in joined:
        return found
    return [quote_path(path) for path in found]


def escape_path(path: str) -> str:
    """A path as it can be given back, with line breaks, controls and odd bytes quoted."""
    return quote_path(path)


def _make_relative(path: str, prefix: str) -> str:
    if not path.startswith(prefix):
        return path
    name = path[len(prefix) :]
    return f"./{name}" if name[:1] == "~" or name[:5].lower() == "file:" else name
