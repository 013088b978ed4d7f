"""Files that are text in another encoding than ripgrep expects, by the names ripgrep has for it.

The guess is the one Read and Edit make, over the beginning of the file.
"""

import os

from handaxe.search.walk.root__beneath import open_beneath
from handaxe.text.encoding import NotText, sniff

HEAD_BYTES = 1 << 16
_SAME = frozenset(f"windows-125{number}" for number in range(8)) | {
    "koi8-r",
    "koi8-u",
    "gbk",
    "gb18030",
    "big5",
    "shift_jis",
    "euc-jp",
    "euc-kr",
}
_CALLED = {
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "cp950": "big5",
    "cp866": "ibm866",
    "cp874": "windows-874",
    "iso-8859-1": "windows-1252",
    "iso8859-2": "iso-8859-2",
    "iso8859-5": "iso-8859-5",
    "iso8859-7": "iso-8859-7",
}


def detect_foreign_encoding(path: str | bytes, directory: int) -> str | None:
    """What ripgrep has to be told to read a file; None for what it reads as it is."""
    try:
        file = open_beneath(directory, path)
    except OSError:
        return None
    try:
        head = os.read(file, HEAD_BYTES)
    except OSError:
        return None
    finally:
        os.close(file)
    if len(head) == HEAD_BYTES:
        # A character may be cut in two at the end; a line is not.
        head = head[: head.rfind(b"\n") + 1] or head[:-4]
    if head.isascii():
        return None
    try:
        name = sniff(head).encoding
    except NotText:
        return None
    return name if name in _SAME else _CALLED.get(name)
