"""Bash: run a command in the foreground or the background.

Belongs here: the tool, its timeout, its output, hints after a failure.
Does not: running the command (port `Shell`).
May import: `tools.shell`, and what `tools` may import.
"""

from typing import Annotated, Any

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Text
from handaxe.contract.effects import Effects
from handaxe.contract.faults.shell import BadCommand, BadWorkdir
from handaxe.contract.permission_subjects import CommandSubject, Subject
from handaxe.contract.ports.dry_run import CommandPreviews
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.shell import Confiner, Shell, ShellCommand
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.jobs import Jobs
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.tools.shell.bash.bash_data import BashData


class BashArgs(ToolArgs, kw_only=True):
    command: Annotated[str, "The command to run."]
    timeout: Annotated[
        float | None,
        "Timeout in milliseconds; default 120000, maximum 600000.",
    ] = None
    description: Annotated[str, "What the command does, in five to ten words, for the user."] = ""
    run_in_background: Annotated[bool, "Start it without waiting."] = False
    disable_sandbox: Annotated[
        bool, "Ask to run it outside the sandbox. Only if it failed because of the sandbox."
    ] = msgspec.field(default=False, name="dangerouslyDisableSandbox")
    dry_run: Annotated[
        bool, "Show what it would change in the working directories, without changing it."
    ] = False
    cwd: Annotated[
        str | None, "Run it in this directory, for this call only; inside the working directories."
    ] = None


class Bash(Tool[BashArgs]):
    """Run a command."""

    search_hint = "shell command terminal execute script program cli"
    output_type = BashData
    uses = (Shell, Jobs, Workdir, Settings, Files)
    may_use = (CommandPreviews, Confiner, ReadLedger)
    max_result_chars = float("inf")
    inline_chars = 30_000

    def effects_of(self, args: BashArgs) -> Effects:
        return _read_effects(args)

    def subjects(self, args: BashArgs) -> tuple[Subject, ...]:
        return (CommandSubject(args.command, unconfined=args.disable_sandbox),)

    def starts_in(self, args: BashArgs) -> str | None:
        return args.cwd or None

    async def situate(
        self, args: BashArgs, ctx: ToolContext
    ) -> tuple[Effects, tuple[Subject, ...]] | None:
        if not self.effects_of(args).writes_everything:
            return None
        from handaxe.shell.analysis.analyzer import read_effects

        # What is destroyed for good depends on where the working directories are.
        place, settings = ctx[Workdir], ctx[Settings]
        # A user's own functions and aliases may be called like any program.
        bounded = not args.run_in_background and not settings.shell.snapshot
        effects = read_effects(args.command, ctx.cwd, place.home, place.roots, bounded=bounded)
        if effects.extent is not None and settings.sandbox.enabled:
            extent = msgspec.structs.replace(effects.extent, is_confined=True)
            effects = msgspec.structs.replace(effects, extent=extent)
        return effects, self.subjects(args)

    async def validate(self, args: BashArgs, ctx: ToolContext) -> None:
        if "\0" in args.command:
            raise BadCommand(what="a NUL character")

    async def call(self, args: BashArgs, ctx: ToolContext) -> ToolResult:
        from handaxe.tools.shell.bash import foreground
        from handaxe.tools.shell.bash.timeout import choose_timeout

        settings = ctx[Settings]
        time_limit = choose_timeout(args.timeout, settings)
        command = _make_command(args, ctx)
        remark = _note_background(args, ctx)  # now: a wait may well end with what it is for
        try:
            if args.dry_run:
                result = await foreground.run_preview(command, time_limit.timeout_s, ctx)
            elif args.run_in_background and settings.background_tasks:
                result = await foreground.run_in_background(command, ctx)
            else:
                stays = bool(args.cwd)
                result = await foreground.run_in_foreground(command, time_limit, ctx, stays=stays)
        except BadWorkdir as fault:
            if args.cwd:
                raise
            result = foreground.reset_lost_directory(fault, ctx)
        if result.data and (level := _find_sandbox_level(args, ctx)) is not None:
            result = msgspec.structs.replace(result, data={**result.data, "sandbox": level})
        notes = (*time_limit.notes, *remark, *result.notes)
        return msgspec.structs.replace(result, notes=notes)

    def title(self, partial_input: dict[str, Any]) -> str:
        shown = partial_input.get("description") or partial_input.get("command") or ""
        first = str(shown).strip().partition("\n")[0]
        return f"Bash({first})"

    def show(self, args: BashArgs, result: ToolResult) -> Display | None:
        data: dict[str, Any] = result.data or {}
        if result.display is not None:
            return result.display
        if "stdout" not in data:
            return None
        if "backgroundTaskId" in data:
            return _display_background(args, data)
        tone = "muted" if result.ok else "bad"
        said = data["stdout"] or "(no output)"
        code = data.get("exitCode") if not data.get("interrupted") else None
        ended = f"exit code {code}" if code is not None else result.text.partition("\n")[0]
        took = data.get("durationMs")
        time = f", {took / 1000:.1f} s" if took is not None else ""
        blocks = [
            Text(f"$ {args.command}"),
            Text(said),
            Text(f"{ended}{time} in {data['cwd']}", tone),
        ]
        if data.get("stderr"):
            blocks.append(Text(data["stderr"], "warning"))
        return tuple(blocks)

    def summary(self, args: BashArgs, result: ToolResult) -> str:
        data: dict[str, Any] = result.data or {}
        if "backgroundTaskId" in data:
            return f"running in the background as {data['backgroundTaskId']}"
        if data.get("exitCode") is None or data.get("interrupted"):
            return super().summary(args, result)
        lines = data["totalLines"]
        return f"exit code {data['exitCode']}, {lines:,} line{'' if lines == 1 else 's'}"


