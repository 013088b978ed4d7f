"""Read: pictures, told by their content and made to fit."""

import base64
import contextlib
import io
import random
import struct
import zlib
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from handaxe import Session
from handaxe.contract.faults.media import BadImage, ImageTooLarge
from handaxe.contract.ports.media import ImageLimits
from handaxe.media import local_media as local
from handaxe.media.local_media import LocalMedia

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
LIMITS = ImageLimits(1568, 375_000)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def opened(result) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(result.content[0].data)))


def two_halves(size: tuple[int, int]) -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", size, "red")
    image.paste("blue", (size[0] // 2, 0, *size))
    return image


def looks_like(image: Image.Image, place: tuple[int, int], colour: tuple[int, int, int]) -> bool:
    pixel: Any = image.convert("RGB").getpixel(place)
    return all(abs(a - b) < 40 for a, b in zip(pixel, colour, strict=True))


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_small_picture_is_shown_as_it_is_whatever_its_name(session, project: Path, kind):
    data = encoded(two_halves((40, 20)), kind)
    (project / "picture.txt").write_bytes(data)
    result = await session.call("Read", file_path="picture.txt")
    media_type = f"image/{kind.lower()}"
    assert result.to_json()["content"] == [
        {"type": "image", "media_type": media_type, "data": base64.b64encode(data).decode()}
    ]
    assert result.data == {
        "type": "image",
        "file": {
            "filePath": str(project / "picture.txt"),
            "base64": base64.b64encode(data).decode(),
            "type": media_type,
            "originalSize": len(data),
            "dimensions": {
                "originalWidth": 40,
                "originalHeight": 20,
                "displayWidth": 40,
                "displayHeight": 20,
            },
        },
    }
    assert "40 x 20 pixels" in result.text


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_large_picture_is_scaled_down_and_that_is_said(session, project: Path, kind: str):
    (project / "large").write_bytes(encoded(two_halves((4000, 3000)), kind))
    result = await session.call("Read", file_path="large")
    assert opened(result).size == (1568, 1176)
    assert result.data["file"]["type"] == "image/jpeg"
    assert "4000 x 3000 pixels" in result.text
    assert "1568 x 1176" in result.text
    assert "Multiply coordinates by 2.551" in result.text
    assert looks_like(opened(result), (100, 500), (255, 0, 0))
    assert looks_like(opened(result), (1500, 500), (0, 0, 255))


async def test_noise_is_squeezed_below_the_limit(session, project: Path):
    noise = Image.frombytes("RGB", (1500, 1500), random.Random(1).randbytes(1500 * 1500 * 3))
    (project / "noise.png").write_bytes(encoded(noise, "PNG", compress_level=1))
    result = await session.call("Read", file_path="noise.png")
    assert result.ok
    assert len(result.content[0].data) <= 500_000


async def test_the_limits_are_settings(project: Path):
    (project / "a.png").write_bytes(encoded(two_halves((400, 300)), "PNG"))
    limits = {"read.image_max_side": 200, "read.image_max_bytes": 10_000}
    async with Session(project, settings=limits) as session:
        result = await session.call("Read", file_path="a.png")
        assert opened(result).size == (200, 150)


async def test_the_camera_was_held_sideways(session, project: Path):
    exif = Image.Exif()
    exif[0x0112] = 6
    (project / "photo.jpg").write_bytes(encoded(two_halves((200, 100)), "JPEG", exif=exif))
    result = await session.call("Read", file_path="photo.jpg")
    assert opened(result).size == (100, 200)
    assert looks_like(opened(result), (50, 20), (255, 0, 0))
    assert looks_like(opened(result), (50, 180), (0, 0, 255))


async def test_of_a_moving_picture_that_must_be_scaled_the_first_frame_is_shown(
    session, project: Path
):
    frames = [Image.new("RGB", (1600, 10), colour) for colour in ("red", "green", "blue")]
    moving = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    (project / "moving.gif").write_bytes(moving)
    result = await session.call("Read", file_path="moving.gif")
    assert "the first of its frames" in result.text
    assert looks_like(opened(result), (5, 5), (255, 0, 0))


async def test_what_is_transparent_becomes_white(session, project: Path):
    (project / "glass.png").write_bytes(encoded(Image.new("RGBA", (1600, 16)), "PNG"))
    result = await session.call("Read", file_path="glass.png")
    assert looks_like(opened(result), (5, 5), (255, 255, 255))


async def test_sixteen_bits_a_pixel_keep_their_greys(session, project: Path):
    (project / "deep.png").write_bytes(encoded(Image.new("I;16", (1600, 16), 32896), "PNG"))
    result = await session.call("Read", file_path="deep.png")
    assert looks_like(opened(result), (5, 5), (128, 128, 128))


@pytest.mark.parametrize("size", [(20_000, 3), (3, 20_000), (1569, 1)])
async def test_extreme_shapes_keep_at_least_a_pixel(session, project: Path, size):
    (project / "thin.png").write_bytes(encoded(Image.new("RGB", size), "PNG"))
    result = await session.call("Read", file_path="thin.png")
    assert max(opened(result).size) == 1568
    assert min(opened(result).size) == 1


def bomb(kind: str) -> bytes:
    """A header that promises 50,000 x 50,000 pixels, and next to nothing behind it."""
    side = 50_000
    if kind == "PNG":
        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        start = b"\x89PNG\r\n\x1a\n"
        for name, body in ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000))):
            check = zlib.crc32(name + body)
            start += struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)
        return start
    data = bytearray(encoded(Image.new("RGB", (16, 16)), kind))
    if kind == "GIF":
        data[6:10] = struct.pack("<HH", side, side)
    else:
        at = data.index(b"\xff\xc0") + 5
        data[at : at + 4] = struct.pack(">HH", side, side)
    return bytes(data)


