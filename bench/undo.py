"""What making changes undoable costs: durable Write and Edit against their bare floors.

Run it with `python bench/undo.py [DIRECTORY]`; contenders are interleaved, medians are printed.
"""

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from handaxe import Session


def durable_write(path: Path, data: bytes) -> None:
    """Temporary file, sync, rename, sync of the directory: the least that is durable."""
    temporary = path.with_name(".floor.tmp")
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.fsync(fd)
    os.close(fd)
    temporary.rename(path)
    fd = os.open(path.parent, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def durable_edit(path: Path, old: bytes, new: bytes) -> None:
    durable_write(path, path.read_bytes().replace(old, new, 1))


def line(name: str, floor: list[float], ours: list[float]) -> None:
    floor_ms, ours_ms = statistics.median(floor) * 1e3, statistics.median(ours) * 1e3
    ratio = ours_ms / floor_ms
    print(f"{name:26} floor {floor_ms:9.3f} ms   handaxe {ours_ms:9.3f} ms   {ratio:.2f}x")


async def write_10_kb(session: Session, root: Path, rounds: int) -> None:
    floor: list[float] = []
    ours: list[float] = []
    for number in range(rounds):
        text = os.urandom(5120).hex()
        began = time.perf_counter()
        durable_write(root / "floor.txt", text.encode())
        floor.append(time.perf_counter() - began)
        began = time.perf_counter()
        result = await session.call("Write", file_path=str(root / "ours.txt"), content=text)
        ours.append(time.perf_counter() - began)
        assert result.ok, (number, result.text)
    line("Write 10 KB", floor, ours)


async def edit(session: Session, root: Path, size: int, rounds: int) -> None:
    row = b"the quick brown fox %08d jumps over the lazy dog\n"
    data = b"".join(row % number for number in range(size // len(row % 0)))
    mine, other = root / f"ours-{size}.txt", root / f"floor-{size}.txt"
    mine.write_bytes(data)
    other.write_bytes(data)
    shown = await session.call("Read", file_path=str(mine), limit=10)
    assert shown.ok, shown.text
    floor: list[float] = []
    ours: list[float] = []
    for number in range(rounds):
        old, new = f"fox {number + 2:08d} jumps", f"cat {number + 2:08d} jumps"
        began = time.perf_counter()
        durable_edit(other, old.encode(), new.encode())
        floor.append(time.perf_counter() - began)
        began = time.perf_counter()
        result = await session.call("Edit", file_path=str(mine), old_string=old, new_string=new)
        ours.append(time.perf_counter() - began)
        assert result.ok, result.text
    line(f"Edit in {size:,} bytes", floor, ours)
    began = time.perf_counter()
    undone = await session.undo()
    assert undone.ok, undone.text
    print(f"{'  undo of the last one':24} {(time.perf_counter() - began) * 1e3:.1f} ms")


async def main() -> None:
    place = Path(tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None))
    root = place / "project"
    root.mkdir()
    try:
        async with Session(root, permission_mode="acceptEdits", home=place / "home") as session:
            await write_10_kb(session, root, 200)
            await edit(session, root, 10_000, 100)
            await edit(session, root, 1_000_000, 50)
            await edit(session, root, 100_000_000, 5)
            kept = sum(p.lstat().st_size for p in (place / "home").rglob("*") if p.is_file())
            print(f"kept in the data directory: {kept:,} bytes")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    asyncio.run(main())
