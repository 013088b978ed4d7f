"""`handaxe sessions`: list, show, export, fork or delete what sessions left on disk."""

import argparse
import sys
import time

import msgspec

from handaxe.contract.events import CallFinished, Event
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.exits import DONE
from handaxe.storage.home import data_home, new_session_id
from handaxe.storage.sessions import delete_session, events_of, fork_session, list_sessions
from handaxe.text.counting import counted
from handaxe.text.wellformed import on_one_line


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
    home = data_home()
    if arguments.action == "list":
        _list(arguments)
        return DONE
    if arguments.session_id is None:
        raise SetupError(f"`handaxe sessions {arguments.action}` needs the id of a session.")
    if arguments.action == "delete":
        delete_session(home, arguments.session_id)
        print(f"Session {arguments.session_id} is deleted.", file=sys.stderr)
        return DONE
    if arguments.action == "fork":
        fork_id = new_session_id()
        fork_session(home, arguments.session_id, fork_id)
        print(fork_id)
        return DONE
    damage: list[str] = []
    for event in events_of(home, arguments.session_id, damage):
        if arguments.action == "export" or arguments.json:
            print(on_one_line(msgspec.json.encode(event)).decode())
        else:
            print(_line(event))
    for sentence in damage:
        print(f"handaxe: warning: the log is damaged: {sentence}", file=sys.stderr)
    return DONE


def _list(arguments: argparse.Namespace) -> None:
    found = list_sessions(data_home())
    if arguments.json:
        print(msgspec.json.encode(found).decode())
        return
    if not found:
        print("There are no sessions yet.", file=sys.stderr)
    for summary in found:
        failed = f", {summary.failed_calls} failed" if summary.failed_calls else ""
        state = "" if summary.is_closed else "  (not closed)"
        state += f"  (damaged: {counted(len(summary.damage), 'place')})" if summary.damage else ""
        name = f"  {summary.name}" if summary.name else ""
        print(
            f"{_clock(summary.last_used_at)}  {summary.session_id}  "
            f"{counted(summary.calls, 'call')}{failed}  {summary.root}{name}{state}"
        )


def _line(event: Event) -> str:
    details = msgspec.to_builtins(event)
    kind = details.pop("type")
    details.pop("at")
    if isinstance(event, CallFinished):
        result = event.result
        state = "ok" if result.ok else result.code
        details = {"call_id": event.call_id, "tool": result.tool, "state": state}
    shown = "  ".join(f"{key}={_short(value)}" for key, value in details.items() if value)
    return f"{_clock(event.at)}  {kind:16} {shown}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 100 else f"{text[:100]}..."


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
