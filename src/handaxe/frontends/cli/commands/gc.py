"""`handaxe gc`: remove what the undo record keeps beyond its budget or its time."""

import argparse
import sys
from pathlib import Path

import msgspec

from handaxe.app.configuration import Configuration
from handaxe.frontends.cli.exits import DONE
from handaxe.frontends.cli.opening import read_settings_option
from handaxe.storage.home import data_home, sessions_directory
from handaxe.storage.result_store import drop_old_results
from handaxe.storage.undo.pruning import prune
from handaxe.text.counting import counted


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--dry-run", action="store_true", help="say what would go, remove nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--settings", metavar="FILE|JSON", help="settings for this run")


def run(arguments: argparse.Namespace) -> int:
    """Prune and say what went."""
    home = data_home()
    given = read_settings_option(arguments.settings)
    # What belongs to all projects of a user is not for the project here to say.
    settings = Configuration(str(Path.cwd()), home=home, given=given, sources="user").settings
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
        f"{counted(pruned.freed_bytes, 'byte')} {verb}: "
        f"{counted(pruned.journal_parts, 'part')} of journals "
        f"({counted(pruned.calls, 'call')} that can no longer be undone), "
        f"{counted(pruned.contents, 'content')}. "
        f"{pruned.kept_bytes:,} bytes stay."
    )
    return DONE
