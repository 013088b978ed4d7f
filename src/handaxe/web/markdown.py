"""Pages as Markdown: the whole text with absolute links, without scripts and hidden elements."""

import re

import msgspec

from handaxe.contract.faults.web import WrongType
from handaxe.contract.ports.web import FetchedPage, PageText
from handaxe.process.bounded_child import run_bounded_child
from handaxe.text.sanitize import escape_surrogates
from handaxe.web.body import HTML_TYPES, decode_text, is_text_type

CHILD_LIMIT_S = 20
_CHILD_BYTES = 1 << 30
_SMALL_BYTES = 64 * 1024
"""A page up to this size keeps the event loop busy for some 25 ms at most."""
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e01ef]"
)
_HEADING = re.compile(r"(#{1,6}) +(.+?)(?: +#+)?\s*")
_MAX_HEADINGS = 400
_LONG_LINE_CHARS = 2_000


async def convert_page(page: FetchedPage) -> PageText | None:
    """A page as text that a model reads; None if it is not text.

    Raises:
        WrongType: the page cannot be converted within its limits.
    """
    if page.media_type in HTML_TYPES:
        title, text = await _convert_html(page)
    elif is_text_type(page.media_type):
        title, text = "", decode_text(page.body, page.charset, is_html=False)
        if "json" in page.media_type and len(text) > _LONG_LINE_CHARS:
            text = _break_lines(text)
    else:
        return None
    text = clean_text(text)
    has_headings = page.media_type in HTML_TYPES or "markdown" in page.media_type
    return PageText(
        title=clean_line(title, 300),
        text=text,
        outline=_find_headings(text) if has_headings else (),
    )


def _break_lines(text: str) -> str:
    """JSON with a line for each value, where a line is so long that Read would cut it."""
    if max(map(len, text.split("\n"))) <= _LONG_LINE_CHARS:
        return text
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text


def clean_text(text: str) -> str:
    """Without control characters and those that only models see; lines end in one way."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", escape_surrogates(text)).strip("\n")


def clean_line(text: str, limit: int) -> str:
    """The text cleaned, in one line of limited length."""
    return " ".join(clean_text(text).split())[:limit]


async def _convert_html(page: FetchedPage) -> tuple[str, str]:
    if len(page.body) <= _SMALL_BYTES:
        from handaxe.web.markdown_child import convert_html

        return convert_html(decode_text(page.body, page.charset, is_html=True), page.url)
    answers = await run_bounded_child(
        "handaxe.web.markdown_child",
        {"charset": page.charset, "url": page.url},
        page.body,
        ("html_to_markdown",),
        limit_s=CHILD_LIMIT_S,
        memory_bytes=_CHILD_BYTES + 20 * len(page.body),
    )
    if not answers:
        raise WrongType(page.url, f"could not be converted to Markdown within {CHILD_LIMIT_S} s")
    header, text = answers[0]
    return header["title"], text.decode()


def _find_headings(text: str) -> tuple[tuple[int, int, str], ...]:
    found: list[tuple[int, int, str]] = []
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
        elif (heading := _HEADING.fullmatch(line)) is not None:
            found.append((number, len(heading[1]), heading[2][:120]))
            if len(found) == _MAX_HEADINGS:
                break
    return tuple(found)
