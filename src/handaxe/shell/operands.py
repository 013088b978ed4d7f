"""Turning typed operands into the paths they read, and refusing those that cannot be judged."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from handaxe.shell.fields import Field
from handaxe.shell.flow import State
from handaxe.shell.little_languages import is_plain_jq, is_printing_awk, is_printing_sed
from handaxe.shell.options import Arguments, Refused
from handaxe.shell.places import PathUse, uses_of
from handaxe.shell.tables import names

_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_DURATION = r"\d+(?:\.\d+)?[smhd]?"
_BINUTILS = names("strings nm size readelf objdump")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_GLOBBING = frozenset("*?[")
_LINE_PLACE = r"[^:]*(?::([^:].*))?|:[^:]+:(.+)"


class Setting(Struct, frozen=True):
    """The facts a proof may use besides the text."""

    cwd: str
    home: str
    git_clean: bool = True
    git_doubt: str = ""
    """What is wrong with the repository's configuration, in words."""
    project_programs: frozenset[str] = frozenset()
    """Names under which PATH finds a program of the project: what is known of the name is not
    known of it."""
    working_dirs: tuple[str, ...] = ()


def path_uses(arguments: Arguments, program: str, state: State, _setting: Setting) -> list[PathUse]:
    """The files that typed operands and option values read; raises `Refused`."""
    uses: list[PathUse] = []
    for kind, field in arguments.typed:
        if kind == "path":
            if program in _BINUTILS and field.value.startswith("@"):
                raise Refused(f"{program} reads options from that file")
            uses.extend(checked_path(field, state))
        elif kind == "ref":
            uses.extend(ref_uses(field, state))
        elif kind == "names":
            uses.extend(listed_by(field, state))
        elif kind == "lineplace":
            uses.extend(_line_place(field, state))
        else:
            _check_text(kind, field, program)
    return uses


def checked_path(field: Field, state: State) -> list[PathUse]:
    """The places a file operand can name; raises `Refused` when the text does not say."""
    uses = uses_of(field, "read", state.cwds)
    for use in uses:
        if use.path is None:
            raise Refused(f"the path {field.text} is not known before the command runs")
    return uses


def listed_by(field: Field, state: State) -> list[PathUse]:
    """The directory that a word lists while it is only printed: an unquoted glob does."""
    if field.kind == "glob":
        return checked_path(field, state)
    if field.kind == "unknown" and not field.single:
        for name in _VARIABLE.findall(field.text):
            value = state.variables.get(name)
            if value is not None and value.kind == "known" and _GLOBBING.intersection(value.value):
                raise Refused(f"what {field.text} lists is not known before the command runs")
    return []


def _check_text(kind: str, field: Field, program: str) -> None:
    if field.kind == "glob" or not field.single:
        raise Refused(f"{field.text} may become several arguments of {program}")
    check = _TEXT_CHECKS.get(kind)
    if check is not None and (field.known is None or not check(field.known)):
        raise Refused(f"{field.text} is not provably harmless for {program}")


_TEXT_CHECKS: dict[str, Callable[[str], bool]] = {
    "sed": is_printing_sed,
    "awk": is_printing_awk,
    "jq": is_plain_jq,
    "number": lambda text: bool(re.fullmatch(_NUMBER, text)),
    "duration": lambda text: bool(re.fullmatch(_DURATION, text)),
    "format": lambda text: text.startswith("+"),
}


def ref_uses(field: Field, state: State) -> list[PathUse]:
    """A revision or a path of git; `rev:path` reads that path."""
    value = field.known
    if value is None:
        raise Refused(f"{field.text} is not known before git runs")
    if value.startswith(":") and not value.startswith((":!", ":^", ":(exclude)")):
        raise Refused(f"the pathspec {value} may reach outside")
    revision, colon, path = value.partition(":")
    if colon and revision and path and not value.startswith(":"):
        return checked_path(Field("known", path, field.text), state)
    return checked_path(Field("known", value.lstrip(":!^"), field.text), state)


def _line_place(field: Field, state: State) -> list[PathUse]:
    found = re.fullmatch(_LINE_PLACE, field.known or "\n")
    if found is None:
        raise Refused(f"the line range {field.text} is not plain")
    path = found.group(1) or found.group(2)
    return checked_path(Field("known", path, field.text), state) if path else []
