"""Roughly how many model tokens a text costs.

An estimate for budgets and displays, within about a fifth for prose, code and CJK. It is not a
tokenizer: every model family has its own, and all of them cost too much for this purpose.
"""

_WINDOWS = 8
_WINDOW_CHARS = 256
_WHOLE_CHARS = _WINDOWS * _WINDOW_CHARS

_GUESSED_CHARS = 32

_DIGITS = b"0123456789"
_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123))
_BLANKS = b" \t\r\n"
_WORDLIKE = _LETTERS + _DIGITS + _BLANKS
_ASCII = bytes(range(128))


def estimate_tokens(text: str) -> int:
    """The estimated number of tokens; 0 only for the empty text."""
    length = len(text)
    if length <= _GUESSED_CHARS and text.isascii():
        return (length + 3) // 4
    if length <= _WHOLE_CHARS:
        return _estimate_part(text)
    # Windows spread evenly: a file may begin with prose and go on with numbers.
    step = (length - _WINDOW_CHARS) // (_WINDOWS - 1)
    sample = "".join([text[at : at + _WINDOW_CHARS] for at in range(0, step * _WINDOWS, step)])
    return max(1, round(_estimate_part(sample) * length / len(sample)))


def _estimate_part(text: str) -> int:
    raw = text.encode("utf-8", "surrogatepass")
    size = len(raw)
    foreign = 0 if text.isascii() else len(raw.translate(None, _ASCII))
    marks = len(raw.translate(None, _WORDLIKE)) - foreign
    digits = size - len(raw.translate(None, _DIGITS))
    blanks = size - len(raw.translate(None, _BLANKS))
    letters = size - foreign - marks - digits - blanks
    weight = (
        letters / 4 + digits / 2.5 + marks * 0.75 + raw.count(b"\n") * 0.5
        # Three bytes make one CJK character, and that is about one token.
        + foreign * 0.3
        # Blanks between words come free; only long runs of them are tokens of their own.
        + blanks * 0.02
    )  # fmt: skip
    return max(1, round(weight))
