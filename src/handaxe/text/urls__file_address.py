"""`file:` addresses as paths, decoded in one place for all. What is there is not looked at."""

import re

_FILE_URI = re.compile(rb"file:(?://(?:localhost)?(?=/)|(?=/(?!/)))", re.IGNORECASE)


def parse_file_uri(uri: str) -> str | None:
    """The path that a `file:` address stands for; None for any other address."""
    from urllib.parse import unquote_to_bytes

    try:
        raw = uri.encode()
    except UnicodeEncodeError:
        return None
    found = _FILE_URI.match(raw)
    if found is None:
        return None
    # What follows ? or # belongs to the address; in a path both are written as escapes.
    decoded = unquote_to_bytes(re.split(rb"[?#]", raw[found.end() :])[0])
    return None if b"\0" in decoded else decoded.decode("utf-8", "surrogateescape")
