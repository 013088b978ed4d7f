"""The one way in which the text of a settings file can be no settings at all."""


class BadSettingsJson(Exception):
    """The text is not JSON: on which line, and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason
