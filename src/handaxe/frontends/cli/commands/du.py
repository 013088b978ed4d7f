"""`handaxe du`: how much the data directory holds, by kind."""

import argparse

import msgspec

from handaxe.frontends.cli.data_home import open_data_home
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_out
from handaxe.text.escape import format_count, to_visible_text
from handaxe.undo.prune import measure_usage


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers."""
    home = open_data_home()
    found = measure_usage(home)
    if arguments.json:
        listed = {**msgspec.to_builtins(found), "total": found.total, "home": str(home)}
        write_json(listed)
        return DONE
    rows = {
        "events": found.events,
        "results": found.results,
        "checkpoints": found.checkpoints,
        "outputs": found.outputs,
        "temporary": found.temporary,
        "other": found.other,
        "total": found.total,
    }
    for kind, size_bytes in rows.items():
        print_out(f"{kind:12} {size_bytes:>16,}")
    print_out(f"{format_count(found.sessions, 'session')} in {to_visible_text(home)}")
    return DONE
