"""`handaxe gc`: remove what the undo record keeps beyond its budget or its time."""

import argparse
import sys

import msgspec

from handaxe.frontends.cli.exits import DONE
from handaxe.frontends.cli.opening import read_settings_option
from handaxe.settings.model import read_settings
from handaxe.storage.home import data_home, sessions_directory
from handaxe.storage.result_store import drop_old_results
from handaxe.storage.undo.pruning import prune


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--dry-run", action="store_true", help="say what would go, remove nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--settings", metavar="FILE|JSON", help="settings for this run")


def run(arguments: argparse.Namespace) -> int:
    """Prune and say what went."""
    home = data_home()
    settings = read_settings(read_settings_option(arguments.settings), source="--settings")
    pruned = prune(
        home,
        max_bytes=settings.undo.max_bytes,
        retention_days=settings.undo.retention_days,
        dry_run=arguments.dry_run,
    )
    if not arguments.dry_run:
        drop_old_results(sessions_directory(home), settings.retention_days)
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(pruned).decode() + "\n")
        return DONE
    verb = "would be freed" if arguments.dry_run else "freed"
    print(
        f"{pruned.freed_bytes:,} bytes {verb}: {pruned.journal_parts} parts of journals "
        f"({pruned.calls} calls that can no longer be undone), {pruned.contents} contents. "
        f"{pruned.kept_bytes:,} bytes stay."
    )
    return DONE
