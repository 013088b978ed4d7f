"""handaxe beside the raw floor, line by line; see README.md in this folder."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from measure import Work, header, interleaved, peak_memory_mb, report, resident_mb, run, sync

from handaxe import Effects, Session, Tool, ToolArgs, ToolContext, ToolResult

WORDS = [word.lower() for word in sys.argv[1:] if not word.startswith("-")]
LINE = "def compute_{0}(value, factor={0}):  # a line of ordinary length\n"


class NothingArgs(ToolArgs):
    pass


class Nothing(Tool[NothingArgs]):
    """Does nothing."""

    search_hint = "nothing at all here"
    effects = Effects.pure()

    async def call(self, args: NothingArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult("")


async def empty_tool(root: Path) -> None:
    async with Session(root, tools=[Nothing]) as session:
        tool, args = Nothing(), NothingArgs()
        found = await interleaved(
            {
                "ours": lambda: session.call("Nothing"),
                "floor": lambda: tool.call(args, None),
            },
            3000,
        )
        report("empty tool, permission and log on", found["ours"], found["floor"], "<= 90 µs")

        async def at_once():
            await asyncio.gather(*(session.call("Nothing") for _ in range(100)))

        async def floor_at_once():
            await asyncio.gather(*(tool.call(args, None) for _ in range(100)))

        found = await interleaved({"ours": at_once, "floor": floor_at_once}, 60)
        report(
            "100 empty calls at once, each",
            found["ours"] / 100,
            found["floor"] / 100,
            "<= 60 µs",
        )


def raw_read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.splitlines(), 1))


async def read_tiny(root: Path) -> None:
    path = str(root / "tiny.txt")
    Path(path).write_text("hello\n")
    async with Session(root) as session:
        contenders = {
            "ours": lambda: session.call("Read", file_path=path),
            "floor": sync(lambda: raw_read(path)),
        }
        found = await interleaved(contenders, 2000)
        report("Read a tiny file", found["ours"], found["floor"], "<= 8x")

        async def at_once():
            await asyncio.gather(*(session.call("Read", file_path=path) for _ in range(100)))

        found = await interleaved({"ours": at_once, "floor": contenders["floor"]}, 60)
        report("100 tiny Reads at once, each", found["ours"] / 100, found["floor"], "<= 4x")


async def read_2000_lines(root: Path) -> None:
    path = str(root / "lines.py")
    Path(path).write_text("".join(LINE.format(i) for i in range(2000)))
    async with Session(root) as session:
        contenders = {
            "ours": lambda: session.call("Read", file_path=path),
            "floor": sync(lambda: raw_read(path)),
        }
        found = await interleaved(contenders, 200)
        report("Read 2,000 lines", found["ours"], found["floor"], "<= 1.4x")


def raw_window(path: str, offset: int, limit: int) -> str:
    """The least work: count line feeds by chunk, then cut the window out."""
    with open(path, "rb", buffering=0) as file:
        seen, position, start = 0, 0, None
        while chunk := file.read(1 << 20):
            count = chunk.count(b"\n")
            if start is None and seen + count >= offset - 1:
                at = -1
                for _ in range(offset - 1 - seen):
                    at = chunk.index(b"\n", at + 1)
                start = position + at + 1
            seen += count
            position += len(chunk)
        file.seek(start or 0)
        lines = file.read(limit * 200).decode().split("\n")[:limit]
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, offset))


async def read_deep_window(root: Path) -> None:
    path = str(root / "big.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{i:08d} the quick brown fox jumps over a dog\n" for i in range(1_010_000))
    async with Session(root) as session:

        async def ours():
            result = await session.call("Read", file_path=path, offset=1_000_000, limit=100)
            assert result.ok, result.text

        await ours()
        before = peak_memory_mb()
        contenders = {"ours": ours, "floor": sync(lambda: raw_window(path, 1_000_000, 100))}
        found = await interleaved(contenders, 15)
        extra = f"peak memory +{peak_memory_mb() - before:.1f} MB (< 16)"
        report(
            "window at line 1,000,000 of 50 MB",
            found["ours"],
            found["floor"],
            "<= 1.6x",
            extra=extra,
        )
    os.unlink(path)


def durable_write(path: str, data: bytes) -> None:
    directory, temporary = os.path.dirname(path), path + ".tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(temporary, path)
    fd = os.open(directory, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


class Promises:
    """Every step that a change has promised, and nothing else: no check, no rule, no answer."""

    def __init__(self, root: Path) -> None:
        names = (root / "journal", root / "log")
        self._files = [os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in names]

    def write(self, path: str, data: bytes, asked: bytes) -> None:
        """A durable write with its record ahead of it and its log around it."""
        journal, log = self._files
        os.write(journal, b"before: what it was\n")
        os.fdatasync(journal)
        os.write(log, asked)
        durable_write(path, data)
        os.write(journal, b"after: what it is\n")
        os.write(log, b"done\n")


async def write_10k(root: Path) -> None:
    """The floor promises that the file is there; only with the record can it be undone as well."""
    data = "x" * 10_240
    counter = iter(range(10**9))
    no_record = {"fileCheckpointingEnabled": False}

    def writing(session: Session) -> Work:
        async def write() -> None:
            result = await session.call("Write", file_path=f"w{next(counter)}.txt", content=data)
            assert result.ok, result.text

        return write

    async with (
        Session(root, permission_mode="acceptEdits", settings=no_record) as plain,
        Session(root, permission_mode="acceptEdits") as undoable,
    ):
        encoded = data.encode()
        floor = sync(lambda: durable_write(str(root / f"f{next(counter)}.txt"), encoded))
        bare = Promises(root)
        contenders = {
            "plain": writing(plain),
            "floor": floor,
            "undoable": writing(undoable),
            "bare": sync(lambda: bare.write(f"{root}/p{next(counter)}.txt", encoded, encoded)),
        }
        found = await interleaved(contenders, 150)
        report("durable Write of 10 KB", found["undoable"], found["floor"], "<= 1.8x")
        report("the same without its undo record", found["plain"], found["floor"], "")
        report("its record, log and syncs alone, bare", found["bare"], found["floor"], "")


async def edit(root: Path, size: int, rounds: int, goal: str) -> None:
    name = f"edit-{size}.py"
    path = root / name
    lines = max(1, size // len(LINE.format(10_000)))
    text = "".join(LINE.format(i) for i in range(lines))
    middle = LINE.format(lines // 2).rstrip()
    path.write_text(text)
    raw = root / f"raw-{size}.py"
    raw.write_text(text)
    del text
    state = {"ours": False, "floor": False}

    async with Session(root, permission_mode="acceptEdits") as session:
        assert (await session.call("Read", file_path=name, limit=5)).ok

        async def ours():
            old, new = (middle + "!", middle) if state["ours"] else (middle + "\n", middle + "!\n")
            state["ours"] = not state["ours"]
            result = await session.call("Edit", file_path=name, old_string=old, new_string=new)
            assert result.ok, result.text

        def floor():
            old, new = (middle + "!", middle) if state["floor"] else (middle + "\n", middle + "!\n")
            state["floor"] = not state["floor"]
            data = raw.read_bytes()
            assert data.count(old.encode()) == 1
            raw_data = data.replace(old.encode(), new.encode())
            raw.write_bytes(raw_data)

        def changed() -> bytes:
            data = raw.read_bytes()
            assert data.count(middle.encode()) == 1
            data = data.replace(middle.encode(), middle.encode())
            sha256(data).digest()
            return data

        bare = Promises(root)
        contenders = {
            "ours": ours,
            "floor": sync(floor),
            "durable": sync(lambda: durable_write(str(raw), changed())),
            "bare": sync(lambda: bare.write(str(raw), changed(), middle.encode())),
        }
        found = await interleaved(contenders, rounds, warm_up=1)
        extra = (
            f"{found['ours'] / found['durable']:.2f}x of the durable floor; "
            f"bare promises {found['bare'] / found['floor']:.2f}x"
        )
        report(f"Edit in {size // 1000:,} KB", found["ours"], found["floor"], goal, extra=extra)


async def edits(root: Path) -> None:
    await edit(root, 10_000, 100, "<= 4x")
    await edit(root, 1_000_000, 40, "<= 2.2x")


async def edit_100mb(root: Path) -> None:
    await edit(root, 100_000_000, 5, "<= 2.0x")


MEMORY_OF_EDIT = """
import asyncio, resource, sys
from handaxe import Session
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
async def main():
    async with Session(sys.argv[1], permission_mode="acceptEdits") as session:
        await session.call("Read", file_path="m.py", limit=5)
        before = peak()
        result = await session.call("Edit", file_path="m.py", old_string=sys.argv[2], new_string="changed")
        assert result.ok, result.text
        print(peak() - before)
