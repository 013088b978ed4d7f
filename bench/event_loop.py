"""How long large work of some users keeps the event loop from another user of the same process.

`uv run python bench/event_loop.py [CASE ...]` opens many sessions in one process. Ten users work as
the case says while another one makes Grep calls. It prints the longest time that the event loop
did nothing else (wall clock, and processor time of the loop's own thread, which a busy machine
hardly changes) and how much longer a Grep takes than alone. Alone and beside are measured in turns.
`--users N`, `--megabytes N` and `--rounds N` change the sizes; `--trace` names the callbacks that
took longest.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from asyncio import events
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from handaxe import Effects, Session, Tool, ToolArgs, ToolContext, ToolResult

LIMIT_MS = 50
LIMIT_RATIO = 2
GREPS = 15
WARM_UP = 3
FILES = 300


class WorkArgs(ToolArgs):
    milliseconds: int


class SleepInThread(Tool[WorkArgs]):
    """Waits in a thread."""

    search_hint = "wait in a thread"
    effects = Effects.pure()

    async def call(self, args: WorkArgs, ctx: ToolContext) -> ToolResult:
        await asyncio.to_thread(time.sleep, args.milliseconds / 1000)
        return ToolResult("done")


class ComputeInThread(Tool[WorkArgs]):
    """Computes in a thread."""

    search_hint = "compute in a thread"
    effects = Effects.pure()

    async def call(self, args: WorkArgs, ctx: ToolContext) -> ToolResult:
        await asyncio.to_thread(compute, args.milliseconds)
        return ToolResult("done")


def compute(milliseconds: int) -> int:
    """Python code that holds the interpreter, for about so long."""
    until = time.thread_time() + milliseconds / 1000
    number = 0
    while time.thread_time() < until:
        number += 1
    return number


class Watch:
    """Measures every callback of the event loop."""

    def __init__(self) -> None:
        self.wall_ms = self.cpu_ms = 0.0
        self.longest: list[tuple[float, float, str]] = []
        self._is_on = False
        self._run = events.Handle._run

    def install(self) -> None:
        watch, run = self, self._run

        def measured(handle: events.Handle) -> None:
            if not watch._is_on:
                run(handle)
                return
            wall, cpu = time.perf_counter(), time.thread_time()
            run(handle)
            watch.note(
                (time.perf_counter() - wall) * 1000, (time.thread_time() - cpu) * 1000, handle
            )

        events.Handle._run = measured  # type: ignore[method-assign]

    def note(self, wall_ms: float, cpu_ms: float, handle: object) -> None:
        self.wall_ms = max(self.wall_ms, wall_ms)
        self.cpu_ms = max(self.cpu_ms, cpu_ms)
        if wall_ms > LIMIT_MS / 5:
            self.longest.append((wall_ms, cpu_ms, describe(handle)))

    def start(self) -> None:
        self.wall_ms = self.cpu_ms = 0.0
        self.longest = []
        self._is_on = True

    def stop(self) -> None:
        self._is_on = False


def describe(handle: Any) -> str:
    """Whose callback it is; the values in it may be long."""
    callback = handle._callback
    task = getattr(callback, "__self__", None)
    where = task.get_coro() if isinstance(task, asyncio.Task) else callback
    return getattr(where, "__qualname__", type(where).__name__)


class Users:
    """Sessions of several users, each in a project of its own, with what a case needs."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self.ascii = make_text(megabytes, "abcdefghijklmnopqrstuvwxyz 0123456789")
        self.wide = make_text(megabytes, "äöüßéèàçñøåæœ漢字かな 0123456789")
        self._texts = [self.ascii + str(number) for number in range(20)]
        self._wide_texts = [self.wide + str(number) for number in range(20)]
        self.lines = "".join(f"line {n} of a file\n" for n in range(2 * 55_000))
        self.sessions: list[Session] = []
        self.number = 0

    async def open(self, count: int) -> None:
        for user in range(count):
            root = self.folder / f"user{user}"
            root.mkdir()
            session = Session(
                root,
                home=self.folder / "home",
                permission_mode="bypassPermissions",
                tools=[SleepInThread, ComputeInThread],
            )
            self.sessions.append(await session.__aenter__())

    async def close(self) -> None:
        for session in self.sessions:
            await session.__aexit__(None, None, None)

    def new_text(self, *, is_wide: bool = False) -> str:
        """A text that nobody has looked at, as long as there are any."""
        texts = self._wide_texts if is_wide else self._texts
        return texts.pop() if texts else self.wide if is_wide else self.ascii

    def new_name(self) -> str:
        self.number += 1
        return f"large{self.number}.txt"


