"""`handaxe stats`: the cost of tools, servers and hooks, and the unused ones."""

import argparse
import time
from collections.abc import Iterable

from handaxe.config.working_directories import resolve_project
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.data_home import open_data_home
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_out
from handaxe.storage.sessions import find_session
from handaxe.storage.statistics import HookCost, Statistics, ToolCost, collect_statistics
from handaxe.text.escape import format_count, to_visible_text

_DAY_S = 86_400
_HOOK_COLUMNS = ("runs", "failed", "waited s", "slowest s")
_COLUMNS = ("calls", "failed", "tokens", "each", "seconds", "definition")


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers."""
    home = open_data_home()
    session_id = None
    if arguments.session is not None:
        session_id = find_session(home, arguments.session)
        if session_id is None:
            raise SetupError(
                f"There is no session {arguments.session!r}. `handaxe sessions` lists them."
            )
    everywhere = arguments.all or session_id is not None
    root = None if everywhere else resolve_project(arguments.root, may_be_gone=True)
    if arguments.days is not None and not arguments.days >= 0:
        raise SetupError("--days must be 0 or more.")
    since = 0.0 if arguments.days is None else time.time() - arguments.days * _DAY_S
    found = collect_statistics(home, root=root, since=since, session_id=session_id)
    if arguments.json:
        write_json(found)
    else:
        _show(found)
    return DONE


def _show(found: Statistics) -> None:
    print_out(f"{format_count(found.sessions, 'session')}. Tokens are estimates.")
    _print_table("tool", found.tools)
    _print_table("server", found.servers)
    _print_hooks(found.hooks)
    if found.never_used:
        total = sum(cost.definition_tokens for cost in found.never_used)
        print_out(f"\nNever called; their definitions cost {total:,} tokens in every request:")
        for cost in found.never_used:
            print_out(f"  {to_visible_text(cost.name):32} {cost.definition_tokens:>9,}")


def _print_hooks(costs: Iterable[HookCost]) -> None:
    rows = {f"{cost.event} {to_visible_text(cost.name)}": cost for cost in costs}
    if not rows:
        return
    width = max(24, *map(len, rows))
    print_out(f"\n{'hook':{width}}" + "".join(f"{name:>12}" for name in _HOOK_COLUMNS))
    for name, cost in rows.items():
        seconds = (f"{ms / 1000:,.1f}" for ms in (cost.waited_ms, cost.slowest_ms))
        cells = (f"{cost.runs:,}", f"{cost.failed:,}", *seconds)
        print_out(f"{to_visible_text(name):{width}}" + "".join(f"{cell:>12}" for cell in cells))


def _print_table(title: str, costs: Iterable[ToolCost]) -> None:
    rows = list(costs)
    if not rows:
        return
    width = max(24, *(len(cost.name) for cost in rows))
    print_out(f"\n{title:{width}}" + "".join(f"{name:>12}" for name in _COLUMNS))
    for cost in rows:
        each = round(cost.tokens / cost.calls) if cost.calls else 0
        numbers = (cost.calls, cost.failed, cost.tokens, each)
        seconds = f"{cost.duration_ms / 1000:,.1f}"
        cells = (*(f"{number:,}" for number in numbers), seconds, f"{cost.definition_tokens:,}")
        print_out(
            f"{to_visible_text(cost.name):{width}}" + "".join(f"{cell:>12}" for cell in cells)
        )
