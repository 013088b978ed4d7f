"""The `Media` port on this machine."""

import asyncio
from collections.abc import Callable
from importlib.util import find_spec

from handaxe.contract.faults.media import BadImage, ImageTooLarge, NotInstalled
from handaxe.contract.ports.media import ImageLimits, Media, PageRange, PdfPages, Picture
from handaxe.media.memory_budget import DEFAULT_BYTES
from handaxe.text.encoding import detect_image_type

SMALL_BYTES = 500_000
SMALL_PIXELS = 2_000_000
"""Up to this size images are decoded in a thread; larger ones in a child process."""
AT_ONCE = 2
"""How many images or PDFs one session opens at the same time."""
_CHILD_BYTES = 96 << 20
_BYTES_PER_PIXEL = 14
"""The memory of a child before it opens an image, and per pixel of the costliest kind."""


_CHILD = "handaxe.media.image_child"


class LocalMedia(Media):
    """Small images in a thread, others in a child process; libraries are loaded on first use."""

    def __init__(self, memory_bytes: Callable[[], int] = lambda: DEFAULT_BYTES) -> None:
        """`memory_bytes` is the limit of all children together."""
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._memory_bytes = memory_bytes

    async def fit_image(self, data: bytes, limits: ImageLimits) -> Picture:
        """A PNG, JPEG, GIF or WEBP within the limits: unchanged, or scaled and encoded again."""
        kind = detect_image_type(data)
        if kind is None:
            raise BadImage("PNG, JPEG, GIF or WEBP", "it is another format")
        async with self._turn:
            if len(data) <= SMALL_BYTES:
                picture = await asyncio.to_thread(_fit_small, data, kind, limits)
                if picture is not None:
                    return picture
            return await _fit_large(data, kind, limits, self._memory_bytes())

    async def read_pdf(
        self,
        data: bytes,
        ranges: tuple[PageRange, ...],
        limits: ImageLimits,
        *,
        max_pages: int,
        max_drawn: int,
    ) -> PdfPages:
        """Text of the pages in `ranges`, and images if at most `max_drawn` are requested."""
        from handaxe.media.pdf import read_pdf

        async with self._turn:
            return await read_pdf(
                data,
                ranges,
                limits,
                max_pages=max_pages,
                max_drawn=max_drawn,
                ceiling_bytes=self._memory_bytes(),
            )


def _fit_small(data: bytes, kind: str, limits: ImageLimits) -> Picture | None:
    """The image, decoded here; None if it decodes to too many pixels."""
    try:
        from handaxe.media.images import TooLargeHere, fit_picture
    except ImportError:
        raise NotInstalled(what="a picture") from None
    try:
        return fit_picture(data, kind, limits, max_pixels=SMALL_PIXELS)
    except TooLargeHere:
        return None


async def _fit_large(data: bytes, kind: str, limits: ImageLimits, ceiling_bytes: int) -> Picture:
    """The image, decoded by a child process, so that its pixels are never in this process."""
    from handaxe.media.child_process import run_media_child

    if find_spec("PIL") is None:
        raise NotInstalled(what="a picture")
    request = {"kind": kind, "max_side": limits.max_side, "max_bytes": limits.max_bytes}
    pixels = await asyncio.to_thread(_count_pixels, data, kind)
    answers = await run_media_child(
        _CHILD,
        request,
        data,
        ("PIL", "msgspec"),
        ceiling_bytes=ceiling_bytes,
        memory_bytes=_CHILD_BYTES + _BYTES_PER_PIXEL * pixels,
    )
    if not answers:
        raise BadImage(kind, "it exceeds the time or memory limit for one image")
    facts, body = answers[0]
    if facts.get("fault") == "too_large":
        raise ImageTooLarge(*facts["claim"])
    if "fault" in facts:
        raise BadImage(kind, facts["reason"])
    return Picture(
        facts["media_type"],
        body if facts["is_changed"] else data,
        *facts["shown"],
        *facts["original"],
        is_changed=facts["is_changed"],
        is_animated=facts["is_animated"],
    )


def _count_pixels(data: bytes, kind: str) -> int:
    from handaxe.media.images import count_pixels

    return count_pixels(data, kind)
