"""`handaxe sessions`: list, show, export, fork, rewind, rename or delete sessions on disk."""

import argparse
import time

import msgspec

from handaxe.contract.events import CallFinished, Event
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.data_home import open_data_home
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_error, print_notice, print_out
from handaxe.sessions import (
    SessionSummary,
    delete,
    fork,
    list_messages,
    list_sessions,
    rename,
    rewind,
)
from handaxe.storage.home import get_session_directory
from handaxe.storage.sessions import read_events
from handaxe.text.escape import format_count, to_visible_text
from handaxe.undo.journal_files.journal_scan import find_damage

_ACTIONS = ("list", "show", "messages", "export", "fork", "rewind", "rename", "delete")
_WANTED = {"rewind": "the id of a message", "rename": "a title"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=_ACTIONS,
        help="what to do (default: list)",
    )
    parser.add_argument("session_id", nargs="?", metavar="ID", help="which session")
    parser.add_argument(
        "value", nargs="?", metavar="VALUE", help="for rewind the message, for rename the title"
    )
    parser.add_argument("--at", metavar="MESSAGE", help="with fork: the last message of the copy")
    parser.add_argument("--root", metavar="DIR", help="only sessions of this project")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    open_data_home()
    _check_usage(arguments)
    match arguments.action:
        case "list":
            _list(arguments)
        case "messages":
            _list_messages(arguments)
        case "fork":
            _fork(arguments)
        case "rewind":
            rewind(arguments.session_id, arguments.value, root=arguments.root)
            _confirm(arguments, {"rewound_to": arguments.value}, "is rewound")
        case "rename":
            rename(arguments.session_id, arguments.value, root=arguments.root)
            _confirm(arguments, {"name": arguments.value.strip()}, "is renamed")
        case "delete":
            delete(arguments.session_id, root=arguments.root)
            _confirm(arguments, {"deleted": True}, "is deleted")
        case _:
            _show(arguments)
    return DONE


def _check_usage(arguments: argparse.Namespace) -> None:
    action, value = arguments.action, arguments.value
    if action == "list" and arguments.session_id is not None:
        raise SetupError(
            "`handaxe sessions list` lists all sessions; `handaxe sessions show ID` shows one."
        )
    if action != "list" and arguments.session_id is None:
        raise SetupError(f"`handaxe sessions {action}` needs the id of a session.")
    if action in _WANTED and value is None:
        raise SetupError(f"`handaxe sessions {action} ID` needs {_WANTED[action]}, too.")
    if action not in _WANTED and value is not None:
        raise SetupError(f"`handaxe sessions {action}` takes no {value!r}.")
    if arguments.at is not None and action != "fork":
        raise SetupError("--at goes with `handaxe sessions fork ID`.")


def _confirm(arguments: argparse.Namespace, facts: dict[str, object], done: str) -> None:
    if arguments.json:
        write_json({"session_id": arguments.session_id, **facts})
    print_error(f"Session {arguments.session_id} {done}.")


def _fork(arguments: argparse.Namespace) -> None:
    fork_id = fork(arguments.session_id, at=arguments.at, root=arguments.root)
    if arguments.json:
        write_json({"session_id": fork_id, "forked_from": arguments.session_id})
    else:
        print_out(fork_id)


def _list_messages(arguments: argparse.Namespace) -> None:
    found = list_messages(arguments.session_id, root=arguments.root)
    if arguments.json:
        write_json(found)
        return
    for one in found:
        print_out(
            _escape_line(f"{_format_time(one.time)}  {one.id}  {one.role:9}  {one.text[:80]}")
        )


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
    found = list_sessions(arguments.root)
    if arguments.json:
        write_json(found)
        return
    if not found:
        print_error("There are no sessions yet.")
    for summary in found:
        print_out(_escape_line(_format_summary(summary)))


def _format_summary(summary: SessionSummary) -> str:
    failed = f", {summary.failed_calls} failed" if summary.failed_calls else ""
    state = "  (open)" if summary.open else "" if summary.is_closed else "  (not closed)"
    if summary.damage:
        state += f"  (damaged: {format_count(len(summary.damage), 'place')})"
    name = f"  {summary.name}" if summary.name else ""
    return (
        f"{_format_time(summary.time)}  {summary.id}  "
        f"{format_count(summary.calls, 'call')}{failed}  {summary.root}{name}{state}"
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