def make_text(megabytes: int, characters: str) -> str:
    line = "".join(random.Random(1).choices(characters, k=79)) + "\n"
    return line * (megabytes * 1_000_000 // len(line.encode()))


async def write_ascii(users: Users, session: Session) -> None:
    await check(session.call("Write", file_path=users.new_name(), content=users.new_text()))


async def write_wide(users: Users, session: Session) -> None:
    await check(
        session.call("Write", file_path=users.new_name(), content=users.new_text(is_wide=True))
    )


async def write_again(users: Users, session: Session) -> None:
    name = "again.txt"
    session_root = users.folder / f"user{users.sessions.index(session)}"
    if not (session_root / name).exists():
        (session_root / name).write_text(users.ascii)
    await check(session.call("Read", file_path=name, limit=1))
    await session.call("Write", file_path=name, content=users.new_text())


def prepare_large(users: Users, session: Session, text: str, name: str) -> None:
    path = users.folder / f"user{users.sessions.index(session)}" / name
    if not path.exists():
        path.write_text(text)


async def fail_edit(users: Users, session: Session) -> None:
    prepare_large(users, session, users.ascii, "failed.txt")
    await check(session.call("Read", file_path="failed.txt", limit=5))
    edit = {"file_path": "failed.txt", "old_string": "no such text at all", "new_string": "x"}
    result = await session.call("Edit", edit)
    assert result.code == "edit.no_match", result.text


async def fail_edit_wide(users: Users, session: Session) -> None:
    prepare_large(users, session, users.wide, "failed-wide.txt")
    await check(session.call("Read", file_path="failed-wide.txt", limit=5))
    edit = {"file_path": "failed-wide.txt", "old_string": "kein solcher Text", "new_string": "x"}
    result = await session.call("Edit", edit)
    assert result.code == "edit.no_match", result.text


async def edit_every_line(users: Users, session: Session) -> None:
    prepare_large(users, session, users.lines, "lines.txt")
    await check(session.call("Read", file_path="lines.txt", limit=5))
    old, new = ("line", "LINE") if users.number % 2 else ("LINE", "line")
    users.number += 1
    edit = {"file_path": "lines.txt", "old_string": old, "new_string": new, "replace_all": True}
    await session.call("Edit", edit)


async def sleep_in_threads(users: Users, session: Session) -> None:
    await check(session.call("SleepInThread", milliseconds=200))


async def compute_in_threads(users: Users, session: Session) -> None:
    await check(session.call("ComputeInThread", milliseconds=200))


async def check(call: Awaitable[ToolResult]) -> ToolResult:
    result = await call
    assert result.ok, result.text
    return result


Work = Callable[[Users, Session], Awaitable[None]]
CASES: dict[str, Work] = {
    "Write": write_ascii,
    "Write, not ASCII": write_wide,
    "Write over a file": write_again,
    "failed Edit": fail_edit,
    "failed Edit, not ASCII": fail_edit_wide,
    "Edit of every line": edit_every_line,
    "threads that sleep": sleep_in_threads,
    "threads that compute": compute_in_threads,
}


async def time_greps(session: Session, count: int) -> list[float]:
    times: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await check(session.call("Grep", pattern="needle", path="tree"))
        times.append(time.perf_counter() - began)
        await asyncio.sleep(0.005)
    return times


async def measure(work: Work, users: Users, other: Session, watch: Watch) -> tuple[float, float]:
    """The times of a Grep alone and beside the others."""
    alone = await time_greps(other, GREPS)
    is_over = False

    async def go_on(session: Session) -> None:
        while not is_over:
            await work(users, session)

    tasks = [asyncio.ensure_future(go_on(session)) for session in users.sessions]
    await asyncio.sleep(0.05)
    watch.start()
    beside = await time_greps(other, GREPS)
    is_over = True
    await asyncio.gather(*tasks)
    watch.stop()
    alone += await time_greps(other, GREPS)
    return statistics.median(alone), statistics.median(beside)


async def run_case(name: str, options: argparse.Namespace, watch: Watch) -> None:
    with tempfile.TemporaryDirectory(prefix="handaxe-loop-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        tree = folder / "other" / "tree"
        tree.mkdir(parents=True)
        for number in range(FILES):
            (tree / f"f{number}.txt").write_text("hay\n" * 200 + "needle\n" * (number % 7 == 0))
        users = Users(folder, options.megabytes)
        await users.open(options.users)
        async with Session(folder / "other", home=folder / "home") as other:
            await time_greps(other, WARM_UP)
            await CASES[name](users, users.sessions[0])
            for _ in range(options.rounds):
                alone, beside = await measure(CASES[name], users, other, watch)
                marks = " <-- block" * (watch.wall_ms > LIMIT_MS)
                marks += " <-- ratio" * (beside / alone > LIMIT_RATIO)
                print(
                    f"{name:24} longest block {watch.wall_ms:7.1f} ms "
                    f"(processor {watch.cpu_ms:6.1f})   Grep {alone * 1000:6.1f} ms alone, "
                    f"{beside * 1000:7.1f} beside: {beside / alone:5.1f}x{marks}",
                    flush=True,
                )
                if options.trace:
                    for wall_ms, cpu_ms, what in sorted(watch.longest, reverse=True)[:8]:
                        print(f"    {wall_ms:7.1f} ms ({cpu_ms:6.1f}) {what}")
        await users.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--megabytes", type=int, default=26)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    watch = Watch()
    watch.install()
    print(
        f"Wanted: no block above {LIMIT_MS} ms, and a Grep at most {LIMIT_RATIO}x slower beside "
        f"{options.users} users with {options.megabytes} MB each.",
        flush=True,
    )
    for name in options.cases or CASES:
        await run_case(name, options, watch)


if __name__ == "__main__":
    asyncio.run(main())
