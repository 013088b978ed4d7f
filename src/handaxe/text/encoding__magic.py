"""What a file is by its first bytes; names and suffixes are not believed."""

HEAD_BYTES = 1024
"""How much of a file has to be seen to know."""


def detect_image_type(head: bytes) -> str | None:
    """`PNG`, `JPEG`, `GIF` or `WEBP`; None for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WEBP"
    return None


def is_pdf(head: bytes) -> bool:
    """Whether this is how a PDF begins; some have a few bytes of something else in front."""
    if head.startswith(b"%PDF-"):
        return True
    at = head.find(b"\n%PDF-", 0, HEAD_BYTES)
    return at >= 0 and b"\0" in head[:at]
