"""The help text of a command: a sentence, examples, usage and options in groups."""

import os
from collections.abc import Iterable

from handaxe.frontends.cli.arguments import HELP, CommandPage, OptionGroup

_INDENT = 2
_HELP_COLUMN = 26
_NARROW_COLUMNS = 60


def format_page(program: str, page: CommandPage, columns: int) -> str:
    """A page as text: a sentence, examples, actions, usage and options in groups."""
    summary = f"{page.summary[0].upper()}{page.summary[1:]}. {page.about}".strip()
    width = max(len(line) for line, _ in page.examples) + 4
    sections = {"Examples:": _format_rows(page.examples, columns, width)}
    if page.actions:
        rows = [(name, action.summary) for name, action in page.actions.items()]
        width = max(len(name) for name in page.actions) + 4
        kind = "command" if program == "handaxe" else "action"
        title = f"{kind.title()}s (`{program} {kind.upper()} --help` shows details and examples):"
        sections[title] = _format_rows(rows, columns, width)
    usage = [line for one in page.list_usage(program) for line in _wrap(one, columns - 2, 4)]
    sections["Usage:"] = [f"{'':{_INDENT}}{line}" for line in usage]
    is_told = any(HELP in group.arguments for group in page.groups)
    for group in [*page.groups, *(() if is_told else (OptionGroup("Help", (HELP,)),))]:
        rows = [(one.spec, one.meaning) for one in group.arguments]
        sections[f"{group.title}:"] = _format_rows(rows, columns, _HELP_COLUMN)
    parts = [_wrap(summary, columns, 0)]
    parts += [[*_wrap(title, columns, 0), *lines] for title, lines in sections.items()]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _format_rows(rows: Iterable[tuple[str, str]], columns: int, width: int) -> list[str]:
    """Two columns; in a narrow terminal, or after a long name, the meaning is on its own line."""
    lines: list[str] = []
    is_narrow = columns < _NARROW_COLUMNS or width > columns - 20
    indent = 6 if is_narrow else width
    for name, meaning in rows:
        told = _wrap(meaning, columns, indent, is_hanging=False)
        head = f"{'':{_INDENT}}{name}"
        if is_narrow or len(head) > width - 2:
            lines += [head]
        else:
            lines += [f"{head:{width}}{told[0].lstrip()}"]
            told = told[1:]
        lines += told
    return lines


def _wrap(text: str, columns: int, indent: int, *, is_hanging: bool = True) -> list[str]:
    """Lines of at most `columns`; `indent` is left free, on the first line only if not hanging."""
    room = max(columns - indent, 20)
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    first = "" if is_hanging else " " * indent
    return [f"{first if at == 0 else ' ' * indent}{line}" for at, line in enumerate(lines)]


def get_columns() -> int:
    """The width of the terminal, or 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size().columns or 80
    except OSError:
        return 80
