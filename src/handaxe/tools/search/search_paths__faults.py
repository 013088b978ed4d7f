"""What a search can be refused for."""

from handaxe.contract.faults import ToolFault


class BadSearchPattern(ToolFault):
    """The pattern, glob or type cannot be read."""

    code = "search.bad_pattern"

    def __init__(self, part: str, value: str, diagnostic: str, advice: str | None) -> None:
        shown = value if len(value) <= 200 else value[:200] + "..."
        hint = f"\n{advice}" if advice else ""
        super().__init__(
            f"The {part} {shown!r} cannot be used: {diagnostic.strip()}{hint}",
            data={"part": part, "diagnostic": diagnostic, "advice": advice or ""},
        )


class NotListable(ToolFault):
    """Files were to be listed in something that holds none."""

    code = "search.not_found"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is a file, and Glob lists directories. Read the file, or name a directory."
        )


class NothingThere(ToolFault):
    """There is no file or directory to search."""

    code = "search.not_found"

    def __init__(self, path: str, near: list[str]) -> None:
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(
            f"There is nothing at {path}, so nothing was searched.{hint}",
            data={"path": path, "near": near},
        )
