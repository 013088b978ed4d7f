"""Read a PDF in a child process, page by page."""

from importlib.util import find_spec
from typing import Any

from handaxe.contract.faults.media import BadPdf, EncryptedPdf, NotInstalled, TooCostly
from handaxe.contract.ports.media import ImageLimits, PageRange, PdfPage, PdfPages, Picture
from handaxe.media.child_process import LIMIT_S, Answer, run_media_child

MAX_PAGE_CHARS = 50_000

_CHILD = "handaxe.media.pdf_child"


async def read_pdf(
    data: bytes,
    ranges: tuple[PageRange, ...],
    limits: ImageLimits,
    *,
    max_pages: int,
    max_drawn: int,
    ceiling_bytes: int,
) -> PdfPages:
    """The pages in `ranges`; those that were ready if the time limit was reached."""
    request = {
        "ranges": ranges,
        "max_pages": max_pages,
        "max_drawn": max_drawn,
        "max_side": limits.max_side,
        "max_bytes": limits.max_bytes,
        "max_chars": MAX_PAGE_CHARS,
    }
    if find_spec("pypdfium2_raw") is None:
        raise NotInstalled(what="a PDF")
    packages = ("pypdfium2_raw", "PIL")
    answers = await run_media_child(_CHILD, request, data, packages, ceiling_bytes=ceiling_bytes)
    if not answers:
        raise _make_too_costly()
    return _build_pages(answers)


def _build_pages(answers: list[Answer]) -> PdfPages:
    facts, _ = answers[0]
    if facts.get("fault") == "encrypted":
        raise EncryptedPdf
    if "fault" in facts:
        raise BadPdf(reason="its structure is not readable")
    if not facts["total"]:
        raise BadPdf(reason="it has no pages")
    texts = [header for header, _ in answers[1:] if "text" in header]
    if facts["wanted"] and not texts:
        raise _make_too_costly()
    drawn = {header["page"]: _build_picture(header, body) for header, body in answers if body}
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


def _build_picture(header: dict[str, Any], body: bytes) -> Picture:
    width, height = header["size"]
    return Picture("image/jpeg", body, width, height, width, height, is_changed=True)


def _make_too_costly() -> TooCostly:
    return TooCostly(limit=f"{LIMIT_S} seconds and the memory set aside for it")
