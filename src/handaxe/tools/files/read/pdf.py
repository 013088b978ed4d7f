"""Show pages of a PDF as text and pictures."""

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import BadInput
from handaxe.contract.faults.media import NoPage
from handaxe.contract.ports.files import Files, FileVersion
from handaxe.contract.ports.media import PageRange, PdfPage, PdfPages
from handaxe.contract.result import ToolResult
from handaxe.session.read_ledger import ReadLedger
from handaxe.text.escape import format_count
from handaxe.text.page_ranges import BadRange, count_pages, parse_pages
from handaxe.tools.files.edit_faults import TooLargeToShow
from handaxe.tools.files.read.image import read_image_limits, require_media, to_image_block
from handaxe.tools.files.read.read_data import PageImageData, PdfData, PdfPageData

DEFAULT_PAGES = 10
MAX_PAGES = 20
MAX_DRAWN = 10
"""Up to this many pages are drawn; of more pages only those without text."""
MAX_FILE_BYTES = 256 * 1024 * 1024

# No line of a PDF can be seen as such; the ledger still has to know that this is not all of it.
_NO_LINE = (0, 0)


def parse_page_ranges(pages: str | None) -> tuple[PageRange, ...]:
    """The requested pages; the first ten by default."""
    if pages is None:
        return ((1, DEFAULT_PAGES),)
    try:
        ranges = parse_pages(pages)
    except BadRange as bad:
        raise BadInput(
            "Read", [f"The parameter `pages`: {bad}; write `3`, `1-5` or `2-4,7`"]
        ) from None
    count = count_pages(ranges)
    if count > MAX_PAGES:
        limit = f"at most {MAX_PAGES} can be read with one call"
        raise BadInput("Read", [f"The parameter `pages` asks for {count:,} pages; {limit}"])
    return ranges


async def read_pdf(path: str, pages: str | None, ctx: ToolContext) -> ToolResult:
    """Text and pictures of the requested pages, and how to continue."""
    media = require_media(ctx, "a PDF")
    info = await ctx[Files].look(path)
    if info is not None and info.size_bytes > MAX_FILE_BYTES:
        raise TooLargeToShow(path=path, size_bytes=info.size_bytes, limit_bytes=MAX_FILE_BYTES)
    loaded = await ctx[Files].load(path, max_bytes=MAX_FILE_BYTES)
    version = loaded.version
    found = await media.read_pdf(
        loaded.data,
        parse_page_ranges(pages),
        read_image_limits(ctx),
        max_pages=MAX_PAGES,
        max_drawn=MAX_DRAWN,
    )
    del loaded
    if not found.wanted:
        raise NoPage(pages or "1", found.total_pages)
    is_whole = len(found.pages) == found.total_pages
    ctx[ReadLedger].record_read(version, lines=None if is_whole else _NO_LINE)
    return _build_result(path, version, found)


def _build_result(path: str, version: FileVersion, found: PdfPages) -> ToolResult:
    total = found.total_pages
    parts = [
        f"{path}: PDF, {format_count(total, 'page')}, {format_count(version.size_bytes, 'byte')}."
    ]
    parts += [_format_page(page, total) for page in found.pages]
    notices = _format_notices(path, found)
    if notices:
        parts.append("\n".join(f"[{line}]" for line in notices))
    data: PdfData = {
        "type": "pdf",
        "file": {
            "filePath": path,
            "originalSize": version.size_bytes,
            "numPages": total,
            "pages": [_to_page_data(page) for page in found.pages],
        },
    }
    return ToolResult(
        "\n\n".join(parts),
        data=data,
        content=tuple(to_image_block(page.picture) for page in found.pages if page.picture),
    )


def _format_page(page: PdfPage, total: int) -> str:
    shown = page.text.strip("\n")
    if page.is_broken:
        shown = "[This page is damaged and cannot be opened.]"
    elif not shown.strip():
        shown = "[There is no text on this page.]"
    elif page.is_cut:
        shown += f"\n[There is more text on this page; {len(page.text):,} characters are shown.]"
    return f"--- page {page.number} of {total} ---\n{shown}"


def _to_page_data(page: PdfPage) -> PdfPageData:
    picture = page.picture
    drawn: PageImageData | None = None
    if picture:
        drawn = {"width": picture.width, "height": picture.height}
    return {"page": page.number, "text": page.text, "image": drawn}


def _format_notices(path: str, found: PdfPages) -> list[str]:
    notices: list[str] = []
    drawn = [page.number for page in found.pages if page.picture]
    if drawn:
        notices.append(f"Pictures of pages {_format_ranges(drawn)} are attached, in this order.")
    if len(found.pages) < len(found.wanted):
        missing = [str(number) for number in found.wanted[len(found.pages) :]]
        notices.append(
            f"The time limit was reached before page {missing[0]}; ask for fewer pages at once."
        )
    plain = len(found.pages) - len(drawn)
    if plain and len(found.wanted) > MAX_DRAWN:
        notices.append(f"With more than {MAX_DRAWN} pages those with text are not drawn.")
    elif plain:
        notices.append(f"{plain} of the pages could not be drawn.")
    last = found.pages[-1].number
    if last < found.total_pages:
        until = min(last + DEFAULT_PAGES, found.total_pages)
        notices.append(f"To continue: Read(file_path={path!r}, pages='{last + 1}-{until}')")
    return notices


def _format_ranges(numbers: list[int]) -> str:
    """Format 1, 2, 3 and 7 as `1-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
