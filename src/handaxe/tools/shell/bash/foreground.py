"""Run a command in the foreground: wait, move it to the background, stop it, follow its `cd`."""

import asyncio
from contextlib import suppress

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.cancellation import CancelledWithResult
from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.faults.shell import BadWorkdir
from handaxe.contract.ports.dry_run import CommandPreviews
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.shell import CommandEnd, Confiner, RunningCommand, Shell, ShellCommand
from handaxe.contract.result import ToolResult
from handaxe.session.jobs import Jobs
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.shell.analysis.analyzer import analyze
from handaxe.text.line_window import split_lines
from handaxe.text.paths import is_inside, normalize
from handaxe.tools.shell.bash.dry_run_output import format_preview
from handaxe.tools.shell.bash.failure_hints import (
    NOT_FOUND,
    build_sandbox_hint,
    explain_removed_variables,
    find_missing_program,
)
from handaxe.tools.shell.bash.output import (
    FAILURE_CHARS,
    Directories,
    format_background,
    format_cancellation,
    format_end,
    format_timeout,
)
from handaxe.tools.shell.bash.timeout import CommandTimeout, can_move, format_duration
from handaxe.tools.shell.command_faults import NoPreview, shield_until_done, start_in_background

REPORT_EVERY_S = 0.4
REPORT_CHARS = 2_000
WAITING_S = 3.0
"""How long a command may seem to wait for input before the model gets a notice."""


class Foreground:
    """A command that the model waits for."""

    def __init__(
        self,
        command: ShellCommand,
        running: RunningCommand,
        time_limit: CommandTimeout,
        ctx: ToolContext,
        *,
        stays: bool,
    ) -> None:
        """`stays`: the session does not follow its `cd`."""
        self._command = command.command
        self._is_unconfined = command.unconfined
        self._running = running
        self._time_limit = time_limit
        self._ctx = ctx
        self._stays = stays

    async def finish(self) -> ToolResult:
        """Wait and build the result; a cancelled command is stopped."""
        try:
            return await self._wait()
        except asyncio.CancelledError:
            # Even a second cancellation must not leave it running.
            await shield_until_done(self._running.stop())
            raise CancelledWithResult(
                format_cancellation(self._running, _keep_directory(self._ctx))
            ) from None

    async def _wait(self) -> ToolResult:
        clock = asyncio.get_running_loop().time
        began = clock()
        reported, waiting_since = 0, None
        while (left := began + self._time_limit.wait_s - clock()) > 0:
            if await self._running.wait(min(left, REPORT_EVERY_S)):
                return await self._ended()
            state = self._running.state
            if state.output_bytes != reported:
                reported = state.output_bytes
                self._ctx.report(self._running.tail(REPORT_CHARS))
            if state.waiting_for_input is None:
                waiting_since = None
            elif waiting_since is None:
                waiting_since = clock()
                self._ctx.report(f"waiting for input: {state.waiting_for_input}")
            elif clock() - waiting_since >= WAITING_S:
                why = (
                    f"Command seems to be waiting for input: {state.waiting_for_input!r}. "
                    "It cannot get any: run it so that it needs no input (an option such "
                    "as --yes, or input from a pipe). It"
                )
                return await self._give_up(f"{why} was moved to the background", if_ended=why)
        if self._running.end is not None:
            return await self._ended()
        return await self._handle_timeout()

    async def _ended(self) -> ToolResult:
        end = self._running.end
        assert end is not None
        if end.exit_code == 0:
            await record_read(self._command, self._running, self._ctx)
        if end.exit_code == NOT_FOUND and end.how == "exit":
            end = await self._add_install_hint(end)
        elif end.exit_code and end.how == "exit":
            end = self._add_sandbox_hint(end)
        end = self._add_variable_hint(end)
        where = _keep_directory(self._ctx) if self._stays else _follow_directory(end.cwd, self._ctx)
        most = self._ctx[Settings].shell.max_inline_chars
        return format_end(self._command, self._running, end, where, max_chars=most)

    async def _add_install_hint(self, end: CommandEnd) -> CommandEnd:
        """Add the packages that may provide a missing program."""
        program = find_missing_program(self._running.tail(FAILURE_CHARS))
        if program is None:
            return end
        told = await self._ctx[Shell].seek(program, self._ctx.cwd)
        return msgspec.structs.replace(end, notes=(*end.notes, told)) if told else end

    def _add_sandbox_hint(self, end: CommandEnd) -> CommandEnd:
        """Add a hint if the sandbox may be the reason of a failure."""
        options = self._ctx[Settings].sandbox
        confiner = self._ctx.find(Confiner) if options.enabled and not end.notes else None
        if confiner is None or not confiner.is_confining(
            self._command, unconfined=self._is_unconfined
        ):
            return end
        said = self._running.tail(FAILURE_CHARS)
        hint = build_sandbox_hint(
            self._command,
            said,
            confiner.level,
            options,
            confiner.get_readable_files(),
            self._ctx.cwd,
        )
        return msgspec.structs.replace(end, notes=(hint,)) if hint else end

    def _add_variable_hint(self, end: CommandEnd) -> CommandEnd:
        """Add a hint about variables that the command may need."""
        removed = self._ctx[Shell].removed_variables
        if not removed:
            return end
        said = self._running.tail(FAILURE_CHARS) if end.exit_code else ""
        note = explain_removed_variables(self._command, said, removed, failed=bool(end.exit_code))
        return msgspec.structs.replace(end, notes=(*end.notes, note)) if note else end

    async def _handle_timeout(self) -> ToolResult:
        time_limit = self._time_limit
        if time_limit.budget_s is not None and time_limit.budget_s < time_limit.timeout_s:
            budget = format_duration(time_limit.budget_s)
            why = f"Command did not complete within {budget} and was moved to the background"
            with suppress(ToolFault):
                return self._let_go(why)
        timeout = f"{time_limit.timeout_s:g}s"
        why = (
            f"Command did not complete within its {timeout} timeout and was moved to the background"
        )
        return await self._give_up(
            why,
            if_ended=f"Command timed out after {format_duration(time_limit.timeout_s)}",
            timed_out_s=time_limit.timeout_s,
        )

    async def _give_up(
        self, why: str, *, if_ended: str, timed_out_s: float | None = None
    ) -> ToolResult:
        """Stop waiting: move it to the background, or end it where that makes no sense."""
        if can_move(self._command):
            with suppress(ToolFault):
                return self._let_go(why, timed_out_s=timed_out_s)
        await shield_until_done(self._running.stop())
        where = _keep_directory(self._ctx)
        return format_timeout(self._running, where, why=if_ended, timed_out_s=timed_out_s)

    def _let_go(self, why: str, *, timed_out_s: float | None = None) -> ToolResult:
        self._ctx[Jobs].refuse_if_full()
        self._running.let_go()
        self._ctx[Jobs].add(self._running)
        where = _keep_directory(self._ctx)
        if analyze(self._command).changes_directory:
            notice = (
                f"Session cwd remains {where.next}; directory changes made by the backgrounded "
                "command do not apply to subsequent commands."
            )
            where = msgspec.structs.replace(where, notice=notice)
        return format_background(self._running, where, why=why, timed_out_s=timed_out_s)


