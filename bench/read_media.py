"""How long Read takes with pictures, PDFs and notebooks, and how much memory: prints, never judges.

Every memory line runs in a process of its own: a tiny file of the kind first, so that libraries are
loaded, then the big one. `x` is the growth of the peak divided by the size of the file.
"""

import asyncio
import io
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from handaxe import Session

MB = 1 << 20


def photo(size: tuple[int, int]) -> Image.Image:
    """Something between noise and a gradient, as photographs are."""
    noise = Image.effect_noise((size[0] // 4, size[1] // 4), 60).resize(size)
    gradient = Image.radial_gradient("L").resize(size)
    return Image.merge("RGB", (noise, gradient, Image.blend(noise, gradient, 0.5)))


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def pdf(pages: int, padding: int = 0) -> bytes:
    """Pages of fifty lines each; padding is a stream nobody looks at."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    kids: list[bytes] = []
    for page in range(1, pages + 1):
        line = b"(page %d: the quick brown fox jumps over the lazy dog, again and again) Tj T*\n"
        body = b"BT /F 11 Tf 13 TL 50 740 Td\n" + line % page * 50 + b"ET"
        kids.append(b"%d 0 R" % (len(objects) + 1))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R"
            b"/Resources<</Font<</F 3 0 R>>>>>>" % (len(objects) + 2)
        )
        objects.append(b"<</Length %d>>\nstream\n%s\nendstream" % (len(body), body))
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), pages)
    filler = random.Random(1).randbytes(padding)
    objects.append(b"<</Length %d>>\nstream\n%s\nendstream" % (len(filler), filler))
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(out)


def notebook(cells: int, line: str, lines: int) -> bytes:
    output = {"output_type": "stream", "name": "stdout", "text": [line + "\n"] * lines}
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [output]}
    made = [cell | {"id": f"c{n}", "source": [f"print({n})"]} for n in range(cells)]
    content = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False).encode()


BIG = {
    "JPEG photo, 24 MP": lambda: encoded(photo((6000, 4000)), "JPEG", quality=97),
    "PNG photo, 12 MP": lambda: encoded(photo((4000, 3000)), "PNG", compress_level=1),
    "PDF, 40 MB": lambda: pdf(9, 40 * MB),
    "notebook, many lines": lambda: notebook(
        200, "a line of output, 40 characters long ....", 2_000
    ),
    "notebook, one huge line with an emoji": lambda: notebook(2, "x" * 8_000_000 + "🙂", 1),
    "text, 40 MB": lambda: b"a line of text that is fifty characters long, yes\n" * 800_000,
    "text, 900 KB": lambda: b"a line of text that is fifty characters long, yes\n" * 18_000,
    "text, 900 KB of tiny lines": lambda: b"ab\n" * 300_000,
    "UTF-16 text, 40 MB": lambda: (
        "a line of text that is fifty characters long, yes\n" * 400_000
    ).encode("utf-16"),
}
TINY = {
    "JPEG": lambda: encoded(photo((2000, 100)), "JPEG"),
    "PNG": lambda: encoded(photo((2000, 100)), "PNG"),
    "PDF,": lambda: pdf(1),
    "notebook,": lambda: notebook(1, "x", 1),
}


async def read(root: str, *paths: str) -> list[float]:
    times = []
    async with Session(root) as session:
        for path in paths:
            began = time.perf_counter()
            result = await session.call("Read", file_path=path)
            times.append(time.perf_counter() - began)
            assert result.ok, result.text
            if path == paths[0]:
                reset_peak()
                print(resident("VmRSS"), end=" ")
    print(resident("VmHWM"), end=" ")
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    return times


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def memory() -> None:
    for name, make in BIG.items():
        with tempfile.TemporaryDirectory() as root:
            suffix = ".ipynb" if name.startswith("notebook") else ".bin"
            tiny = TINY.get(name.split()[0], lambda: b"tiny\n")()
            (Path(root) / f"tiny{suffix}").write_bytes(tiny)
            big = Path(root) / f"big{suffix}"
            big.write_bytes(make())
            command = [sys.executable, __file__, root, f"tiny{suffix}", f"big{suffix}"]
            env = {**os.environ, "HANDAXE_HOME": f"{root}/home"}
            out = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            before, peak, child = map(int, out.stdout.split())
            size = big.stat().st_size
            print(
                f"{name:40} {size / MB:7.1f} MB  grew by {(peak - before) / MB:7.1f} MB"
                f"  x{(peak - before) / size:5.2f}  child {child / MB:5.0f} MB"
            )


async def times() -> None:
    with tempfile.TemporaryDirectory() as root:
        place = Path(root)
        for kind in ("JPEG", "PNG", "WEBP"):
            (place / kind).write_bytes(encoded(photo((4000, 3000)), kind))
        (place / "text.pdf").write_bytes(pdf(100))
        (place / "a.ipynb").write_bytes(notebook(100, "a line of output", 50))
        async with Session(root, home=place / "home") as session:
            await session.call("Read", file_path="JPEG")
            for kind in ("JPEG", "PNG", "WEBP"):
                await timed(session, f"{kind} 4000x3000 scaled", ({"file_path": kind},))
            calls = [{"file_path": "text.pdf", "pages": f"{n}-{n + 19}"} for n in range(1, 101, 20)]
            await timed(session, "PDF, 100 pages of text in 5 calls", calls)
            await timed(session, "PDF, 10 pages with pictures", ({"file_path": "text.pdf"},))
            await timed(session, "notebook of 100 cells", ({"file_path": "a.ipynb"},))


async def timed(session: Session, name: str, calls) -> None:
    best = []
    for _ in range(3):
        began = time.perf_counter()
        for call in calls:
            result = await session.call("Read", call)
            assert result.ok, result.text
        best.append(time.perf_counter() - began)
    print(f"{name:40} {min(best) * 1000:7.0f} ms best, {max(best) * 1000:7.0f} ms worst of 3")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(read(*sys.argv[1:]))
    else:
        asyncio.run(times())
        memory()
