"""Commands, options and examples as data, and the parser made from them."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from handaxe.contract.faults import SetupError
from handaxe.text.escape import find_closest_name, format_suggestion, to_visible_text


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

    def format_positional(self) -> str:
        """A positional argument in a usage line, such as `[FILE]` or `WORD ...`."""
        nargs = self.options.get("nargs")
        shown = f"{self.value} ..." if nargs in ("*", "+") else self.value
        return f"[{shown}]" if nargs in ("*", "?") else shown

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
    """The arguments and the help of a command, or of one action of a command."""

    summary: str
    """An imperative for the list of commands."""
    examples: tuple[tuple[str, str], ...]
    """Command lines with their meaning."""
    groups: tuple[OptionGroup, ...] = ()
    usage: tuple[str, ...] = ()
    """The usage after `handaxe`, if it cannot be generated from the arguments."""
    about: str = ""
    """The rest of the help after the first sentence."""
    hidden: tuple[Argument, ...] = ()
    """Arguments that are accepted and not shown."""
    actions: "Mapping[str, CommandPage]" = {}  # noqa: RUF012 - nobody changes it
    """Actions by name; the first one is the default."""
    is_mixed: bool = False
    """Whether options may separate the words of one positional argument."""

    def list_usage(self, program: str) -> list[str]:
        """The command lines without their values."""
        if self.usage:
            return [f"handaxe {line}" for line in self.usage]
        if self.actions:
            return [f"{program} [ACTION] [ARGUMENTS] [OPTIONS]"]
        arguments = [one for group in self.groups for one in group.arguments]
        words = [one.format_positional() for one in arguments if not one.names]
        return [" ".join((program, *words, *(["[OPTIONS]"] if arguments else [])))]

    def list_arguments(self) -> list[Argument]:
        """All arguments, those that the help does not show too."""
        listed = [*(one for group in self.groups for one in group.arguments), *self.hidden]
        return listed if HELP in listed else [*listed, HELP]


class HelpRequested(Exception):
    """The command line asks for a help page."""

    def __init__(self, program: str, page: CommandPage) -> None:
        super().__init__(program)
        self.program = program
        self.page = page


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

    def print_help(self, file: Any = None) -> NoReturn:  # noqa: ANN401, ARG002 - as argparse
        """End parsing with the page to show."""
        raise HelpRequested(self.prog, self._page)

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
            hint = format_suggestion(word, page.actions)
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


ROOT = Argument("--root DIR", "project directory (default: the current directory)", default=".")
SESSION_ID = Argument("--session-id ID", "id of the session to open, or to give to a new one")
SETTINGS = Argument("--settings FILE|JSON", "settings for this run, as a file or a JSON object")
SETTING_SOURCES = Argument(
    "--setting-sources LIST",
    'settings files to read, e.g. "user,project,local" (default: all; empty: none)',
)
PROJECT_GROUP = OptionGroup(
    "Project and session",
    (
        ROOT,
        Argument(
            "--add-dir DIR", "another directory to work in; several may follow", action="append"
        ),
        SESSION_ID,
        Argument("--shared-session", "let several processes work in this session at the same time"),
    ),
)
PERMISSION_GROUP = OptionGroup(
    "Permissions",
    (
        Argument(
            "--permission-mode MODE",
            "when to ask: default, acceptEdits (edit without asking), plan (read only), auto, "
            "dontAsk (refuse instead of asking) or bypassPermissions (never ask)",
        ),
        Argument(
            "--allowedTools, --allowed-tools RULES",
            'rules for calls that run without asking, e.g. "Bash(git diff *)" Edit; '
            "several may follow",
            dest="allow",
            action="append",
        ),
        Argument(
            "--disallowedTools, --disallowed-tools RULES",
            'rules for calls that are always refused, e.g. "Read(.env)"; several may follow',
            dest="deny",
            action="append",
        ),
    ),
)
SETTINGS_GROUP = OptionGroup(
    "Settings",
    (
        SETTINGS,
        SETTING_SOURCES,
        Argument("--trust-project", "trust the project's settings files for this run"),
    ),
)
TOOLS_GROUP = OptionGroup(
    "Tools and MCP servers",
    (
        Argument(
            "--tools LIST|PRESET",
            "tools to offer, e.g. Read,Grep,Edit or read-only, edit, simple, full (default: all)",
        ),
        Argument(
            "--tools-from FILE.py|MODULE:NAME",
            "add your own tools from a Python file or module; repeatable",
            action="append",
        ),
        Argument(
            "--mcp-config FILE|JSON",
            "add MCP servers for this run, in the format of .mcp.json; several may follow",
            action="append",
        ),
        Argument("--strict-mcp-config", "use only the MCP servers of --mcp-config"),
    ),
)
SESSION_GROUPS = (PROJECT_GROUP, PERMISSION_GROUP, SETTINGS_GROUP, TOOLS_GROUP)
"""The options of every command that opens a session."""

AGENT_TYPES = (
    Argument("--agent TYPE", "agent type that leads the session"),
    Argument("--agents JSON", "more agent types for this run"),
)
PROMPTS = (
    Argument("--system-prompt TEXT", "replace the default system prompt"),
    Argument("--system-prompt-file FILE", "replace it with the text of a file"),
    Argument("--append-system-prompt TEXT", "append to the default system prompt"),
    Argument("--append-system-prompt-file FILE", "append the text of a file"),
    Argument("--append-subagent-system-prompt TEXT", "append to the prompts of subagents"),
)