def _display_background(args: BashArgs, data: dict[str, Any]) -> Display:
    where = f"running in the background as {data['backgroundTaskId']}, in {data['cwd']}"
    blocks = [Text(f"$ {args.command}")]
    if data["stdout"]:
        blocks.append(Text(data["stdout"]))
    blocks.append(Text(where, "muted"))
    if path := data.get("rawOutputPath"):
        blocks.append(Text(f"output: {path}", "muted"))
    return tuple(blocks)


def _make_command(args: BashArgs, ctx: ToolContext) -> ShellCommand:
    may_leave = ctx[Settings].sandbox.allow_unsandboxed_commands
    return ShellCommand(
        call_id=ctx.call_id,
        command=args.command,
        description=args.description,
        cwd=ctx.cwd,
        unconfined=args.disable_sandbox and may_leave,
    )


def _note_background(args: BashArgs, ctx: ToolContext) -> tuple[str, ...]:
    """Notes for a call that asks for unavailable background work, or sleeps while work runs."""
    if args.run_in_background and not args.dry_run and not ctx[Settings].background_tasks:
        return ("Background work is turned off, so the command ran in the foreground.",)
    foreground = [] if args.run_in_background or args.dry_run else ctx[Jobs].running()
    if not foreground:
        return ()
    from handaxe.tools.shell.bash.timeout import find_awaited_jobs

    listed = ", ".join(state.job_id for state in find_awaited_jobs(args.command, foreground))
    if not listed:
        return ()
    return (f"You get a notice when {listed} ends; there is no need to sleep.",)


def _find_sandbox_level(args: BashArgs, ctx: ToolContext) -> dict[str, Any] | None:
    confiner = ctx.find(Confiner)
    if confiner is None or not confiner.is_confining(args.command, unconfined=args.disable_sandbox):
        return None
    return msgspec.to_builtins(confiner.level)


def _read_effects(args: BashArgs) -> Effects:
    from handaxe.shell.analysis.analyzer import read_effects

    return Effects.none() if args.dry_run else read_effects(args.command)
