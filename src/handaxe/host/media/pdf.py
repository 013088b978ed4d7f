"""A PDF read by a child process that may neither run long, nor grow big, nor take us down."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from handaxe.contract.media_faults import BadPdf, EncryptedPdf, NotInstalled, TooCostly
from handaxe.contract.ports.media import ImageLimits, PageRange, PdfPage, PdfPages, Picture

LIMIT_S = 15
"""How long one call may read and draw, in seconds of the clock and of the processor."""
MEMORY_BYTES = 1 << 30
"""How much memory it may take, beside twice the size of the file."""
MAX_PAGE_CHARS = 50_000

_START = (
    "import sys; sys.path[:0] = {paths!r}; from handaxe.host.media.pdf_child import main; main()"
)
_LINE_BYTES = 16 << 20
_PIECE_BYTES = 1 << 20


async def read_pdf(
    data: bytes,
    ranges: tuple[PageRange, ...],
    limits: ImageLimits,
    *,
    max_pages: int,
    max_drawn: int,
) -> PdfPages:
    """The pages in `ranges`; those that were ready if the time was up before the last one."""
    request = {
        "ranges": ranges,
        "max_pages": max_pages,
        "max_drawn": max_drawn,
        "max_side": limits.max_side,
        "max_bytes": limits.max_bytes,
        "max_chars": MAX_PAGE_CHARS,
        "cpu_s": LIMIT_S,
        "memory_bytes": MEMORY_BYTES + 2 * len(data),
        "size_bytes": len(data),
    }
    answers: list[tuple[dict[str, Any], bytes]] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LIMIT_S), _child(request) as child:
            async for answer in _conversation(child, data):
                # One by one: what has come counts even if the time is up before the next.
                answers.append(answer)  # noqa: PERF401
    if not answers:
        raise _too_costly()
    return _pages(answers)


def _pages(answers: list[tuple[dict[str, Any], bytes]]) -> PdfPages:
    facts, _ = answers[0]
    if facts.get("fault") == "encrypted":
        raise EncryptedPdf
    if "fault" in facts:
        raise BadPdf("its structure cannot be made out")
    if not facts["total"]:
        raise BadPdf("it has no pages")
    texts = [header for header, _ in answers[1:] if "text" in header]
    if facts["wanted"] and not texts:
        raise _too_costly()
    drawn = {header["page"]: _picture(header, body) for header, body in answers if body}
    pages = tuple(
        PdfPage(
            header["page"],
            header["text"],
            is_cut=header["is_cut"],
            is_broken=header["is_broken"],
            picture=drawn.get(header["page"]),
        )
        for header in texts
    )
    return PdfPages(facts["total"], tuple(facts["wanted"]), pages)


def _picture(header: dict[str, Any], body: bytes) -> Picture:
    width, height = header["size"]
    return Picture("image/jpeg", body, width, height, width, height, is_changed=True)


def _too_costly() -> TooCostly:
    return TooCostly(f"{LIMIT_S} seconds and the memory set aside for it")


async def _conversation(
    child: asyncio.subprocess.Process, data: bytes
) -> AsyncIterator[tuple[dict[str, Any], bytes]]:
    """Hand over the PDF, then take the answers as they come."""
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(ConnectionError):
        # Piece by piece, because what is written at once is also copied at once.
        for begin in range(0, len(data), _PIECE_BYTES):
            child.stdin.write(memoryview(data)[begin : begin + _PIECE_BYTES])
            await child.stdin.drain()
        child.stdin.close()
    try:
        while line := await child.stdout.readline():
            header = json.loads(line)
            yield header, await child.stdout.readexactly(header["bytes"])
    except (asyncio.IncompleteReadError, ValueError):
        # It died in the middle of a word: what came before counts.
        return


@contextlib.asynccontextmanager
async def _child(request: dict[str, Any]) -> AsyncGenerator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        "-c",
        _START.format(paths=_paths()),
        json.dumps(request),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
        limit=_LINE_BYTES,
    )
    try:
        yield child
        await child.wait()
    finally:
        if child.returncode is None:
            # Not by `child.kill`, which looks for the exit status itself and takes it from asyncio.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await asyncio.shield(child.wait())


def _paths() -> list[str]:
    """Where the child finds what it imports: it starts without the environment's own paths."""
    found: dict[str, None] = {}
    for name in ("handaxe", "pypdfium2_raw", "PIL"):
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found[str(Path(spec.submodule_search_locations[0]).parent)] = None
        elif name == "pypdfium2_raw":
            raise NotInstalled("a PDF")
    return list(found)
