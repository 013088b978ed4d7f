"""JPEG with a maximum number of bytes; the PDF child uses it, so it imports nothing of handaxe."""

import io
from typing import Any

from PIL import Image

QUALITIES = (85, 75, 60, 45)
SMALLEST_SIDE = 32


def encode_jpeg(image: Image.Image, max_bytes: int) -> tuple[bytes, tuple[int, int]]:
    """The image as JPEG and its size: first less quality, then fewer pixels, until it fits."""
    while True:
        for quality in QUALITIES:
            buffer = io.BytesIO()
            image.save(buffer, "JPEG", quality=quality)
            if buffer.tell() <= max_bytes or max(image.size) <= SMALLEST_SIDE:
                return buffer.getvalue(), image.size
        image = resize_image(image, shrink_size(image.size, 0.7))


def build_bgr_image(pixels: bytes, size: tuple[int, int], stride: int) -> Image.Image:
    """An image over raw pixels, three bytes each, rows `stride` bytes apart."""
    return Image.frombuffer("RGB", size, pixels, "raw", "BGR", stride, 1)


def resize_image(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """The image in another size."""
    # The library's own types name another library that is not here, so they are not looked at.
    untyped: Any = image
    return untyped.resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0)


def shrink_size(size: tuple[int, int], factor: float) -> tuple[int, int]:
    """The size times `factor`, never less than one pixel."""
    width, height = (max(1, round(side * factor)) for side in size)
    return width, height
