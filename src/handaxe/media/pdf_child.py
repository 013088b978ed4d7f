"""The child process that opens one PDF: bytes on stdin, pages on stdout.

A PDF of two kilobytes can decode to gigabytes or draw for minutes, and PDFium cannot be
interrupted; a process can. It imports little, because every call starts one.
"""

import ctypes
from importlib import import_module
from typing import Any

from handaxe.process.bounded_child_io import ChildRequest
from handaxe.text.page_ranges import pick_pages

# Untyped, and all that is needed of the library: the rest of it takes as long to import again.
pdfium: Any = import_module("pypdfium2_raw")

_PASSWORD_ERROR = 4
_BGR = 2
_WHITE = 0xFFFFFFFF
_ANNOTATIONS = 1


def main() -> None:
    """Answer the request in the arguments."""
    child_request = ChildRequest()
    request, data = child_request.request, child_request.read_input()
    pdfium.FPDF_InitLibrary()
    document = pdfium.FPDF_LoadMemDocument64(data, len(data), None)
    if not document:
        encrypted = pdfium.FPDF_GetLastError() == _PASSWORD_ERROR
        child_request.send({"fault": "encrypted" if encrypted else "invalid"})
        return
    total = pdfium.FPDF_GetPageCount(document)
    wanted = pick_pages(map(tuple, request["ranges"]), total, request["max_pages"])
    child_request.send({"total": total, "wanted": wanted})
    # All text first: it is cheap, and a page that is slow to draw must not delay it.
    unseen = [number for number in wanted if _send_text(child_request, document, number)]
    for number in wanted if len(wanted) <= request["max_drawn"] else unseen:
        _send_picture(child_request, document, number)


def _send_text(child_request: ChildRequest, document: object, number: int) -> bool:
    """Send a page's text and return whether it is empty, so that the page must be drawn."""
    page = pdfium.FPDF_LoadPage(document, number - 1)
    text, is_cut = _extract_text(page, child_request.request["max_chars"]) if page else ("", False)
    child_request.send({"page": number, "text": text, "is_cut": is_cut, "is_broken": not page})
    if page:
        pdfium.FPDF_ClosePage(page)
    return bool(page) and not text.strip()


def _send_picture(child_request: ChildRequest, document: object, number: int) -> None:
    page = pdfium.FPDF_LoadPage(document, number - 1)
    limits = child_request.request["max_side"], child_request.request["max_bytes"]
    drawn = _draw(page, *limits) if page else None
    if drawn is not None:
        child_request.send({"page": number, "size": drawn[1]}, drawn[0])
    if page:
        pdfium.FPDF_ClosePage(page)


def _extract_text(page: object, max_chars: int) -> tuple[str, bool]:
    layer = pdfium.FPDFText_LoadPage(page)
    if not layer:
        return "", False
    found = max(0, pdfium.FPDFText_CountChars(layer))
    count = min(found, max_chars)
    buffer = (ctypes.c_ushort * (count + 1))()
    written = pdfium.FPDFText_GetText(layer, 0, count, buffer) if count else 0
    pdfium.FPDFText_ClosePage(layer)
    raw = bytes(buffer)[: max(0, written - 1) * 2]
    text = raw.decode("utf-16-le", "replace").replace("\r\n", "\n").replace("\0", "")
    return text, found > count


def _draw(page: object, max_side: int, max_bytes: int) -> tuple[bytes, tuple[int, int]] | None:
    """The page as JPEG; None if it has no area or the image library is missing."""
    try:
        from handaxe.media.jpeg import build_bgr_image, encode_jpeg
    except ImportError:
        return None
    width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
    longest = max(width, height)
    if not (min(width, height) > 0 and longest < float("inf")):
        return None
    scale = min(2.0, max_side / longest)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    bitmap = pdfium.FPDFBitmap_CreateEx(*size, _BGR, None, 0)
    if not bitmap:
        return None
    pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, *size, _WHITE)
    pdfium.FPDF_RenderPageBitmap(bitmap, page, 0, 0, *size, 0, _ANNOTATIONS)
    stride = pdfium.FPDFBitmap_GetStride(bitmap)
    pixels = ctypes.string_at(pdfium.FPDFBitmap_GetBuffer(bitmap), stride * size[1])
    pdfium.FPDFBitmap_Destroy(bitmap)
    return encode_jpeg(build_bgr_image(pixels, size, stride), max_bytes)


if __name__ == "__main__":
    main()
