"""Tools that tell a test what the pipeline does with them."""

import asyncio

from handaxe import Effects, Tool, ToolArgs, ToolContext, ToolResult


class StepArgs(ToolArgs, kw_only=True):
    name: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    turns: int = 1
    """How many times the call lets others go before it ends."""
    fails: bool = False


class Step(Tool[StepArgs]):
    """Touches what its input says, and writes down when it starts and ends."""

    search_hint = "a step of a test"

    def __init__(self, story: list[str] | None = None) -> None:
        self.story = [] if story is None else story

    def effects_of(self, args: StepArgs) -> Effects:
        reads = Effects.reading(*args.reads)
        writes = Effects.on(*args.writes)
        return Effects(reads=(*reads.reads, *writes.reads), writes=writes.writes)

    def subjects(self, args: StepArgs):
        return ()

    async def validate(self, args: StepArgs, ctx: ToolContext) -> None:
        self.story.append(f"validate {args.name}")

    async def call(self, args: StepArgs, ctx: ToolContext) -> ToolResult:
        self.story.append(f"start {args.name}")
        for _ in range(args.turns):
            await asyncio.sleep(0)
        self.story.append(f"end {args.name}")
        if args.fails:
            raise RuntimeError("planned")
        return ToolResult(f"done {args.name}")


class WaitArgs(ToolArgs):
    pass


class Wait(Tool[WaitArgs]):
    """Never ends by itself."""

    search_hint = "wait for ever"
    effects = Effects.pure()

    async def call(self, args: WaitArgs, ctx: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        return ToolResult("never")


class Stubborn(Wait):
    """Is not stopped by new input."""

    interrupt = "block"


class Polite(Wait):
    """Gives way to new input."""

    interrupt = "cancel"
