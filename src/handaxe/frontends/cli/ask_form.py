"""Forms of tools and MCP servers in a terminal, field by field."""

import sys
from typing import Any

from handaxe.contract.ports.questions import ElicitationForm
from handaxe.frontends.cli.render import write_error
from handaxe.frontends.cli.tty_input import discard_typed_input, read_line
from handaxe.text.escape import to_visible_text

_YES, _NO = frozenset({"y", "yes", "true", "1"}), frozenset({"n", "no", "false", "0"})
_DECLINE = "Ctrl-D declines."


async def fill_form_in_terminal(form: ElicitationForm) -> dict[str, Any] | None:
    """What the person puts in; None where they decline."""
    write_error(f"\n{_escape_text(form.source)} asks: {_escape_text(form.message)}\n")
    if form.schema is None:
        write_error(f"  {_escape_text(form.url or '')}\n")
        line = await _ask_line("Open it, then press Enter. " + _DECLINE + " ")
        return None if line is None else {}
    required: list[str] = form.schema.get("required", [])
    filled: dict[str, Any] = {}
    fields: dict[str, dict[str, Any]] = form.schema.get("properties", {})
    for name, field in fields.items():
        while True:
            line = await _ask_line(_format_field(name, field, is_required=name in required))
            if line is None:
                return None
            if not line.strip():
                if name not in required or "default" in field:
                    break
                write_error(f"A value is needed. {_DECLINE}\n")
                continue
            try:
                filled[name] = read_field(field, line.strip())
            except ValueError as problem:
                write_error(f"{problem} {_DECLINE}\n")
                continue
            break
    return filled


def read_field(field: dict[str, Any], text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value that a typed text stands for.

    Raises:
        ValueError: none; the message says what is expected.
    """
    choices: list[str] | None = field.get("enum")
    if choices is not None:
        return _read_choice(choices, field.get("enumNames"), text)
    match field.get("type"):
        case "boolean":
            if text.lower() in _YES | _NO:
                return text.lower() in _YES
            raise ValueError("Answer y or n.")
        case "integer" | "number" as kind:
            return _read_number(field, text, is_whole=kind == "integer")
        case _:
            least, most = field.get("minLength", 0), field.get("maxLength", len(text))
            if least <= len(text) <= most:
                return text
            raise ValueError(f"The text has to have {least} to {most} characters.")


def _read_choice(choices: list[str], titles: list[str] | None, text: str) -> str:
    if text in choices:
        return text
    if titles is not None and text in titles:
        return choices[titles.index(text)]
    if text.isdecimal() and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    raise ValueError("Answer with one of the choices or its number.")


def _read_number(field: dict[str, Any], text: str, *, is_whole: bool) -> float:
    try:
        number = int(text) if is_whole else float(text)
    except ValueError:
        raise ValueError(f"Answer with a {'whole ' if is_whole else ''}number.") from None
    least, most = field.get("minimum", number), field.get("maximum", number)
    if not least <= number <= most:
        raise ValueError(f"The number has to be {_describe_range(field)}.")
    return number


def _describe_range(field: dict[str, Any]) -> str:
    words = {"minimum": "at least", "maximum": "at most"}
    return " and ".join(f"{word} {field[key]}" for key, word in words.items() if key in field)


def _format_field(name: str, field: dict[str, Any], *, is_required: bool) -> str:
    about = field.get("description") or field.get("title")
    said = f" ({_escape_text(about)})" if about else ""
    lines = [f"  {_escape_text(name)}{said}\n"]
    shown = field.get("enumNames") or field.get("enum") or ()
    lines += [f"    {number}. {_escape_text(one)}\n" for number, one in enumerate(shown, 1)]
    hints = ["y/n"] if field.get("type") == "boolean" else []
    if "default" in field:
        hints.append(f"Enter: {_escape_text(field['default'])}")
    elif not is_required:
        hints.append("Enter: leave it out")
    return "".join(lines) + (f"  [{', '.join(hints)}]: " if hints else "  : ")


async def _ask_line(prompt: str) -> str | None:
    # What was typed until here was typed without having seen the question.
    discard_typed_input()
    write_error(prompt)
    sys.stderr.flush()
    return await read_line()


def _escape_text(value: object) -> str:
    return to_visible_text(str(value), lines=True).replace("\n", "\n    ")
