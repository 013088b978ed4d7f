"""Runs random commands for real and holds what they changed against what they were proved to write.

They write in the working directory, in another directory outside of it by literal paths and through
links, and in both at once. Commands whose writes are not certain run as well if something of it lies
outside: what is known of that has to be put back together with the working directory.

By hand: `uv run python tests/undo/bounded_fuzz.py --commands 20000`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.undo.commanding import whole_tree

from handaxe.contract.effects import Effects
from handaxe.contract.ports.undo import TRACE_ENDED, TRACED, UndoRequest
from handaxe.process.write_trace import WriteTrace
from handaxe.shell.analysis import analyze
from handaxe.undo.checkpoints import DiskCheckpoints
from handaxe.undo.command_changes import TreeTracker
from handaxe.undo.content_store import ContentStore
from handaxe.undo.history import JournalHistory
from handaxe.undo.in_place import SharedContentGuard
from handaxe.undo.journal import UndoJournal
from handaxe.undo.snapshot.snapshot import SnapshotLimits
from handaxe.undo.write_extent import ExtentLimits, WriteTargets, resolve_extent

T = TypeVar("T")
BASH = shutil.which("bash") or "/bin/bash"
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ROOM = ExtentLimits(5_000, 64 << 20)
ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/nonexistent"}
NAMES = ["a", "b", "d", "e", "l", "m", "k", "z", "o", "g", "sp ace", "-n", "n\nl", "caf\xe9", "h"]
OUTPUTS = ["echo one", "printf two", "cat a", "true", "head -n1 b", "ls"]
MODES = ["600", "644", "755", "444", "700", "+x", "u+w", "a-w", "go+r,u+x", "000", "-x"]
SCRIPTS = ["s/o/0/g", "s/one/uno/", "1d", "$p", "y/ab/ba/", "w b", "e touch x", "s/x/y/w d"]


class Maker:
    """Commands that look as if their writes were known; for some of them they are."""

    def __init__(self, seed: int, root: str, elsewhere: str) -> None:
        self._random = random.Random(seed)
        self._root = root
        self._elsewhere = elsewhere
        self._names = NAMES

    def command(self) -> str:
        """One command of a few parts."""
        # With few names the parts get in each other's way.
        self._names = self._random.sample(NAMES[:10], 3) if self.chance(0.7) else NAMES
        if self.chance(0.3):
            return self._trap()
        parts = [self._part() for _ in range(self._pick([1, 1, 2, 2, 3, 4]))]
        text = parts[0]
        for part in parts[1:]:
            text += self._pick([" && ", "; ", "; ", "\n", " || "]) + part
        return text

    def _pick(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def chance(self, share: float) -> bool:
        """True in this share of the cases."""
        return self._random.random() < share

    def path(self) -> str:
        """A path as somebody may write it."""
        names = [self._pick(self._names) for _ in range(self._pick([1, 1, 1, 2, 2, 3]))]
        if self.chance(0.1):
            names.insert(self._random.randrange(len(names) + 1), "..")
        text = "/".join(names)
        starts = ["", "", "", "", "./", f"{self._root}/p/", "../q/", "../p/"]
        starts += [f"{self._elsewhere}/", "../../elsewhere/", "o/"]
        text = self._pick(starts) + text
        return text + ("/" if self.chance(0.08) else "")

    def word(self) -> str:
        """The same as a word of bash."""
        path = self.path()
        if self.chance(0.05):
            return self._pick(["*", "$x", "~/a", "{a,b}", '"$x"', "d/{a,e}", "$PWD/a", "$(echo a)"])
        return shlex.quote(path)

    def _words(self, most: int = 3) -> str:
        dashes = "-- " if self.chance(0.3) else ""
        return dashes + " ".join(self.word() for _ in range(self._random.randint(1, most)))

    def _flags(self, *among: str) -> str:
        return " ".join(flag for flag in among if self.chance(0.3))

    def _part(self) -> str:
        kinds = [
            self._written, self._touched, self._removed, self._put, self._put, self._edited,
            self._gone, self._moded, self._inside, self._compound, self._made,
        ]  # fmt: skip
        return self._pick(kinds)()

    def _trap(self) -> str:
        """One step changes what the words of the next one mean."""
        one, other, third = (shlex.quote(self._pick(self._names)) for _ in range(3))
        fill = self._pick([f"touch {other}/{third}", f"echo x > {other}/{third}", f"touch {third}"])
        move = self._pick(["mv", "ln -s", "ln -sf", "ln -sfn", "cp -r", "cp -rP", "mv -T"])
        return self._pick(
            [
                f"{move} {one} {other}; {fill}",
                f"{move} {one} {other}; {move} {third} {other}",
                f"rm -rf {other}; mkdir -p {other}/{third}; touch {other}/{third}/{one}",
                f"rm -f {other}; mkdir -p {other}; touch {other}/{third}",
                f"for x in 1 2; do {move} {one} {other}; done",
                f"{move} {one} {other} | {fill}",
                f"cd {one}; {move} ../{one} ../{other}; touch {third}",
                f"cd {self._flags('-P')} {one} && cd .. && touch {third}",
                f"cd {one} && {move} ../{one} ../{other} && cd .. && touch {third}",
                f"cd {one} && rm -rf {self._root}/p/{one} && cd .. && touch {third}",
                f"cd {one}/{other}; cd ../..; {fill}",
                f"sed -i s/o/0/ {other}; {fill}",
                f"(cd {one} && {move} {other} {third}); {fill}",
                f"mkdir {other}; {move} {one} {other}; cd {other}; touch {third}",
            ]
        )

    def _written(self) -> str:
        operator = self._pick([">", ">", ">>", ">|", "&>", "2>", "<>"])
        text = f"{self._pick(OUTPUTS)} {operator} {self.word()}"
        if self.chance(0.1):
            return f"cat > {self.word()} <<'E'\nhere\nE"
        if self.chance(0.2):
            return f"{self._pick(OUTPUTS)} | tee {self._flags('-a')} {self._words(2)}"
        return text

    def _touched(self) -> str:
        size = f"truncate -s {self._pick(['0', '5', '+3'])} {self._words(2)}"
        return self._pick([f"touch {self._flags('-c', '-h', '-r a')} {self._words()}", size])

    def _made(self) -> str:
        return f"mkdir {self._flags('-p', '-v', '-m 700')} {self._words()}"

    def _removed(self) -> str:
        program = self._pick(["rm", "rm -f", "rm -rf", "rm -r", "rm -d", "rmdir", "unlink"])
        return f"{program} {self._words(2)}"

    def _put(self) -> str:
        program = self._pick(
            ["mv", "mv", "cp", "cp -r", "cp -rP", "ln -s", "ln -sf", "ln", "cp -a"]
        )
        if self.chance(0.1):
            return f"{program} -t {self.word()} {self._words(2)}"
        flags = self._flags("-f", "-n", "-T", "-v")
        return f"{program} {flags} {self._words(2)} {self.word()}"

    def _edited(self) -> str:
        option = self._pick(["-i", "-i", "-i.bak", "-n -i", "-i -E", "--in-place"])
        script = shlex.quote(self._pick(SCRIPTS))
        return f"sed {option} {script} {self._words(2)}"

    def _moded(self) -> str:
        return f"chmod {self._flags('-R', '-v')} {self._pick(MODES)} {self._words(2)}"

    def _gone(self) -> str:
        """Going somewhere."""
        return f"cd {self._flags('-P')} {self.word()}" if self.chance(0.9) else "cd"

    def _inside(self) -> str:
        opening, closing = self._pick([("(", ")"), ("{ ", "; }")])
        redirect = f" > {self.word()}" if self.chance(0.3) else ""
        return f"{opening}{self._part()} && {self._part()}{closing}{redirect}"

    def _compound(self) -> str:
        word = self.word()
        return self._pick(
            [
                f"if [ -e {word} ]; then {self._part()}; else {self._part()}; fi",
                f'for x in {self.word()} {self.word()}; do touch "$x"; done',
                f"for x in 1 2; do {self._part()}; done",
                f'x={word}; touch "$x"',
                f'x={word}; rm -rf "$x"',
                f"! {self._part()}",
                f"test -d {word} && {self._part()}",
            ]
        )


def make_tree(top: Path, elsewhere: Path) -> None:
    """Two directories with a bit of everything, one outside of them, and links between them."""
    p, q = top / "p", top / "q"
    for root in (p, q, elsewhere):
        name = root.name
        for directory in ("d/e", "e/d", "sp ace"):
            (root / directory).mkdir(parents=True)
        for file in ("a", "b", "d/a", "d/e/b", "e/a", "-n", "n\nl", "caf\xe9", "sp ace/m"):
            (root / file).write_text(f"one of {name} {file}\n")
        (root / "b").chmod(0o640)
        (root / "d/b").write_bytes(os.urandom(100_000))
    (p / "l").symlink_to("d")
    (p / "m").symlink_to("a")
    (p / "k").symlink_to("../q")
    (p / "d/l").symlink_to("../../q/e")
    (p / "e/m").symlink_to("../nowhere")
    (p / "d/k").symlink_to(str(q / "b"))
    (q / "l").symlink_to("l")
    (q / "m").symlink_to("../p/m")
    (q / "k").symlink_to("..")
    (p / "o").symlink_to(elsewhere)
    (p / "g").symlink_to("../../elsewhere/a")
    (p / "d/o").symlink_to(elsewhere / "d/b")
    (p / "d/g").symlink_to(elsewhere / "e")
    (q / "g").symlink_to(elsewhere / "z")
    (q / "d/a").unlink()
    (q / "d/a").symlink_to("../../../elsewhere/b")
    (elsewhere / "l").symlink_to("d")
    (elsewhere / "k").symlink_to(p)
    (elsewhere / "e/m").symlink_to("../a")
    os.link(elsewhere / "e/a", elsewhere / "h")
    os.link(p / "e/a", p / "h")
    os.link(q / "caf\xe9", q / "h")


class Bench:
    """A throw-away tree, a directory beside it, and the undo record over both."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.top = place / "tree"
        self.elsewhere = place / "elsewhere"
        self.cwd = self.top / "p"
        self._home = place / "home"
        self.found: Counter[str] = Counter()
        self._calls = 0
        self._begin()

    def renew(self) -> None:
        """Begin with the same tree and an empty record again."""
        self._checkpoints.close()
        self._begin()

    def _begin(self) -> None:
        remove(*(self._place.iterdir() if self._place.exists() else ()))
        make_tree(self.top, self.elsewhere)
        store = ContentStore(self._home)
        self._journal = journal = UndoJournal(self._home / "s", store, session_id="s", root="/")

        def roots() -> list[str]:
            return [str(self.top)]

        self._checkpoints = DiskCheckpoints(
            self._journal,
            store,
            replacing={"Undo"},
            roots=roots,
            tree=lambda: TreeTracker(self._home, "s", roots, SnapshotLimits(), journal, store),
        )
        guard = SharedContentGuard(self._home, store)
        self._history = JournalHistory(self._journal, store, in_place=guard)

    def state(self) -> dict[bytes, tuple]:
        """Everything but the record."""
        return whole_tree(self._place, without=("home",))

    async def attempt(self, command: str, *, keep: bool) -> str:
        """Run one command; what is wrong with its bound or its undo, or nothing."""
        extent = analyze(command, str(self.cwd), ENVIRONMENT["HOME"]).extent
        if extent is None:
            self.found["not proved"] += 1
            return ""
        places = resolve_extent(extent, [str(self.top)], str(self._home), ROOM)
        if places.lost or (places.doubt and not places.outside):
            self.found["not certain"] += 1
            return ""
        self._calls += 1
        call_id = f"c{self._calls}"
        before = self.state()
        effects = Effects(reads_everything=True, writes_everything=True, extent=extent)
        await self._checkpoints.before(call_id, "Bash", effects)
        _run(command, self.cwd, self._checkpoints.open_trace(call_id))
        await self._checkpoints.after(call_id)
        self.found["doubtful" if places.doubt else "bounded"] += 1
        try:
            after = self.state()
        except PermissionError:
            # It closed a directory to its owner; then nobody sees what is in it.
            after = {}
        beyond = [path for path in _changed(before, after) if not self._holds(places, path)]
        if beyond and places.doubt:
            self.found["doubtful and more than known"] += bool(after)
            self.renew()
            return ""
        if beyond or before == after:
            return f"it changed {beyond}, the bound is {places}" if beyond else ""
        self.found["changed something"] += 1
        outside = [path for path in _changed(before, after) if path.startswith(b"elsewhere")]
        self.found["changed something outside"] += bool(outside)
        return await self._wrong_ways(before, after, keep=keep)

    async def _wrong_ways(self, before: dict, after: dict, *, keep: bool) -> str:
        """Undo and redo; what did not come back."""
        back, forth = (UndoRequest(), before), (UndoRequest(redo=True), after)
        for wanted, expected in (back, forth, back, *((forth,) if keep else ())):
            self._calls += 1
            await self._undo(wanted, f"u{self._calls}")
            now = self.state()
            if now != expected:
                return f"{wanted} left another tree: {_changed(expected, now)}"
        return ""

    def _holds(self, written: WriteTargets, path: bytes) -> bool:
        real = f"{self._place}/{os.fsdecode(path)}"
        if written.doubt and real.startswith(f"{self.top}/"):
            return True
        places = {**written.inside, **written.outside}
        return any(
            real == place or (names is None and real.startswith(f"{place}/"))
            for place, names in places.items()
        )

    async def _undo(self, wanted: UndoRequest, call_id: str) -> None:
        paths = self._history.touched(wanted)
        await self._checkpoints.before(call_id, "Undo", Effects.on(*paths))
        try:
            await self._history.put_back(call_id, wanted)
        finally:
            await self._checkpoints.after(call_id)


