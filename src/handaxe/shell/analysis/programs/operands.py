"""Turn typed operands into the paths they read, and refuse unclear ones."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse, is_inside, make_path_uses, resolve
from handaxe.shell.analysis.programs.embedded_languages import (
    is_plain_jq,
    is_printing_awk,
    is_printing_sed,
)
from handaxe.shell.analysis.programs.options import Arguments, NotProven
from handaxe.shell.analysis.walker import ShellState

_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_SORT_KEY = r"-?[\w:*.()=/ -]+"
_DURATION = r"\d+(?:\.\d+)?[smhd]?"
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_GLOBBING = frozenset("*?[")


class ProofContext(Struct, frozen=True):
    """Facts for a proof besides the text."""

    cwd: str
    home: str
    working_dirs: tuple[str, ...] = ()
    git_top: str = ""
    """The top of the repository; empty if unknown."""

    @property
    def git_tops(self) -> list[str]:
        """Possible bases of `rev:path`: the top, or each directory up to the working one's."""
        if self.git_top:
            return [self.git_top]
        tops, at = [self.cwd], self.cwd
        while at != "/" and any(
            at != root and is_inside(at, root.rstrip("/") or "/") for root in self.working_dirs
        ):
            at = at.rpartition("/")[0] or "/"
            tops.append(at)
        return tops


def collect_path_uses(
    arguments: Arguments, program: str, state: ShellState, setting: ProofContext
) -> list[PathUse]:
    """The files that typed operands and option values read; raises `NotProven` otherwise."""
    uses: list[PathUse] = []
    for kind, field in arguments.typed:
        if kind == "path":
            found = check_path(field, state)
            uses.extend(replace(use, sweeps=True) for use in found if arguments.sweeps)
            uses.extend(use for use in found if not arguments.sweeps)
        elif kind == "ref":
            uses.extend(make_ref_uses(field, setting))
        elif kind == "names" or (
            kind == "pattern" and arguments.takes_globs and field.kind == "glob"
        ):
            uses.extend(check_listing(field, state))
        elif kind == "lineplace":
            uses.extend(_check_line_range(field, state))
        else:
            _check_text(kind, field, program)
    for field in arguments.stray:
        if field.known is not None and not program.startswith("git "):
            uses.extend(check_path(field, state))
    return uses


def check_path(field: Field, state: ShellState) -> list[PathUse]:
    """The paths that a file operand can name; raises `NotProven` otherwise."""
    uses = make_path_uses(field, "read", state.cwds)
    for use in uses:
        if use.path is None:
            raise NotProven(f"the path {field.text} is unknown before the command runs")
    return uses


def check_listing(field: Field, state: ShellState) -> list[PathUse]:
    """The directory that an unquoted glob lists, for a printed word."""
    if field.kind == "glob":
        return check_path(field, state)
    if field.kind == "unknown" and not field.single:
        for name in _VARIABLE.findall(field.text):
            value = state.variables.get(name)
            if value is not None and value.kind == "known" and _GLOBBING.intersection(value.value):
                raise NotProven(f"the matches of {field.text} are unknown before the command runs")
    return []


def _check_text(kind: str, field: Field, program: str) -> None:
    if field.kind == "glob" or not field.single:
        raise NotProven(f"{field.text} may become several arguments of {program}")
    check = _TEXT_CHECKS.get(kind)
    if check is not None and (field.known is None or not check(field.known)):
        raise NotProven(f"{field.text} is not provably harmless for {program}")


_TEXT_CHECKS: dict[str, Callable[[str], bool]] = {
    "sed": is_printing_sed,
    "awk": is_printing_awk,
    "jq": is_plain_jq,
    "number": lambda text: bool(re.fullmatch(_NUMBER, text)),
    "duration": lambda text: bool(re.fullmatch(_DURATION, text)),
    "format": lambda text: text.startswith("+"),
    "key": lambda text: bool(re.fullmatch(_SORT_KEY, text)),
    "git_variable": lambda text: bool(re.fullmatch(r"GIT_[A-Z_]+", text)),
}


def make_ref_uses(field: Field, setting: ProofContext) -> list[PathUse]:
    """A git revision or pathspec, in both readings; `rev:path` reads that path."""
    if field.known is None:
        raise NotProven(f"{field.text} is unknown before git runs")
    tops = setting.git_tops
    revisions = make_revision_uses(field.known, setting.cwd, tops)
    return [*revisions, *make_pathspec_uses(field.known, setting.cwd, tops)]


def _check_line_range(field: Field, state: ShellState) -> list[PathUse]:
    if field.known is None:
        raise NotProven(f"the line range {field.text} is unknown before git runs")
    path = split_line_range(field.known)
    return check_path(Field("known", path, field.text), state) if path else []


_PATHSPEC_GLOBBING = frozenset("*?[\\")
_SECRET_SAMPLES = (".env", ".env.local", ".env.production")
_PLAIN_MAGIC = frozenset({"top", "literal", "glob", "exclude", ""})
_STAGE = re.compile(r":[0-3]:")
_WHOLE_NUMBER = re.compile(r"[+-]?\d+")


def find_revision_paths(text: str) -> list[str]:
    """The paths of `rev:path` in every reading of git, range ends included."""
    found: list[str] = []
    for piece in dict.fromkeys([text, *re.split(r"\.\.\.?", text)]):
        path = _split_revision(piece)
        if path is not None:
            found.append(path)
    return found


