"""Draw a part of the tour as a picture of a terminal, from the tour's real output.

`python docs/images/make_tour_svg.py` writes tour.svg beside it, `--check` says if it is stale.
"""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_name("tour.svg")
PARTS = ((r"3\. ", r" +model > "), (r"10\. ", r"\d+ calls in "))
"""Patterns of the lines that begin and end each part of the picture; the last is not in it."""

LINE_PX = 19
CHARACTER_PX = 8.1
MARGIN_PX = 18
TITLE_PX = 34
COLUMNS = 100
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff", "2": "#8b949e"}
_SGR = re.compile(r"\x1b\[(\d*)m")


def main() -> int:
    drawn = draw(part_of(output_of_tour()))
    if "--check" in sys.argv[1:]:
        is_stale = not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn
        if is_stale:
            print("docs/images/tour.svg is stale: run docs/images/make_tour_svg.py")
        return 1 if is_stale else 0
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


def output_of_tour() -> str:
    """What `handaxe tour` shows on a terminal, colours included."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    command = [sys.executable, "-m", "handaxe", "tour"]
    with subprocess.Popen(command, stdout=theirs, env=environment) as tour:  # noqa: S603
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    if tour.returncode:
        raise SystemExit("The tour did not end well; the picture is left as it is.")
    return shown.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        # Linux answers so when the other end of a terminal is closed.
        return b""


def part_of(output: str) -> list[str]:
    """The parts that are shown."""
    lines = output.split("\n")
    plain = [_SGR.sub("", line) for line in lines]
    shown = ["$ handaxe tour"]
    for begins, ends in PARTS:
        first = next(at for at, line in enumerate(plain) if re.match(begins, line))
        last = next(at for at in range(first, len(plain)) if re.match(ends, plain[at]))
        shown += ["...", *lines[first : last - 1]]
    return shown


def draw(lines: list[str]) -> str:
    width = round(2 * MARGIN_PX + COLUMNS * CHARACTER_PX)
    height = TITLE_PX + LINE_PX * len(lines) + MARGIN_PX
    colour = ""
    drawn: list[str] = []
    for number, line in enumerate(lines):
        spans, colour = _spans(line, colour)
        y = TITLE_PX + LINE_PX * number + 14
        drawn.append(f'<text x="{MARGIN_PX}" y="{y}" xml:space="preserve">{"".join(spans)}</text>')
    dots = "".join(
        f'<circle cx="{MARGIN_PX + 18 * at}" cy="16" r="5" fill="#484f58"/>' for at in range(3)
    )
    size = f'width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}"',
            ' role="img" aria-label="A part of handaxe tour">',
            f'<rect {size} rx="8" fill="#0d1117"/>',
            dots,
            '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"',
            ' font-size="13.5" fill="#e6edf3">',
            *drawn,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _spans(line: str, colour: str) -> tuple[list[str], str]:
    """A line as pieces of one colour each, and the colour it ends with."""
    spans: list[str] = []
    for text, code in _pieces(line):
        if text:
            fill = COLOURS.get(colour)
            shown = escape(text.expandtabs(8), quote=False)
            spans.append(f'<tspan fill="{fill}">{shown}</tspan>' if fill else shown)
        colour = colour if code is None else code
    return spans, colour


def _pieces(line: str) -> Iterator[tuple[str, str | None]]:
    position = 0
    for found in _SGR.finditer(line):
        yield line[position : found.start()], found[1]
        position = found.end()
    yield line[position:], None


if __name__ == "__main__":
    sys.exit(main())
