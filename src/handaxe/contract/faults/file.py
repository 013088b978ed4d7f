"""What can be wrong with a file; raised by whoever offers the `Files` port."""

from handaxe.contract.faults import ToolFault


class NotFound(ToolFault):
    """There is nothing at the path."""

    code = "file.not_found"

    def __init__(
        self,
        path: str,
        near: list[str] | None = None,
        *,
        elsewhere: list[str] | None = None,
        is_link: bool = False,
    ) -> None:
        """`near` is spelled much like it; `elsewhere` has its name in another directory."""
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        if elsewhere:
            hint += f" Files of that name: {', '.join(elsewhere)}."
        where = f"{path} is a link that leads nowhere." if is_link else f"Nothing is at {path}."
        super().__init__(
            f"File does not exist. {where}{hint}",
            data={"path": path, "near": near or [], "elsewhere": elsewhere or []},
        )


class IsDirectory(ToolFault):
    """A file was wanted and a directory is there."""

    code = "file.is_directory"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is a directory, not a file. List what it holds, then name a file."
        )


class NotRegular(ToolFault):
    """A FIFO, socket, device or kernel file, which could block for ever."""

    code = "file.not_regular"

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(
            f"{path} is not a regular file but a {kind}; it is not opened because that could "
            "block or never end. Name a regular file."
        )


class Binary(ToolFault):
    """The content is not text of any kind."""

    code = "file.binary"

    def __init__(self, path: str, size_bytes: int) -> None:
        name = path.rpartition("/")[2]
        suffix = f".{name.rpartition('.')[2]} " if "." in name[1:] else ""
        super().__init__(
            f"This tool cannot read binary files. The file appears to be a binary {suffix}file "
            f"({size_bytes:,} bytes). Please use appropriate tools for binary file analysis."
        )


class FileTooLarge(ToolFault):
    """More than the operation takes."""

    code = "file.too_large"

    def __init__(self, path: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"{path} has {size_bytes:,} bytes; at most {limit_bytes:,} can be handled whole. "
            "Read it in windows with offset and limit instead."
        )


class Exists(ToolFault):
    """A new file was to be made and something is there already."""

    code = "file.exists"


class Stale(ToolFault):
    """The file is not the one that was read."""

    code = "file.changed"


class WriteFailed(ToolFault):
    """The system refused to write; the file is as it was unless the sentence says otherwise."""

    code = "file.write_failed"

    def __init__(self, path: str, reason: str, *, applied: bool = False) -> None:
        state = (
            "The new content is in place, but it may not survive a power failure"
            if applied
            else "The file is unchanged"
        )
        super().__init__(f"{path} could not be written: {reason}. {state}.")


class RedactedText(ToolFault):
    """The new text holds the marker that stands for a secret value."""

    code = "file.redacted"

    def __init__(self, marker: str) -> None:
        super().__init__(
            f"The text holds {marker}, which stands for a secret value that you were not shown. "
            "Nothing was written. Change only the lines around it, with Edit."
        )


class CannotEncode(ToolFault):
    """The file's encoding has no bytes for a character."""

    code = "file.cannot_encode"

    def __init__(self, path: str, encoding: str, character: str) -> None:
        super().__init__(
            f"{path} is stored as {encoding}, which cannot hold {character!r} "
            f"(U+{ord(character):04X}). Nothing was written. Use other characters, or convert "
            "the file to UTF-8 first."
        )
