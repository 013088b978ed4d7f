"""What can still be made out in a settings file that is not JSON.

For looking what was meant to be forbidden: a comment, a comma too many or too few, or an end that
is missing costs no more than what stands there.
"""

import json
import re
from typing import Any, cast

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[{}\[\]:,]|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)|[^\s{}\[\]:,"]+|"', re.DOTALL
)
_MAX_DEPTH = 100


def salvage_json(text: str) -> dict[str, Any]:
    """The object that a text seems to hold; empty if it holds none."""
    reader = _Reader()
    for found in _TOKEN.finditer(text):
        reader.take(found[0])
    return reader.root


class _Reader:
    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._open: list[dict[str, Any] | list[Any]] = []
        self._name: str | None = None
        self._last: str | None = None

    def take(self, token: str) -> None:
        """One token, whether or not it fits."""
        match token:
            case "{":
                self._begin({} if self._open else self.root)
            case "[":
                self._begin([])
            case "}" | "]":
                self._end(dict if token == "}" else list)  # noqa: S105 - a bracket
            case ":":
                self._name = self._last
            case ",":
                self._name = self._last = None
            case _ if not token.startswith(("//", "/*", "#")):
                self._value(token)
            case _:
                pass

    def _begin(self, value: dict[str, Any] | list[Any]) -> None:
        if self._open:
            self._put(value)
        if len(self._open) < _MAX_DEPTH:
            self._open.append(value)
        self._name = self._last = None

    def _end(self, kind: type[Any]) -> None:
        # A bracket that was forgotten ends with the one around it.
        if any(isinstance(one, kind) for one in self._open):
            while not isinstance(self._open.pop(), kind):
                pass
        self._name = self._last = None

    def _value(self, token: str) -> None:
        try:
            value: Any = json.loads(token)
        except ValueError:
            return
        around = self._open[-1] if self._open else None
        if isinstance(around, dict) and self._name is None:
            self._last = value if isinstance(value, str) else None
        else:
            self._put(value)

    def _put(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        around = self._open[-1]
        if isinstance(around, list):
            around.append(value)
        elif self._name is not None:
            known = around.get(self._name)
            # The first of two was meant as well, and the second is filled from here on.
            if isinstance(known, list) and isinstance(value, list):
                cast("list[Any]", value).extend(cast("list[Any]", known))
            elif isinstance(known, dict) and isinstance(value, dict):
                cast("dict[str, Any]", value).update(cast("dict[str, Any]", known))
            around[self._name] = value
            self._name = self._last = None