async def run_in_foreground(
    command: ShellCommand, time_limit: CommandTimeout, ctx: ToolContext, *, stays: bool = False
) -> ToolResult:
    """Run a command while the model waits; the session follows its `cd` unless it `stays`."""
    running = await ctx[Shell].start(command)
    return await Foreground(command, running, time_limit, ctx, stays=stays).finish()


async def run_in_background(command: ShellCommand, ctx: ToolContext) -> ToolResult:
    """Start a command in the background."""
    running = await start_in_background(command, ctx)
    return format_background(running, _keep_directory(ctx))


async def run_preview(command: ShellCommand, timeout_s: float, ctx: ToolContext) -> ToolResult:
    """Show what a command would change."""
    previews = ctx.find(CommandPreviews)
    if previews is None:
        raise NoPreview
    found = await previews.preview(command, timeout_s)
    return format_preview(command, found, timeout_s, next_cwd=ctx[Workdir].current)


def reset_lost_directory(fault: BadWorkdir, ctx: ToolContext) -> ToolResult:
    """The result if the directory no longer exists; the session goes back to its root."""
    place = ctx[Workdir]
    result = ToolResult.from_fault(fault)
    if place.current == place.root:
        return result
    place.move(place.root)
    notice = f"Shell cwd was reset to {place.root}"
    text = f"{result.text} {notice}; run the command again if it makes sense there."
    return msgspec.structs.replace(result, text=text, data={"stderr": notice, "cwd": place.root})


def _keep_directory(ctx: ToolContext) -> Directories:
    """The directories, with the session staying in its current one."""
    return Directories(ran_in=ctx.cwd, next=ctx[Workdir].current)


def _follow_directory(ended_in: str | None, ctx: ToolContext) -> Directories:
    """The directories after a command; the session follows it inside the working directories."""
    place, ran_in = ctx[Workdir], ctx.cwd
    if ended_in is None or ended_in == ran_in or not ctx[Settings].shell.carry_directory:
        return _keep_directory(ctx)
    found = ctx[Files].locate(place.resolve(ended_in), place.roots)
    if found.is_final and any(is_inside(found.real, root) for root in place.roots):
        place.move(found.real)
        return Directories(ran_in=ran_in, next=found.real)
    place.move(place.root)
    notice = f"Shell cwd was reset to {place.root}"
    return Directories(ran_in=ran_in, next=place.root, notice=notice)


async def record_read(command: str, running: RunningCommand, ctx: ToolContext) -> None:
    """Record a file that the command showed completely."""
    shown = analyze(command).printed_file
    ledger = ctx.find(ReadLedger)
    if shown is None or ledger is None:
        return
    most = ctx[Settings].shell.max_inline_chars
    output = running.output(most)
    if output.tail or output.is_binary:
        return
    path = normalize(shown if shown.startswith("/") else f"{ctx.cwd}/{shown}")
    try:
        loaded = await ctx[Files].load(ctx[Workdir].resolve(path), max_bytes=4 * most)
    except ToolFault:
        return
    if loaded.data == output.head.encode():
        lines = len(split_lines(output.head))
        ledger.record_read(loaded.version, content=loaded.data, total_lines=lines)
