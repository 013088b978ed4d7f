"""A program that drives handaxe: the open SDK, or lines of JSON by hand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.expected_types import require


@pytest.fixture
def cli(tmp_path: Path) -> Path:
    """The command as an executable file, as an SDK wants it."""
    path = tmp_path / "bin" / "handaxe"
    path.parent.mkdir()
    path.write_text(
        f"#!{sys.executable}\nimport sys\nfrom handaxe.__main__ import main\nsys.exit(main())\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def script(tmp_path: Path):
    """Writes turns of a scripted model; the name to choose it by."""

    def write(*turns: dict, **options) -> str:
        path = tmp_path / "script.jsonl"
        lines = [options] if options else []
        path.write_text("".join(json.dumps(line) + "\n" for line in (*lines, *turns)))
        return f"scripted:{path}"

    return write


class Client:
    """The other end of the stream, by hand."""

    def __init__(self, *words: str, cwd: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "handaxe", "--input-format", "stream-json",
             "--output-format", "stream-json", "--verbose", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=cwd, env={**os.environ},
        )  # fmt: skip
        self.input = require(self.process.stdin)
        self.output = require(self.process.stdout)
        self.errors = require(self.process.stderr)
        self.seen: list[dict] = []

    def send(self, message: dict) -> None:
        self.input.write(json.dumps(message).encode() + b"\n")
        self.input.flush()

    def say(self, text: str, **more) -> None:
        self.send({"type": "user", "message": {"role": "user", "content": text}, **more})

    def ask(self, subtype: str, request_id: str = "req_1", **fields) -> dict:
        """A control request and its answer."""
        request = {"subtype": subtype, **fields}
        self.send({"type": "control_request", "request_id": request_id, "request": request})
        return self.until("control_response")["response"]

    def answer(self, request: dict, response: dict) -> None:
        wrapped = {"subtype": "success", "request_id": request["request_id"], "response": response}
        self.send({"type": "control_response", "response": wrapped})

    def until(self, kind: str, subtype: str | None = None) -> dict:
        """The next message of a type; all before it are in `seen`."""
        while line := self.output.readline():
            message = json.loads(line)
            self.seen.append(message)
            if message["type"] == kind and subtype in (None, message.get("subtype")):
                return message
        raise AssertionError(f"no {kind}; {self.errors.read().decode()}")

    def close(self) -> int:
        self.input.close()
        for line in self.output:
            self.seen.append(json.loads(line))
        code = self.process.wait(30)
        self.stderr = self.errors.read().decode()
        self.output.close()
        self.errors.close()
        return code


@pytest.fixture
def connect(project: Path):
    """Opens clients and leaves none behind."""
    opened: list[Client] = []

    def open_client(*words: str) -> Client:
        opened.append(Client(*words, cwd=project))
        return opened[-1]

    yield open_client
    for client in opened:
        if client.process.poll() is None:
            client.process.kill()
            client.process.wait()
        for pipe in (client.input, client.output, client.errors):
            if not pipe.closed:
                pipe.close()
