"""`handaxe history`: the calls in a project that changed files, and what they changed."""

import argparse
import time
from collections.abc import Iterator

import msgspec

from handaxe.app.undo_commands import find_past_sessions
from handaxe.config.working_directories import resolve_project
from handaxe.contract.display import Text
from handaxe.contract.ports.undo import ChangedCall
from handaxe.frontends.cli.data_home import open_data_home
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import BlockRenderer, print_notice, print_out, write_rendered
from handaxe.text.escape import to_visible_text

_TONES = {"+": "good", "-": "bad"}


def run(arguments: argparse.Namespace) -> int:
    """List the calls, oldest first."""
    root = resolve_project(arguments.root, may_be_gone=True)
    sessions = find_past_sessions(open_data_home(), root=root, session_id=arguments.session_id)
    listed = {
        session.session_id: session.calls(diffs=arguments.diff) for session in reversed(sessions)
    }
    damage = {session.session_id: session.find_damage() for session in sessions}
    if arguments.json:
        plain = [
            {
                "session_id": session_id,
                "calls": msgspec.to_builtins(calls),
                "damage": damage[session_id],
            }
            for session_id, calls in listed.items()
        ]
        write_json({"sessions": plain})
        return DONE
    painter = BlockRenderer.create_for_stdout()
    for session_id, calls in listed.items():
        print_out(f"session {session_id}")
        for line in (line for call in calls for line in _format_call_lines(call)):
            tone = _TONES.get(line[:1], "plain")
            write_rendered(painter.block(Text(to_visible_text(line), tone)))
        for sentence in damage[session_id]:
            print_notice(f"warning: session {session_id}: {sentence}")
    return DONE


def _format_call_lines(call: ChangedCall) -> Iterator[str]:
    yield _format_call(call)
    for change in call.changes:
        doubt = f"  (ambiguous: {change.ambiguous})" if change.ambiguous else ""
        yield f"    {change.change:9} {change.file_path}{doubt}"
        yield from change.diff.split("\n")[2:-1]
    for place in call.left_out:
        yield f"    {'left out':9} {place}"


def _format_call(call: ChangedCall) -> str:
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(call.at))
    part = " in part" if call.broken_off else ""
    facts = [
        "undone" if call.undone else "",
        "interrupted by a crash" if call.cut_off else "",
        "pruned: cannot be undone" if call.pruned else "",
        f"took back {', '.join(call.undoes)}{part}" if call.undoes else "",
    ]
    told = "; ".join(fact for fact in facts if fact)
    return f"{clock}  {call.call_id}  {call.tool}" + (f"  ({told})" if told else "")
