"""Pictures that a provider would refuse are left out and named."""

import base64
import io

import pytest

from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.messages import ToolResultBlock, UserMessage
from handaxe.schema.image_limits import ANTHROPIC, find_unsendable_images, read_image_size


def picture(width: int, height: int, kind: str = "PNG", **options) -> ImageBlock:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, kind, **options)
    return ImageBlock(f"image/{kind.lower()}", base64.b64encode(file.getvalue()).decode())


def said(*blocks) -> tuple[UserMessage, ...]:
    return (UserMessage(tuple(blocks)),)


@pytest.mark.parametrize(
    ("kind", "options"),
    [("PNG", {}), ("JPEG", {}), ("GIF", {}), ("WEBP", {}), ("WEBP", {"lossless": True}),
     ("JPEG", {"progressive": True}), ("JPEG", {"exif": b"Exif\0\0" + b"x" * 5000})],
)  # fmt: skip
def test_the_size_is_read_from_the_head_of_each_kind(kind: str, options: dict):
    raw = base64.b64decode(picture(301, 77, kind, **options).data)
    assert read_image_size(raw) == (301, 77)


def test_the_size_of_an_extended_webp_is_read():
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGBA", (301, 77), (1, 2, 3, 4)).save(file, "WEBP")
    assert read_image_size(file.getvalue()) == (301, 77)


@pytest.mark.parametrize("cut", [0, 3, 9, 20, 25])
def test_half_a_head_has_no_size(cut: int):
    assert read_image_size(base64.b64decode(picture(3, 3, "JPEG").data)[:cut]) is None


def test_good_pictures_stay():
    assert find_unsendable_images(said(picture(10, 10), TextBlock("x")), ANTHROPIC) == {}


@pytest.mark.parametrize(
    ("block", "word"),
    [
        (ImageBlock("image/bmp", "Qk0="), "image/bmp"),
        (ImageBlock("image/png", "A" * (6 * 1024 * 1024)), "base64"),
        (ImageBlock("image/png", "AAAAA"), "base64"),
        (ImageBlock("image/png", base64.b64encode(b"hello").decode()), "not a picture"),
    ],
)
def test_a_bad_picture_is_replaced_by_a_sentence(block: ImageBlock, word: str):
    sentence = find_unsendable_images(said(block), ANTHROPIC)[id(block)]
    assert word in sentence


def test_a_picture_with_too_many_pixels_is_left_out():
    block = picture(8001, 1)
    assert "8001 x 1 pixels" in find_unsendable_images(said(block), ANTHROPIC)[id(block)]


def test_among_many_pictures_smaller_ones_are_wanted():
    blocks = [picture(2500, 1) for _ in range(21)]
    assert len(find_unsendable_images(said(*blocks), ANTHROPIC)) == 21
    assert find_unsendable_images(said(*blocks[:20]), ANTHROPIC) == {}


@pytest.mark.proves("AR-3")
def test_sixty_large_screenshots_never_make_a_request_too_large():
    blocks = [ImageBlock("image/png", picture(1999, 2).data + "A" * 1_000_000) for _ in range(60)]
    results = [ToolResultBlock(f"t{i}", (block,)) for i, block in enumerate(blocks)]
    out = find_unsendable_images(said(*results), ANTHROPIC)
    kept = [block for block in blocks if id(block) not in out]
    assert sum(len(block.data) for block in kept) <= ANTHROPIC.all_chars
    # The newest are the ones that matter.
    assert kept == blocks[-len(kept) :]
    assert len(kept) > 20
