"""Read: PDFs by pages, and PDFs that mean no good."""

import asyncio
import base64
import contextlib
import io
import os
import random
from pathlib import Path

import pytest
from PIL import Image
from tests.waiting import until

from handaxe.contract.faults.media import BadPdf, EncryptedPdf
from handaxe.contract.ports.media import ImageLimits
from handaxe.media import child_process
from handaxe.media.local_media import LocalMedia
from handaxe.text.page_ranges import BadRange, count_pages, parse_pages, pick_pages

LIMITS = ImageLimits(1568, 375_000)


def children_of_this_process() -> set[str]:
    tasks = Path(f"/proc/{os.getpid()}/task")
    return {pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()}


async def test_a_short_pdf_is_read_whole_with_text_and_pictures(session, project: Path, pdf):
    data = pdf.many(3)
    (project / "a.bin").write_bytes(data)
    result = await session.call("Read", file_path="a.bin")
    pages = result.data["file"].pop("pages")
    assert result.data == {
        "type": "pdf",
        "file": {"filePath": str(project / "a.bin"), "originalSize": len(data), "numPages": 3},
    }
    assert [page["text"] for page in pages] == [f"This is page {n}" for n in (1, 2, 3)]
    assert "--- page 2 of 3 ---\nThis is page 2" in result.text
    assert "To go on" not in result.text
    assert [block.media_type for block in result.content] == ["image/jpeg"] * 3
    picture = Image.open(io.BytesIO(base64.b64decode(result.content[0].data)))
    assert picture.size == (1212, 1568)
    assert len(result.content[0].data) <= 500_000


async def test_of_a_long_pdf_the_first_ten_pages_come_with_how_to_go_on(session, project, pdf):
    (project / "long.pdf").write_bytes(pdf.many(27))
    result = await session.call("Read", file_path="long.pdf")
    assert [page["page"] for page in result.data["file"]["pages"]] == list(range(1, 11))
    assert f"To continue: Read(file_path='{project}/long.pdf', pages='11-20')" in result.text
    last = await session.call("Read", file_path="long.pdf", pages="26-40")
    assert [page["page"] for page in last.data["file"]["pages"]] == [26, 27]
    assert "To go on" not in last.text


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ("3", [3]),
        ("2-4,7", [2, 3, 4, 7]),
        ("5,1-2,2", [1, 2, 5]),
        ("26-", [26, 27]),
        (" 1 - 2 ", [1, 2]),
    ],
)
async def test_pages_pick_what_is_read(session, project: Path, pdf, pages: str, expected):
    (project / "long.pdf").write_bytes(pdf.many(27))
    result = await session.call("Read", file_path="long.pdf", pages=pages)
    assert [page["page"] for page in result.data["file"]["pages"]] == expected
    assert len(result.content) == len(expected)


async def test_many_pages_with_text_are_not_drawn(session, project: Path, pdf):
    (project / "long.pdf").write_bytes(pdf.many(27))
    result = await session.call("Read", file_path="long.pdf", pages="1-20")
    assert len(result.data["file"]["pages"]) == 20
    assert result.content == ()
    assert "With more than 10 pages those with text are not drawn" in result.text


@pytest.mark.parametrize(
    "pages", ["1-21", "1-10,12-30", "", "x", "0", "3-2", "1,,2", "-3", "1-2-3"]
)
async def test_pages_that_cannot_be_meant_are_bad_input(session, project: Path, pdf, pages: str):
    (project / "a.pdf").write_bytes(pdf.many(40))
    result = await session.call("Read", file_path="a.pdf", pages=pages)
    assert result.code == "call.bad_input"
    assert "pages" in result.text


async def test_a_page_that_is_not_there_is_an_error_that_says_what_is(session, project, pdf):
    (project / "a.pdf").write_bytes(pdf.many(2))
    result = await session.call("Read", file_path="a.pdf", pages="7")
    assert (result.code, result.data) == ("pdf.no_page", {"numPages": 2})
    assert "has 2 pages" in result.text


async def test_a_page_without_text_says_so_and_is_drawn(session, project: Path, pdf):
    (project / "a.pdf").write_bytes(pdf.blank())
    result = await session.call("Read", file_path="a.pdf")
    assert "There is no text on this page" in result.text
    assert len(result.content) == 1


