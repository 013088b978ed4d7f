"""What is probably wrong with settings and rules; for a person."""

from handaxe.catalog.catalog import Catalog
from handaxe.config.keys import RESTRICTING, TOOL_NAMES
from handaxe.config.project import Configuration
from handaxe.pipeline.context import PipelineContext
from handaxe.rules.grammar import PermissionRule
from handaxe.rules.rule_index import RuleIndex


def find_config_warnings(
    configuration: Configuration, book: RuleIndex, catalog: Catalog
) -> tuple[str, ...]:
    """Everything about settings, directories, rules, events of hooks and the sandbox."""
    return (
        *configuration.warnings,
        *configuration.directories()[1],
        *book.problems,
        *_find_unknown_tools(book, TOOL_NAMES | catalog.names()),
        *_find_unknown_events(configuration),
        *_find_sandbox_warnings(configuration),
        *_find_unenforced(configuration),
        *(
            f"The program's own tool {name!r} stands in for the built-in one."
            for name in sorted(catalog.stand_ins)
        ),
        *(
            f"The program's own tool {name!r} is left out: a built-in tool has that name. "
            "`replaces_builtin = True` lets it stand in."
            for name in sorted(catalog.left_out)
        ),
        *_find_tool_problems(catalog),
    )


def find_mode_warnings(context: PipelineContext) -> tuple[str, ...]:
    """What is missing to the permission mode in force."""
    if context.policy().mode != "auto":
        return ()
    from handaxe.pipeline.auto_mode import find_auto_mode_problems

    return find_auto_mode_problems(context)


def _find_tool_problems(catalog: Catalog) -> list[str]:
    """Own tools, and other names of theirs, that nobody can call."""
    if not catalog.own_tools:
        return []
    from handaxe.app.services.own_tool_ports import find_tool_problems

    return find_tool_problems(catalog)


def _find_unknown_tools(book: RuleIndex, known: frozenset[str]) -> list[str]:
    """Rules that name no tool anybody knows: probably a slip of the pen."""
    return [
        _describe_unknown_tool(rule, known)
        for rule in book.rules
        if rule.tool not in known
        and not rule.is_dead
        and "*" not in rule.tool
        and not rule.tool.startswith("mcp__")
    ]


def _describe_unknown_tool(rule: PermissionRule, known: frozenset[str]) -> str:
    from handaxe.text.escape import find_closest_name

    near = find_closest_name(rule.tool, sorted(known))
    hint = f" Did you mean {near!r}?" if near else ""
    where = "" if rule.source_file is None else f"{rule.origin}: "
    return (
        f"{where}The {rule.behaviour} rule {rule.text!r} names a tool that nobody knows, "
        f"so it covers nothing.{hint}"
    )


def _find_unknown_events(configuration: Configuration) -> list[str]:
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
    from handaxe.hooks.config import read_hooks

    return [
        f"{origin}: {problem}"
        for event, origin in empty
        for problem in read_hooks({event: []}, source=str(origin)).problems
    ]


def _find_unenforced(configuration: Configuration) -> list[str]:
    """Restrictions that handaxe knows by name and does not enforce."""
    found = configuration.merged.entries
    return [
        f"{entry.origin}: `{entry.name}` has no effect: handaxe does not enforce it."
        for name in sorted(RESTRICTING.intersection(path[0] for path in found if len(path) == 1))
        for entry in found[(name,)]
        if entry.kind == "unused"
    ]


def _find_sandbox_warnings(configuration: Configuration) -> list[str]:
    """What settings ask of the sandbox and do not get."""
    if not configuration.settings.sandbox.enabled:
        return []
    from handaxe.app.services.sandbox import find_sandbox_problems

    return find_sandbox_problems(configuration)
