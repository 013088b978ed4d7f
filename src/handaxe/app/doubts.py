"""What is probably wrong with settings and rules; for a person."""

from handaxe.app.configuration import Configuration
from handaxe.runtime.catalog.catalog import Catalog
from handaxe.runtime.permission.book import RuleBook
from handaxe.runtime.permission.rules import Rule
from handaxe.settings.ecosystem import RESTRICTING, TOOL_NAMES


def setting_doubts(
    configuration: Configuration, book: RuleBook, catalog: Catalog
) -> tuple[str, ...]:
    """Everything about settings, directories, rules, events of hooks and the sandbox."""
    return (
        *configuration.warnings,
        *configuration.directories()[1],
        *book.problems,
        *_rule_doubts(book, TOOL_NAMES | catalog.names()),
        *_event_doubts(configuration),
        *_sandbox_doubts(configuration),
        *_unheeded(configuration),
        *(
            f"The program's own tool {name!r} stands in for the built-in one."
            for name in sorted(catalog.stand_ins)
        ),
        *(
            f"The program's own tool {name!r} is left out: a built-in tool has that name. "
            "`replaces_builtin = True` lets it stand in."
            for name in sorted(catalog.left_out)
        ),
    )


def _rule_doubts(book: RuleBook, known: frozenset[str]) -> list[str]:
    """Rules that name no tool anybody knows: probably a slip of the pen."""
    return [
        _doubt(rule, known)
        for rule in book.rules
        if rule.tool not in known
        and not rule.is_dead
        and "*" not in rule.tool
        and not rule.tool.startswith("mcp__")
    ]


def _doubt(rule: Rule, known: frozenset[str]) -> str:
    from handaxe.text.near_names import nearest

    near = nearest(rule.tool, sorted(known))
    hint = f" Did you mean {near!r}?" if near else ""
    where = "" if rule.source_file is None else f"{rule.origin}: "
    return (
        f"{where}The {rule.behaviour} rule {rule.text!r} names a tool that nobody knows, "
        f"so it covers nothing.{hint}"
    )


def _event_doubts(configuration: Configuration) -> list[str]:
    """Events without any hook whose names are no events; those with hooks are read elsewhere."""
    empty = [
        (path[1], entry.origin)
        for path, entries in configuration.merged.entries.items()
        if path[0] == "hooks"
        for entry in entries
        if entry.kind == "empty"
    ]
    if not empty:
        return []
    from handaxe.runtime.hooks.config import read_hooks

    return [
        f"{origin}: {problem}"
        for event, origin in empty
        for problem in read_hooks({event: []}, source=str(origin)).problems
    ]


def _unheeded(configuration: Configuration) -> list[str]:
    """Restrictions that handaxe knows by name and does not enforce."""
    found = configuration.merged.entries
    return [
        f"{entry.origin}: `{entry.name}` has no effect: handaxe does not enforce it."
        for name in sorted(RESTRICTING.intersection(path[0] for path in found if len(path) == 1))
        for entry in found[(name,)]
        if entry.kind == "unused"
    ]


def _sandbox_doubts(configuration: Configuration) -> list[str]:
    """What settings ask of the sandbox and do not get."""
    if not configuration.settings.sandbox.enabled:
        return []
    from handaxe.app.sandboxing import sandbox_problems

    return sandbox_problems(configuration)
