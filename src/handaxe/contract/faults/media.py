"""Faults of images and PDFs, raised by the `Media` port."""

from handaxe.contract.faults import TemplateFault, ToolFault


class NotInstalled(
    TemplateFault,
    code="media.not_installed",
    sentence=(
        "Opening {what} needs an extra of handaxe that is not installed here. Ask the user to "
        "install it: pip install 'handaxe[media]'"
    ),
):
    """The libraries that open this kind of file are not installed."""


class BadImage(ToolFault):
    """The file begins like an image and cannot be decoded."""

    code = "image.invalid"

    def __init__(self, kind: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"The file begins like a {kind} picture but cannot be decoded: {reason}. It is damaged "
            "or cut off; get a fresh copy or export it again."
        )


class ImageTooLarge(ToolFault):
    """The image has more pixels than the limit."""

    code = "image.too_large"

    def __init__(self, width: int, height: int, limit_pixels: int) -> None:
        self.claim = (width, height, limit_pixels)
        super().__init__(
            f"The picture claims {width:,} x {height:,} pixels; at most {limit_pixels:,} are "
            "decoded, so it was not opened. Scale it down with another program first."
        )


class BadPdf(
    TemplateFault,
    code="pdf.invalid",
    sentence=(
        "The file begins like a PDF but cannot be opened: {reason}. It is damaged or "
        "incomplete. Get a new copy, or repair it with another program."
    ),
):
    """The file begins like a PDF and cannot be opened."""


class EncryptedPdf(
    TemplateFault,
    code="pdf.encrypted",
    sentence="The PDF is encrypted and needs a password. Ask the user for a copy without one.",
):
    """The PDF needs a password."""


class NoPage(ToolFault):
    """The PDF has none of the requested pages."""

    code = "pdf.no_page"

    def __init__(self, asked: str, total_pages: int) -> None:
        has = f"{total_pages:,} pages" if total_pages != 1 else "one page"
        super().__init__(
            f"The PDF has {has}, and {asked!r} names no existing page. Ask for pages from 1 to "
            f"{max(total_pages, 1):,}.",
            data={"numPages": total_pages},
        )


class TooCostly(
    TemplateFault,
    code="pdf.too_costly",
    sentence=(
        "The PDF could not be read within {limit}, so nothing of it can be shown. Ask for "
        "fewer pages, or convert it with another program."
    ),
):
    """Opening the PDF took more time or memory than the limit."""
