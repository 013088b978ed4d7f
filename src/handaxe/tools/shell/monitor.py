"""Monitor: send every line of a command, or frame of a web socket, to the model."""

import codecs
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.faults.shell import BadCommand
from handaxe.contract.permission_subjects import CommandSubject, HostSubject, Subject
from handaxe.contract.ports.shell import Confiner, RunningCommand, Shell, ShellCommand, Socket
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.jobs import Jobs
from handaxe.text.urls import BadSocketAddress, read_socket_address
from handaxe.tools.shell.command_faults import (
    BadLinePattern,
    BadSocket,
    NoSocketClient,
    NothingToWatch,
    shield_until_done,
    start_in_background,
)


class BadLineRegex(ValueError):
    """The pattern is not valid."""


def compile_line_matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tests whether a line has a match.

    Raises:
        BadLineRegex: the pattern is not valid.
    """
    import jsonschema_rs

    schema = {"type": "string", "pattern": pattern}
    try:
        # The validator's engine cannot backtrack, which the one of Python cannot promise.
        compiled = jsonschema_rs.validator_for(schema, pattern_options=jsonschema_rs.RegexOptions())
    except (jsonschema_rs.ValidationError, ValueError):
        raise BadLineRegex(
            "it is not in the dialect of Grep (no look-around, no back-references)"
        ) from None
    return compiled.is_valid


MAX_PROTOCOLS = 20
MAX_PROTOCOL_CHARS = 100
END_WORDS = "[watch ended: "
"""The start of the line that says why a watch of a web socket ended."""
_TOKEN = re.compile(rf"[!#$%&'*+.^_`|~0-9A-Za-z-]{{1,{MAX_PROTOCOL_CHARS}}}")


class SocketArgs(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The input `ws` of Monitor."""

    url: Annotated[str, "Its address: wss://host/path."]
    protocols: Annotated[list[str], "Subprotocols; the server must accept one."] = []


def parse_socket(args: SocketArgs) -> Socket:
    """The web socket of the input; a fault if it is not valid."""
    try:
        address = read_socket_address(args.url)
    except BadSocketAddress as bad:
        raise BadSocket(what=f"the address {args.url[:200]!r}", problem=str(bad)) from None
    protocols = tuple(args.protocols)
    for name in protocols:
        if not _TOKEN.fullmatch(name):
            raise BadSocket(
                what=f"the subprotocol {name[:200]!r}",
                problem=f"a name consists of 1 to {MAX_PROTOCOL_CHARS} letters, digits and signs",
            )
    if len(protocols) > MAX_PROTOCOLS or len(set(protocols)) < len(protocols):
        raise BadSocket(
            what=f"the list of {len(protocols)} subprotocols",
            problem=f"it may have at most {MAX_PROTOCOLS} entries, each of them once",
        )
    return Socket(url=address.url, host=address.host, port=address.port, protocols=protocols)


def read_socket_host(args: SocketArgs) -> str:
    """The host that needs permission; empty if the address is not valid."""
    try:
        return read_socket_address(args.url).host
    except BadSocketAddress:
        return ""


def refuse_closed_host(socket: Socket, confiner: Confiner | None) -> None:
    """Raise a fault if the sandbox settings block the host."""
    why = None if confiner is None else confiner.explain_closed_host(socket.host)
    if why is not None:
        raise BadSocket(what=f"the host {socket.host}", problem=f"it {why}")


def refuse_without_client() -> None:
    """Raise a fault if the library is missing."""
    if find_spec("websockets") is None:
        raise NoSocketClient


DEFAULT_TIMEOUT_MS = 300_000
MAX_TIMEOUT_MS = 3_600_000
MAX_LINE_CHARS = 2_000
MAX_PATTERN_CHARS = 500
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]"
)


class MonitorArgs(ToolArgs, kw_only=True):
    description: Annotated[str, "What is watched, in a few words."]
    command: Annotated[str | None, "The command whose lines are watched."] = None
    ws: Annotated[SocketArgs | None, "The web socket whose frames are watched."] = None
    pattern: Annotated[str | None, "A regular expression; only matching lines are sent."] = None
    timeout_ms: Annotated[float, "Timeout in milliseconds; default 300000, maximum 3600000."] = (
        DEFAULT_TIMEOUT_MS
    )
    persistent: Annotated[bool, "Watch until it is stopped or the session ends."] = False


class MonitorData(TypedDict):
    """The watch that was started."""

    taskId: str
    timeoutMs: Annotated[int, "When it ends; 0 for a persistent one."]
    persistent: NotRequired[bool]