def remove(*places: Path) -> None:
    """Take trees away, whatever modes they have."""
    for place in places:
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
            continue
        for directory, _, _ in os.walk(place):
            Path(directory).chmod(0o700)
        shutil.rmtree(place)


def _changed(before: dict, after: dict) -> list[bytes]:
    return sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))


def _run(command: str, cwd: Path, trace: int | None) -> None:
    argv = [BASH, "--noprofile", "--norc", "-c", "--", command]
    null, here = os.open(os.devnull, os.O_RDWR), Path.cwd()
    actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]

    def start() -> int:
        return os.posix_spawn(argv[0], argv, ENVIRONMENT, file_actions=actions)

    os.chdir(cwd)
    traced = trace and WriteTrace(trace, TRACED, TRACE_ENDED, may_restrict=True)
    try:
        os.waitpid(traced.spawn(start) if traced else start(), 0)
    finally:
        os.chdir(here)
        os.close(null)
        if traced:
            traced.close()


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


async def attempts(seed: int, wanted: int, place: Path, *, shown: bool = False) -> list[str]:
    """Run until so many commands were bounded; what was wrong with which."""
    bench = Bench(place)
    maker = Maker(seed, str(bench.top), str(bench.elsewhere))
    wrong: list[str] = []
    began = time.monotonic()
    while bench.found["bounded"] < wanted:
        command = maker.command()
        trouble = await bench.attempt(command, keep=maker.chance(0.2))
        if trouble:
            wrong.append(f"{command!r}: {trouble}")
        if trouble or maker.chance(0.02) or not bench.cwd.is_dir():
            bench.renew()
        if shown and trouble:
            _say(wrong[-1])
        if shown and sum(bench.found.values()) % 5_000 == 0:
            _say(f"{time.monotonic() - began:7.0f} s {dict(bench.found)}")
    if shown:
        _say(dict(bench.found))
    return wrong


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--commands", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    place = Path(tempfile.mkdtemp(prefix="bounded-", dir=IN_MEMORY))
    os.umask(0o022)
    try:
        wrong = asyncio.run(attempts(given.seed, given.commands, place, shown=True))
    finally:
        remove(place)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
