"""Commands that try to leave something behind, by the thousand; nothing may be left.

    python bench/shell_hostile.py 2000 [seed]

Each command bears a word of its own in its arguments; after its end no process may have it. Ends
are by themselves, by a stop, or by the close of their shell. Also looks at descriptors, memory and
zombies over the whole run. Exit code 1 if anything stayed.
"""

import asyncio
import os
import random
import secrets
import sys
import tempfile
import time
from pathlib import Path

from measure import resident_mb

from handaxe.contract.ports.shell import ShellCommand
from handaxe.shell.exec.environment.command_environment import EnvironmentFilter
from handaxe.shell.exec.local_shell import LocalShell

STAY = "sleep 600.{mark}"
WAYS = (
    STAY + " &",
    STAY + " & disown -a",
    "nohup " + STAY + " >/dev/null 2>&1 &",
    "setsid " + STAY + " &",
    "setsid -f " + STAY,
    "( ( setsid -f " + STAY + " ) & )",
    "(trap '' TERM HUP INT; " + STAY + ") &",
    "(trap '' TERM HUP INT; while :; do :; done; : {mark}) &",
    'setsid -f bash -c \'trap "" TERM; ' + STAY + " & wait'",
    "set -m; " + STAY + " &",
    "coproc " + STAY,
    STAY + " | " + STAY + " &",
    ": < <(" + STAY + ")",
    STAY + " & kill -STOP $!",
    "env -i setsid -f " + STAY,
    STAY + " >&- 2>&- &",
    STAY + " & exec true",
    STAY + " & kill -9 $$",
    "f() {{ [ $1 -gt 4 ] && exec " + STAY + "; f $(($1+1)) & f $(($1+1)) & wait; }}; f 1 &",
    "for i in 1 2 3 4 5 6 7 8; do setsid -f " + STAY + "; done",
    "exec 5>&1; setsid -f " + STAY + " 1>&5",
    "python3 -I -S -c 'import os,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(600)' {mark}",
    "python3 -I -S -c 'import os,time\nif os.fork(): os._exit(0)\nfor _ in range(10**6):\n  if os.fork(): os._exit(0)\n  os.setsid()' {mark}",
)


async def attempt(shell: LocalShell, text: str, mark: str, end: str) -> None:
    text = text.format(mark=mark)
    if end != "exit":
        text += "\nsleep 601." + mark
    running = await shell.start(ShellCommand(call_id="c", command=text, cwd="/"))
    if end == "stop":
        await running.wait(random.uniform(0, 0.05))
        await running.stop()
    elif end == "close":
        await running.wait(random.uniform(0, 0.05))
        await shell.close()
    assert await running.wait(30), text


def living(words: set[str]) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                arguments = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if any(word in arguments for word in words):
                found.append(f"{process.name}: {arguments!r}")
    return found


async def main(count: int = 150, seed: int = 0, at_once: int = 10) -> int:
    random.seed(seed)
    left = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        environment = EnvironmentFilter().environment(os.environ)

        def shell() -> LocalShell:
            return LocalShell(Path(directory), environment=environment)

        shared = shell()
        await attempt(shared, "true", "none", "exit")
        fds, memory = len(os.listdir("/proc/self/fd")), resident_mb()
        for first in range(0, count, at_once):
            marks = {f"{secrets.randbits(60)}" for _ in range(min(at_once, count - first))}
            tries = []
            for mark in marks:
                end = random.choice(("exit", "stop", "close"))
                own = shell() if end == "close" else shared
                tries.append(attempt(own, random.choice(WAYS), mark, end))
            await asyncio.gather(*tries)
            for survivor in living(marks):
                left += 1
                print("LEFT", survivor)
        await shared.close()
        seconds = time.monotonic() - began
        print(
            f"{count} hostile commands in {seconds:.1f} s: {left} survivors, "
            f"{len(os.listdir('/proc/self/fd')) - fds:+d} descriptors, "
            f"{resident_mb() - memory:+.1f} MB"
        )
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*map(int, sys.argv[1:]))))
