"""Recognising commands that destroy work, and removals that must never pass unseen."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from handaxe.shell.danger import Candidate, Danger
from handaxe.shell.effects import part_redirects
from handaxe.shell.fields import Field
from handaxe.shell.flow import Part, State
from handaxe.shell.places import is_critical, uses_of
from handaxe.shell.tables import load_toml

_REMOVERS = frozenset({"rm", "rmdir", "unlink", "shred"})


class Destruction(Struct, frozen=True):
    """One destructive form in a command, with what it destroys in plain words."""

    text: str
    form: str
    reason: str
    critical: bool = False
    paths: tuple[str, ...] = ()


class _Form(Struct, frozen=True):
    words: tuple[str, ...]
    options: frozenset[str]
    reason: str


@cache
def _forms() -> dict[str, list[_Form]]:
    forms: dict[str, list[_Form]] = {}
    for entry in load_toml("destructive.toml")["form"]:
        words = tuple(entry["words"].split())
        form = _Form(words, frozenset(entry.get("any", "").split()), entry["reason"])
        forms.setdefault(words[0], []).append(form)
    return forms


def is_destructive_name(program: str) -> bool:
    """Whether `program` alone is listed as destructive."""
    return any(len(form.words) == 1 for form in _forms().get(program, ()))


def names_destruction(rule_head: str) -> bool:
    """Whether the fixed words a rule begins with spell out a destructive form themselves."""
    words = rule_head.split()
    if not words:
        return False
    return any(
        tuple(words[: len(form.words)]) == form.words
        and (not form.options or any(_carries(w, form.options) for w in words[len(form.words) :]))
        for form in _forms().get(words[0], ())
    )


def find_destruction(
    part: Part, danger: Danger, cwd: str, home: str, working_dirs: tuple[str, ...]
) -> list[Destruction]:
    """Every destructive form that `part` holds, directly or inside a wrapper."""
    found: list[Destruction] = []
    state = part.states[0]
    for candidate in danger.candidates:
        program = candidate.program or ""
        if program in _REMOVERS:
            critical = _critical(candidate, part.states, cwd, home, working_dirs)
            if critical is not None:
                found.append(critical)
                continue
        for form in _forms().get(program.partition(".")[0], ()):
            if _has_form(candidate, form):
                found.append(_destruction(candidate, form, state))
                break
    for use in part_redirects(part):
        if use.writes and not use.text.lstrip("0123456789{}").startswith((">>", "&>>")):
            paths = tuple(item.path for item in use.uses if item.path)
            found.append(Destruction(use.text, "redirection", "replaces the file", paths=paths))
    return list(dict.fromkeys(found))


def _text(candidate: Candidate) -> str:
    return " ".join(field.text for field in candidate.fields)


def _has_form(candidate: Candidate, form: _Form) -> bool:
    values = [field.value for field in candidate.fields]
    values[0] = values[0].rstrip("/").rpartition("/")[2].partition(".")[0]
    if tuple(values[: len(form.words)]) != form.words:
        return False
    if not form.options:
        return True
    return any(_carries(value, form.options) for value in values[len(form.words) :])


def _carries(value: str, options: frozenset[str]) -> bool:
    if value.partition("=")[0] in options:
        return True
    if value.startswith("--"):
        # Long options may be abbreviated.
        return len(value) > 3 and any(option.startswith(value) for option in options)
    if not value.startswith("-"):
        return False
    return any(f"-{letter}" in options for letter in value[1:])


def _destruction(candidate: Candidate, form: _Form, state: State) -> Destruction:
    paths: list[str] = []
    for field in candidate.fields[len(form.words) :]:
        if not (field.known or "").startswith("-"):
            paths.extend(use.path for use in uses_of(field, "write", state.cwds) if use.path)
    return Destruction(_text(candidate), " ".join(form.words), form.reason, paths=tuple(paths))


def _critical(
    candidate: Candidate,
    states: list[State],
    cwd: str,
    home: str,
    working_dirs: tuple[str, ...],
) -> Destruction | None:
    """A removal whose target is, or may be, the system, the home or the project itself."""
    operands = [f for f in candidate.fields[1:] if not (f.known or "").startswith("-")]
    recursive = any(
        _carries(f.value, frozenset({"-r", "-R", "--recursive"})) for f in candidate.fields[1:]
    )
    for field in operands:
        target = _critical_target(field, states, cwd, home, working_dirs, recursive=recursive)
        if target is not None:
            form = candidate.program or "rm"
            return Destruction(_text(candidate), form, f"would remove {target}", critical=True)
    return None


def _critical_target(
    field: Field,
    states: list[State],
    cwd: str,
    home: str,
    working_dirs: tuple[str, ...],
    *,
    recursive: bool,
) -> str | None:
    if field.kind == "unknown":
        leads = not field.value and ("/" in field.text or recursive)
        return f"whatever {field.text} becomes" if leads else None
    for state in states:
        for use in uses_of(field, "write", state.cwds):
            if use.path is None:
                return f"whatever {field.text} becomes" if recursive else None
            if use.access == "write" and is_critical(use.path, cwd, home, working_dirs):
                return use.path
    return None
