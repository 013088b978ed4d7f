"""Fit an image into limits: unchanged if possible, otherwise scaled and encoded as JPEG.

All functions block and run in a thread. Only headers are trusted before the size is checked.
"""

import io
import struct
import zlib
from typing import Any

from PIL import GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.ImageFile import ImageFile

from handaxe.contract.faults.media import BadImage, ImageTooLarge
from handaxe.contract.ports.media import ImageLimits, Picture
from handaxe.media.jpeg import encode_jpeg, resize_image, shrink_size

MAX_PIXELS = 64_000_000
MAX_SCALED_PIXELS = 256_000_000
"""For a baseline JPEG, which can be decoded at an eighth of its size."""

# Opening by class instead of `Image.open`: only these formats are tried, and the limits do not
# depend on a global variable that other libraries may set.
_OPENERS: dict[str, Any] = {
    "PNG": PngImagePlugin.PngImageFile,
    "JPEG": JpegImagePlugin.JpegImageFile,
    "GIF": GifImagePlugin.GifImageFile,
    "WEBP": WebPImagePlugin.WebPImageFile,
}
# All that decoders were seen to raise on damaged bytes.
_DAMAGE = (
    OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, EOFError,
    AttributeError, RuntimeError, RuntimeWarning, AssertionError, struct.error, zlib.error,
    Image.DecompressionBombError,
)  # fmt: skip
_ORIENTATION_TAG = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDEWAYS = frozenset({5, 6, 7, 8})


class TooLargeHere(Exception):
    """Decoding would take more memory than allowed in this process."""


def fit_picture(
    data: bytes, kind: str, limits: ImageLimits, *, max_pixels: int | None = None
) -> Picture:
    """The image in `data` within the limits."""
    try:
        with _OPENERS[kind](io.BytesIO(data)) as image:
            _refuse_bomb(image)
            if max_pixels is not None and image.width * image.height > max_pixels:
                raise TooLargeHere
            return _fit_image(image, data, kind, limits)
    except _DAMAGE as error:
        raise BadImage(kind, str(error).rstrip(". ") or type(error).__name__) from None
    except MemoryError:
        raise BadImage(kind, "there is not enough memory for it") from None


def count_pixels(data: bytes, kind: str) -> int:
    """The maximum number of decoded pixels, by the header; 0 if it is unreadable."""
    try:
        with _OPENERS[kind](io.BytesIO(data)) as image:
            return min(image.width * image.height, MAX_PIXELS)
    except (*_DAMAGE, MemoryError):
        return 0


def _fit_image(image: ImageFile, data: bytes, kind: str, limits: ImageLimits) -> Picture:
    turn = _read_orientation(image, kind)
    width, height = image.size
    original = (height, width) if turn in _SIDEWAYS else (width, height)
    moves = bool(getattr(image, "is_animated", False))
    fits = max(width, height) <= limits.max_side and len(data) <= limits.max_bytes
    if fits and turn == 1 and image.mode != "CMYK":
        # A damaged picture must be found here: in the history it would spoil every later request.
        image.load()
        media_type = f"image/{kind.lower()}"
        return Picture(media_type, data, *original, *original, is_animated=moves)
    small = _rotate_upright(_resize_to_fit(image, kind, limits.max_side), turn)
    encoded, shown = encode_jpeg(small, limits.max_bytes)
    return Picture("image/jpeg", encoded, *shown, *original, is_changed=True, is_animated=moves)


def _refuse_bomb(image: ImageFile) -> None:
    width, height = image.size
    is_scalable = image.format == "JPEG" and not image.info.get("progressive")
    limit = MAX_SCALED_PIXELS if is_scalable else MAX_PIXELS
    if width * height > limit:
        raise ImageTooLarge(width, height, limit)


def _read_orientation(image: ImageFile, kind: str) -> int:
    """The orientation in the file; 1 is upright."""
    if kind not in {"JPEG", "WEBP"}:
        return 1
    try:
        turn = image.getexif().get(_ORIENTATION_TAG, 1)
    except _DAMAGE:
        # Broken metadata does not prevent showing an image.
        return 1
    return turn if turn in _TURNS else 1


def _resize_to_fit(image: ImageFile, kind: str, max_side: int) -> Image.Image:
    size = image.size
    longest = max(size)
    target = shrink_size(size, max_side / longest) if longest > max_side else size
    if kind == "JPEG":
        image.draft(image.mode, target)
    image.load()
    plain = _to_jpeg_colors(image)
    if plain.size == target:
        return plain
    return resize_image(plain, target)


def _to_jpeg_colors(image: Image.Image) -> Image.Image:
    """The image in colours that JPEG supports; transparent parts become white."""
    if image.mode in {"RGB", "L"} and "transparency" not in image.info:
        return image
    if image.mode.startswith("I") or image.mode == "F":
        # Sixteen bits a pixel: a plain conversion would clip all but the darkest.
        untyped: Any = image.convert("F")
        return untyped.point(_to_eight_bits).convert("L")
    if image.mode == "CMYK":
        return image.convert("RGB")
    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        layered = image if image.mode == "RGBA" else image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(layered, mask=layered)
        return white
    return image.convert("RGB")


def _to_eight_bits(value: float) -> float:
    return value / 257


def _rotate_upright(image: Image.Image, turn: int) -> Image.Image:
    return image if turn == 1 else image.transpose(_TURNS[turn])
