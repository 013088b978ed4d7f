"""The form of what `handaxe doctor` finds."""

import msgspec

from handaxe.shell.sandbox.probe import Standing


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fact. `key` never changes its meaning."""

    key: str
    standing: Standing
    value: str
    advice: str = ""
    """What to do, where something is missing."""
