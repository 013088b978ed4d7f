"""`handaxe gc`: delete data beyond the size and age limits."""

import argparse
from contextlib import suppress
from pathlib import Path

import msgspec

from handaxe.app.services.configuration import open_configuration
from handaxe.config.settings import Settings
from handaxe.contract.faults import SetupError
from handaxe.contract.faults.undo import UntrustedRecord
from handaxe.frontends.cli.data_home import open_data_home
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_out
from handaxe.frontends.cli.session_options import read_settings_option
from handaxe.shell.exec.factory import TASKS
from handaxe.shell.exec.retention import find_expired_outputs, remove_output
from handaxe.storage.home import get_sessions_directory
from handaxe.storage.result_store import DAY_S, drop_old_results, find_old_results, list_file_sizes
from handaxe.text.escape import format_count
from handaxe.undo.prune import prune


def run(arguments: argparse.Namespace) -> int:
    """Prune and print what was deleted."""
    home = open_data_home()
    given = read_settings_option(arguments.settings)
    # The data belongs to all projects of the user, so settings of this project do not count.
    settings = open_configuration(str(Path.cwd()), home=home, given=given, sources="user").settings
    options = settings.undo
    try:
        pruned = prune(
            home,
            max_bytes=options.max_bytes,
            retention_days=options.retention_days,
            dry_run=arguments.dry_run,
        )
    except UntrustedRecord as fault:
        raise SetupError(fault.sentence) from None
    results, left = _remove_leftovers(
        get_sessions_directory(home), settings, dry_run=arguments.dry_run
    )
    if arguments.json:
        told = {**msgspec.to_builtins(pruned), "results": results, "leavings": left}
        write_json(told)
        return DONE
    verb = "would be freed" if arguments.dry_run else "freed"
    young = f", {pruned.young_calls:,} of them of the last day" if pruned.young_calls else ""
    print_out(
        f"{format_count(pruned.freed_bytes, 'byte')} {verb}: "
        f"{format_count(pruned.journal_parts, 'part')} of journals "
        f"({format_count(pruned.calls, 'call')} that can no longer be undone{young}), "
        f"{format_count(pruned.contents, 'content')}. "
        f"{pruned.kept_bytes:,} bytes stay."
    )
    for what, freed in (("stored results", results), ("output and temporary files", left)):
        if freed["count"]:
            print_out(f"{format_count(freed['bytes'], 'byte')} {verb}: {what}.")
    return DONE


def _remove_leftovers(
    sessions: Path, settings: Settings, *, dry_run: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """Delete old results and output of commands. Return the count and size of each."""
    days = settings.cleanup_period_days or settings.retention_days
    old = find_old_results(sessions, days)
    sizes = [size for directory in old for size in list_file_sizes(directory)]
    results = {"count": len(sizes), "bytes": sum(sizes)}
    left = find_expired_outputs(
        sessions, TASKS, max_bytes=settings.shell.max_kept_bytes, max_age_s=days * DAY_S
    )
    if not dry_run:
        drop_old_results(sessions, days)
        for one in left:
            with suppress(OSError):
                remove_output(one)
    return results, {"count": len(left), "bytes": sum(one.size_bytes for one in left)}
