"""`handaxe sessions`: list, show, export, fork, rewind, rename or delete sessions on disk."""

import argparse
import time

import msgspec

from handaxe.contract.events import CallFinished, Event
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


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    open_data_home()
    match arguments.action:
        case "list":
            _list(arguments)
        case "messages":
            _list_messages(arguments)
        case "fork":
            _fork(arguments)
        case "rewind":
            rewind(arguments.session_id, arguments.value, root=arguments.root)
            _confirm(arguments, {"rewound_to": arguments.value}, "was rewound")
        case "rename":
            rename(arguments.session_id, arguments.value, root=arguments.root)
            _confirm(arguments, {"name": arguments.value.strip()}, "was renamed")
        case "delete":
            delete(arguments.session_id, root=arguments.root)
            _confirm(arguments, {"deleted": True}, "was deleted")
        case _:
            _show(arguments)
    return DONE


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
            to_visible_text(f"{_format_time(one.time)}  {one.id}  {one.role:9}  {one.text[:80]}")
        )


def _show(arguments: argparse.Namespace) -> None:
    home, damage = open_data_home(), list[str]()
    for event in read_events(home, arguments.session_id, damage):
        if arguments.action == "export" or arguments.json:
            write_json(event)
        else:
            print_out(to_visible_text(_format_event(event)))
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
        print_out(to_visible_text(_format_summary(summary)))


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


def _shorten_value(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 100 else f"{text[:100]}..."


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
