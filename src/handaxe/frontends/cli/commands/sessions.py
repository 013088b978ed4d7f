"""`handaxe sessions`: list, show, export, fork or delete what sessions left on disk."""

import argparse
import time

import msgspec

from handaxe.contract.events import CallFinished, Event
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.data_home import open_data_home
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_error, print_notice, print_out
from handaxe.storage.home import generate_session_id, get_session_directory
from handaxe.storage.sessions import delete_session, fork_session, list_sessions, read_events
from handaxe.text.escape import format_count, to_visible_text
from handaxe.undo.journal_files.journal_scan import find_damage


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "show", "export", "fork", "delete"),
        help="what to do (default: list)",
    )
    parser.add_argument("session_id", nargs="?", metavar="ID", help="which session")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    home = open_data_home()
    if arguments.action == "list":
        if arguments.session_id is not None:
            raise SetupError(
                "`handaxe sessions list` lists all sessions; `handaxe sessions show ID` shows one."
            )
        _list(arguments)
        return DONE
    if arguments.session_id is None:
        raise SetupError(f"`handaxe sessions {arguments.action}` needs the id of a session.")
    if arguments.action == "delete":
        delete_session(home, arguments.session_id)
        if arguments.json:
            write_json({"session_id": arguments.session_id, "deleted": True})
        print_error(f"Session {arguments.session_id} is deleted.")
        return DONE
    if arguments.action == "fork":
        fork_id = generate_session_id()
        fork_session(home, arguments.session_id, fork_id)
        if arguments.json:
            write_json({"session_id": fork_id, "forked_from": arguments.session_id})
        else:
            print_out(fork_id)
        return DONE
    _show(arguments)
    return DONE


def _show(arguments: argparse.Namespace) -> None:
    home, damage = open_data_home(), list[str]()
    for event in read_events(home, arguments.session_id, damage):
        if arguments.action == "export" or arguments.json:
            write_json(event)
        else:
            print_out(_escape_line(_format_event(event)))
    for sentence in damage:
        print_notice(f"warning: the log is damaged: {sentence}")
    for sentence in find_damage(get_session_directory(home, arguments.session_id)):
        print_notice(f"warning: the undo record is damaged: {sentence}")


def _list(arguments: argparse.Namespace) -> None:
    found = list_sessions(open_data_home(), find_damage)
    if arguments.json:
        write_json(found)
        return
    if not found:
        print_error("There are no sessions yet.")
    for summary in found:
        failed = f", {summary.failed_calls} failed" if summary.failed_calls else ""
        state = "" if summary.is_closed else "  (not closed)"
        state += (
            f"  (damaged: {format_count(len(summary.damage), 'place')})" if summary.damage else ""
        )
        name = f"  {summary.name}" if summary.name else ""
        print_out(
            _escape_line(
                f"{_format_time(summary.last_used_at)}  {summary.session_id}  "
                f"{format_count(summary.calls, 'call')}{failed}  {summary.root}{name}{state}"
            )
        )


def _format_event(event: Event) -> str:
    details = msgspec.to_builtins(event)
    kind = details.pop("type")
    details.pop("at")
    if isinstance(event, CallFinished):
        result = event.result
        state = "ok" if result.ok else result.code
        details = {"call_id": event.call_id, "tool": result.tool, "state": state}
    shown = "  ".join(f"{key}={_shorten_value(value)}" for key, value in details.items() if value)
    return f"{_format_time(event.at)}  {kind:16} {shown}"


def _escape_line(text: str) -> str:
    """Names and words of others, so that they neither break the line nor steer the terminal."""
    return to_visible_text(text)


def _shorten_value(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 100 else f"{text[:100]}..."


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
