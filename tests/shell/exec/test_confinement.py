"""The seam to a sandbox: what it makes of a program is what runs, and it hears of the end."""

import signal
import sys
import tempfile

import pytest
from tests.holding import open_descriptors

from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.shell import ConfinedCommand, ConfinementLevel, Confiner
from handaxe.shell.sandbox import seccomp
from handaxe.shell.sandbox.backend import SandboxBackend, find_landlock_problem
from handaxe.shell.sandbox.confiner import LocalConfiner, SandboxRequirements
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy


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

    def is_confining(self, command: str, *, unconfined: bool = False) -> bool:
        return True

    def confine(self, argv, *, cwd, env, unconfined=False, command=None) -> ConfinedCommand:
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

        return ConfinedCommand(
            argv=["/usr/bin/env", f"FENCE={file.fileno()}", *argv],
            env={**env, "ADDED": "yes"},
            pass_fds=(file.fileno(),),
            close=close,
        )


@pytest.mark.proves("SH-4")
async def test_a_confined_command_runs_as_it_was_confined(bench):
    fence = Fence()
    shell = bench.another(confiner=fence)
    before = open_descriptors()
    running = await bench.run("cat <&$FENCE; echo $ADDED; cd /usr", shell=shell, unconfined=True)
    assert running.output(100).head == "inside\nyes\n"
    assert running.end.cwd == "/usr"
    assert running.end.notes == ("It was kept from something.",)
    assert fence.asked == [
        ("cat <&$FENCE; echo $ADDED; cd /usr", True, str(bench.directory)),
    ]
    assert fence.closed == 1
    # At most the line to a warden that waits for the next command.
    assert open_descriptors() <= before + 2


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


@pytest.fixture
def by_landlock(bench, tmp_path):
    """A shell whose wardens confine commands by Landlock."""
    if find_landlock_problem(sys.executable) is not None:
        pytest.skip("needs Landlock")
    (tmp_path / "secret").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "secret/key").write_text("SECRET\n")
    policy = SandboxPolicy(
        roots=(str(tmp_path / "root"),),
        temp_directory=str(tmp_path / "temp"),
        aside_directory=str(tmp_path / "aside"),
        deny_read=(str(tmp_path / "secret"),),
    )
    confiner = LocalConfiner(
        lambda: SandboxRequirements(enabled=True),
        lambda: policy,
        means=SandboxBackend(name="landlock"),
    )
    return bench.another(confiner=confiner)


@pytest.mark.proves("SH-7")
async def test_a_wardens_child_confines_itself_by_landlock(bench, by_landlock, tmp_path):
    text = (
        f"echo in > file; cat file; echo out > {tmp_path}/out; cat {tmp_path}/secret/key;"
        " cat /proc/self/status; cd /usr"
    )
    running = await bench.run(text, shell=by_landlock, cwd=str(tmp_path / "root"))
    said = running.output(100_000).head
    assert said.startswith("in\n")
    assert "SECRET" not in said
    assert not (tmp_path / "out").exists()
    facts = dict(line.split(":\t") for line in said.splitlines() if ":\t" in line)
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert facts["CapBnd"] == facts["CapEff"] == "0" * 16
    # As without a sandbox: nothing of what a warden, which is Python, ignores or blocks.
    # (The two real-time signals that the C library keeps for itself are its own business.)
    free = await bench.said("grep '^Sig[IB]' /proc/self/status")
    own = dict(line.split(":\t") for line in free.splitlines())
    for name in ("SigBlk", "SigIgn"):
        assert (int(own[name], 16) ^ int(facts[name], 16)) & 0x7FFFFFFF == 0, name
    assert running.end.cwd == "/usr"


@pytest.mark.proves("SH-1", "SH-7")
async def test_a_command_under_landlock_inherits_nothing_and_leads_its_session(
    bench, by_landlock, tmp_path
):
    text = "ls /proc/self/fd; cut -d' ' -f6 /proc/self/stat; echo $$; readlink /proc/self/fd/0"
    running = await bench.run(text, shell=by_landlock, cwd=str(tmp_path / "root"))
    *fds, session, shell, stdin = running.output(1000).head.split()
    assert sorted(map(int, fds)) == [0, 1, 2, 3]
    assert (session, stdin) == (shell, "/dev/null")


async def test_a_command_under_landlock_ends_by_signals_and_is_stopped(
    bench, by_landlock, tmp_path
):
    running = await bench.run("kill -PIPE $$", shell=by_landlock, cwd=str(tmp_path / "root"))
    assert running.end.signal == signal.SIGPIPE
    running = await bench.start(
        "sleep 600 & sleep 600", shell=by_landlock, cwd=str(tmp_path / "root")
    )
    await running.stop()
    assert running.end.how == "stopped"


@pytest.mark.proves("SH-7")
async def test_a_plan_that_cannot_be_held_runs_nothing(bench, by_landlock, tmp_path, monkeypatch):
    monkeypatch.setattr(seccomp, "build_filter", lambda **_: b"\xff" * 16)
    running = await bench.run("echo ran", shell=by_landlock, cwd=str(tmp_path / "root"))
    assert running.end.exit_code == 126
    assert "the command was not run" in running.output(1000).head
