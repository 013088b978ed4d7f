"""Format the result of a command: its output, its end, its directory."""

import signal as signals

import msgspec

from handaxe.contract.faults import Cancelled, TimedOut
from handaxe.contract.ports.shell import CommandEnd, CommandOutput, RunningCommand
from handaxe.contract.result import ToolResult
from handaxe.shell.analysis.analyzer import analyze
from handaxe.text.escape import format_count
from handaxe.text.framing import frame
from handaxe.text.line_window import PREVIEW_CHARS
from handaxe.tools.shell.bash.bash_data import BashData, BashDetails
from handaxe.tools.shell.command_faults import CommandFailed

FAILURE_CHARS = 10_000


class Directories(msgspec.Struct, frozen=True, kw_only=True):
    """The directory of a command and of the next one."""

    ran_in: str
    next: str
    notice: str = ""
    """A notice about a reset, or about a `cd` without effect."""


def format_end(
    command: str, running: RunningCommand, end: CommandEnd, where: Directories, *, max_chars: int
) -> ToolResult:
    """The result of a command that has ended; `max_chars` limits the output of a success."""
    code = end.exit_code
    meaning = None
    if code == 1 and end.how == "exit":
        facts, has_failed = analyze(command), "cd: " in running.tail(FAILURE_CHARS)
        meaning = facts.meaning_after_cd if has_failed else facts.meaning_of_one
    is_fine = end.how == "exit" and (code == 0 or meaning is not None)
    text, output, kept = (
        _format_success(running, max_chars) if is_fine else _format_failure(running)
    )
    data = _to_data(running, output, where, _end_data(end) | kept, stdout=text)
    if meaning is not None:
        data["returnCodeInterpretation"] = meaning
    notices = [where.notice, _describe_survivors(end), *end.notes]
    data["stderr"] = "\n".join(filter(None, notices))
    ended = f"exit code {code}" if is_fine else _describe_bad_end(end)
    # No duration: the same command that gives the same output gives the same text.
    trailer = f"[{ended} in {where.ran_in}{_describe_next_directory(where)}]"
    if is_fine:
        shown = (text or "(no output)", meaning and f"({meaning})", *notices, trailer)
        return ToolResult("\n".join(filter(None, shown)), data=data)
    first = f"Exit code {code if code is not None else 'unknown'}"
    shown = (first, text, _describe_full_output(running, output), *notices, trailer)
    return ToolResult.from_fault(CommandFailed("\n".join(filter(None, shown)), data={**data}))


def format_timeout(
    running: RunningCommand, where: Directories, *, why: str, timed_out_s: float | None = None
) -> ToolResult:
    """The result of a command that was ended by a timeout."""
    text, output, _ = _format_failure(running)
    said = f"{why} and was ended with all processes it had started."
    data = _to_data(running, output, where, _end_data(running.end), stdout=text)
    data["interrupted"], data["stderr"] = True, said
    if timed_out_s is not None:
        data["timedOutAfterMs"] = round(timed_out_s * 1000)
    trailer = f"[in {where.ran_in}]"
    shown = filter(
        None, (said, text, _describe_full_output(running, output), where.notice, trailer)
    )
    return ToolResult("\n".join(shown), data=data, ok=False, code=TimedOut.code)


def format_cancellation(running: RunningCommand, where: Directories) -> ToolResult:
    """The result of a command that was cancelled."""
    text, output, _ = _format_failure(running)
    said = "The command was stopped before it finished, with all processes it had started."
    printed = f"Its output:\n{text}" if text else "It had printed nothing."
    data = _to_data(running, output, where, _end_data(running.end), stdout=text)
    data["interrupted"], data["stderr"] = True, said
    shown = f"{said} Check what it did before you repeat it. {printed}\n[in {where.ran_in}]"
    return ToolResult(shown, data=data, ok=False, code=Cancelled.code)


def format_background(
    running: RunningCommand, where: Directories, *, why: str = "", timed_out_s: float | None = None
) -> ToolResult:
    """The result of a command that continues in the background."""
    state = running.state
    output = running.output(PREVIEW_CHARS)
    said = join_output(output)
    data = _to_data(running, output, where, {}, stdout="" if not why else said)
    data["backgroundTaskId"] = state.job_id
    path = state.output_path
    if not why:
        text = f"Command running in background with ID: {state.job_id}. "
        text += f"Output is being written to: {path}"
        return ToolResult(f"{text}\n[in {where.ran_in}]", data=data)
    if timed_out_s is not None:
        data["timedOutAfterMs"] = round(timed_out_s * 1000)
    if where.notice:
        data["backgroundCwdHint"] = where.notice
    data["stderr"] = why
    lines = [
        f"{why} with ID: {state.job_id}. Output is being written to: {path}",
        "You get a notice when it ends; there is no need to ask or to sleep.",
        f"Output so far:\n{said}" if said else "It has printed nothing so far.",
        where.notice,
        f"[in {where.ran_in}]",
    ]
    return ToolResult("\n".join(filter(None, lines)), data=data)


