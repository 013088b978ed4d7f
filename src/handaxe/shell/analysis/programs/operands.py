"""Turning typed operands into the paths they read, and refusing those that cannot be judged."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse, is_inside, make_path_uses
from handaxe.shell.analysis.programs.embedded_languages import is_printing_awk, is_printing_sed
from handaxe.shell.analysis.programs.embedded_languages__jq_filter import is_plain_jq
from handaxe.shell.analysis.programs.operands__git_paths import (
    make_pathspec_uses,
    make_revision_uses,
    split_line_range,
)
from handaxe.shell.analysis.programs.options import Arguments, NotProven
from handaxe.shell.analysis.walker import ShellState

_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_SORT_KEY = r"-?[\w:*.()=/ -]+"
_DURATION = r"\d+(?:\.\d+)?[smhd]?"
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_GLOBBING = frozenset("*?[")


class ProofContext(Struct, frozen=True):
    """The facts a proof may use besides the text."""

    cwd: str
    home: str
    working_dirs: tuple[str, ...] = ()
    git_top: str = ""
    """Where the repository begins; empty if nobody has looked."""

    @property
    def git_tops(self) -> list[str]:
        """Where `rev:path` may start: the top, or each directory up to the working directory's."""
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
    """The files that typed operands and option values read; raises `Refused`."""
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
    """The places a file operand can name; raises `Refused` when the text does not say."""
    uses = make_path_uses(field, "read", state.cwds)
    for use in uses:
        if use.path is None:
            raise NotProven(f"the path {field.text} is not known before the command runs")
    return uses


def check_listing(field: Field, state: ShellState) -> list[PathUse]:
    """The directory that a word lists while it is only printed: an unquoted glob does."""
    if field.kind == "glob":
        return check_path(field, state)
    if field.kind == "unknown" and not field.single:
        for name in _VARIABLE.findall(field.text):
            value = state.variables.get(name)
            if value is not None and value.kind == "known" and _GLOBBING.intersection(value.value):
                raise NotProven(f"what {field.text} lists is not known before the command runs")
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
    """A revision or a pathspec of git, in both readings; `rev:path` reads that path."""
    if field.known is None:
        raise NotProven(f"{field.text} is not known before git runs")
    tops = setting.git_tops
    revisions = make_revision_uses(field.known, setting.cwd, tops)
    return [*revisions, *make_pathspec_uses(field.known, setting.cwd, tops)]


def _check_line_range(field: Field, state: ShellState) -> list[PathUse]:
    if field.known is None:
        raise NotProven(f"the line range {field.text} is not known before git runs")
    path = split_line_range(field.known)
    return check_path(Field("known", path, field.text), state) if path else []
