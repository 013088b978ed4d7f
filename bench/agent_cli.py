"""The whole agent as a process, against a model server on loopback.

    uv run python bench/agent_cli.py              # 5 rounds
    uv run python bench/agent_cli.py --rounds 3 --files 2000

Each round is one `handaxe -p`: the time from spawning it to its first request, and from each answer
with a call to the request that carries the result. Beside them stand floors taken in the same round:
a Python that only imports asyncio, and `rg` on the same tree. Resident memory is the process's peak.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOALS = {
    "spawn to first request": "300 ms",
    "unknown tool": "5 ms",
    "read 2,000 lines": "12 ms",
    "write 10 KB": "10 ms",
    "edit in 10 KB": "8 ms",
    "grep rare": "1.15 x rg",
    "resident memory": "80 MB",
}


def calls(root: Path) -> list[tuple[str, str, dict]]:
    """What the server asks for, in order; unmeasured ones have no name."""
    text = "line of text, about fifty characters long, really\n" * 200
    return [
        ("", "Glob", {"pattern": "*.txt"}),
        ("unknown tool", "Nope", {}),
        ("", "Read", {"file_path": str(root / "small.txt")}),
        ("read 2,000 lines", "Read", {"file_path": str(root / "long.txt")}),
        ("", "Write", {"file_path": str(root / "first.txt"), "content": "x"}),
        ("write 10 KB", "Write", {"file_path": str(root / "new.txt"), "content": text}),
        ("edit in 10 KB", "Edit", {"file_path": str(root / "new.txt"), "old_string": text[-120:-50],
                                   "new_string": "changed\n"}),
        ("grep rare", "Grep", {"pattern": "needle_in_it"}),
    ]  # fmt: skip


def answer(number: int, call: tuple[str, str, dict] | None) -> bytes:
    """One streamed response of the Messages API."""
    events: list[dict] = [{"type": "message_start", "message": {
        "id": f"m{number}", "type": "message", "role": "assistant", "model": "x", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1}}}]  # fmt: skip
    if call is None:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    else:
        block = {"type": "tool_use", "id": f"c{number}", "name": call[1], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[2])}
    events += [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "usage": {"output_tokens": 1},
         "delta": {"stop_reason": "end_turn" if call is None else "tool_use",
                   "stop_sequence": None}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


class Server:
    """Answers with one call after the other, and notes when requests come."""

    def __init__(self, wanted: list[tuple[str, str, dict]]):
        self.wanted = wanted
        self.came: list[float] = []
        self.sent: list[float] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
                await reader.readexactly(int(length))
                self.came.append(time.perf_counter())
                number = len(self.sent)
                call = self.wanted[number] if number < len(self.wanted) else None
                body = answer(number, call)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                    b"content-length: %d\r\n\r\n" % len(body) + body
                )
                await writer.drain()
                self.sent.append(time.perf_counter())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def one_round(root: Path, home: Path) -> dict[str, float]:
    """Every line once, in milliseconds; memory in MB."""
    for name in ("new.txt", "first.txt"):
        (root / name).unlink(missing_ok=True)
    wanted = calls(root)
    server = Server(wanted)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    env = {
        **os.environ, "HANDAXE_HOME": str(home), "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    words = ["-m", "handaxe", "-p", "go", "--model", "claude-x", "--permission-mode", "acceptEdits"]
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=root, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    peak = asyncio.ensure_future(watch_memory(process.pid))
    out, errors = await asyncio.wait_for(process.communicate(), 120)
    peak.cancel()
    listening.close()
    if out != b"Done.\n":
        raise SystemExit(f"the agent did not finish: {out!r} {errors.decode()}")
    took = {"spawn to first request": (server.came[0] - began) * 1000}
    for number, (name, *_) in enumerate(wanted):
        if name:
            took[name] = (server.came[number + 1] - server.sent[number]) * 1000
    took["resident memory"] = peak_mb[process.pid]
    took |= floors(root)
    return took


peak_mb: dict[int, float] = {}


async def watch_memory(pid: int) -> None:
    """The peak of a process, looked at until it ends."""
    while True:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                peak_mb[pid] = int(line.split()[1]) / 1024
        await asyncio.sleep(0.02)


def floors(root: Path) -> dict[str, float]:
    """The same machine without us."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
    python = (time.perf_counter() - began) * 1000
    rg = shutil.which("rg")
    began = time.perf_counter()
    if rg is not None:
        subprocess.run([rg, "-l", "needle_in_it", str(root)], check=False, capture_output=True)
    return {"floor: python + asyncio": python, "floor: rg": (time.perf_counter() - began) * 1000}


def make_tree(root: Path, files: int) -> None:
    """A project to work in."""
    line = "some words of an ordinary source file, number %d\n"
    for number in range(files):
        folder = root / f"part{number % 50}"
        folder.mkdir(exist_ok=True)
        text = "".join(line % at for at in range(40))
        (folder / f"file{number}.py").write_text(text)
    (root / "part0" / "rare.py").write_text("needle_in_it = 1\n")
    (root / "small.txt").write_text("small\n")
    (root / "long.txt").write_text("".join(line % at for at in range(2000)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=5000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root, home = Path(place, "project"), Path(place, "home")
        root.mkdir()
        make_tree(root, given.files)
        rounds = [asyncio.run(one_round(root, home)) for _ in range(given.rounds + 1)][1:]
    for name in rounds[0]:
        median = statistics.median(one[name] for one in rounds)
        best = min(one[name] for one in rounds)
        unit = "MB" if name == "resident memory" else "ms"
        print(f"{name:26} {median:8.1f} {unit}   best {best:8.1f}   goal {GOALS.get(name, '-')}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"CPU of all children: {(used.ru_utime + used.ru_stime) / (given.rounds + 1):.2f} s a round"
    )


if __name__ == "__main__":
    main()
