"""Permission modes: how strict a session is if no rule applies."""

from typing import get_args

from handaxe.session.permission_state import Mode

_SPELLINGS = {"manual": "default"}
_MODES: tuple[Mode, ...] = get_args(Mode)


def parse_mode(text: str) -> Mode | None:
    """The mode with that current or old name; None if unknown."""
    name = _SPELLINGS.get(text, text)
    return next((mode for mode in _MODES if mode == name), None)


def list_mode_names() -> tuple[str, ...]:
    """All valid mode names."""
    return (*_MODES, *_SPELLINGS)


_WIDTH: dict[Mode, int] = {
    "plan": 0,
    "dontAsk": 1,
    "default": 2,
    "acceptEdits": 3,
    "auto": 4,
    "bypassPermissions": 5,
}


def choose_strictest_mode(*modes: str | None) -> Mode | None:
    """The strictest of several modes; unknown ones are ignored."""
    known: list[Mode] = [mode for name in modes if name and (mode := parse_mode(name))]
    return min(known, key=_WIDTH.__getitem__) if known else None
