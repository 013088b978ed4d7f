"""What can be wrong with a picture or a PDF; raised by whoever offers the `Media` port."""

from handaxe.contract.faults import ToolFault


class NotInstalled(ToolFault):
    """The libraries that open this kind of file are not there."""

    code = "media.not_installed"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"Opening {what} needs an extra of handaxe that is not installed here. Ask the user to "
            "install it: pip install 'handaxe[media]'"
        )


class BadImage(ToolFault):
    """The file says it is a picture and cannot be decoded as one."""

    code = "image.invalid"

    def __init__(self, kind: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"The file begins like a {kind} picture but cannot be decoded: {reason}. It is damaged "
            "or cut off; get a fresh copy or export it again."
        )


class ImageTooLarge(ToolFault):
    """The picture would unfold to more pixels than anybody should hold in memory."""

    code = "image.too_large"

    def __init__(self, width: int, height: int, limit_pixels: int) -> None:
        self.claim = (width, height, limit_pixels)
        super().__init__(
            f"The picture claims {width:,} x {height:,} pixels; at most {limit_pixels:,} are "
            "decoded, so it was not opened. Scale it down with another program first."
        )


class BadPdf(ToolFault):
    """The file says it is a PDF and cannot be opened as one."""

    code = "pdf.invalid"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The file begins like a PDF but cannot be opened: {reason}. It is damaged or cut off; "
            "get a fresh copy, or repair it with another program."
        )


class EncryptedPdf(ToolFault):
    """The PDF opens with a password only."""

    code = "pdf.encrypted"

    def __init__(self) -> None:
        super().__init__(
            "The PDF is encrypted and opens only with a password. Ask the user for a copy without "
            "one."
        )


class NoPage(ToolFault):
    """None of the pages asked for is in the PDF."""

    code = "pdf.no_page"

    def __init__(self, asked: str, total_pages: int) -> None:
        has = f"{total_pages:,} pages" if total_pages != 1 else "one page"
        super().__init__(
            f"The PDF has {has}; there is none in {asked!r}. Ask for pages from 1 to "
            f"{max(total_pages, 1):,}.",
            data={"numPages": total_pages},
        )


class TooCostly(ToolFault):
    """Opening the PDF took more time or memory than one file may."""

    code = "pdf.too_costly"

    def __init__(self, limit: str) -> None:
        super().__init__(
            f"The PDF could not be read within {limit}; nothing of it can be shown. Ask for fewer "
            "pages, or convert it with another program."
        )
