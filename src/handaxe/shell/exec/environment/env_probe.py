"""Programs that are asked something on the way to a command: what they print, apart from errors.

They run as commands do, in the same sandbox and under the same warden, and those have one pipe.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping

import msgspec


class ProbeResult(msgspec.Struct, frozen=True):
    """What a program answered."""

    exit_code: int
    out: bytes
    error: str


Ask = Callable[[str, str, Mapping[str, str]], Awaitable[ProbeResult | None]]
"""Runs a text in a directory with an environment; None: no answer in time."""


class ShellProbe:
    """One text, framed so that its answer can be told from its errors."""

    def __init__(self, text: str) -> None:
        self._sign = secrets.token_hex(8)
        self.framed = (
            f"exec 4>&1\n"
            f"said=$(exec 2>&1 >&4 4>&-\n{text}\n)\n"
            f"printf '\\n%s %s\\n%s' {self._sign} $? \"$said\"\n"
        )

    def answer(self, raw: bytes) -> ProbeResult | None:
        """What was said, out of all that came through the pipe."""
        out, sign, rest = raw.rpartition(f"\n{self._sign} ".encode())
        code, _, error = rest.partition(b"\n")
        if not sign or not code.isdigit():
            return None
        return ProbeResult(int(code), out, error.decode(errors="replace"))
