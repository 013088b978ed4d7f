"""What confinement costs a command: `true` bare, under bubblewrap, under Landlock, with the proxy.

Medians taken in turns, so that noise hits all alike; `--best` takes the best of each instead.
"bubblewrap alone" is the program with its isolation and nothing of ours, the floor of that line.
The last lines are calls of Bash in sessions, without the sandbox, with it, and with listed hosts. Goal:
at most 8 ms between the first two. Only there networks are lent: the lines above start each alone.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import tempfile

import msgspec
from measure import interleaved, sync

from handaxe import Session
from handaxe.app.services.sandbox import build_confiner, build_sandbox_policy
from handaxe.app.session import get_parts
from handaxe.shell.sandbox.backend import SandboxBackend, find_backend
from handaxe.shell.sandbox.bubblewrap import ISOLATION, KERNEL_FILES
from handaxe.shell.sandbox.confiner import LocalConfiner, SandboxRequirements

ARGV = ["/bin/bash", "-c", "true"]


def contender(confiner: LocalConfiner | None, root: str):
    env = dict(os.environ)

    def work() -> None:
        if confiner is None:
            subprocess.run(
                ARGV, capture_output=True, check=True, cwd=root, env=env, stdin=subprocess.DEVNULL
            )
            return
        confined = confiner.confine(ARGV, cwd=root, env=env)
        subprocess.run(
            confined.argv, capture_output=True, check=True, cwd=root, env=confined.env,
            pass_fds=confined.pass_fds, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        confined.close()

    return sync(work)


def fill(root: str, files: int) -> None:
    for number in range(files // 100):
        directory = f"{root}/d{number % 40}/e{number}"
        os.makedirs(directory, exist_ok=True)
        for name in range(100):
            open(f"{directory}/{name}.txt", "w").close()


def called(session: Session):
    async def work() -> None:
        result = await session.call("Bash", {"command": "true"})
        assert result.ok, result.text

    return work


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--best", action="store_true", help="the best of each, not the median")
    parser.add_argument("--files", type=int, default=0, help="how many files the project holds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        root = f"{top}/project"
        os.makedirs(root)
        subprocess.run(["git", "init", "-q", root], check=True)
        fill(root, arguments.files)
        session = Session(root, home=f"{top}/home", settings={"sandbox": {"enabled": True}})
        session_context = get_parts(session).session_context
        policy = build_sandbox_policy(
            get_parts(session).configuration, session.workdir, get_parts(session).session_context.policy(),
            temp_directory=f"{top}/t", aside_directory=f"{top}/a",
        )  # fmt: skip
        listed = msgspec.structs.replace(policy, network="listed", allowed_domains=("localhost",))
        program = find_backend().program
        alone = [
            program,
            *ISOLATION,
            "--unshare-net",
            "--ro-bind",
            "/",
            "/",
            *KERNEL_FILES,
            "--",
            *ARGV,
        ]
        contenders = {
            "bare": contender(None, root),
            "bubblewrap alone": sync(
                lambda: subprocess.run(
                    alone, capture_output=True, check=True, stdin=subprocess.DEVNULL
                )
            ),
            "bubblewrap": contender(build_confiner(session_context), root),
            "landlock": contender(
                LocalConfiner(
                    lambda: SandboxRequirements(enabled=True),
                    lambda: policy,
                    means=SandboxBackend(name="landlock"),
                ),
                root,
            ),
            "listed hosts": contender(
                LocalConfiner(lambda: SandboxRequirements(enabled=True), lambda: listed), root
            ),
        }
        print(find_backend())
        pick = min if arguments.best else statistics.median
        table(await interleaved(contenders, arguments.rounds, pick=pick))
        free = Session(root, home=f"{top}/other")
        hosts = {"enabled": True, "network": {"allowedDomains": ["localhost"]}}
        reaching = Session(root, home=f"{top}/third", settings={"sandbox": hosts})
        sessions = {
            "session": called(free),
            "session, confined": called(session),
            "session, listed": called(reaching),
        }
        table(await interleaved(sessions, arguments.rounds, pick=pick))
        for one in (free, session, reaching):
            await one.close()


def table(found: dict[str, float]) -> None:
    floor = next(iter(found.values()))
    for name, seconds in found.items():
        print(f"{name:18} {seconds * 1e3:8.2f} ms   +{(seconds - floor) * 1e3:6.2f} ms")


asyncio.run(main())
