"""Find commands that change the meaning of names, words or globs in later commands.

After `IFS=,`, `hash -p`, `declare -n` or `shopt -s expand_aliases` the text no longer shows which
program a word names or how it splits. Over-approximates, for deny and ask rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.parser.syntax import Simple
from handaxe.shell.analysis.program_tables import split_names
from handaxe.shell.analysis.programs.wrappers import SHELLS, get_program_name, load_wrappers
from handaxe.shell.analysis.walker import Part

_MEANING = split_names(
    "IFS PATH BASH_ENV ENV BASH_ALIASES BASH_CMDS SHELLOPTS BASHOPTS EXECIGNORE GLOBIGNORE "
    "POSIXLY_CORRECT BASH_COMPAT BASH_LOADABLES_PATH LD_PRELOAD LD_AUDIT CDPATH "
    "RIPGREP_CONFIG_PATH GREP_OPTIONS"
)
"""Variables that decide what a name means, how a word splits, what a glob matches."""
_ANY = "|".join(sorted(_MEANING))
_DEFAULTED = re.compile(rf"\$\{{(?:{_ANY})(?:\[[^]]*\])?:?=")
_COMPUTED = re.compile(rf"\b(?:{_ANY})\b\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|(?:\+\+|--)\s*(?:{_ANY})\b")
_DECLARING = split_names("declare typeset local export readonly")
_STORING = split_names("read mapfile readarray getopts unset wait let")
_ATTRIBUTES = frozenset("nluci")
_HARMLESS_SHOPTS = split_names(
    "nullglob failglob lastpipe inherit_errexit checkwinsize huponexit cmdhist histappend"
)
_HARMLESS_SETS = split_names(
    "pipefail errexit nounset xtrace noglob noclobber verbose allexport notify monitor "
    "braceexpand errtrace functrace noexec physical"
)


def find_part_rebinding(part: Part) -> str:
    """The assignment, loop, expansion or descriptor in `part` that changes a meaning, if any."""
    node = part.node
    found: list[str] = [node.name.rstrip("@")] if not isinstance(node, Simple) else []
    if isinstance(node, Simple):
        reads = bool(node.words) and node.words[0].literal == "read"
        # `IFS= read` splits one line and nothing after it.
        found = [item.name for item in node.assignments if not (reads and item.name == "IFS")]
    found += [redirect.descriptor.strip("{}") for redirect in part.redirects]
    for name in found:
        if name in _MEANING:
            return f"setting {name} changes what later words mean"
    if "=" in part.text and _DEFAULTED.search(part.text):
        return "an expansion sets a variable that changes what later words mean"
    pieces = [piece for word in part.words for piece in word.pieces]
    arithmetic = [piece.text for piece in pieces if piece.kind == "arithmetic"]
    if part.kind in ("arithmetic", "for-arithmetic"):
        arithmetic += [word.text for word in part.words]
    if any(_COMPUTED.search(text) for text in arithmetic):
        return "arithmetic sets a variable that changes what later words mean"
    return ""


def find_command_rebinding(fields: list[Field]) -> str:
    """How a command changes the meaning of names; empty if it does not."""
    program = get_program_name(fields[0]) or ""
    args = fields[1:]
    if program in _DECLARING:
        changes = _is_rebinding_declaration(program, args)
    elif program in _STORING:
        changes = any(
            _is_rebinding_field(field) for field in args if not field.value.startswith("-")
        )
    elif program in SHELLS:
        changes = _is_rebinding_shell(args)
    else:
        changes = _is_rebinding_program(program, args)
    return f"{program} changes what later words mean" if changes else ""


def _is_rebinding_program(program: str, args: list[Field]) -> bool:
    if program in _BUILTINS:
        return _BUILTINS[program](args)
    runner = load_wrappers().get(program)
    assigns = runner is not None and runner.assigns
    return assigns and any(
        "=" in field.value and _has_meaningful_name(field.value) for field in args
    )


def _is_rebinding_hash(args: list[Field]) -> bool:
    return any(field.value.startswith("-") and "p" in field.value for field in args)


def _is_rebinding_alias(args: list[Field]) -> bool:
    return any("=" in field.value or field.kind != "known" for field in args)


def _is_rebinding_printf(args: list[Field]) -> bool:
    first = args[0].value if args else ""
    stored = [field.value for field in args[1:2]] if first == "-v" else [first[2:]]
    return first.startswith("-v") and _has_meaningful_name(*stored)


def _is_rebinding_declaration(program: str, args: list[Field]) -> bool:
    for field in args:
        if field.value.startswith("-"):
            if program not in ("export", "readonly") and _ATTRIBUTES.intersection(field.value):
                return True
        elif _is_rebinding_field(field):
            return True
    return False


def _is_rebinding_field(field: Field) -> bool:
    """Whether the variable that a word names affects meanings, or is unknown."""
    if field.kind != "known" and "=" not in field.value and "[" not in field.value:
        return True
    return _has_meaningful_name(field.value)


def _has_meaningful_name(*values: str) -> bool:
    heads = [re.split(r"[\[+=]", value, maxsplit=1)[0] for value in values]
    return any(head in _MEANING or head.startswith("BASH_FUNC_") for head in heads)


def _is_rebinding_shopt(args: list[Field]) -> bool:
    """Whether shopt switches an option that changes how text is read."""
    switches = any(f.value.startswith("-") and set("suo") & set(f.value) for f in args)
    given = [field for field in args if not field.value.startswith("-")]
    return switches and any(field.known not in _HARMLESS_SHOPTS for field in given)


def _is_rebinding_set(args: list[Field]) -> bool:
    for index, field in enumerate(args):
        value = field.value
        if value in ("--", "-"):
            return False
        if field.kind != "known" and field.may_be_option:
            return True
        if not value.startswith(("-", "+")):
            return index > 0 and args[index - 1].value[-1:] == "o" and value not in _HARMLESS_SETS
        if "k" in value:
            return True
    return False


def _is_rebinding_shell(args: list[Field]) -> bool:
    """Whether a shell starts with other reading options or another start-up file."""
    for index, field in enumerate(args):
        value = field.value
        if not value.startswith(("-", "+")):
            return False
        if value.startswith(("--rcfile", "--init-file", "--posix")):
            return True
        following = args[index + 1].value if index + 1 < len(args) else ""
        if value in ("-O", "+O", "-o") and following not in _HARMLESS_SHOPTS | _HARMLESS_SETS:
            return True
        if not value.startswith("--") and "k" in value:
            return True
    return False


_BUILTINS: dict[str, Callable[[list[Field]], bool]] = {
    "hash": _is_rebinding_hash,
    "enable": bool,
    "alias": _is_rebinding_alias,
    "shopt": _is_rebinding_shopt,
    "set": _is_rebinding_set,
    "printf": _is_rebinding_printf,
}
