"""Confined commands of sessions: whose network they are in, one after the other and side by side."""

import asyncio
import os
import subprocess
import sys

import pytest

from handaxe import Session
from handaxe.process.netns import can_have_own_network
from handaxe.shell.sandbox.backend import find_backend
from handaxe.shell.sandbox.proxy import PORT

pytestmark = pytest.mark.skipif(
    find_backend().name != "bubblewrap" or not can_have_own_network(),
    reason="needs bubblewrap and leave to make a network",
)
WHERE = "readlink /proc/self/ns/net"
LISTENERS = "cat /proc/self/net/tcp"


def opened(tmp_path, name, **network):
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    settings = {"sandbox": {"enabled": True, "network": network}}
    return Session(project, home=tmp_path / name, settings=settings, allow=["Read(//proc/**)"])


async def said(session, command):
    result = await session.call("Bash", command=command)
    assert result.ok, result.text
    return result.text.splitlines()


@pytest.mark.proves("SH-7")
async def test_commands_one_after_the_other_are_lent_the_same_empty_network(tmp_path):
    async with opened(tmp_path, "home") as session:
        first, *_ = await said(session, WHERE)
        second, *_ = await said(session, WHERE)
        assert first == second != os.readlink("/proc/self/ns/net")
        devices = await said(session, "cat /proc/self/net/dev")
        assert [line.split(":")[0].strip() for line in devices if ":" in line] == ["lo"]


@pytest.mark.proves("SH-7")
async def test_commands_side_by_side_are_in_different_networks(tmp_path):
    async with opened(tmp_path, "home") as session:
        command = f"{WHERE}; sleep 0.2"
        both = await asyncio.gather(said(session, command), said(session, f"{command};"))
        assert both[0][0] != both[1][0]


@pytest.mark.proves("SH-7")
async def test_a_way_out_is_for_the_command_that_has_one(tmp_path):
    async with (
        opened(tmp_path, "one", allowedDomains=["localhost"]) as listed,
        opened(tmp_path, "two") as off,
    ):
        for session in (off, listed, off, listed, listed, off):
            lines = await said(session, LISTENERS)
            is_open = any(f"0100007F:{PORT:04X} 00000000:0000 0A" in line for line in lines)
            assert is_open == (session is listed)


IN_TURN = """
import os, socket
from handaxe.process.netns import NetworkNamespace
held = []
def here():
    # Held, so that its number cannot pass to another one.
    held.append(os.open("/proc/self/ns/net", os.O_RDONLY))
    return os.fstat(held[-1]).st_ino
outer, inner = socket.socketpair()
network = NetworkNamespace()
places = [here()]
for door in (None, inner.fileno(), None, None, inner.fileno(), inner.fileno()):
    network.begin(door, 47128)
    places.append(here())
print([places.index(place) for place in places])
"""


@pytest.mark.proves("SH-7")
def test_nobody_gets_a_network_that_had_a_way_out():
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN], check=False, capture_output=True, text=True
    )
    assert done.stdout == "[0, 0, 2, 3, 3, 5, 6]\n", done.stderr


async def test_what_listens_in_one_command_is_gone_in_the_next(tmp_path):
    serve = (
        "python3 -c 'import socket,time; s = socket.create_server((\"127.0.0.1\", 8123)); {then}'"
    )
    async with opened(tmp_path, "home") as session:
        await said(session, serve.format(then="") + f"; {serve.format(then='time.sleep(60)')} &")
        # No entry that listens; one that waits for its time to be up may be there.
        assert not any(" 0A " in line for line in await said(session, LISTENERS))
