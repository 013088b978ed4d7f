"""The MCP server beside others: start, calls, memory, size of the tool list.

`uv run python bench/mcp.py [rounds]`. The rivals are the reference filesystem server (Node.js, from
npm, see `tests/wire/npm.py`) and a small server on the official Python SDK. What is missing is left
out.
"""

import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
import msgspec
from tests.wire import npm

LINE = "def compute_{0}(value, factor={0}):  # a line of ordinary length\n"
SDK_SERVER = """
import sys
from pathlib import Path
from mcp.server.mcpserver import MCPServer
server = MCPServer("files")

@server.tool()
def read_text_file(path: str) -> str:
    \"\"\"Reads a file.\"\"\"
    return Path(path).read_text()

server.run("stdio")
"""


class Server:
    """A server process and the few messages that are measured."""

    def __init__(self, name: str, words: list[str], read: tuple[str, str], cwd: Path) -> None:
        self.name = name
        self.words = words
        self.tool, self.argument = read
        self.cwd = cwd
        self.number = 0
        self.waiting: dict[int, asyncio.Future] = {}

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *self.words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=self.cwd,
            limit=1 << 26,
        )
        self.reading = asyncio.ensure_future(self._read())
        about = {"name": "bench", "version": "1"}
        opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        await self.ask("initialize", opening)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def ask(self, method: str, params: dict) -> dict:
        self.number += 1
        answer = self.waiting[self.number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return await answer

    async def read(self, path: Path) -> dict:
        params = {"name": self.tool, "arguments": {self.argument: str(path)}}
        answer = await self.ask("tools/call", params)
        assert not answer.get("isError"), answer
        return answer

    async def stop(self) -> None:
        self.process.stdin.close()
        self.process.terminate()
        await self.process.wait()
        await self.reading

    def resident_mb(self) -> float:
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)

    def _send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        while line := await self.process.stdout.readline():
            message = msgspec.json.decode(line)
            if "id" in message and "method" not in message:
                self.waiting.pop(message["id"]).set_result(message.get("result", message))


def contenders(root: Path) -> list[Server]:
    servers = [
        Server("handaxe", [sys.executable, "-m", "handaxe", "mcp"], ("Read", "file_path"), root)
    ]
    try:
        place = npm.installed()
        node = shutil.which("node") or npm.node(place)
        script = place / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
        words = [node, str(script), str(root)]
        servers.append(Server("filesystem (Node)", words, ("read_text_file", "path"), root))
    except npm.Unavailable as why:
        print(f"no filesystem server: {why}")
    try:
        import mcp  # noqa: F401

        words = [sys.executable, "-c", SDK_SERVER]
        servers.append(Server("SDK server (Python)", words, ("read_text_file", "path"), root))
    except ImportError:
        print("no SDK server: mcp is not installed")
    return servers


Found = dict[str, dict[str, list[float]]]


async def starts(servers: list[Server], found: Found, rounds: int, tiny: Path) -> None:
    for _ in range(rounds):
        for server in servers:
            begin = time.perf_counter()
            await server.start()
            await server.read(tiny)
            note(found, server, "spawn to first answered call, ms", begin)
            await server.stop()


async def calls(servers: list[Server], found: Found, rounds: int, tiny: Path, long: Path) -> None:
    for _ in range(rounds * 20):
        for server in servers:
            for line, path in (("Read a tiny file, ms", tiny), ("Read 2,000 lines, ms", long)):
                begin = time.perf_counter()
                await server.read(path)
                note(found, server, line, begin)
    for _ in range(rounds):
        for server in servers:
            begin = time.perf_counter()
            answers = await asyncio.gather(*(server.read(tiny) for _ in range(100)))
            assert len(answers) == 100
            note(found, server, "100 tiny Reads at once, ms", begin)


def note(found: Found, server: Server, line: str, begin: float) -> None:
    found[server.name].setdefault(line, []).append((time.perf_counter() - begin) * 1e3)


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        os.environ["HANDAXE_HOME"] = str(root / ".data")
        tiny, long = root / "tiny.txt", root / "long.py"
        tiny.write_text("hello\n")
        long.write_text("".join(LINE.format(number) for number in range(2000)))
        servers = contenders(root)
        found: Found = {server.name: {} for server in servers}
        await starts(servers, found, rounds, tiny)
        for server in servers:
            await server.start()
            listed = await server.ask("tools/list", {})
            chars = len(json.dumps(listed["tools"], ensure_ascii=False))
            found[server.name]["tool list, characters"] = [chars]
            await asyncio.sleep(1)
            found[server.name]["idle memory, MB"] = [server.resident_mb()]
        await calls(servers, found, rounds, tiny, long)
        for server in servers:
            found[server.name]["memory after it all, MB"] = [server.resident_mb()]
            await server.stop()
    show(servers, found)


def show(servers: list[Server], found: Found) -> None:
    """Medians, and how many times as much handaxe takes."""
    print(f"{'':36}" + "".join(f"{server.name:>24}" for server in servers))
    for line in found["handaxe"]:
        ours = statistics.median(found["handaxe"][line])
        cells = ""
        for server in servers:
            value = statistics.median(found[server.name][line])
            cells += f"{value:>16,.1f} {ours / value:6.2f}x"
        print(f"{line:36}{cells}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
