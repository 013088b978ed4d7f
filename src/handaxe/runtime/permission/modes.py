"""Permission modes: how strict a session is where no rule speaks."""

from typing import get_args

from handaxe.session.permission_state import Mode

_SPELLINGS = {"manual": "default"}
_MODES: tuple[Mode, ...] = get_args(Mode)


def parse_mode(text: str) -> Mode | None:
    """The mode of that name or old name; None if there is none."""
    name = _SPELLINGS.get(text, text)
    return next((mode for mode in _MODES if mode == name), None)


def mode_names() -> tuple[str, ...]:
    """Every name a person may give."""
    return (*_MODES, *_SPELLINGS)
