"""The data of Read: one shape for each kind of file, distinguished by `type`."""

from typing import Annotated, Literal, NotRequired, TypedDict

Indentation = Literal["tabs", "spaces", "mixed"]


class OutlineEntryData(TypedDict):
    """A heading or a definition."""

    line: Annotated[int, "The line, or the cell of a notebook, from 1."]
    text: str


class OutlineData(TypedDict):
    """Headings and definitions of a file that is shown in part."""

    marks: Annotated[list[OutlineEntryData], "A selection, spread over the whole file."]
    total: Annotated[int, "The total number."]


class OutlineFacts(TypedDict, total=False):
    """Data added to every result of Read."""

    outline: OutlineData


class TextFileData(TypedDict):
    """The lines that were read."""

    filePath: str
    content: Annotated[str, "The lines without numbers."]
    numLines: int
    startLine: int
    totalLines: int
    truncatedByTokenCap: NotRequired[Annotated[bool, "True: fewer lines than requested."]]


class TextData(TypedDict):
    """A text file."""

    type: Literal["text"]
    file: TextFileData
    encoding: str
    hasBom: bool
    sizeBytes: int
    indentation: Indentation | None
    outline: NotRequired[OutlineData]


class DimensionsData(TypedDict):
    """The size of a picture, and the size at which it is shown."""

    originalWidth: int
    originalHeight: int
    displayWidth: int
    displayHeight: int


class ImageFileData(TypedDict):
    """The picture as shown."""

    filePath: str
    base64: str
    type: Annotated[str, "Its media type, such as `image/png`."]
    originalSize: Annotated[int, "Size of the file in bytes."]
    dimensions: DimensionsData


class ImageData(TypedDict):
    """A picture."""

    type: Literal["image"]
    file: ImageFileData


class PageImageData(TypedDict):
    """The size of a page's picture, in pixels."""

    width: int
    height: int


class PdfPageData(TypedDict):
    """One page."""

    page: Annotated[int, "Its number, from 1."]
    text: str
    image: Annotated[PageImageData | None, "Its picture, which is part of the content."]


class PdfFileData(TypedDict):
    """The pages that were read."""

    filePath: str
    originalSize: Annotated[int, "Size of the file in bytes."]
    numPages: Annotated[int, "Number of pages."]
    pages: list[PdfPageData]


class PdfData(TypedDict):
    """Pages of a PDF."""

    type: Literal["pdf"]
    file: PdfFileData


class CellOutputData(TypedDict):
    """One output of a cell."""

    output_type: Annotated[str, "Its kind in the notebook, such as `stream`."]
    text: str
    image: NotRequired[Annotated[str, "The media type of its picture."]]
    isShown: NotRequired[Annotated[bool, "Whether the picture is part of the content."]]
    leftOutChars: NotRequired[int]


class CellData(TypedDict):
    """One cell."""

    index: Annotated[int, "Its index, from 0."]
    cell_id: str
    cell_type: str
    source: str
    execution_count: int | None
    outputs: list[CellOutputData]


class NotebookFileData(TypedDict):
    """The cells that were read."""

    filePath: str
    cells: list[CellData]
    totalCells: int
    language: str


class NotebookData(TypedDict):
    """Cells of a notebook."""

    type: Literal["notebook"]
    file: NotebookFileData
    sizeBytes: int
    outline: NotRequired[OutlineData]


ReadData = TextData | ImageData | PdfData | NotebookData
