"""What confined commands of a session read, tried for real, and what they are told."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from handaxe import Session
from handaxe.app.session import get_parts
from handaxe.shell.sandbox.backend import find_backend

pytestmark = pytest.mark.skipif(
    find_backend().name == "none", reason="nothing can be confined here"
)
CANARY = "CANARY"
WEAK = {"bwrapPath": "/bin/false"}
"""Leaves only Landlock."""


def reading(path):
    """A command of which nobody knows beforehand what it reads."""
    return f"/usr/bin/python3 -c 'print(open(\"{path}\").read())'"


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A home and another project, each with a canary."""
    for place in ("home", "other"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "canary").write_text(CANARY)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return [str(tmp_path / place / "canary") for place in ("home", "other")]


def opened(project, sandbox=None, **more):
    return Session(project, settings={"sandbox": {"enabled": True, **(sandbox or {})}}, **more)


async def run(session, command, **more):
    return await session.call("Bash", command=command, **more)


@pytest.mark.proves("SH-7")
@pytest.mark.parametrize("means", [{}, WEAK], ids=["strong", "weak"])
async def test_a_program_reads_nothing_of_other_projects_and_of_the_home(project, outside, means):
    async with opened(project, means) as session:
        for path in outside:
            result = await run(session, reading(path))
            assert result.decision.verdict == "allow"
            assert CANARY not in result.text
            assert f"cannot read {path} unless sandbox.filesystem.allowRead" in result.text
            named = await run(session, f"cat {path}")
            assert (named.decision.verdict, CANARY in named.text) == ("allow", False)


@pytest.mark.proves("SH-7")
@pytest.mark.parametrize("means", [{}, WEAK], ids=["strong", "weak"])
@pytest.mark.parametrize("auto", [True, False])
async def test_nobody_inside_reads_the_data_of_handaxe(project, means, auto):
    async with opened(
        project, {**means, "autoAllowBashIfSandboxed": auto}, allow=["Bash"]
    ) as session:
        (project / "a").write_text(CANARY)
        await session.call("Read", file_path="a")
        data = get_parts(session).session_context.data_home
        (data / "packs").mkdir()
        (data / "packs/one").write_text(CANARY)
        result = await run(session, f"grep -rs CANAR[Y] {data}; ls {data}/packs && echo LISTED")
        assert CANARY not in result.text
        assert "LISTED" not in result.text or means == WEAK
        assert (data / "packs/one").read_text() == CANARY


async def test_output_that_was_kept_can_be_searched(project):
    async with opened(project) as session:
        long = await run(session, "seq 1 200000; echo NEEDLE")
        path = long.data["rawOutputPath"]
        assert (await run(session, f"grep NEEDLE {path}")).data["stdout"] == "NEEDLE"


@pytest.mark.parametrize("named", ["file", "directory", "everything"])
async def test_settings_show_more(project, outside, named):
    path = outside[1]
    shown = {"file": path, "directory": path.removesuffix("/canary"), "everything": "/"}[named]
    async with opened(project, {"filesystem": {"allowRead": [shown]}}) as session:
        result = await run(session, reading(path))
        # What is below /tmp is never seen in a view of the whole machine.
        assert CANARY in result.text or (named == "everything" and path.startswith("/tmp"))
        assert (await run(session, f"cat {path}")).decision.verdict == "ask"


async def test_what_is_denied_stays_hidden_where_more_is_shown(project, outside):
    path = outside[1]
    files = {"allowRead": [path.removesuffix("/canary")], "denyRead": [path]}
    async with opened(project, {"filesystem": files}) as session:
        assert CANARY not in (await run(session, reading(path))).text


async def test_a_sandbox_that_leaves_files_out_answers_for_no_program(project, outside):
    async with opened(project, {"filesystem": {"disabled": True}}) as session:
        result = await run(session, reading(outside[1]))
        assert (result.code, CANARY in result.text) == ("permission.asked", False)
        assert (await run(session, "ls")).ok


@pytest.mark.skipif(find_backend().name != "bubblewrap", reason="trials need bubblewrap")
async def test_a_trial_reads_no_more_than_the_command(project, outside):
    (project / "a").write_text("mine")
    async with opened(project) as session:
        for path in outside:
            command = f"{reading(path)}; cat a; echo new > made"
            result = await run(session, command, dry_run=True)
            assert CANARY not in result.text
            assert "mine" in result.text
            assert result.data["changedFiles"] == [f"{project}/made"]


@pytest.mark.proves("PM-3")
@pytest.mark.parametrize(
    ("sandbox", "command", "verdict", "confined"),
    [
        ({"enabled": True}, "make", "allow", True),
        ({"enabled": True}, "cat /etc/hosts", "ask", True),
        ({"enabled": True, "autoAllowBashIfSandboxed": False}, "make", "ask", True),
        ({"enabled": True, "excludedCommands": ["make"]}, "make", "ask", False),
        ({"enabled": False}, "make", "ask", None),
    ],
)
def test_explain_knows_the_sandbox(project, sandbox, command, verdict, confined):
    words = ("explain", command, "--settings", json.dumps({"sandbox": sandbox}))
    start = [sys.executable, "-m", "handaxe"]

    def said(*more):
        return subprocess.run(
            [*start, *words, *more], cwd=project, capture_output=True, text=True, check=True
        ).stdout

    answer = json.loads(said("--json"))
    assert answer["verdict"] == verdict
    assert answer.get("sandbox", {}).get("confined") is confined
    shown = said()
    assert ("inside the sandbox (" in shown) is (confined is True)
    assert ("outside the sandbox" in shown) is (confined is False)


@pytest.mark.parametrize("auto", [True, False])
@pytest.mark.parametrize("is_activated", [True, False])
async def test_a_virtual_environment_below_the_temporary_directory_works(
    project, monkeypatch, auto, is_activated
):
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        subprocess.run(
            ["/usr/bin/python3", "-m", "venv", "--without-pip", f"{place}/venv"], check=True
        )
        (Path(place) / "beside").write_text(CANARY)
        monkeypatch.setenv("PATH", f"{place}/venv/bin:/usr/bin:/bin")
        monkeypatch.delenv("VIRTUAL_ENV", raising=False)
        if is_activated:
            monkeypatch.setenv("VIRTUAL_ENV", f"{place}/venv")
        options = {"autoAllowBashIfSandboxed": auto}
        async with opened(project, options, allow=["Bash"]) as session:
            result = await run(session, "python -c 'import sys; print(sys.prefix)'")
            assert result.text.splitlines()[0] == f"{place}/venv", result.text
            written = await run(session, f"touch {place}/venv/new; cat {place}/beside")
            assert CANARY not in written.text
        assert not (Path(place) / "venv" / "new").exists()
