"""What is kept of what a command says."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.expected_types import require
from tests.waiting import HANG_S, until

from handaxe.shell.exec.capture import END_BYTES, FILE_FROM_BYTES, OutputCapture
from handaxe.shell.exec.local_shell import ShellLimits
from handaxe.shell.exec.output_quota import OutputQuota
from handaxe.text.redact import Redactor


@pytest.mark.proves("SH-3")
@given(pieces=st.lists(st.binary(min_size=1, max_size=80), max_size=40))
def test_totals_are_true_however_output_is_cut(pieces):
    capture = OutputCapture("/nonexistent/x", 1 << 20)
    for piece in pieces:
        capture.take(piece, len(piece))
    whole = b"".join(pieces)
    output = capture.output(1_000_000)
    assert output.total_bytes == len(whole)
    assert output.total_lines == len(whole.split(b"\n")) - (not whole or whole.endswith(b"\n"))


SECRET = b"ghp_Zx81kQpLm2Zx81kQpLm2"
MARKER = b"[redacted: GITHUB_TOKEN]"


@pytest.mark.proves("S14")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 23, 24, 25, 1000])
def test_no_secret_reaches_the_file_or_a_listener_however_output_is_cut(tmp_path, size):
    redactor = Redactor({"GITHUB_TOKEN": SECRET.decode()})
    capture = OutputCapture(str(tmp_path / "x"), 1 << 20, file_from_bytes=0, redactor=redactor)
    heard: list[bytes] = []
    capture.follow(heard.append)
    said = b"a" + SECRET + b"b" * 20 + SECRET + SECRET[:11]
    for begin in range(0, len(said), size):
        # What is let in from the other pipe meanwhile does not part the two halves.
        capture.take(b"-", 1, is_heard=False)
        piece = said[begin : begin + size]
        capture.take(bytearray(piece + b"not part of it"), len(piece))
        assert SECRET[:9] not in (tmp_path / "x").read_bytes()
    assert capture.received_bytes == len(said) + -(-len(said) // size)
    capture.close()
    expected = b"a" + MARKER + b"b" * 20 + MARKER + SECRET[:11]
    assert b"".join(heard) == expected
    kept = (tmp_path / "x").read_bytes()
    assert kept.count(MARKER) == 2
    assert kept.replace(b"-", b"") == expected
    assert capture.total_bytes == len(kept)
    assert capture.output(10_000).head == kept.decode()


def test_a_prompt_is_seen_although_its_last_letter_may_begin_a_secret():
    capture = OutputCapture("", 0, redactor=Redactor({"MY_KEY": "?Zx81kQpLm2"}))
    capture.take(b"Go on?", 6)
    assert capture.last_line() == "Go on?"
    capture.take(b"Zx81kQpLm", 9)
    assert capture.last_line() == "Go on"


@pytest.mark.proves("SH-3")
async def test_short_output_needs_no_file(bench):
    running = await bench.run("echo short")
    assert running.state.output_path == ""
    assert not (bench.directory / "tasks").exists()


@pytest.mark.proves("SH-3")
async def test_long_output_is_whole_in_the_file_and_has_two_ends_in_the_result(bench):
    running = await bench.run("seq 200000")
    output = running.output(10_000)
    assert len(output.head) + len(output.tail) <= 10_000
    assert output.head.startswith("1\n2\n")
    assert output.head.endswith("\n")
    assert output.tail.endswith("199999\n200000\n")
    expected = b"".join(b"%d\n" % n for n in range(1, 200001))
    assert Path(running.state.output_path).read_bytes() == expected
    assert (output.total_lines, output.total_bytes) == (200000, len(expected))
    assert output.kept_bytes == len(expected)


@pytest.mark.proves("SH-3")
@pytest.mark.parametrize(
    "size",
    [
        0,
        1,
        FILE_FROM_BYTES,
        FILE_FROM_BYTES + 1,
        END_BYTES - 1,
        END_BYTES,
        END_BYTES + 1,
        2 * END_BYTES,
        2 * END_BYTES + 1,
        3 * END_BYTES + 7,
        5 * END_BYTES,
    ],
)
@pytest.mark.parametrize("piece_size", [1000, 65536, 1 << 18])
def test_the_file_holds_everything_up_to_its_limit_and_both_ends_beyond(tmp_path, size, piece_size):
    limit = 3 * END_BYTES
    whole = bytes(97 + n % 26 if n % 80 else 10 for n in range(size))
    capture = OutputCapture(str(tmp_path / "tasks" / "x.output"), limit)
    for begin in range(0, size, piece_size):
        piece = whole[begin : begin + piece_size]
        capture.take(bytearray(piece + b"not part of it"), len(piece))
    capture.open_file()
    capture.close()
    kept = (tmp_path / "tasks" / "x.output").read_bytes()
    assert len(kept) <= limit
    output = capture.output(1 << 30)
    assert output.total_bytes == size
    if size <= limit - 256:
        assert kept == whole
        assert output.kept_bytes == size
    else:
        head, note, tail = kept.partition(b"\n[... ")
        assert note
        assert whole.startswith(head)
        assert whole.endswith(tail.partition(b"...]\n")[2])
    assert whole.decode().startswith(output.head)
    assert whole.decode().endswith(output.tail)
    assert (tmp_path / "tasks" / "x.output").stat().st_mode & 0o777 == 0o600


@pytest.mark.proves("SH-5")
async def test_endless_output_stays_under_the_limit_on_disk_and_is_ended_at_last(bench):
    shell = bench.another(ShellLimits(max_file_bytes=1 << 20, runaway_bytes=50_000_000))
    running = await bench.start("yes", shell=shell)
    running.let_go()
    largest = 0
    while not await running.wait(0.01):
        path = Path(running.state.output_path)
        largest = max(largest, path.stat().st_size)
    assert max(largest, path.stat().st_size) <= 1 << 20
    assert (running.end.how, running.state.status) == ("output_cap", "killed")
    assert running.output(10).total_bytes > 50_000_000


async def test_a_disk_that_takes_nothing_costs_the_file_and_not_the_result(bench):
    (bench.directory / "tasks").write_text("a file where a directory should be")
    running = await bench.run("seq 50000; exit 3")
    assert running.end.exit_code == 3
    assert running.output(1000).tail.endswith("50000\n")
    assert running.state.output_path == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_a_full_disk_is_not_an_error(tmp_path):
    capture = OutputCapture(str(tmp_path / "x"), 1 << 20)
    capture.take(b"before", 6)
    capture.open_file()
    os.dup2(full := os.open("/dev/full", os.O_WRONLY), require(capture._file))
    os.close(full)
    capture.take(b"more" * 10, 40)
    capture.close()
    assert capture.output(100).head == "before" + "more" * 10
    assert capture.output(100).kept_bytes == 6


async def test_binary_output_is_named_and_kept(bench):
    running = await bench.run("head -c 300 /dev/zero; printf 'x\\377\\n'")
    output = running.output(1000)
    assert output.is_binary
    assert Path(running.state.output_path).stat().st_size == 303


async def test_followers_hear_every_byte_until_they_leave(bench):
    running = await bench.start("sleep 0.05; for i in 1 2 3; do echo $i; sleep 0.05; done")
    heard: list[bytes] = []
    some: list[bytes] = []
    running.follow(heard.append)
    leave = running.follow(lambda piece: (some.append(piece), leave()))
    await running.wait()
    assert b"".join(heard) == b"1\n2\n3\n"
    assert len(some) == 1
    leave()


async def test_the_tail_is_what_was_said_last(bench):
    running = await bench.run("seq 100000")
    assert running.tail(13) == "99999\n100000\n"
    assert running.tail(0) == ""
    assert (await bench.run("echo short")).tail(1000) == "short\n"


@pytest.mark.proves("SH-5")
async def test_all_output_of_a_session_together_has_a_limit_and_old_files_make_way(bench):
    limits = ShellLimits(max_file_bytes=1 << 20, max_session_bytes=3 << 20)
    shell = bench.another(limits)
    lives = await bench.start("seq 100000; sleep 600", shell=shell)
    lives.let_go()
    await until(lambda: lives.output(10).total_bytes > 500_000)
    paths = []
    for _ in range(6):
        ended = await bench.start("yes | head -c 900000", shell=shell)
        assert await ended.wait(HANG_S)
        paths.append(Path(ended.state.output_path))
        held = sum(path.stat().st_size for path in paths[0].parent.iterdir())
        assert held <= (3 << 20) + 2 * END_BYTES
    assert paths[-1].stat().st_size == 900_000
    assert not paths[0].exists()
    assert Path(lives.state.output_path).exists()
    await lives.stop()


async def test_where_nothing_can_make_way_both_ends_are_kept_and_that_is_told(bench):
    shell = bench.another(ShellLimits(max_file_bytes=4 << 20, max_session_bytes=1 << 20))
    running = await bench.start("yes no | head -c 3000000; echo END; sleep 600", shell=shell)
    running.let_go()
    await until(lambda: running.tail(10).endswith("END\n"))
    assert running.state.output_is_cut
    await running.stop()
    kept = Path(running.state.output_path).read_bytes()
    assert len(kept) <= (1 << 20) + END_BYTES + 256
    assert kept.startswith(b"no\nno\n")
    assert b"bytes of output were left out here" in kept
    assert kept.endswith(b"END\n")


def test_a_session_that_goes_on_counts_what_is_there(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.output").write_bytes(b"x" * 300)
        os.utime(tmp_path / f"{number}.output", (number, number))
    written = []
    room = OutputQuota(str(tmp_path), 1_500, on_written=written.append)
    assert room.take(200) == 200
    assert len(list(tmp_path.iterdir())) == 4
    room.enter(str(tmp_path / "0.output"))
    assert room.take(500) == 500
    assert {path.name for path in tmp_path.iterdir()} == {"0.output", "2.output", "3.output"}
    assert written == [200, 500]