def _format_success(
    running: RunningCommand, max_chars: int
) -> tuple[str, CommandOutput, BashDetails]:
    output = running.output(max_chars)
    path = running.state.output_path
    if output.is_binary:
        text = f"[binary output, {output.total_bytes:,} bytes. It is kept in: {path}]"
        return text, output, _to_persisted_data(path, output)
    if not output.tail:
        return output.head.rstrip("\n"), output, {}
    short = running.output(min(2 * PREVIEW_CHARS, max_chars))
    text = frame(
        "persisted-output",
        f"Output too large ({output.total_bytes:,} bytes, {output.total_lines:,} lines). "
        f"{_describe_kept_output(path, output)}\n\n"
        f"Preview (first {len(short.head):,} characters):\n{short.head}\n\n"
        f"[... {_count_left_out(short):,} characters left out ...]\n\n"
        f"Preview (last {len(short.tail):,} characters):\n{short.tail}",
    )
    return str(text), short, _to_persisted_data(path, output)


def _to_persisted_data(path: str, output: CommandOutput) -> BashDetails:
    return {"persistedOutputPath": path, "persistedOutputSize": output.kept_bytes}


def _describe_kept_output(path: str, output: CommandOutput) -> str:
    if not path:
        return "It could not be saved to a file."
    whole = "" if output.kept_bytes >= output.total_bytes else " (its beginning and its end)"
    how = "Read it with offset and limit, or search it with Grep."
    return f"Full output{whole} saved to: {path}\n{how}"


def _format_failure(running: RunningCommand) -> tuple[str, CommandOutput, BashDetails]:
    output = running.output(FAILURE_CHARS)
    if output.is_binary:
        return f"[binary output, {output.total_bytes:,} bytes]", output, {}
    return join_output(output), output, {}


def join_output(output: CommandOutput) -> str:
    """Both ends of a command's output, with the length of the omitted middle."""
    if not output.tail:
        return output.head.rstrip("\n")
    cut = f"... [{_count_left_out(output)} characters truncated] ..."
    head, tail = output.head.rstrip("\n"), output.tail.strip("\n")
    return f"{head}\n\n{cut}\n\n{tail}"


def _count_left_out(output: CommandOutput) -> int:
    shown = len(output.head.encode(errors="replace")) + len(output.tail.encode(errors="replace"))
    return max(0, output.total_bytes - shown)


def _describe_full_output(running: RunningCommand, output: CommandOutput) -> str:
    if not running.state.output_path or not (output.tail or output.is_binary):
        return ""
    lines, path = format_count(output.total_lines, "line"), running.state.output_path
    if output.kept_bytes >= output.total_bytes:
        return f"Full output ({lines}) is in: {path}"
    return (
        f"Of {lines} ({output.total_bytes:,} bytes) the beginning and the end "
        f"({output.kept_bytes:,} bytes) are in: {path}"
    )


def _list_shown_ranges(output: CommandOutput) -> list[list[int]]:
    """First and last line of each shown piece; a line that is cut counts in both."""
    total = output.total_lines
    if output.is_binary or not total:
        return []
    if not output.tail:
        return [[1, total]]
    first_of_tail = total - len(output.tail.removesuffix("\n").split("\n")) + 1
    return [[1, len(output.head.removesuffix("\n").split("\n"))], [first_of_tail, total]]


def _to_data(
    running: RunningCommand,
    output: CommandOutput,
    where: Directories,
    details: BashDetails,
    *,
    stdout: str,
) -> BashData:
    details["shownRanges"] = _list_shown_ranges(output) if stdout else []
    if path := running.state.output_path:
        details["rawOutputPath"] = path
    return {
        "stdout": stdout,
        "stderr": "",
        "interrupted": False,
        "cwd": where.ran_in,
        "nextCwd": where.next,
        "totalBytes": output.total_bytes,
        "totalLines": output.total_lines,
        **details,
    }


def _end_data(end: CommandEnd | None) -> BashDetails:
    if end is None:
        return {}
    data: BashDetails = {
        "exitCode": end.exit_code,
        "durationMs": round(end.duration_s * 1000, 1),
    }
    if end.signal is not None:
        data["signal"] = end.signal
    return data


def _describe_bad_end(end: CommandEnd) -> str:
    if end.how == "output_cap":
        return "ended because it exceeded the output limit"
    if end.how == "own_output":
        return "ended because it printed its own output in a loop"
    if end.how == "stopped":
        return "stopped"
    if end.signal is not None:
        return f"ended by {_get_signal_name(end.signal)}"
    return f"exit code {end.exit_code}"


def _get_signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _describe_survivors(end: CommandEnd) -> str:
    if not end.survivors:
        return ""
    what = "1 process" if end.survivors == 1 else f"{end.survivors} processes"
    return (
        f"{what} left running were ended with the command; use run_in_background for what "
        "should continue."
    )


def _describe_next_directory(where: Directories) -> str:
    return "" if where.next == where.ran_in else f"; the next command runs in {where.next}"
