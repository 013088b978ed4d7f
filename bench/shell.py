"""Commands against the raw floor: small ones, twenty at once, 100 MB of output, endless output.

    python bench/shell.py            all lines
    python bench/shell.py 60         fewer rounds

The floor is `subprocess` with a plain `bash -c` and captured output, which keeps no promise about
processes; ours ends every descendant. Never judges; a goal is what we aim at.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import header, interleaved, peak_memory_mb, report, resident_mb, sync

from handaxe import Session
from handaxe.contract.ports.shell import RunningCommand, ShellCommand
from handaxe.shell.exec.environment.command_environment import EnvironmentFilter
from handaxe.shell.exec.local_shell import LocalShell, ShellLimits

FLOW = "yes 'a line of about eighty characters, as logs and compilers write them all day long' | head -c 100000000"


async def ran(shell: LocalShell, text: str) -> RunningCommand:
    running = await shell.start(ShellCommand(call_id="c", command=text, cwd="/tmp"))
    await running.wait()
    with contextlib.suppress(OSError):
        if running.state.output_path:
            os.unlink(running.state.output_path)
    return running


def plain(text: str) -> None:
    subprocess.run(["bash", "-c", text], capture_output=True, check=True)


def plain_at_once(text: str, count: int) -> None:
    started = [
        subprocess.Popen(["bash", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(count)
    ]
    for process in started:
        process.communicate()


def plain_flow() -> None:
    with subprocess.Popen(["bash", "-c", FLOW], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        while os.read(process.stdout.fileno(), 1 << 16):
            pass


async def asyncio_true() -> None:
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", "true", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    await process.communicate()


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shell = LocalShell(Path(directory), environment=EnvironmentFilter().environment(os.environ))
        header()
        await small(shell, rounds)
        await whole(Path(directory), rounds)
        await flow(shell, max(rounds // 20, 3))
        await endless(Path(directory))
        await parallel(shell)
        await shell.close()


async def small(shell: LocalShell, rounds: int) -> None:
    for text, goal in (("true", ""), ("/bin/true", ""), ("git --version", "")):
        times = await interleaved(
            {
                "ours": lambda text=text: ran(shell, text),
                "floor": sync(lambda text=text: plain(text)),
            },
            rounds,
        )
        report(text, times["ours"], times["floor"], goal)
    times = await interleaved({"ours": lambda: ran(shell, "true"), "floor": asyncio_true}, rounds)
    report("true, floor: asyncio", times["ours"], times["floor"], "<= 1.5x")
    times = await interleaved(
        {
            "ours": lambda: asyncio.gather(*(ran(shell, "true") for _ in range(20))),
            "floor": sync(lambda: plain_at_once("true", 20)),
        },
        max(rounds // 10, 3),
    )
    report("20 at once, each", times["ours"] / 20, times["floor"] / 20, "<= 1.5x")


async def whole(directory: Path, rounds: int) -> None:
    """The same as calls of a session: permission, log, undo and all."""
    (directory / "project").mkdir()
    session = Session(directory / "project", home=directory / "home")

    async def called(count: int) -> None:
        calls = (session.call("Bash", {"command": "true"}) for _ in range(count))
        for result in await asyncio.gather(*calls):
            assert result.ok, result.text

    times = await interleaved(
        {"ours": lambda: called(1), "floor": sync(lambda: plain("true"))}, rounds
    )
    report("true in a session", times["ours"], times["floor"], "<= 2.0x")
    times = await interleaved(
        {"ours": lambda: called(20), "floor": sync(lambda: plain_at_once("true", 20))},
        max(rounds // 10, 3),
    )
    report("20 at once in a session", times["ours"] / 20, times["floor"] / 20, "<= 1.5x")
    await session.close()


async def flow(shell: LocalShell, rounds: int) -> None:
    before = peak_memory_mb()
    times = await interleaved(
        {"ours": lambda: ran(shell, FLOW), "floor": sync(plain_flow)}, rounds, warm_up=1
    )
    extra = f"{peak_memory_mb() - before:.1f} MB more memory (< 40)"
    report("100 MB of output", times["ours"], times["floor"], "<= 1.6x", extra=extra)


async def endless(directory: Path) -> None:
    limits = ShellLimits(runaway_bytes=1_000_000_000)
    shell = LocalShell(
        directory, environment=EnvironmentFilter().environment(os.environ), limits=limits
    )
    before = resident_mb()
    running = await shell.start(ShellCommand(call_id="c", command="yes", cwd="/tmp"))
    await running.wait()
    assert running.end is not None
    size = os.stat(running.state.output_path).st_size
    print(
        f"1 GB of yes: ended by {running.end.how} after {running.end.duration_s:.2f} s, "
        f"{size:,} bytes on disk (limit {limits.max_file_bytes:,}), "
        f"{resident_mb() - before:.1f} MB more memory"
    )
    await shell.close()


async def parallel(shell: LocalShell) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    every = await asyncio.gather(*(ran(shell, f"sleep 0.5; echo {n}") for n in range(200)))
    assert [one.output(100).head for one in every] == [f"{n}\n" for n in range(200)]
    print(f"200 in parallel, half a second each: {loop.time() - began:.2f} s")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
