"""Glob and Grep beside the file tools of other agents, on the tree of `search.py`: prints ratios, never
judges.

`python bench/search_peers.py [files] [megabytes] [rounds]`. A library takes part if a variable names an
interpreter that has it: `HANDAXE_BENCH_DEEPAGENTS=/somewhere/bin/python` (deepagents),
`HANDAXE_BENCH_OPENHANDS` (openhands-tools), `HANDAXE_BENCH_PYDANTIC_AI` (pydantic-ai-harness); kimi's tools do if
`HANDAXE_BENCH_KIMI` names the program of a virtual environment. Each runs in its own process with the same
ripgrep on its PATH and measures itself, so neither its start nor the way to it counts. The filesystem server
of the Model Context Protocol takes part over its own wire if `HANDAXE_BENCH_MCP_FS` names its program or its
JavaScript file. An agent of rivals.py takes part as a whole, against a model server, and so does handaxe
beside it: what a call to an unknown tool costs each is taken off. All take turns; whoever needs minutes gets
fewer of them. A peer that cannot do a line, or finds something else, is named and left out of it.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from conversation import ConversationFailed, converse
from rivals import SEARCH_LINES, Contender, Wanted, contenders
from search import NEEDLE, NOWHERE, RG, grow

from handaxe import Session

REGEX, WORD = r"\w+ import \w+", "return"
LINES = ("glob", "tiny word", "nowhere", *SEARCH_LINES[2:])
STRENGTH = {
    "handaxe": "newest first; lines in path order; says what was passed by",
    "deepagents": "fixed text only; no order; says nothing",
    "openhands": "newest first; files only, at most 100, newest first; says nothing",
    "pydantic-ai": "paths and lines in path order; no files alone; says nothing",
    "codex": "runs what the model writes, here rg and head: no order; says nothing",
    "gemini": "newest first and ignored files counted, for names; lines in no order",
    "kimi": "by name, and from no pattern that begins with **; files newest first, lines in no order",
    "mcp-fs": "as the file system lists them; no search in contents; says nothing",
    "opencode": "at most 100; an unknown tool costs it more than a search, so read its own times",
}
Turn = Callable[[str], Awaitable[tuple[float, int]]]
"""Does a line; gives its seconds and how many files or lines it came to."""

SERVE = """
import json, sys, time
for line in sys.stdin:
    began = time.perf_counter()
    try:
        count = LINES[json.loads(line)]()
        answer = [time.perf_counter() - began, count]
    except KeyError:
        answer = [0, "it has no such tool"]
    except Exception as error:
        answer = [0, repr(error)[:200]]
    print(json.dumps(answer), flush=True)
"""
DEEPAGENTS = """
from deepagents.backends.filesystem import FilesystemBackend
there, tiny = FilesystemBackend(ROOT, virtual_mode=False), FilesystemBackend(TINY, virtual_mode=False)
def found(result):
    if result.error:
        raise ValueError(result.error)
    return result.matches
LINES = {
    "glob": lambda: len(found(there.glob("**/*.py", ROOT))),
    "tiny word": lambda: len(found(tiny.grep("return", TINY, max_count=250))),
    "rare files": lambda: len({match["path"] for match in found(there.grep(NEEDLE, ROOT))}),
    "nowhere": lambda: len(found(there.grep(NOWHERE, ROOT))),
    "word, 250 lines": lambda: len(found(there.grep(WORD, ROOT, max_count=250))),
}
"""
OPENHANDS = """
try:
    import litellm.rust_bridge.catalog  # litellm 1.105 does not come up in any other order
except ImportError:
    pass
