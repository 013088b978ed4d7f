"""What hooks cost one call: none, ones that do not match, Python ones, a program. Never judges.

Medians of a call that does nothing, taken in turns, so that noise hits all alike. The first lines
are the pipeline alone; the last ones are whole sessions with their log on disk.
"""

import asyncio
import tempfile
from itertools import count

from measure import interleaved
from tests.pipeline.harness import PipelineHarness

from handaxe import Effects, Session, Tool, ToolArgs, ToolCall, ToolResult
from handaxe.hooks.service import Hooks

ROUNDS = 3000


class NothingArgs(ToolArgs):
    pass


class Nothing(Tool[NothingArgs]):
    """Does nothing."""

    effects = Effects.pure()
    search_hint = "nothing"

    async def call(self, args: NothingArgs, ctx: object) -> ToolResult:
        return ToolResult("done")


async def watch(event: dict) -> None:
    return None


async def add(event: dict) -> dict:
    return {"hookSpecificOutput": {"additionalContext": "x"}}


def pipeline_call(hooks: object):
    bench = PipelineHarness([Nothing()], hooks=Hooks(hooks))
    numbers = count()

    async def work() -> None:
        bench.events.clear()
        await bench.pipeline.call(ToolCall(str(next(numbers)), "Nothing", {}))

    return work


def session_call(session: Session):
    async def work() -> None:
        await session.call("Nothing")
        # The log syncs when the loop gets its turn; without one only hooks that wait would pay.
        await asyncio.sleep(0)

    return work


def report(times: dict[str, float]) -> None:
    floor = next(iter(times.values()))
    for name, seconds in times.items():
        print(f"{name:42} {seconds * 1e6:9.1f} µs   {(seconds - floor) * 1e6:+9.1f} µs")


async def main() -> None:
    print("pipeline")
    report(
        await interleaved(
            {
                "no hook": pipeline_call(None),
                "no hook, again": pipeline_call({}),
                "a hook for another tool": pipeline_call(
                    {"PreToolUse": [{"matcher": "Other", "hooks": [watch]}]}
                ),
                "a Python hook before": pipeline_call({"PreToolUse": [watch]}),
                "a Python hook before that adds": pipeline_call({"PreToolUse": [add]}),
                "a Python hook before and one after": pipeline_call(
                    {"PreToolUse": [watch], "PostToolUse": [watch]}
                ),
                "three Python hooks before": pipeline_call({"PreToolUse": [watch] * 3}),
            },
            ROUNDS,
        )
    )
    program = {"hooks": [{"type": "command", "command": "/bin/true", "args": []}]}
    line = {"hooks": [{"type": "command", "command": "exit 0"}]}
    late = {"hooks": [{"type": "command", "command": "exit 0", "async": True}]}
    traced = {"PreToolUse": [watch]}
    print("session, Python")
    await sessions({"no hook": None, "a Python hook before, traced": traced}, 1000)
    print("session, programs")
    programs = {"a program before": {"PreToolUse": [program]}}
    await sessions(
        {"no hook": None, **programs, "a shell line before": {"PreToolUse": [line]}}, 200
    )
    print("session, nobody waits")
    await sessions({"a shell line in the background": {"PreToolUse": [late]}}, 100)


async def sessions(kinds: dict[str, object], rounds: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        opened = {
            name: Session(directory, tools=[Nothing()], home=f"{directory}/home", hooks=hooks)
            for name, hooks in kinds.items()
        }
        report(await interleaved({n: session_call(s) for n, s in opened.items()}, rounds))
        for session in opened.values():
            await session.close()


if __name__ == "__main__":
    asyncio.run(main())
