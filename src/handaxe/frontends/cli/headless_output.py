"""The output of a headless run: the answer on stdout, everything else on stderr."""

import argparse
import sys
from typing import Any

from handaxe.agent.events import AgentEvent, Told, ToolAnswered, ToolCalled
from handaxe.agent.run_hooks import SlowHooks, describe_hook_failure
from handaxe.app.services.call_presenter import CallPresenter
from handaxe.contract.display import CallDisplay
from handaxe.contract.events import Event, HookRan
from handaxe.contract.ports.model import Retrying
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import BlockRenderer, print_notice, write_answer
from handaxe.frontends.stream_json.codec import StreamCodec
from handaxe.frontends.stream_json.json_lines import LineWriter, encode
from handaxe.text.escape import format_count

_MAX_LINES = 20
"""Maximum lines of a result on stderr."""

_MAX_SHOWN_CHARS = 2_000
"""Maximum characters of the input of a waiting call."""


class TextOutput:
    """Prints a run as text: the answer on stdout, everything else on stderr."""

    def __init__(self, codec: StreamCodec, presenter: CallPresenter, *, verbose: bool) -> None:
        self._codec = codec
        self._presenter = presenter
        self._verbose = verbose
        self._inputs: dict[str, Any] = {}
        self._slow = SlowHooks().heard

    def handle_hook_event(self, event: Event) -> None:
        """Print a hook that ran before the run."""
        if isinstance(event, HookRan):
            self.event(event)
            if (failure := describe_hook_failure(event)) is not None:
                print_status(failure)

    def event(self, event: AgentEvent, *, is_last: bool = True) -> None:
        """Print one event; only the last run's result is printed."""
        for message in self._codec.messages(event):
            if message["type"] == "result" and (is_last or message["is_error"]):
                self.result(message)
        if isinstance(event, Told):
            print_status(event.sentence)
        elif isinstance(event, Retrying):
            print_status(f"{event.sentence} Trying again in {event.delay_s:.1f} s.")
        elif isinstance(event, HookRan) and self._verbose and (slow := self._slow(event)):
            print_status(slow)
        elif self._verbose:
            for shown in self._presenter.present(event):
                print_call(shown)
        elif isinstance(event, ToolCalled):
            self._inputs[event.call.id] = event.call.input
        elif isinstance(event, ToolAnswered):
            given = self._inputs.pop(event.result.id, {})
            if (event.result.code or "").startswith("permission."):
                print_call(self._presenter.present_result(event.result, given))

    def handle_session_event(self, event: Any) -> None:  # noqa: ANN401 - any event of the session
        """Print an event of the session, outside the run."""

    def print_suggestion(self, text: str) -> None:
        """Print a suggestion for the next prompt."""

    def result(self, message: dict[str, Any]) -> None:
        """Print the result."""
        deferred = message.get("deferred_tool_use")
        if deferred is not None:
            how = f"`handaxe -p --resume {message['session_id']}` continues with it"
            print_status(f"A hook deferred {deferred['name']}; {how}.")
        if pending := message.get("pending"):
            for waiting in pending:
                told = encode({"input": waiting["input"]}).decode()[:_MAX_SHOWN_CHARS]
                print_status(f"{waiting['name']} waits for an answer: {waiting['reason']} {told}")
            answers = " ".join(f"--answer {waiting['id']}=allow|deny" for waiting in pending)
            print_status(f"`handaxe -p --resume {message['session_id']} {answers}` continues.")
        structured = message.get("structured_output")
        if structured is not None:
            write_json(structured)
        else:
            write_answer(str(message["result"]))
        sys.stdout.flush()


class JsonOutput(TextOutput):
    """Prints one JSON object at the end."""

    def result(self, message: dict[str, Any]) -> None:
        """Print the result."""
        write_json(message)
        sys.stdout.flush()


class StreamJsonOutput(TextOutput):
    """Prints every message at once."""

    def __init__(self, codec: StreamCodec, presenter: CallPresenter, *, verbose: bool) -> None:
        super().__init__(codec, presenter, verbose=verbose)
        self._write = LineWriter()

    def event(self, event: AgentEvent, *, is_last: bool = True) -> None:  # noqa: ARG002
        """Write the messages of one event."""
        for message in self._codec.messages(event):
            self._write(message)

    def print_suggestion(self, text: str) -> None:
        """Write a suggestion for the next prompt."""
        self._write(self._codec.wrap_message("prompt_suggestion", suggestion=text))

    def handle_session_event(self, event: Any) -> None:  # noqa: ANN401 - any event of the session
        """Write the messages of a session event."""
        for message in self._codec.convert_session_event(event):
            self._write(message)


def create_output(
    arguments: argparse.Namespace, codec: StreamCodec, presenter: CallPresenter
) -> TextOutput:
    """The output for the chosen format."""
    kinds = {"text": TextOutput, "json": JsonOutput, "stream-json": StreamJsonOutput}
    return kinds[arguments.output_format](codec, presenter, verbose=arguments.verbose)


def print_call(shown: CallDisplay) -> None:
    """Print the state of a call and its display blocks."""
    if shown.moment in {"input", "started"}:
        return
    who = f"{shown.agent_type}: " if shown.agent_id else ""
    lines = [who + (shown.title if shown.moment == "queued" else shown.headline)]
    if shown.moment not in {"queued", "progress", "group"}:
        below = BlockRenderer(colour=False).blocks(shown.blocks).splitlines()
        lines += below[:_MAX_LINES]
        if len(below) > _MAX_LINES:
            lines.append(f"... {format_count(len(below) - _MAX_LINES, 'more line')}")
    print_status("\n".join(lines))


def print_status(sentence: str) -> None:
    """Print a line on stderr."""
    print_notice(sentence)