from openhands.tools.glob.definition import GlobAction
from openhands.tools.glob.impl import GlobExecutor
from openhands.tools.grep.definition import GrepAction
from openhands.tools.grep.impl import GrepExecutor
files, there, tiny = GlobExecutor(ROOT), GrepExecutor(ROOT), GrepExecutor(TINY)
LINES = {
    "glob": lambda: len(files(GlobAction(pattern="**/*.py")).files),
    "tiny word": lambda: len(tiny(GrepAction(pattern="return")).matches),
    "rare files": lambda: len(there(GrepAction(pattern=NEEDLE)).matches),
    "nowhere": lambda: len(there(GrepAction(pattern=NOWHERE)).matches),
}
"""
PYDANTIC_AI = """
import asyncio
from pydantic_ai.workspaces.local import LocalWorkspaceBackend
from pydantic_ai_harness.filesystem._toolset import FILE_SYSTEM_TOOL_NAMES, FileSystemToolset
there, tiny = LocalWorkspaceBackend(ROOT), LocalWorkspaceBackend(TINY)
run = asyncio.new_event_loop().run_until_complete
def tools(most):
    return FileSystemToolset(
        allowed_patterns=[], denied_patterns=[], max_read_lines=2000, max_list_results=100,
        max_search_results=most, max_find_results=100, tools=FILE_SYSTEM_TOOL_NAMES,
    )
many, some = tools(250), tools(50)
def lines(text):
    return len([line for line in text.splitlines() if not line.startswith("[... truncated")])
LINES = {
    "glob": lambda: lines(run(many.list_files(glob="**/*.py", workspace=there))),
    "tiny word": lambda: lines(run(many.grep("return", workspace=tiny))),
    "rare files": lambda: lines(run(many.grep(NEEDLE, workspace=there))),
    "nowhere": lambda: len([x for x in run(many.grep(NOWHERE, workspace=there)).splitlines() if ":" in x]),
    "regex, 250 lines": lambda: lines(run(many.grep(REGEX, workspace=there))),
    "word, 250 lines": lambda: lines(run(many.grep(WORD, workspace=there))),
    "context, 50 lines": lambda: lines(run(some.grep(WORD, context=2, workspace=there))),
}
"""
KIMI = """
import asyncio
from types import SimpleNamespace
from kaos.path import KaosPath
from kimi_cli.tools.file.glob import Glob, Params as Names
from kimi_cli.tools.file.grep_local import Grep, Params as Text
run = asyncio.new_event_loop().run_until_complete
given = SimpleNamespace(KIMI_WORK_DIR=KaosPath(ROOT))
files, text = Glob(SimpleNamespace(builtin_args=given, additional_dirs=[], skills_dirs=[])), Grep()
def lines(result):
    if result.is_error:
        raise ValueError(result.message)
    return len(result.output.splitlines())
def grep(place, pattern, **more):
    return lines(run(text(Text(pattern=pattern, path=place, **more))))
