"""File commands that the mode acceptEdits allows, as the paths they write and read."""

from __future__ import annotations

from functools import cache

from handaxe.shell.fields import fields_of
from handaxe.shell.flow import Part, State
from handaxe.shell.little_languages import is_printing_sed
from handaxe.shell.options import Arguments, Refused, read_arguments
from handaxe.shell.places import PathUse, uses_of
from handaxe.shell.prove import unwrap_proven
from handaxe.shell.secrets import is_harmless_prefix
from handaxe.shell.syntax import Simple
from handaxe.shell.tables import ProgramTable, load_toml, make_tables


@cache
def _tables() -> dict[str, ProgramTable]:
    return make_tables(load_toml("edits.toml"))


def edit_uses(part: Part) -> list[PathUse]:
    """The paths an acceptEdits command touches, in every state; raises `Refused`."""
    node = part.node
    if not isinstance(node, Simple) or not node.words:
        raise Refused("not a file command")
    for item in node.assignments:
        if item.value is None or not is_harmless_prefix(item.name, item.value.literal):
            raise Refused(f"{item.name}= may change what runs")
    uses: list[PathUse] = []
    for state in part.states:
        uses.extend(_uses_in(node, state))
    return uses


def _uses_in(node: Simple, state: State) -> list[PathUse]:
    fields = [field for word in node.words for field in fields_of(word, state.variables)]
    if any(field.kind != "known" for field in fields) or any(w.has_tilde for w in node.words):
        raise Refused("a path is not literal")
    fields = unwrap_proven(fields)
    program = fields[0].value
    table = _tables().get(program)
    if table is None:
        raise Refused(f"{program} is not a file command")
    arguments = read_arguments(fields[1:], table)
    if program == "sed" and not arguments.has("i", "in-place"):
        raise Refused("sed does not edit in place here")
    uses: list[PathUse] = []
    for kind, field in arguments.typed:
        if kind == "sed" and not is_printing_sed(field.value):
            raise Refused("a sed script that does more than edit")
        access = "read" if _is_source(kind, arguments, field) else "write"
        if kind in ("edit", "copy"):
            uses.extend(uses_of(field, access, state.cwds))
    if not uses or any(use.path is None for use in uses):
        raise Refused("no literal path")
    return uses


def _is_source(kind: str, arguments: Arguments, field: object) -> bool:
    return kind == "copy" and field is not arguments.operands[-1]
