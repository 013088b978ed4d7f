"""How soon a model's first request leaves, with each wire and with the vendors' own clients.

    uv run python bench/model_start.py            # 7 rounds, interleaved
    uv run python bench/model_start.py --rounds 3 --without-sdks

Each line is a new process against a server on loopback: the time from the first line of the script
(asyncio is loaded by then, as in every session) to the arrival of the request, and from one answer to
the next request on the same connection. The median counts; ratios are against the direct wire.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time

ANSWER = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message",'
    b'"role":"assistant","model":"x","content":[],"stop_reason":null,"stop_sequence":null,'
    b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
    b'"stop_sequence":null},"usage":{"output_tokens":1}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
TURNS = 5
OURS = """
import asyncio, sys, time
began = time.time()
from handaxe.models.factory import open_model
from handaxe.contract.ports.model import ModelRequest
from handaxe.contract.messages import UserMessage
from handaxe.contract.content import TextBlock
async def main():
    http = None
    if sys.argv[2] == "httpx2":
        import httpx2
        http = httpx2.AsyncClient()
    env = {"ANTHROPIC_BASE_URL": sys.argv[1], "ANTHROPIC_API_KEY": "k"}
    model = open_model("claude-x", env=env, http=http)
    request = ModelRequest(messages=(UserMessage((TextBlock("hi"),)),))
    for _ in range(TURNS):
        async for _ in model.stream(request):
            pass
    print(began)
asyncio.run(main())
"""
THEIRS = """
import asyncio, sys, time
began = time.time()
import anthropic
async def main():
    client = anthropic.AsyncAnthropic(api_key="k", base_url=sys.argv[1])
    for _ in range(TURNS):
        stream = await client.messages.create(
            model="x", max_tokens=1, stream=True, messages=[{"role": "user", "content": "hi"}])
        async for _ in stream:
            pass
    print(began)
asyncio.run(main())
"""


class Server:
    """Notes when requests come and when their answers are sent."""

    def __init__(self):
        self.came: list[float] = []
        self.sent: list[float] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
                await reader.readexactly(int(length))
                self.came.append(time.time())
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%s"
                    % (len(ANSWER), ANSWER)
                )
                await writer.drain()
                self.sent.append(time.time())
        except (OSError, asyncio.IncompleteReadError):
            writer.close()


async def measure(code: str, kind: str) -> tuple[float, float]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        f"TURNS = {TURNS}\n{code}",
        url,
        kind,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )
    out, _ = await child.communicate()
    listening.close()
    turns = [b - a for a, b in zip(server.sent, server.came[1:], strict=False)]
    return (server.came[0] - float(out)) * 1000, min(turns) * 1000


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--without-sdks", action="store_true")
    options = parser.parse_args()
    lines = {"direct": (OURS, "direct"), "httpx2": (OURS, "httpx2")}
    if not options.without_sdks:
        lines["anthropic SDK"] = (THEIRS, "sdk")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in lines}
    for _ in range(options.rounds):
        for name, (code, kind) in lines.items():
            found[name].append(await measure(code, kind))
    base = [statistics.median(column) for column in zip(*found["direct"], strict=True)]
    for name, pairs in found.items():
        first, turn = (statistics.median(column) for column in zip(*pairs, strict=True))
        row = {"first_request_ms": round(first, 1), "x": round(first / base[0], 1)}
        row |= {"answer_to_request_ms": round(turn, 2), "turn_x": round(turn / base[1], 1)}
        print(f"{name:14} {json.dumps(row)}")


if __name__ == "__main__":
    asyncio.run(main())
