"""What a headless run prints: the answer on standard output, everything else beside it."""

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
"""So many lines of a result are shown beside the answer."""

_MAX_SHOWN_CHARS = 2_000
"""So many characters of an input are shown of a call that waits."""


class TextOutput:
    """Prints a run as text: the answer on standard output, everything else beside it."""

    def __init__(self, codec: StreamCodec, presenter: CallPresenter, *, verbose: bool) -> None:
        self._codec = codec
        self._presenter = presenter
        self._verbose = verbose
        self._inputs: dict[str, Any] = {}
        self._slow = SlowHooks().heard

    def handle_hook_event(self, event: Event) -> None:
        """Tell what a hook did before the run."""
        if isinstance(event, HookRan):
            self.event(event)
            if (failure := describe_hook_failure(event)) is not None:
                print_status(failure)

    def event(self, event: AgentEvent, *, is_last: bool = True) -> None:
        """Tell one event; of several runs only the last one's end is the outcome."""
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
        """Tell what happens beside the run."""

    def print_suggestion(self, text: str) -> None:
        """Tell what the person may say next, where a program wants to know."""

    def result(self, message: dict[str, Any]) -> None:
        """Print how it ended."""
        deferred = message.get("deferred_tool_use")
        if deferred is not None:
            how = f"`handaxe -p --resume {message['session_id']}` goes on with it"
            print_status(f"{deferred['name']} waits: a hook put the call off; {how}.")
        if pending := message.get("pending"):
            for waiting in pending:
                told = encode({"input": waiting["input"]}).decode()[:_MAX_SHOWN_CHARS]
                print_status(f"{waiting['name']} waits for an answer: {waiting['reason']} {told}")
            answers = " ".join(f"--answer {waiting['id']}=allow|deny" for waiting in pending)
            print_status(f"`handaxe -p --resume {message['session_id']} {answers}` goes on.")
        structured = message.get("structured_output")
        if structured is not None:
            write_json(structured)
        else:
            write_answer(str(message["result"]))
        sys.stdout.flush()


class JsonOutput(TextOutput):
    """Prints one JSON object at the end."""

    def result(self, message: dict[str, Any]) -> None:
        """Print how it ended."""
        write_json(message)
        sys.stdout.flush()


class StreamJsonOutput(TextOutput):
    """Prints every message as it comes."""

    def __init__(self, codec: StreamCodec, presenter: CallPresenter, *, verbose: bool) -> None:
        super().__init__(codec, presenter, verbose=verbose)
        self._write = LineWriter()

    def event(self, event: AgentEvent, *, is_last: bool = True) -> None:  # noqa: ARG002
        """Write the messages of one event."""
        for message in self._codec.messages(event):
            self._write(message)

    def print_suggestion(self, text: str) -> None:
        """Write what the person may say next."""
        self._write(self._codec.wrap_message("prompt_suggestion", suggestion=text))

    def handle_session_event(self, event: Any) -> None:  # noqa: ANN401 - any event of the session
        """Write the messages of what happens beside the run."""
        for message in self._codec.convert_session_event(event):
            self._write(message)


def create_output(
    arguments: argparse.Namespace, codec: StreamCodec, presenter: CallPresenter
) -> TextOutput:
    """Who prints in the format that was asked for."""
    kinds = {"text": TextOutput, "json": JsonOutput, "stream-json": StreamJsonOutput}
    return kinds[arguments.output_format](codec, presenter, verbose=arguments.verbose)


def print_call(shown: CallDisplay) -> None:
    """Say how a call stands, and what there is to see of it."""
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
    """Say something to the person, not to whoever reads the answer."""
    print_notice(sentence)
