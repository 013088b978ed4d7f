"""The `Media` port on this machine."""

import asyncio

from handaxe.contract.media_faults import BadImage, NotInstalled
from handaxe.contract.ports.media import ImageLimits, Media, PageRange, PdfPages, Picture
from handaxe.text.magic import image_kind

AT_ONCE = 2
"""How many pictures or PDFs are open at the same time: each may take a few hundred megabytes."""


class LocalMedia(Media):
    """Pictures in a thread, PDFs in a child process; nothing is loaded before its first use."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def fit_image(self, data: bytes, limits: ImageLimits) -> Picture:
        """A PNG, JPEG, GIF or WEBP within the limits: as it is, or else scaled and encoded anew."""
        kind = image_kind(data)
        if kind is None:
            raise BadImage("PNG, JPEG, GIF or WEBP", "it is none of these")
        async with self._turn:
            try:
                return await asyncio.to_thread(_fit, data, kind, limits)
            except ImportError:
                raise NotInstalled("a picture") from None

    async def read_pdf(
        self,
        data: bytes,
        ranges: tuple[PageRange, ...],
        limits: ImageLimits,
        *,
        max_pages: int,
        max_drawn: int,
    ) -> PdfPages:
        """Text of the pages in `ranges`, and pictures where at most `max_drawn` are wanted."""
        from handaxe.host.media.pdf import read_pdf

        async with self._turn:
            return await read_pdf(data, ranges, limits, max_pages=max_pages, max_drawn=max_drawn)


def _fit(data: bytes, kind: str, limits: ImageLimits) -> Picture:
    from handaxe.host.media.pictures import fit

    return fit(data, kind, limits)
