"""Show a picture to the model within the model's limits."""

from base64 import b64encode

from handaxe.config.settings import Settings
from handaxe.contract.content import ImageBlock
from handaxe.contract.context import ToolContext
from handaxe.contract.faults.media import NotInstalled
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.media import ImageLimits, Media, Picture
from handaxe.contract.result import ToolResult
from handaxe.session.read_ledger import ReadLedger
from handaxe.tools.files.edit_faults import TooLargeToShow
from handaxe.tools.files.read.read_data import ImageData

MAX_FILE_BYTES = 128 * 1024 * 1024


async def read_image(path: str, ctx: ToolContext) -> ToolResult:
    """The picture at `path` as a block, and a note about how it was resized."""
    media = require_media(ctx, "a picture")
    info = await ctx[Files].look(path)
    if info is not None and info.size_bytes > MAX_FILE_BYTES:
        raise TooLargeToShow(path=path, size_bytes=info.size_bytes, limit_bytes=MAX_FILE_BYTES)
    loaded = await ctx[Files].load(path, max_bytes=MAX_FILE_BYTES)
    version = loaded.version
    picture = await media.fit_image(loaded.data, read_image_limits(ctx))
    del loaded
    ctx[ReadLedger].record_read(version)
    block = to_image_block(picture)
    return ToolResult(
        _describe_image(path, picture, version.size_bytes),
        data=_to_data(path, picture, block, version.size_bytes),
        content=(block,),
    )


def require_media(ctx: ToolContext, what: str) -> Media:
    """The port that opens pictures and PDFs; a fault that says what to install if it is missing."""
    media = ctx.find(Media)
    if media is None:
        raise NotInstalled(what=what)
    return media


def read_image_limits(ctx: ToolContext) -> ImageLimits:
    """The picture limits of the settings, which count base64 bytes."""
    options = ctx[Settings].read
    return ImageLimits(options.image_max_side, options.image_max_bytes // 4 * 3)


def to_image_block(picture: Picture) -> ImageBlock:
    """A picture as a block of a message."""
    return ImageBlock(picture.media_type, b64encode(picture.data).decode("ascii"))


def _describe_image(path: str, picture: Picture, size_bytes: int) -> str:
    before = f"{picture.original_width} x {picture.original_height} pixels, {size_bytes:,} bytes"
    if not picture.is_changed:
        kind = picture.media_type.partition("/")[2].upper()
        moves = ", animated" if picture.is_animated else ""
        return f"{path}: {kind} picture, {before}{moves}; shown as it is."
    first = "the first of its frames, " if picture.is_animated else ""
    text = (
        f"{path}: picture of {before}; shown as {first}JPEG, {picture.width} x {picture.height} "
        f"pixels, {len(picture.data):,} bytes."
    )
    factor = picture.original_width / picture.width
    if factor > 1.001:
        text += f" Multiply coordinates by {factor:.4g} to get those in the original."
    return text


def _to_data(path: str, picture: Picture, block: ImageBlock, size_bytes: int) -> ImageData:
    return {
        "type": "image",
        "file": {
            "filePath": path,
            "base64": block.data,
            "type": picture.media_type,
            "originalSize": size_bytes,
            "dimensions": {
                "originalWidth": picture.original_width,
                "originalHeight": picture.original_height,
                "displayWidth": picture.width,
                "displayHeight": picture.height,
            },
        },
    }