content = {"output_mode": "content", "head_limit": 250}
LINES = {
    "glob": lambda: lines(run(files(Names(pattern="pkg*/**/*.py")))),
    "tiny word": lambda: grep(TINY, "return", **content),
    "rare files": lambda: grep(ROOT, NEEDLE),
    "nowhere": lambda: grep(ROOT, NOWHERE),
    "regex, 250 lines": lambda: grep(ROOT, REGEX, **content),
    "word, 250 lines": lambda: grep(ROOT, WORD, **content),
    "context, 50 lines": lambda: grep(ROOT, WORD, **{**content, "head_limit": 50, "-C": 2}),
}
"""
LIBRARIES = {
    "deepagents": DEEPAGENTS,
    "openhands": OPENHANDS,
    "pydantic-ai": PYDANTIC_AI,
    "kimi": KIMI,
}
PATIENCE_S = 30
"""Whoever has taken so long gets no further turn at this, beyond the first that counts."""


class PeerFailed(Exception):
    """It could not do a line, and says why."""


class Peer:
    """A library in its own process."""

    def __init__(self, python: str, program: str, places: dict[str, str]) -> None:
        head = "\n".join(f"{name} = {value!r}" for name, value in places.items())
        path = f"{Path(RG).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self._process = subprocess.Popen(
            [python, "-c", head + program + SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PATH": path, "PYTHONPATH": ""},
            text=True,
        )

    async def turn(self, line: str) -> tuple[float, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed("it ended") from None
        seconds, count = json.loads(self._process.stdout.readline() or '[0, "it ended"]')
        if not isinstance(count, int):
            raise PeerFailed(count)
        return seconds, count

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


class McpPeer:
    """The filesystem server, which only finds names."""

    def __init__(self, program: str, root: Path) -> None:
        self._root = str(root)
        words = ["node", program] if program.endswith(".js") else [program]
        self._process = subprocess.Popen(
            [*words, self._root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        about = {"name": "bench", "version": "1"}
        version = {"protocolVersion": "2025-06-18", "capabilities": {}}
        self._send("initialize", {**version, "clientInfo": about}, id=0)
        self._answer(0)
        self._send("notifications/initialized", {})

    async def turn(self, line: str) -> tuple[float, int]:
        if line != "glob":
            raise PeerFailed("it has no such tool")
        wanted = {"path": self._root, "pattern": "**/*.py"}
        began = time.perf_counter()
        self._send("tools/call", {"name": "search_files", "arguments": wanted}, id=1)
        found = self._answer(1)["content"][0]["text"]
        return time.perf_counter() - began, len(found.splitlines())

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _send(self, method: str, params: dict[str, Any], **more: int) -> None:
        assert self._process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self, number: int) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                return message["result"]
        raise PeerFailed("it ended")


def handaxe(session: Session, tiny: Session) -> Turn:
    content, session_context = {"output_mode": "content"}, {"-C": 2, "head_limit": 50}
    calls = {
        "glob": (session, "Glob", {"pattern": "**/*.py"}, "numFiles"),
        "tiny word": (tiny, "Grep", {"pattern": "return", **content}, "numLines"),
        "rare files": (session, "Grep", {"pattern": NEEDLE}, "numFiles"),
        "nowhere": (session, "Grep", {"pattern": NOWHERE}, "numFiles"),
        "regex, 250 lines": (session, "Grep", {"pattern": REGEX, **content}, "numLines"),
        "word, 250 lines": (session, "Grep", {"pattern": WORD, **content}, "numLines"),
        "context, 50 lines": (
            session,
            "Grep",
            {"pattern": WORD, **session_context, **content},
            "numLines",
        ),
    }

    async def turn(line: str) -> tuple[float, int]:
        where, name, call_input, counted = calls[line]
        began = time.perf_counter()
        result = await where.call(name, call_input)
        return time.perf_counter() - began, result.data[counted]

    return turn


async def compare(line: str, rounds: int, turns: dict[str, Turn]) -> None:
    taken: dict[str, list[float]] = {}
    shown: list[str] = []
    counts: dict[str, int] = {}
    for number in range(rounds + 1):
        for name, turn in turns.items():
            is_slow = sum(taken.get(name, ())) > PATIENCE_S * 1000
            if number and (name not in counts or is_slow):
                continue
            try:
                seconds, counts[name] = await turn(line)
            except PeerFailed as error:
                shown.append(f"{name} cannot: {error}")
                counts.pop(name, None)
                continue
            if number:
                taken.setdefault(name, []).append(seconds * 1000)
    ours = taken.pop("handaxe")
    first = f"handaxe {statistics.median(ours):.1f} ms ({counts['handaxe']})"
    for name, times in taken.items():
        ratio, best = statistics.median(times) / statistics.median(ours), min(times) / min(ours)
        shown.append(f"{name} x{ratio:.2f}, best x{best:.2f} ({counts[name]})")
    print(f"{line:18} {first}   " + "   ".join(shown), flush=True)


def compare_agents(taking_part: list[Contender], root: Path, homes: Path, rounds: int) -> None:
    """Whole agents in turns; of each call what one to an unknown tool costs is taken off."""
    taken: dict[str, dict[str, list[float]]] = {one.name: {} for one in taking_part}
    spent_s = dict.fromkeys(taken, 0.0)
    wanted = Wanted(NEEDLE, REGEX, WORD)
    for number in range(rounds + 1):
        for one in [one for one in taking_part if one.name in taken]:
            if number > 1 and spent_s[one.name] > PATIENCE_S:
                continue
            # The first call of a kind loads what it needs.
            calls = one.spell_search(wanted) * 2
            began = time.monotonic()
            try:
                talk = asyncio.run(converse(one, calls, root, homes / one.name))
            except ConversationFailed as error:
                print(error, file=sys.stderr)
                del taken[one.name]
                continue
            spent_s[one.name] += time.monotonic() - began
            nothing, *times = talk.calls_ms[len(SEARCH_LINES) :]
            if number:
                for line, ms in zip(SEARCH_LINES[1:], times, strict=True):
                    taken[one.name].setdefault(line, []).append(ms - nothing)
    ours = taken.pop("handaxe")
    for line, mine in ours.items():
        shown = [_ratio(name, times[line], mine) for name, times in taken.items()]
        print(
            f"{line:18} handaxe {statistics.median(mine):.1f} ms   " + "   ".join(shown), flush=True
        )


def _ratio(name: str, times: list[float], ours: list[float]) -> str:
    median = statistics.median(times)
    best = f"best x{min(times) / min(ours):.2f}"
    return f"{name} {median:.1f} ms x{median / statistics.median(ours):.2f}, {best}"


def interpreter(name: str) -> str | None:
    """Who runs a library; beside a program that is installed with it, if that is named."""
    named = os.environ.get(f"HANDAXE_BENCH_{name.upper().replace('-', '_')}")
    if named is None or Path(named).name.startswith("python"):
        return named
    beside = Path(named).with_name("python")
    return str(beside) if beside.exists() else None


async def compare_libraries(root: Path, tiny: Path, home: Path, rounds: int) -> None:
    """Libraries in turns, each measuring itself."""
    places = {"ROOT": str(root), "TINY": str(tiny), "NEEDLE": NEEDLE, "NOWHERE": NOWHERE}
    places |= {"REGEX": REGEX, "WORD": WORD}
    peers: dict[str, Peer | McpPeer] = {
        name: Peer(python, program, places)
        for name, program in LIBRARIES.items()
        if (python := interpreter(name))
    }
    if program := os.environ.get("HANDAXE_BENCH_MCP_FS"):
        peers["mcp-fs"] = McpPeer(program, root)
    try:
        async with Session(root, home=home) as session, Session(tiny, home=home) as small:
            ours = {"handaxe": handaxe(session, small)}
            turns = ours | {name: peer.turn for name, peer in peers.items()}
            for line in LINES:
                await compare(line, rounds, turns)
    finally:
        for peer in peers.values():
            peer.end()


def main() -> None:
    numbers = [int(argument) for argument in sys.argv[1:]]
    files, megabytes, rounds = (*numbers, *(50_000, 500, 5)[len(numbers) :])
    with tempfile.TemporaryDirectory(prefix="handaxe-bench-", ignore_cleanup_errors=True) as folder:
        root, tiny, homes = (Path(folder, name) for name in ("tree", "tiny", "homes"))
        grow(root, files, megabytes)
        grow(tiny, 20, 1)
        print(f"{files:,} files, {megabytes:,} MB, {rounds} rounds; x: how many times our time")
        print("libraries, in process; in brackets what was found")
        asyncio.run(compare_libraries(root, tiny, homes / "library", rounds))
        print("agents, from an answer to the next request, without what an unknown tool costs")
        compare_agents(contenders(), root, homes, rounds)
        for name, strength in STRENGTH.items():
            print(f"{name:12} {strength}")


if __name__ == "__main__":
    main()