@pytest.mark.parametrize("kind", ["PNG", "GIF", "JPEG"])
async def test_a_picture_that_would_unfold_to_gigabytes_is_refused_unopened(
    session, project: Path, kind: str, monkeypatch
):
    (project / "bomb").write_bytes(bomb(kind))

    def refuse(*_, **__):
        pytest.fail("its header says enough")

    monkeypatch.setattr(ImageFile.ImageFile, "load", refuse)
    monkeypatch.setattr(local, "_fit_large", refuse)
    result = await session.call("Read", file_path="bomb")
    assert result.code == "image.too_large"
    assert "50,000 x 50,000" in result.text


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_picture_that_is_cut_off_is_an_error_and_not_a_block(session, project, kind):
    whole = encoded(Image.effect_noise((300, 300), 50).convert("RGB"), kind)
    (project / "half").write_bytes(whole[: len(whole) // 2])
    result = await session.call("Read", file_path="half")
    assert result.code == "image.invalid"
    assert result.content == ()


async def test_a_picture_that_was_read_may_be_written_over(session, project: Path):
    (project / "a.png").write_bytes(encoded(Image.new("RGB", (4, 4)), "PNG"))
    await session.call("Read", file_path="a.png")
    result = await session.call("Write", file_path="a.png", content="text now")
    assert result.ok, result.text


SEEDS = [encoded(two_halves((60, 40)), kind) for kind in FORMATS]


@settings(max_examples=250, suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)))
@given(
    seed=st.sampled_from(SEEDS),
    flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=8),
    cut=st.integers(0, 10**6) | st.none(),
)
async def test_damaged_pictures_give_a_picture_or_a_fault(seed, flips, cut):
    data = bytearray(seed)
    for place, value in flips:
        data[12 + place % (len(data) - 12)] = value
    if cut is not None:
        del data[12 + cut % (len(data) - 12) :]
    with contextlib.suppress(BadImage, ImageTooLarge):
        picture = await LocalMedia().fit_image(bytes(data), LIMITS)
        assert max(picture.width, picture.height) <= 1568
