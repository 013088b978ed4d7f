"""Commands that destroy work, and removals that must never pass unseen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from handaxe.shell.analysis.possible_commands import Candidate
from handaxe.shell.facts import CommandFacts, Loss, RedirectUse, Removal
from handaxe.shell.fields import Field
from handaxe.shell.find_actions import REMOVERS, read_find
from handaxe.shell.places import is_critical, is_inside, uses_of
from handaxe.shell.runners import FED, inner_of, program_name
from handaxe.shell.tables import load_toml, names

_QUOTES = re.compile(r"['\"\\]")
_GIT_GOES = frozenset({"-C", "--work-tree", "--git-dir"})
_IN_THE_TREE = names("rm rmdir unlink truncate shred find chmod chown chgrp rsync redirection")
"""Destructive forms that change nothing but the paths they name."""
_MIRROR = re.compile(r"remote\..*\.mirror", re.IGNORECASE)
_RECURSIVE = frozenset({"-r", "-R", "--recursive"})


class _Form(Struct, frozen=True):
    words: tuple[str, ...]
    options: frozenset[str]
    reason: str
    is_lasting: bool
    in_checkout: bool


@cache
def _forms() -> dict[str, list[_Form]]:
    forms: dict[str, list[_Form]] = {}
    for entry in load_toml("destructive.toml")["form"]:
        words = tuple(entry["words"].split())
        options = frozenset(entry.get("any", "").split())
        is_lasting, in_checkout = entry.get("lasting", False), entry.get("checkout", False)
        form = _Form(words, options, entry["reason"], is_lasting, in_checkout)
        forms.setdefault(words[0], []).append(form)
    return forms


def is_destructive_name(program: str) -> bool:
    """Whether `program` alone is listed as destructive."""
    return any(len(form.words) == 1 for form in _forms().get(program, ()))


def names_lasting_form(rule_head: str, form: str) -> bool:
    """Whether the fixed words a rule begins with spell out a form that nobody can take back."""
    words = _QUOTES.sub("", rule_head).split()
    return any(
        known.is_lasting and " ".join(known.words) == form and _fits(words, known)
        for known in _forms().get(words[0] if words else "", ())
    )


def find_losses(
    candidates: Iterable[Candidate], redirects: Iterable[RedirectUse]
) -> tuple[Loss, ...]:
    """Every destructive form that a part holds, directly or inside a wrapper."""
    found: list[Loss] = []
    listed = list(candidates)
    elsewhere = tuple(path for candidate in listed for path in _git_places(candidate))
    for candidate in listed:
        program, *more = (candidate.program or "").partition(".")[0].split("-", 1)
        is_git = program == "git"
        head = [program, *more] if is_git else [(candidate.program or "").partition(".")[0]]
        values = [*head, *(field.value for field in candidate.fields[1:])]
        if is_git:
            values = [head[0], *_read_git_settings(values[1:])]
        form = next((form for form in _forms().get(head[0], ()) if _fits(values, form)), None)
        if form is not None:
            loss = _loss(candidate, form)
            found.append(replace(loss, paths=(*loss.paths, *elsewhere)) if is_git else loss)
    for use in redirects:
        if use.replaces:
            paths = tuple(item.path for item in use.uses if item.path)
            found.append(Loss(use.text, "redirection", "replaces the file", paths=paths))
    return tuple(dict.fromkeys(found))


def _read_git_settings(values: list[str]) -> list[str]:
    """The words of a git command with what `-c` makes of them: an alias, a mirror that forces."""
    given = [values[at + 1] for at, value in enumerate(values[:-1]) if value == "-c"]
    settings = {name: text for name, _, text in (item.partition("=") for item in given)}
    if any(_MIRROR.fullmatch(name) for name in settings):
        return [*(value for value in values if value not in ("-c", *given)), "--mirror"]
    for at, value in enumerate(values):
        if (alias := settings.get(f"alias.{value}")) is not None:
            return [*alias.split(), *values[at + 1 :]]
    return values


def _git_places(candidate: Candidate) -> Iterator[str]:
    """Directories that global options of git name."""
    fields = candidate.fields if candidate.program == "git" else ()
    for at, field in enumerate(fields[1:], start=1):
        name, equals, attached = field.value.partition("=")
        if name not in _GIT_GOES:
            continue
        given = Field(field.kind, attached, field.text) if equals else None
        following = fields[at + 1] if at + 1 < len(fields) else None
        target = given or following
        for use in uses_of(target, "write", candidate.cwds) if target is not None else ():
            yield use.path or "/"


def _fits(values: list[str], form: _Form) -> bool:
    size = len(form.words)
    bare = [value for value in values if not value.startswith("-")]
    is_named = form.words in (tuple(values[:size]), tuple(bare[:size]))
    # Values of global options may stand between the words.
    is_spread = form.words[0] != "git" and form.is_lasting and _stand_in_order(form.words, values)
    if not is_named and not is_spread:
        return False
    rest = [value for value in values if value not in form.words]
    return not form.options or any(_carries(value, form.options) for value in rest)


def _stand_in_order(words: tuple[str, ...], values: list[str]) -> bool:
    rest = iter(value.lower() for value in values)
    return all(word in rest for word in words)


def _carries(value: str, options: frozenset[str]) -> bool:
    if value.partition("=")[0] in options:
        return True
    if any(option[-1] == "*" and value.startswith(option[:-1]) for option in options):
        return True
    if value.startswith("--"):
        # Long options may be abbreviated.
        return len(value) > 3 and any(option.startswith(value) for option in options)
    if not value.startswith("-"):
        return False
    return any(f"-{letter}" in options for letter in value[1:])


def _loss(candidate: Candidate, form: _Form) -> Loss:
    named = [
        use
        for field in candidate.fields[len(form.words) :]
        if not (field.known or "").startswith("-")
        for use in uses_of(field, "write", candidate.cwds)
    ]
    return Loss(
        _text(candidate),
        " ".join(form.words),
        form.reason,
        form.is_lasting,
        tuple(use.path for use in named if use.path),
        form.in_checkout,
        tuple(use for use in named if use.path and use.access == "write"),
    )


def _text(candidate: Candidate) -> str:
    return " ".join(field.text for field in candidate.fields)


def find_removals(candidates: Iterable[Candidate]) -> tuple[Removal, ...]:
    """The targets of every removal, each where it may be."""
    found: list[Removal] = []
    for candidate in candidates:
        if candidate.program in REMOVERS:
            found.extend(_removals(candidate))
        elif candidate.program == "find":
            found.extend(_find_removals(candidate))
        elif candidate.program in FED:
            found.extend(_fed_removals(candidate))
    return tuple(dict.fromkeys(found))


def _find_removals(candidate: Candidate) -> Iterator[Removal]:
    """The starting points of a find that removes whatever it meets, or their `.git`.

    What lies in the current directory goes like other files: undo holds it.
    """
    action = read_find(list(candidate.fields[1:]))
    text = _text(candidate)
    for root in action.roots if action.removes else ():
        if not action.may_meet(f"{root.value}/.git"):
            continue
        for path, is_open in _targets(root, candidate.cwds, recursive=True):
            is_any = path is None or action.names is None
            if is_any and path in candidate.cwds:
                continue
            yield Removal(text, "find", root.text, path if is_any else f"{path}/.git", is_open)


def _fed_removals(candidate: Candidate) -> Iterator[Removal]:
    """`xargs rm -r`: whatever standard input names."""
    for command, _ in inner_of(list(candidate.fields)).commands:
        name = program_name(command[0]) if command else None
        if name in REMOVERS and _is_recursive(command):
            text = _text(candidate)
            yield Removal(text, name or "rm", "standard input", None, is_open=True)


def _is_recursive(fields: Iterable[Field]) -> bool:
    return any(_carries(field.value, _RECURSIVE) for field in fields)


def _removals(candidate: Candidate) -> Iterator[Removal]:
    text, program = _text(candidate), candidate.program or "rm"
    recursive = _is_recursive(candidate.fields[1:])
    for field in candidate.fields[1:]:
        if (field.known or "").startswith("-"):
            continue
        for path, is_open in _targets(field, candidate.cwds, recursive=recursive):
            yield Removal(text, program, field.text, path, is_open)


def _targets(
    field: Field, cwds: frozenset[str], *, recursive: bool
) -> Iterator[tuple[str | None, bool]]:
    if field.kind == "unknown":
        # What is known of it may be no more than the root: `rm -rf /$x`.
        head = field.value.strip("/")
        yield None, not head and ("/" in field.text or recursive)
        return
    for use in uses_of(field, "write", cwds):
        if use.path is None:
            yield None, recursive
        elif use.access == "write":
            yield use.path, False


def destroys_for_good(facts: CommandFacts, roots: tuple[str, ...]) -> bool:
    """Whether it destroys something outside the working directories, or on no disk of ours."""
    roots = roots or (facts.cwd,)
    for part in facts.parts:
        for removal in part.removals:
            is_known = removal.path is not None
            if removal.is_open or (
                is_known and is_critical(removal.path or "", facts.cwd, facts.home, roots)
            ):
                return True
        if any(_lasts(loss, facts.cwd, roots) for loss in part.losses):
            return True
    return False


def _lasts(loss: Loss, cwd: str, roots: tuple[str, ...]) -> bool:
    if loss.in_checkout:
        return not any(is_inside(cwd, root) for root in roots)
    if loss.form not in _IN_THE_TREE or not loss.paths:
        return loss.form != "redirection"
    return not all(any(is_inside(path, root) for root in roots) for path in loss.paths)
