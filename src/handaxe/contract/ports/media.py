"""Make pictures and PDF pages small enough for a model.

Bytes come in and go out: the `Files` port reads the files. Failures are raised as one of the faults
in `handaxe.contract.faults.media`.
"""

from abc import ABC, abstractmethod

import msgspec

PageRange = tuple[int, int | None]
"""First and last page, counted from 1; without a last page it continues to the end."""


class ImageLimits(msgspec.Struct, frozen=True):
    """The limits of an image."""

    max_side: int
    max_bytes: int


class Picture(msgspec.Struct, frozen=True):
    """A picture ready to be shown, and what it was made from."""

    media_type: str
    data: bytes
    width: int
    height: int
    original_width: int
    original_height: int
    is_changed: bool = False
    """Whether the bytes are not those that came in."""
    is_animated: bool = False
    """Whether the original has several frames; a changed picture is the first of them."""


class PdfPage(msgspec.Struct, frozen=True):
    """One page: its text, and how it looks where it was drawn."""

    number: int
    text: str
    is_cut: bool = False
    """Whether the page has more text than this."""
    is_broken: bool = False
    picture: Picture | None = None


class PdfPages(msgspec.Struct, frozen=True):
    """Some pages of a PDF."""

    total_pages: int
    wanted: tuple[int, ...]
    """The pages that were meant; more than `pages` if the time was up before the last of them."""
    pages: tuple[PdfPage, ...]


class Media(ABC):
    """Opens pictures and PDFs."""

    @abstractmethod
    async def fit_image(self, data: bytes, limits: ImageLimits) -> Picture:
        """A PNG, JPEG, GIF or WEBP within the limits: unchanged, or scaled and encoded again."""

    @abstractmethod
    async def read_pdf(
        self,
        data: bytes,
        ranges: tuple[PageRange, ...],
        limits: ImageLimits,
        *,
        max_pages: int,
        max_drawn: int,
    ) -> PdfPages:
        """Text of the pages in `ranges`, and pictures where at most `max_drawn` are wanted.

        A page without text is drawn in any case: there is nothing else to see of it.
        """