class Monitor(Tool[MonitorArgs]):
    """Watch a command line by line, or a web socket frame by frame."""

    search_hint = "watch follow tail log stream events background wait websocket"
    output_type = MonitorData
    uses = (Shell, Jobs)
    may_use = (Confiner,)
    defer = True

    def effects_of(self, args: MonitorArgs) -> Effects:
        if args.ws is not None:
            return Effects.pure()
        from handaxe.shell.analysis.analyzer import read_effects

        return read_effects(args.command or "")

    def subjects(self, args: MonitorArgs) -> tuple[Subject, ...]:
        if args.ws is not None and not _is_said(args.command):
            return (HostSubject(read_socket_host(args.ws)),)
        return (CommandSubject(args.command or ""),)

    async def validate(self, args: MonitorArgs, ctx: ToolContext) -> None:
        if args.ws is not None:
            if _is_said(args.command):
                raise NothingToWatch(problem="The input has both a command and a web socket.")
            refuse_closed_host(parse_socket(args.ws), ctx.find(Confiner))
            refuse_without_client()
        elif not _is_said(args.command):
            raise NothingToWatch(problem="The input has neither a command nor a web socket.")
        if "\0" in (args.command or ""):
            raise BadCommand(what="a NUL character")
        _make_matcher(args.pattern)
        ctx[Jobs].refuse_if_full()

    async def call(self, args: MonitorArgs, ctx: ToolContext) -> ToolResult:
        running = await start_in_background(_make_command(args, ctx), ctx)
        jobs, job_id = ctx[Jobs], running.state.job_id
        lines = _Lines(lambda line: jobs.say(job_id, line), _make_matcher(args.pattern, args.ws))
        running.follow(lines.take)
        timeout_ms, notes = _choose_timeout(args)
        jobs.start_task(_watch(running, lines, timeout_ms / 1000 if timeout_ms else None))
        until = "until it is stopped" if args.persistent else f"for {timeout_ms / 1000:g} s"
        what, place = ("line", f"\n[in {ctx.cwd}]") if args.ws is None else ("frame", "")
        text = (
            f"Monitor {job_id} watches {args.description!r} {until}. You get every {what} "
            f"as a message; all output is in {running.state.output_path}. Stop it with "
            "TaskStop."
        )
        data: MonitorData = {"taskId": job_id, "timeoutMs": timeout_ms}
        if args.persistent:
            data["persistent"] = True
        return ToolResult(f"{text}{place}", data=data, notes=notes)

    def title(self, partial_input: dict[str, Any]) -> str:
        shown = partial_input.get("description") or partial_input.get("command") or ""
        return f"Monitor({str(shown).partition(chr(10))[0]})"


class _Lines:
    """Splits bytes into lines."""

    def __init__(self, tell: Callable[[str], None], fits: Callable[[str], bool]) -> None:
        self._tell = tell
        self._fits = fits
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def take(self, piece: bytes) -> None:
        """Add output."""
        *lines, rest = (self._rest + self._decoder.decode(piece)).split("\n")
        for line in lines:
            self._handle_line(line)
        # A line without an end must not grow without limit; its beginning is enough.
        self._rest = rest[: 4 * MAX_LINE_CHARS]

    def end(self) -> None:
        """Handle the end of the output."""
        rest = self._rest + self._decoder.decode(b"", final=True)
        if rest:
            self._handle_line(rest)
        self._rest = ""

    def _handle_line(self, line: str) -> None:
        line = _ESCAPES.sub("", line.removesuffix("\r").rpartition("\r")[2])
        if line.strip() and self._fits(line):
            cut = "..." if len(line) > MAX_LINE_CHARS else ""
            self._tell(line[:MAX_LINE_CHARS] + cut)


def _is_said(command: str | None) -> bool:
    return bool((command or "").strip())


def _make_command(args: MonitorArgs, ctx: ToolContext) -> ShellCommand:
    return ShellCommand(
        call_id=ctx.call_id,
        command=(args.command or "") if args.ws is None else args.ws.url,
        description=args.description,
        cwd=ctx.cwd if args.ws is None else "/",
        kind="monitor",
        socket=None if args.ws is None else parse_socket(args.ws),
    )


async def _watch(running: RunningCommand, lines: _Lines, timeout_s: float | None) -> None:
    """Watch until the end or the timeout."""
    if not await running.wait(timeout_s):
        await shield_until_done(running.stop(time_is_up=True))
    lines.end()


def _choose_timeout(args: MonitorArgs) -> tuple[int, tuple[str, ...]]:
    """The timeout, 0 for none, and notes about it."""
    if args.persistent:
        return 0, ()
    wanted = args.timeout_ms
    if wanted > MAX_TIMEOUT_MS:
        cut = f"Timeout reduced from {wanted:,.0f} ms to the maximum of {MAX_TIMEOUT_MS:,} ms."
        return MAX_TIMEOUT_MS, (cut,)
    if wanted <= 0:
        note = (
            f"Timeout must be positive, not {wanted:g}; using the default of "
            f"{DEFAULT_TIMEOUT_MS:,} ms."
        )
        return DEFAULT_TIMEOUT_MS, (note,)
    return max(1, round(wanted)), ()


def _make_matcher(pattern: str | None, ws: SocketArgs | None = None) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: True
    if len(pattern) > MAX_PATTERN_CHARS:
        raise BadLinePattern(
            pattern=pattern[:80], problem=f"it has more than {MAX_PATTERN_CHARS} characters"
        )
    try:
        matches = compile_line_matcher(pattern)
    except BadLineRegex as bad:
        raise BadLinePattern(pattern=pattern, problem=str(bad)) from None
    if ws is None:
        return matches
    # Why nothing comes any more is worth telling whatever was looked for.
    return lambda line: line.startswith(END_WORDS) or matches(line)
