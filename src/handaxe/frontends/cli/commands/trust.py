"""`handaxe trust`: trust the settings files of a project."""

import argparse
import sys
import time

from handaxe.app.services.configuration import open_configuration
from handaxe.config.trust_store import TrustRecord
from handaxe.config.working_directories import resolve_project
from handaxe.frontends.cli.data_home import open_data_home
from handaxe.frontends.cli.exit_codes import DONE, FAILED
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_error, print_out, write_error
from handaxe.frontends.cli.terminal_prompts import confirm_trust, describe_requests, trust_folder
from handaxe.text.escape import to_visible_text


def run(arguments: argparse.Namespace) -> int:
    """Trust, revoke or list."""
    record = TrustRecord(open_data_home())
    if arguments.list:
        _list(record, as_json=arguments.json)
        return DONE
    folder = resolve_project(arguments.directory, may_be_gone=arguments.revoke)
    if arguments.revoke:
        if record.revoke(folder):
            print_error(f"{to_visible_text(folder)} is no longer trusted.")
            return DONE
        print_error(f"{to_visible_text(folder)} was not trusted.")
        return FAILED
    wishes = open_configuration(folder, home=open_data_home(), trusted=False).find_requests()
    write_error(describe_requests(record, folder, wishes))
    if arguments.show:
        return DONE
    if not arguments.yes and sys.stdin.isatty() and not confirm_trust():
        print_error(f"{to_visible_text(folder)} is not trusted.")
        return FAILED
    trusted = trust_folder(record, folder, wishes)
    if arguments.json:
        write_json(trusted)
    else:
        print_error(f"{to_visible_text(folder)} is trusted.")
    return DONE


def _list(record: TrustRecord, *, as_json: bool) -> None:
    folders = record.folders()
    if as_json:
        write_json(folders)
        return
    if not folders:
        print_error("No project is trusted yet.")
    for folder in folders:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(folder.at))
        print_out(f"{day}  {to_visible_text(folder.path)}")
