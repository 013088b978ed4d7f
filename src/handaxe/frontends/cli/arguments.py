"""Commands, options and examples as data: the parser and the help text made from them."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from handaxe.contract.faults import SetupError
from handaxe.text.escape import find_closest_name, to_visible_text

_INDENT = 2
_HELP_COLUMN = 26
_NARROW_COLUMNS = 60


class Argument:
    """An option such as `-r, --resume [ID]`, or a positional argument such as `[FILE]`.

    Without a value an option is a flag. Brackets make the value optional. Further keywords are
    those of `ArgumentParser.add_argument`.
    """

    __slots__ = ("meaning", "options", "spec")

    def __init__(self, spec: str, meaning: str, **options: Any) -> None:  # noqa: ANN401 - of argparse
        self.spec = spec
        self.meaning = meaning
        self.options = options

    @property
    def names(self) -> list[str]:
        """The names of an option; none of a positional argument."""
        return [word.rstrip(",") for word in self.spec.split() if word.startswith("-")]

    @property
    def value(self) -> str:
        """The name of the value; empty for a flag."""
        return " ".join(word for word in self.spec.split() if not word.startswith("-"))

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Declare it."""
        names, value = self.names, self.value
        options: dict[str, Any] = dict(self.options)
        if not names:
            parser.add_argument(options.pop("dest"), metavar=value, **options)
        elif not value:
            options.setdefault("action", "store_true")
            parser.add_argument(*names, **options)
        else:
            if value.startswith("["):
                options.update(nargs="?", const="")
            if options.get("action") == "append":
                options.setdefault("default", [])
            parser.add_argument(*names, metavar=value.strip("[]"), **options)


HELP = Argument("-h, --help", "show this help and exit", action="help")


class OptionGroup(NamedTuple):
    """Arguments below one heading of the help text."""

    title: str
    arguments: tuple[Argument, ...]


class CommandPage(NamedTuple):
    """What a command, or one action of a command, takes and what its help says."""

    summary: str
    """An imperative for the list of commands."""
    usage: tuple[str, ...]
    """What follows `handaxe`."""
    examples: tuple[tuple[str, str], ...]
    """Command lines with their meaning."""
    groups: tuple[OptionGroup, ...] = ()
    about: str = ""
    """What the first sentence leaves out."""
    hidden: tuple[Argument, ...] = ()
    """Arguments that are accepted and not shown."""
    actions: "Mapping[str, CommandPage]" = {}  # noqa: RUF012 - nobody changes it
    """Actions by name; the first one is the default."""
    is_mixed: bool = False
    """Whether options may stand between the words of one positional argument."""

    def list_arguments(self) -> list[Argument]:
        """All arguments, those that the help does not show too."""
        listed = [*(one for group in self.groups for one in group.arguments), *self.hidden]
        return listed if HELP in listed else [*listed, HELP]


class CommandParser(argparse.ArgumentParser):
    """The parser of one page."""

    def __init__(self, program: str, page: CommandPage) -> None:
        # A given width keeps argparse from loading the modules that find out the real one.
        formatter: Any = partial(argparse.HelpFormatter, width=80)
        super().__init__(
            prog=program, formatter_class=formatter, allow_abbrev=False, add_help=False
        )
        self._page = page
        self._arguments = page.list_arguments()
        for argument in self._arguments:
            argument.add_to(self)

    def read_words(self, words: Sequence[str], into: argparse.Namespace) -> argparse.Namespace:
        """The arguments in these words."""
        parse = self.parse_known_intermixed_args if self._page.is_mixed else self.parse_known_args
        arguments, surplus = parse(words, into)
        if surplus:
            self._refuse_word(surplus[0])
        return arguments

    def format_help(self) -> str:
        """The page as wide as the terminal."""
        return format_page(self.prog, self._page, _get_columns())

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise SetupError(f"Wrong usage: {to_visible_text(message)}. {self._get_advice()}")

    def _refuse_word(self, word: str) -> NoReturn:
        name = to_visible_text(word.partition("=")[0])
        if not word.startswith("-"):
            raise SetupError(f"Unexpected argument {word!r}. {self._get_advice()}")
        if self.prog == "handaxe call" and "=" in word:
            raise SetupError(
                f"There is no option {name}. Put input that begins with a dash after --: "
                f"-- {to_visible_text(word)}"
            )
        known = [name for one in self._arguments for name in one.names if name.startswith("--")]
        near = find_closest_name(name, known)
        hint = f" Did you mean {near}?" if near else ""
        raise SetupError(f"There is no option {name}.{hint} {self._get_advice()}")

    def _get_advice(self) -> str:
        return f"Run `{self.prog} --help` for usage and examples."

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ANN401 - as argparse
        # argparse ignores a failed write.
        if message:
            (file or sys.stderr).write(message)


def split_action(
    program: str, page: CommandPage, words: Sequence[str]
) -> tuple[str | None, list[str]]:
    """The action that the words name, and the other words."""
    arguments = [one for action in page.actions.values() for one in action.list_arguments()]
    valued = {name for one in arguments if one.value for name in one.names}
    is_value = False
    for at, word in enumerate(words):
        if is_value or word.startswith("-"):
            is_value = not is_value and word in valued
        elif word in page.actions:
            return word, [*words[:at], *words[at + 1 :]]
        else:
            near = find_closest_name(word, page.actions)
            hint = f" Did you mean {near!r}?" if near else ""
            raise SetupError(
                f"`{program}` has no action {word!r}.{hint} Actions: {', '.join(page.actions)}."
            )
    return None, list(words)


def parse_int(text: str) -> int:
    """The whole number of an option."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None


def parse_float(text: str) -> float:
    """The number of an option."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def format_page(program: str, page: CommandPage, columns: int) -> str:
    """A page as text: a sentence, usage, examples, actions and options in groups."""
    summary = f"{page.summary[0].upper()}{page.summary[1:]}."
    parts = ["\n".join(_wrap(f"{summary} {page.about}".strip(), columns, 0))]
    usage = [line for one in page.usage for line in _wrap(f"handaxe {one}".strip(), columns, 4)]
    examples = _format_rows(page.examples, columns, max(len(line) for line, _ in page.examples) + 4)
    parts.append(_join_section("Examples", examples))
    if page.actions:
        rows = [(name, action.summary) for name, action in page.actions.items()]
        width = max(len(name) for name in page.actions) + 4
        title = "Commands" if program == "handaxe" else "Actions"
        name = title[:-1].upper()
        title = f"{title} (`{program} {name} --help` has details and examples)"
        parts.append(_join_section(title, _format_rows(rows, columns, width)))
    parts.append(_join_section("Usage", (f"  {line}" for line in usage)))
    is_told = any(HELP in group.arguments for group in page.groups)
    for group in [*page.groups, *(() if is_told else (OptionGroup("Help", (HELP,)),))]:
        rows = [(one.spec, one.meaning) for one in group.arguments]
        parts.append(_join_section(group.title, _format_rows(rows, columns, _HELP_COLUMN)))
    return "\n\n".join(parts) + "\n"


def _join_section(title: str, lines: Iterable[str]) -> str:
    return "\n".join((f"{title}:", *lines))


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


def _get_columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size().columns or 80
    except OSError:
        return 80
