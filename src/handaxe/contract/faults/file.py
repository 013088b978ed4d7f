"""Faults of files, raised by the `Files` port and the file tools."""

from handaxe.contract.faults import TemplateFault, ToolFault


class NotFound(ToolFault):
    """No file exists at the path."""

    code = "file.not_found"

    def __init__(
        self,
        path: str,
        near: list[str] | None = None,
        *,
        elsewhere: list[str] | None = None,
        is_link: bool = False,
    ) -> None:
        """`near` has similar names; `elsewhere` has the same name in other directories."""
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        if elsewhere:
            hint += f" Files of that name: {', '.join(elsewhere)}."
        where = f"{path} is a link that leads nowhere." if is_link else f"Nothing is at {path}."
        super().__init__(
            f"File does not exist. {where}{hint}",
            data={"path": path, "near": near or [], "elsewhere": elsewhere or []},
        )


class IsDirectory(
    TemplateFault,
    code="file.is_directory",
    sentence="{path} is a directory, not a file. List its contents, then name a file.",
):
    """The path is a directory, and a file is needed."""


class NotRegular(
    TemplateFault,
    code="file.not_regular",
    sentence=(
        "{path} is a {kind}, not a regular file. It was not opened because that could block or "
        "never end. Name a regular file."
    ),
):
    """A FIFO, socket, device or kernel file, which could block forever."""


class Binary(ToolFault):
    """The content is not text."""

    code = "file.binary"

    def __init__(self, path: str, size_bytes: int) -> None:
        name = path.rpartition("/")[2]
        suffix = f".{name.rpartition('.')[2]} " if "." in name[1:] else ""
        super().__init__(
            f"This tool cannot read binary files. The file appears to be a binary {suffix}file "
            f"({size_bytes:,} bytes). Please use appropriate tools for binary file analysis."
        )


class FileTooLarge(
    TemplateFault,
    code="file.too_large",
    sentence=(
        "{path} has {size_bytes:,} bytes; the limit for whole files is {limit_bytes:,}. Read "
        "it in windows with offset and limit instead."
    ),
):
    """The file exceeds the size limit of the operation."""


class Exists(ToolFault):
    """The new file exists already."""

    code = "file.exists"


class Stale(ToolFault):
    """The file changed after it was read."""

    code = "file.changed"


class WriteFailed(ToolFault):
    """The write failed; the file is unchanged unless the sentence says otherwise."""

    code = "file.write_failed"

    def __init__(self, path: str, reason: str, *, applied: bool = False) -> None:
        state = (
            "The new content is in place, but it may not survive a power failure"
            if applied
            else "The file is unchanged"
        )
        super().__init__(f"{path} could not be written: {reason}. {state}.")


class RedactedText(
    TemplateFault,
    code="file.redacted",
    sentence=(
        "The text contains {marker}, which replaces a secret value that you were not shown. "
        "Nothing was written. Change only the lines around it, with Edit."
    ),
):
    """The new text contains the marker of a secret value."""


class CannotEncode(ToolFault):
    """The encoding of the file cannot represent a character."""

    code = "file.cannot_encode"

    def __init__(self, path: str, encoding: str, character: str) -> None:
        super().__init__(
            f"{path} is stored as {encoding}, which cannot hold {character!r} "
            f"(U+{ord(character):04X}). Nothing was written. Use other characters, or convert "
            "the file to UTF-8 first."
        )
