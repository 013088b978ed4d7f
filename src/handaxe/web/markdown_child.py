"""HTML to Markdown; a child process does it for large pages, since the library holds its thread."""

import re
from html import unescape
from html.parser import HTMLParser

from handaxe.web.body import decode_text

_HIDDEN = ("script", "style", "noscript", "template")
_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,2000}?)</title", re.IGNORECASE | re.DOTALL)


def convert_html(html: str, url: str) -> tuple[str, str]:
    """Title and Markdown of a page."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        base_url=url,
        extract_metadata=False,
        preprocessing=PreprocessingOptions(enabled=False),
        strip_tags=list(_HIDDEN),
    )
    found = _TITLE.search(html)
    done = convert(html, options)
    is_whole = not any("depth_limit" in str(warning.kind) for warning in done.warnings)
    text = done.content or "" if is_whole else _extract_text(html)
    return unescape(found[1]) if found else "", text


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
    extractor.feed(html)
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
