"""A picture of a page, drawn by the real Chromium; `scripts/check` installs it."""

import io
import shutil
from base64 import b64decode
from pathlib import Path

import pytest
from PIL import Image
from tests.web.page_server import Reply, serve_pages

from handaxe import Session
from handaxe.content import ImageBlock

pytestmark = [
    pytest.mark.proves("BT-10", "S13"),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium here"),
]


async def test_a_page_is_drawn_and_reaches_no_other_host(project: Path):
    with serve_pages(secret="mine") as other, serve_pages() as pages:
        pages.pages["/p"] = _page(
            f"<img src='{other.url('/secret', host='127.0.0.1')}'>"
            f"<iframe src='{other.url('/secret', host='[::1]')}'></iframe>"
            "<iframe src='http://169.254.169.254/'></iframe>"
            "<div style='background: red; width: 100%; height: 800px'></div>"
        )
        async with Session(
            project,
            allow=["WebFetch(domain:localhost)"],
            settings={"web": {"screenshot": True, "timeout_s": 60}},
        ) as session:
            result = await session.call("WebFetch", url=pages.url("/p"), prompt="What is there?")
        assert result.ok, result.text
        [picture] = result.content
        assert isinstance(picture, ImageBlock)
        with Image.open(io.BytesIO(b64decode(picture.data))) as drawn:
            assert drawn.size == (1280, 1600)
            colours = drawn.convert("RGB").getcolors(1 << 24) or []
        assert (255, 0, 0) in {colour for _, colour in colours}
        assert not other.asked


def _page(body: str) -> Reply:
    return Reply(f"<title>P</title>{body}")