def _split_revision(text: str) -> str | None:
    """The text after the first colon outside braces; None if the word names no path."""
    text = text.removeprefix("^")
    if text.startswith(":"):
        if text.startswith(":/") and len(text) > 2:
            return None
        return text[3:] if _STAGE.match(text) else text[1:]
    depth = 0
    for at, char in enumerate(text):
        if char == "{":
            depth += 1
        elif char == "}" and depth:
            depth -= 1
        elif char == ":" and not depth:
            return text[at + 1 :]
    return None


def make_revision_uses(text: str, cwd: str, tops: list[str]) -> list[PathUse]:
    """The files that `rev:path` reads: below the repository's top or, with `./`, below `cwd`."""
    uses: list[PathUse] = []
    for path in find_revision_paths(text):
        bases = [cwd] if path.startswith(("./", "../")) else tops
        uses.extend(_make_use(path, base, text) for base in bases)
    return uses


def make_pathspec_uses(text: str, cwd: str, tops: list[str]) -> list[PathUse]:
    """The reads of a pathspec; a glob crosses directories and matches hidden names."""
    magic, pattern = _split_magic(text)
    # An attribute only leaves files out.
    if not all(word in _PLAIN_MAGIC or word.startswith("attr:") for word in magic):
        raise NotProven(f"the pathspec {text} does not name its files")
    if "exclude" in magic or pattern is None:
        return []
    bases = tops if "top" in magic else [cwd]
    if "literal" in magic or not _PATHSPEC_GLOBBING.intersection(pattern):
        return [_make_use(pattern, base, text) for base in bases]
    uses: list[PathUse] = []
    for base in bases:
        uses.extend(_make_glob_uses(pattern, base, text))
    return uses


def _make_use(path: str, base: str, text: str) -> PathUse:
    return PathUse(resolve(path, base), "read", text, posixpath.join(base, path))


def _make_glob_uses(pattern: str, base: str, text: str) -> list[PathUse]:
    if "\\" in pattern:
        raise NotProven(f"the pathspec {text} is escaped")
    parts = pattern.split("/")
    at = next(index for index, part in enumerate(parts) if _PATHSPEC_GLOBBING.intersection(part))
    if ".." in parts[at:]:
        raise NotProven(f"the pathspec {text} leaves the directory that it matches")
    directory = resolve("/".join(parts[:at]) or ("/" if pattern.startswith("/") else "."), base)
    rest = "/".join(parts[at:])
    start = directory.rstrip("/")
    globs = [f"{start}/{rest}", f"{start}/**/{rest}"]
    uses = [PathUse(glob, "read", text, glob=True) for glob in globs]
    uses.append(PathUse(directory, "read", text))
    # Only a pattern that contains such a name asks for it; `*` is checked at run time.
    named = [name for name in _SECRET_SAMPLES if "env" in rest and fnmatchcase(name, parts[-1])]
    return [*uses, *(_make_use(f"{directory}/{name}", base, text) for name in named)]


def _split_magic(text: str) -> tuple[set[str], str | None]:
    """The magic words of a pathspec, and its pattern; None for a lone colon."""
    if not text.startswith(":"):
        return set(), text
    if text.startswith(":("):
        words, closed, pattern = text[2:].partition(")")
        if not closed:
            raise NotProven(f"the pathspec {text} is not closed")
        return set(words.split(",")), pattern or "."
    magic: set[str] = set()
    at = 1
    while at < len(text) and text[at] in "/!^":
        magic.add("top" if text[at] == "/" else "exclude")
        at += 1
    if at < len(text) and text[at] == ":":
        at += 1
    elif at < len(text) and not (text[at].isalnum() or text[at] in "._-*?["):
        raise NotProven(f"the pathspec {text} is not plain")
    if at == len(text) and not magic:
        return magic, None
    return magic, text[at:] or "."


def split_line_range(text: str) -> str | None:
    """The path of `-L a,b:path` or `-L :name:path`; None without one."""
    at = _skip_function(text) if text.startswith((":", "^:")) else _skip_lines(text)
    if at == len(text):
        return None
    if at < 0 or text[at] != ":" or at + 1 == len(text):
        raise NotProven(f"the line range {text} is not plain")
    return text[at + 1 :]


def _skip_function(text: str) -> int:
    start = at = text.index(":") + 1
    while at < len(text) and text[at] != ":":
        at += 2 if text[at] == "\\" else 1
    return min(at, len(text)) if at > start else -1


def _skip_lines(text: str) -> int:
    at = _skip_place(text, 0)
    return _skip_place(text, at + 1) if text.startswith(",", at) else at


def _skip_place(text: str, at: int) -> int:
    """The position after a line number, an offset or a regular expression."""
    number = _WHOLE_NUMBER.match(text, at)
    if number is not None:
        return number.end()
    if text.startswith("^/", at):
        at += 1
    if not text.startswith("/", at):
        return at
    end = at + 1
    while end < len(text) and text[end] != "/":
        end += 2 if text[end] == "\\" else 1
    return end + 1 if end < len(text) else -1


class OperandPaths:
    """Paths as a command sees them from its possible directories."""

    def __init__(self, state: ShellState) -> None:
        self._cwds = sorted(state.cwds)

    def __call__(self, value: str) -> tuple[str, ...]:
        """Every absolute path that a word can name; links are not followed."""
        if value.startswith("/"):
            return (value,)
        if not self._cwds:
            raise NotProven(f"the path {value} is unknown before it runs")
        return tuple(posixpath.join(base, value) for base in self._cwds)

    def all(self, fields: list[Field]) -> tuple[str, ...]:
        """The path uses of several words."""
        return tuple(path for field in fields for path in self(field.value))
