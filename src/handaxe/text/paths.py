"""Arithmetic on absolute paths by name: nothing is looked up on disk."""


def normalize(path: str) -> str:
    """An absolute path without `.`, `..`, doubled or trailing slashes."""
    if "/." not in path and "//" not in path and not path.endswith("/"):
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/" + "/".join(parts)


def is_inside(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies below it, by whole components."""
    return path == directory or path.startswith(
        directory if directory.endswith("/") else directory + "/"
    )