asyncio.run(main())
"""


async def edit_memory(root: Path) -> None:
    lines = 100_000_000 // len(LINE.format(10_000))
    (root / "m.py").write_text("".join(LINE.format(i) for i in range(lines)))
    needle = LINE.format(lines // 2).rstrip()
    out = subprocess.run(
        [sys.executable, "-c", MEMORY_OF_EDIT, str(root), needle],
        capture_output=True,
        text=True,
        check=True,
    )
    print(f"{'memory of an Edit in 100 MB':44} +{float(out.stdout):.0f} MB{'':32} < 300 MB")


async def cold_start(root: Path) -> None:
    (root / "a.py").write_text("x = 1\n")
    scripts = Path(sys.executable).parent
    commands = {
        "floor": [sys.executable, "-c", "pass"],
        "version": [str(scripts / "handaxe"), "--version"],
        "import": [sys.executable, "-c", "import handaxe"],
        "call": [str(scripts / "handaxe"), "call", "Read", "file_path=a.py", "--root", str(root)],
    }

    def start(command):
        return sync(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))

    found = await interleaved({name: start(command) for name, command in commands.items()}, 25)
    for name, goal in (("version", "<= 2x"), ("import", "<= 5x"), ("call", "<= 9x")):
        shown = {
            "version": "handaxe --version",
            "import": "import handaxe",
            "call": "handaxe call Read",
        }
        report(f"cold start: {shown[name]}", found[name], found["floor"], goal)


async def settings_files(root: Path) -> None:
    from handaxe.config.project import Configuration

    def opened() -> Configuration:
        return Configuration(str(root), home=Path(os.environ["HANDAXE_HOME"]))

    kept = opened()
    found = await interleaved(
        {
            "open": sync(opened),
            "refresh": sync(kept.refresh),
            "floor": sync(lambda: os.stat(root)),
        },
        3000,
    )
    report("settings: open a project without files", found["open"], found["floor"], "<= 200 µs")
    report("settings: notice that nothing changed", found["refresh"], found["floor"], "<= 5 µs")


async def nearest_help(root: Path) -> None:
    from handaxe.text.replace.fuzzy_match import find_similar_text

    lines = [LINE.format(n) for n in range(16_000)]
    text = "".join(lines)
    for count in (1, 5, 200):
        lost = "".join(lines[9_000 : 9_000 + count]).replace("value", "valve")
        found = await interleaved(
            {
                "ours": sync(lambda lost=lost: find_similar_text(text, lost)),
                "floor": sync(lambda: text.splitlines(keepends=True)),
            },
            20,
        )
        report(
            f"nearest place in a megabyte, {count} lines", found["ours"], found["floor"], "25 ms"
        )


async def cancel(root: Path) -> None:
    """From the word to the result, of what does not end by itself and is deaf to a polite signal."""
    deaf = "trap '' TERM; touch on; sleep 600; sleep 600"
    hooks = {"PreToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": deaf}]}]}
    async with Session(root, allow=["Bash"], hooks=hooks) as session:
        calls = {
            "a command": ("Bash", {"command": deaf}),
            "a hook": ("Read", {"file_path": "tiny.txt"}),
        }
        for name, (tool, given) in calls.items():
            took_s = sorted([await cancelled_after_s(session, tool, given) for _ in range(9)])
            print(f"{f'cancel {name}':44} {took_s[4] * 1000:7.1f} ms{'':22} {'<= 200 ms':>18}")


async def cancelled_after_s(session: Session, tool: str, given: dict[str, str]) -> float:
    on = Path(session.workdir.current) / "on"
    on.unlink(missing_ok=True)
    running = asyncio.ensure_future(session.call(tool, given))
    while not on.exists():
        assert not running.done(), running.result().text
        await asyncio.sleep(0.001)
    began = time.perf_counter()
    session.cancel()
    await running
    return time.perf_counter() - began


async def idle_sessions(root: Path) -> None:
    import handaxe.tools.files.edit
    import handaxe.tools.files.read
    import handaxe.tools.files.write  # noqa: F401

    before = resident_mb()
    sessions = [Session(root) for _ in range(1000)]
    for session in sessions:
        await session.call("Read", file_path="tiny.txt")
    print(
        f"{'1,000 idle sessions, one call each':44} +{resident_mb() - before:.0f} MB{'':32} < 150 MB in all"
    )
    for session in sessions:
        await session.close()


LINES = [
    empty_tool,
    read_tiny,
    read_2000_lines,
    read_deep_window,
    write_10k,
    edits,
    edit_100mb,
    edit_memory,
    cold_start,
    settings_files,
    nearest_help,
    cancel,
    idle_sessions,
]


def main() -> None:
    header()
    for line in LINES:
        if WORDS and not any(word in line.__name__ for word in WORDS):
            continue
        with tempfile.TemporaryDirectory() as directory:
            os.environ["HANDAXE_HOME"] = str(Path(directory) / "home")
            root = Path(directory) / "project"
            root.mkdir()
            (root / "tiny.txt").write_text("hello\n")
            run(line(root))


if __name__ == "__main__":
    main()