async def test_encrypted_broken_and_empty_pdfs_give_clear_errors(session, project: Path, pdf):
    cases = {
        "pdf.encrypted": pdf.encrypted(),
        "pdf.invalid": pdf.many(2)[:60] + b"\0\0",
    }
    for code, data in cases.items():
        (project / "a.pdf").write_bytes(data)
        result = await session.call("Read", file_path="a.pdf")
        assert result.code == code, result.text
    (project / "none.pdf").write_bytes(pdf.empty())
    none = await session.call("Read", file_path="none.pdf")
    assert none.code == "pdf.invalid"
    assert "no pages" in none.text


async def test_text_that_only_begins_like_a_pdf_is_shown_as_text(session, project: Path):
    (project / "notes.txt").write_text("%PDF-1.7 is how a PDF begins\n")
    result = await session.call("Read", file_path="notes.txt")
    assert result.ok
    assert result.data["file"]["content"] == "%PDF-1.7 is how a PDF begins"
    assert "is not valid" in result.text


@pytest.mark.parametrize("box", [b"0 0 1 100000", b"0 0 14400 14400", b"0 0 0 0", b"5 5 -5 -5"])
async def test_pages_of_any_size_are_bounded(session, project: Path, pdf, box: bytes):
    (project / "a.pdf").write_bytes(pdf.with_box(box))
    result = await session.call("Read", file_path="a.pdf")
    assert result.ok, result.text
    for block in result.content:
        picture = Image.open(io.BytesIO(base64.b64decode(block.data)))
        assert max(picture.size) <= 1568


async def test_a_pdf_that_unfolds_to_gigabytes_is_given_up(
    session, project: Path, pdf, monkeypatch
):
    monkeypatch.setattr(child_process, "MEMORY_BYTES", 200 << 20)
    # Not the time it takes is what ends it.
    monkeypatch.setattr(child_process, "LIMIT_S", 600)
    bomb = pdf.flate_bomb(150)
    assert len(bomb) < 5_000
    (project / "bomb.pdf").write_bytes(bomb)
    result = await session.call("Read", file_path="bomb.pdf")
    assert result.code == "pdf.too_costly"


async def test_a_page_that_takes_for_ever_to_draw_still_gives_its_text(
    session, project: Path, pdf, monkeypatch
):
    monkeypatch.setattr(child_process, "LIMIT_S", 3)
    before = children_of_this_process()
    (project / "slow.pdf").write_bytes(pdf.drawing_bomb(300_000))
    result = await session.call("Read", file_path="slow.pdf")
    assert "A word before the bomb" in result.text
    assert "could not be drawn" in result.text
    assert children_of_this_process() <= before


async def test_a_cancelled_read_leaves_no_process(pdf, monkeypatch):
    monkeypatch.setattr(child_process, "LIMIT_S", 600)
    before = children_of_this_process()
    reading = asyncio.create_task(
        LocalMedia().read_pdf(
            pdf.drawing_bomb(300_000), ((1, 1),), LIMITS, max_pages=1, max_drawn=1
        )
    )
    await until(lambda: not children_of_this_process() <= before)
    # Somewhere in the middle of its work.
    await asyncio.sleep(0.3)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert children_of_this_process() <= before


async def test_a_pdf_in_the_project_cannot_choose_what_the_child_imports(session, project, pdf):
    (project / "json.py").write_text("raise SystemExit(9)\n")
    (project / "a.pdf").write_bytes(pdf.many(1))
    before = Path.cwd()
    os.chdir(project)
    try:
        result = await session.call("Read", file_path="a.pdf")
    finally:
        os.chdir(before)
    assert result.ok


async def test_damaged_pdfs_give_pages_or_a_fault(pdf):
    chance = random.Random(7)
    whole = pdf.many(2)
    media = LocalMedia()
    for _ in range(12):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        del data[chance.randrange(len(data) // 2, len(data) + 1) :]
        with contextlib.suppress(BadPdf, EncryptedPdf):
            found = await media.read_pdf(bytes(data), ((1, 2),), LIMITS, max_pages=2, max_drawn=2)
            assert len(found.pages) == len(found.wanted)


def test_ranges_are_parsed_counted_and_picked():
    assert parse_pages("2-4, 7,9-") == ((2, 4), (7, 7), (9, None))
    assert count_pages(parse_pages("1-5,3-8,20-")) == 9
    assert pick_pages(parse_pages("3-5,4-6,1"), 5, 20) == [1, 3, 4, 5]
    assert pick_pages(parse_pages("1-"), 100, 3) == [1, 2, 3]
    assert pick_pages(parse_pages("8-9"), 5, 20) == []
    with pytest.raises(BadRange):
        parse_pages("99999999999")
