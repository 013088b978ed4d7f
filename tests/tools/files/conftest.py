"""Files to read: PDFs and notebooks made by hand, so that every byte of them is known."""

import json
import zlib
from io import BytesIO
from typing import Any

import pytest

FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def _pdf(objects: list[bytes], trailer: bytes = b"") -> bytes:
    out = BytesIO()
    out.write(b"%PDF-1.7\n%\x80\x80\n")
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    out.write(b"trailer\n<</Size %d/Root 1 0 R%s>>\n" % (len(objects) + 1, trailer))
    out.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


def _stream(content: bytes, facts: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>\nstream\n%s\nendstream" % (facts, len(content), content)


def _pages(contents: list[bytes], trailer: bytes = b"", box: bytes = b"0 0 612 792") -> bytes:
    """A PDF with one page for each content stream object."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * index) for index in range(len(contents)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(contents)),
        FONT,
    ]
    for index, content in enumerate(contents):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[%s]/Contents %d 0 R" % (box, 5 + 2 * index)
            + b"/Resources<</Font<</F 3 0 R>>>>>>"
        )
        objects.append(content)
    return _pdf(objects, trailer)


def _text_page(text: str) -> bytes:
    return _stream(b"BT /F 24 Tf 72 700 Td (%s) Tj ET" % text.encode())


class PdfMaker:
    """Makes small PDFs."""

    def text(self, *pages: str) -> bytes:
        """One page for each text."""
        return _pages([_text_page(text) for text in pages])

    def many(self, count: int) -> bytes:
        """Pages with `This is page N` on them."""
        return self.text(*(f"This is page {number}" for number in range(1, count + 1)))

    def blank(self) -> bytes:
        """One page with nothing on it."""
        return _pages([_stream(b"")])

    def empty(self) -> bytes:
        """A PDF without pages."""
        return _pages([])

    def encrypted(self) -> bytes:
        """A PDF that wants a password."""
        key = b"<" + b"ab" * 32 + b">"
        facts = b"/Encrypt<</Filter/Standard/V 1/R 2/O%s/U%s/P -44>>" % (key, key)
        return _pages([_text_page("secret")], facts + b"/ID[<00><00>]")

    def flate_bomb(self, megabytes: int) -> bytes:
        """A page whose content unfolds twice, from two kilobytes to what is asked for."""
        packer = zlib.compressobj(9)
        parts = [packer.compress(b" " * 1_000_000) for _ in range(megabytes)]
        body = zlib.compress(b"".join(parts) + packer.flush(), 9)
        return _pages([_stream(body, b"/Filter[/FlateDecode/FlateDecode]")])

    def drawing_bomb(self, strokes: int) -> bytes:
        """A page with a word on it that takes very long to draw."""
        lines = b"0 0 m 600 600 l 300 10 500 20 100 500 c S\n" * strokes
        word = b"BT /F 24 Tf 72 700 Td (A word before the bomb) Tj ET\n"
        return _pages([_stream(zlib.compress(word + lines, 9), b"/Filter/FlateDecode")])

    def with_box(self, box: bytes) -> bytes:
        """A page of any size."""
        return _pages([_text_page("wide")], box=box)


@pytest.fixture
def pdf() -> PdfMaker:
    return PdfMaker()


class NotebookMaker:
    """Makes notebooks."""

    def code(self, source: str, cell_id: str | None = None, outputs: Any = ()) -> dict[str, Any]:
        cell: dict[str, Any] = {"cell_type": "code", "execution_count": 1, "metadata": {}}
        cell |= {"outputs": list(outputs), "source": source.splitlines(keepends=True)}
        return cell | ({"id": cell_id} if cell_id else {})

    def markdown(self, source: str, cell_id: str | None = None) -> dict[str, Any]:
        cell: dict[str, Any] = {"cell_type": "markdown", "metadata": {}, "source": source}
        return cell | ({"id": cell_id} if cell_id else {})

    def of(self, *cells: dict[str, Any], minor: int = 5) -> dict[str, Any]:
        facts = {"display_name": "Python 3", "language": "python", "name": "python3"}
        return {
            "cells": list(cells),
            "metadata": {"kernelspec": facts},
            "nbformat": 4,
            "nbformat_minor": minor,
        }

    def text(self, *cells: dict[str, Any], minor: int = 5) -> str:
        """A notebook as Jupyter writes it."""
        return json.dumps(self.of(*cells, minor=minor), indent=1, ensure_ascii=False) + "\n"


@pytest.fixture
def notebook() -> NotebookMaker:
    return NotebookMaker()
