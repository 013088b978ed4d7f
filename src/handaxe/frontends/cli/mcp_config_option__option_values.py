"""What options hold: texts, files of text, JSON; a mistake names the option."""

import json
from pathlib import Path
from typing import Any, cast

from handaxe.contract.faults import SetupError


def read_prompt_option(text: str | None, file: str | None) -> str | None:
    """A system prompt: its text, or what its file holds."""
    if file is None:
        return text
    if text is not None:
        raise SetupError("Give the text of a system prompt, or its file, not both.")
    return read_file(file, "the system prompt")


def read_file(name: str, what: str) -> str:
    """The text of a file."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{what}: {name} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise SetupError(f"{what}: {name} is not UTF-8 text.") from None


def parse_json_object(text: str | None, option: str) -> dict[str, Any] | None:
    """The JSON object in a text."""
    if text is None:
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{option} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise SetupError(f"{option} has to be a JSON object.")
    return cast("dict[str, Any]", value)
