"""Named selections of built-in tools."""

from collections.abc import Collection, Iterable

from handaxe.catalog.edit_formats import add_edit_formats
from handaxe.contract.faults import SetupError

PRESETS: dict[str, tuple[str, ...] | None] = {
    "read-only": ("Glob", "Grep", "Read"),
    "simple": ("Bash", "Read", "Edit"),
    "edit": ("Glob", "Grep", "Read", "Write", "Edit", "NotebookEdit"),
    "full": None,
}
"""A preset's tools by name; None stands for all of them."""
_OTHER_NAMES = {"readonly": "read-only"}


def select_tools(wanted: str | Iterable[str] | None, known: Collection[str]) -> frozenset[str]:
    """The names that presets and names stand for, together; an unknown name is a start error."""
    if wanted is None:
        return frozenset(known)
    names = wanted.replace(",", " ").split() if isinstance(wanted, str) else wanted
    listed: set[str] = set()
    for name in names:
        preset = PRESETS.get(_OTHER_NAMES.get(name, name), (name,))
        listed.update(known if preset is None else preset)
    chosen = add_edit_formats(listed)
    for name in sorted(chosen - set(known)):
        from handaxe.text.escape__near_names import find_closest_name

        near = find_closest_name(name, [*known, *PRESETS])
        hint = f" Did you mean {near!r}?" if near else ""
        raise SetupError(
            f"There is no tool or preset named {name!r}.{hint} "
            f"Tools: {', '.join(sorted(known))}. Presets: {', '.join(PRESETS)}."
        )
    return frozenset(chosen)
