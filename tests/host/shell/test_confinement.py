"""The seam to a sandbox: what it makes of a program is what runs, and it hears of the end."""

import os
import tempfile

import pytest

from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.shell import Confined, ConfinementLevel, Confiner


class Impossible(ToolFault):
    """Asked for and not to be had."""

    code = "sandbox.impossible"


class Fence(Confiner):
    """Runs everything behind `env`, with a file that only the program can read."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, bool, str]] = []
        self.closed = 0

    @property
    def level(self) -> ConfinementLevel:
        return ConfinementLevel(means="none", network="open", files="open")

    def will_confine(self, command: str, *, unconfined: bool = False) -> bool:
        return True

    def confine(self, argv, *, cwd, env, unconfined=False, command=None) -> Confined:
        if command == "impossible":
            raise Impossible("There is no sandbox here.")
        self.asked.append((command, unconfined, cwd))
        file = tempfile.TemporaryFile()  # noqa: SIM115 - open until `close`
        file.write(b"inside\n")
        file.seek(0)

        def close() -> tuple[str, ...]:
            file.close()
            self.closed += 1
            return ("It was kept from something.",)

        return Confined(
            argv=["/usr/bin/env", f"FENCE={file.fileno()}", *argv],
            env={**env, "ADDED": "yes"},
            pass_fds=(file.fileno(),),
            close=close,
        )


@pytest.mark.proves("SH-4")
async def test_a_confined_command_runs_as_it_was_confined(bench):
    fence = Fence()
    shell = bench.another(confiner=fence)
    before = len(os.listdir("/proc/self/fd"))
    running = await bench.run("cat <&$FENCE; echo $ADDED; cd /usr", shell=shell, unconfined=True)
    assert running.output(100).head == "inside\nyes\n"
    assert running.end.cwd == "/usr"
    assert running.end.notes == ("It was kept from something.",)
    assert fence.asked == [
        ("cat <&$FENCE; echo $ADDED; cd /usr", True, str(bench.directory)),
    ]
    assert fence.closed == 1
    # At most the line to a warden that waits for the next command.
    assert len(os.listdir("/proc/self/fd")) <= before + 2


async def test_a_command_that_cannot_be_confined_does_not_run(bench):
    shell = bench.another(confiner=Fence())
    with pytest.raises(Impossible):
        await bench.start("impossible", shell=shell)


async def test_a_confinement_is_closed_where_the_command_could_not_start(bench):
    fence = Fence()
    with pytest.raises(ToolFault):
        await bench.start("true", shell=bench.another(confiner=fence), cwd="/nowhere")
    assert fence.closed == 1


async def test_a_large_environment_reaches_the_command(bench):
    assert await bench.said("echo ${#BIG}", env={"BIG": "x" * 100_000}) == "100000\n"
