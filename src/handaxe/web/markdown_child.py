"""HTML to Markdown; a child process does it for large pages, since the library holds its thread."""

import re
from contextlib import suppress
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urljoin

from handaxe.contract.faults.web import WebNotInstalled
from handaxe.web.body import decode_text

_HIDDEN = ("script", "style", "noscript", "template")
_TITLE = re.compile(r"<title[^>]{0,200}>((?:(?!</title).){0,2000})", re.IGNORECASE | re.DOTALL)
_META = re.compile(r"<meta\b([^>]{0,3000})>", re.IGNORECASE)
_REFRESH = re.compile(r"http-equiv\s*=\s*[\"']?\s*refresh\b", re.IGNORECASE)
_REFRESH_TARGET = re.compile(r"[;,\s]\s*url\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_HEAD_CHARS = 20_000


def convert_html(html: str, url: str) -> tuple[str, str]:
    """Title and Markdown of a page."""
    try:
        from html_to_markdown import (
            ConversionError,
            ConversionOptions,
            PreprocessingOptions,
            convert,
        )
    except ImportError:
        raise WebNotInstalled from None
    options = ConversionOptions(
        base_url=url,
        extract_metadata=False,
        preprocessing=PreprocessingOptions(enabled=False),
        strip_tags=list(_HIDDEN),
    )
    html = html.replace("\0", "")
    found = _TITLE.search(html)
    try:
        done = convert(html, options)
        is_whole = not any("depth_limit" in str(warning.kind) for warning in done.warnings)
        text = done.content or "" if is_whole else _extract_text(html)
    except ConversionError:
        text = _extract_text(html)
    return unescape(found[1]) if found else "", f"{_describe_refresh(html, url)}{text}"


def _describe_refresh(html: str, url: str) -> str:
    """A line for a page that sends browsers to another; Markdown has no other place for it."""
    for tag in _META.findall(html, 0, _HEAD_CHARS):
        target = _REFRESH_TARGET.search(tag)
        if target is None or _REFRESH.search(tag) is None:
            continue
        with suppress(ValueError):
            return f"[The page sends browsers on to {urljoin(url, unescape(target[1]))}]\n\n"
    return ""


class _TextExtractor(HTMLParser):
    """The text of a page that is nested too deeply for Markdown."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._hidden += tag in (*_HIDDEN, "title")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in (*_HIDDEN, "title") and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.pieces.append(data.strip())


def _extract_text(html: str) -> str:
    extractor = _TextExtractor()
    # The parser fails at a marked section that it does not know; like this it is a comment.
    extractor.feed(html.replace("<![", "<! ["))
    extractor.close()
    return "\n".join(extractor.pieces)


def main() -> None:
    """Answer the one request in the arguments."""
    from handaxe.process.bounded_child_io import ChildRequest

    child_request = ChildRequest()
    request, data = child_request.request, child_request.read_input()
    html = decode_text(data.raw, request["charset"], is_html=True)
    title, text = convert_html(html, request["url"])
    child_request.send({"title": title}, text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
