"""Standard streams as others hand them over: that do not wait, cannot be read, or are full."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.waiting import HANG_S, blocked_until

CALL = b'{"id": "1", "tool": "Read", "input": {"file_path": "a.txt"}}\n'
QUESTION = b'{"id": "1", "tool": "Bash", "input": {"command": "ls"}}\n'
STREAM = ("--input-format", "stream-json", "--output-format", "stream-json")


def start(*words: str, stdin: int, stdout: int, **variables: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "handaxe", *words],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **variables},
    )


@pytest.fixture
def wide(project: Path) -> Path:
    """A project with a file whose result is longer than a pipe is wide."""
    (project / "a.txt").write_text("".join(f"{'x' * 90} {i}\n" for i in range(1_500)))
    return project


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_does_not_wait_is_written_whole(wide: Path, unbuffered: str):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    variables = {"PYTHONUNBUFFERED": unbuffered}
    words = ("run", "--root", str(wide))
    with start(*words, stdin=subprocess.PIPE, stdout=writer, **variables) as process:
        os.close(writer)
        assert process.stdin is not None
        process.stdin.write(CALL * 3)
        process.stdin.close()
        with open(reader, "rb") as output:
            # What is taken late is what a pipe that does not wait would lose.
            blocked_until(lambda: _waiting_bytes(output.fileno()) > 60_000)
            results = [json.loads(line) for line in output]
        assert process.wait(HANG_S) == 0
    assert [result["ok"] for result in results] == [True] * 3


@pytest.mark.parametrize("words", [("run",), ("explain", "--jsonl")])
def test_input_that_does_not_wait_is_waited_for(project: Path, words: tuple[str, ...]):
    (project / "a.txt").write_text("x\n")
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    words = (*words, "--root", str(project))
    with start(*words, stdin=reader, stdout=subprocess.PIPE) as process:
        os.close(reader)
        assert process.stdout is not None
        with open(writer, "wb", buffering=0) as lines:
            for _ in range(2):
                lines.write(CALL if words[0] == "run" else QUESTION)
                assert json.loads(process.stdout.readline())["id"] == "1"
        assert process.wait(HANG_S) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("explain", "--jsonl"),
        ("-p", "--model", "scripted:x.json"),
        ("-p", *STREAM, "--verbose", "--model", "scripted:x.json"),
    ],
)
def test_input_that_cannot_be_read_is_said(project: Path, words: tuple[str, ...]):
    (project / "x.json").write_text("[]")
    with open(project / "only-for-writing", "wb") as stdin:
        process = subprocess.run(
            [sys.executable, "-m", "handaxe", *words],
            stdin=stdin,
            capture_output=True,
            timeout=HANG_S,
            check=False,
            cwd=project,
        )
    assert (process.returncode, process.stdout) == (2, b"")
    assert b"Cannot read the input" in process.stderr
    assert b"Traceback" not in process.stderr


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("words", [("run",), ("explain", "--jsonl")])
def test_a_command_whose_reader_is_slow_can_be_ended(
    wide: Path, words: tuple[str, ...], sent: signal.Signals, code: int
):
    (wide / "lines").write_bytes((CALL if words == ("run",) else QUESTION) * 3_000)
    words = (*words, "--root", str(wide))
    with (
        open(wide / "lines", "rb") as lines,
        start(*words, stdin=lines.fileno(), stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        unread = process.stdout.fileno()
        blocked_until(lambda: _waiting_bytes(unread) > 60_000)
        process.send_signal(sent)
        assert process.wait(HANG_S) == code


def _waiting_bytes(fd: int) -> int:
    """How much stands in a pipe."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("run", "--help")])
def test_a_full_device_is_said_by_the_shortest_answers_too(words: tuple[str, ...]):
    with (
        open("/dev/full", "wb") as full,
        start(*words, stdin=subprocess.DEVNULL, stdout=full.fileno()) as process,
    ):
        _, told = process.communicate(timeout=HANG_S)
    assert process.returncode == 1
    assert told == b"handaxe: Cannot write standard output (No space left on device).\n"


def test_a_mark_in_front_of_the_first_line_is_no_part_of_it(project: Path):
    (project / "a.txt").write_text("x\n")
    (project / "lines").write_bytes(b"\xef\xbb\xbf" + CALL + b"\n")
    words = ("run", "--root", str(project), str(project / "lines"))
    with start(*words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        output, _ = process.communicate(timeout=HANG_S)
    called, empty = map(json.loads, output.splitlines())
    assert called["ok"]
    assert (empty["code"], empty["text"].partition(".")[0]) == (
        "call.bad_line",
        "The line is empty",
    )
