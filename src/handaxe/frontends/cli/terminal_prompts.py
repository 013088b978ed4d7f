"""Prompts in a terminal: permission questions, forms and trust in a project's files.

Prompts go to standard error and answers come from the terminal, so that standard output holds
only the result.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from handaxe.config.project import Configuration
from handaxe.config.trust_store import TrustedFolder, TrustRecord
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.ports.questions import ElicitationForm
from handaxe.contract.trust_gate import TrustRequest
from handaxe.frontends.cli.render import BlockRenderer, print_error, write_error, write_rendered
from handaxe.frontends.cli.tty_input import ESCAPE, ask_line, discard_typed_input, read_line
from handaxe.permission.suggestions import name_suggestions
from handaxe.text.escape import to_visible_text

SAID_NO = "The user denied it."
_GOES_ON = "    | "
_SIGN = re.compile("\x1b\\[[0-9]+m|.", re.DOTALL)
_LETTERS = {"session": "s", "project": "p", "always": "a"}


async def ask_in_terminal(request: PermissionRequest, *, no_stops: bool = False) -> Allow | Deny:
    """Show the whole question and wait for a valid answer.

    `no_stops`: `n` without a comment stops the agent, so that the user can say what to do
    instead; with a comment the agent continues and gets the comment.
    """
    question = format_question(request, BlockRenderer.create_for_stderr())
    write_rendered(wrap_lines(question, _get_columns()), sys.stderr)
    while True:
        write_error(_format_choices(request, no_stops=no_stops))
        sys.stderr.flush()
        letters = "/".join(_list_letters(request))
        line = await ask_line(f"Allow?  [{letters}]: ", sys.stderr)
        answer = read_answer(line, request)
        if isinstance(answer, Deny) and answer.reason == SAID_NO:
            return msgspec.structs.replace(answer, interrupt=no_stops)
        if answer is not None:
            return answer
        write_error("Please answer with one of the letters.\n")


def format_question(request: PermissionRequest, painter: BlockRenderer) -> str:
    """The question as the user sees it: complete, with invisible characters shown."""
    asked_for, cwd = _escape_text(request.asked_for), _escape_text(request.cwd)
    lines = [f"\n{asked_for} asks for permission in {cwd}\n"]
    lines += [
        f"  {_escape_text(name)}: {_format_value(value)}\n"
        for name, value in request.told_input.items()
    ]
    for block in request.preview or ():
        lines += [f"    {line}" for line in painter.block(block).splitlines(keepends=True)]
    lines.append(f"{_escape_text(request.reason)}\n")
    lines += [f"  destructive: {_escape_text(loss.reason)}\n" for loss in request.destructive]
    for proposal in request.proposals:
        lines.append(f"  rule {_escape_text(proposal.rule)}\n")
        lines.append(f"    would allow      {_escape_text(', '.join(proposal.would_match))}\n")
        lines.append(f"    would not allow  {_escape_text(', '.join(proposal.would_not_match))}\n")
    return "".join(lines)


def wrap_lines(text: str, columns: int) -> str:
    """Wrap lines at the terminal's width and mark the continuation lines."""
    if columns <= 3 * len(_GOES_ON):
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        wrapped, width = "", 0
        for sign in _SIGN.findall(line):
            wide = 0 if sign[0] == "\x1b" else 1 if sign.isascii() else 2
            if width + wide > columns:
                wrapped, width = f"{wrapped}\n{_GOES_ON}", len(_GOES_ON)
            wrapped, width = wrapped + sign, width + wide
        lines.append(wrapped)
    return "\n".join(lines)


def read_answer(line: str | None, request: PermissionRequest) -> Allow | Deny | None:
    """The answer in a typed line; None if it is not valid. Esc and the end of input deny."""
    if line is None:
        return Deny("No one answered.", by="user")
    word, _, comment = line.strip().partition(" ")
    word = word.lower()
    if line == ESCAPE or word in {"n", "no"}:
        return Deny(comment.strip() or SAID_NO, by="user")
    if comment:
        return None
    if word in {"y", "yes"}:
        return Allow("The user approved it.", by="user")
    for name, suggestion in name_suggestions(request.suggestions).items():
        if word in {name, _get_letters(name)}:
            return suggestion.accept("The user approved it.", by="user")
    return None


def _format_choices(request: PermissionRequest, *, no_stops: bool) -> str:
    no = (
        "No, and stop. `n COMMENT`: no, and tell the agent why."
        if no_stops
        else "No. `n COMMENT`: no, and tell the agent why."
    )
    named = name_suggestions(request.suggestions)
    lasting = {_get_letters(name): _escape_text(one.answer) for name, one in named.items()}
    choices = {"y": "Yes, once.", **lasting, "n": no}
    return "".join(f"  {key:<3} {meaning}\n" for key, meaning in choices.items())


def _list_letters(request: PermissionRequest) -> list[str]:
    return ["y", *map(_get_letters, name_suggestions(request.suggestions)), "n"]


def _get_letters(name: str) -> str:
    """The keys of an answer: `s`, `s2`, `p`, `a`."""
    word = name.rstrip("0123456789")
    return _LETTERS[word] + name[len(word) :]


def _format_value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    lines = [_escape_text(line) for line in text.split("\n")]
    return lines[0] if len(lines) == 1 else "\n".join(["", *(f"    {line}" for line in lines)])


def _escape_text(value: object) -> str:
    return to_visible_text(value, exact=True)


def _get_columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return 0


_YES, _NO = frozenset({"y", "yes", "true", "1"}), frozenset({"n", "no", "false", "0"})
_DECLINE = "Press Ctrl-D to decline."


async def fill_form_in_terminal(form: ElicitationForm) -> dict[str, Any] | None:
    """The values that the user enters; None if they decline."""
    write_error(f"\n{_escape_lines(form.source)} asks: {_escape_lines(form.message)}\n")
    if form.schema is None:
        write_error(f"  {_escape_lines(form.url or '')}\n")
        line = await _ask_field(f"Open this address, then press Enter. {_DECLINE} ")
        return None if line is None else {}
    required: list[str] = form.schema.get("required", [])
    filled: dict[str, Any] = {}
    fields: dict[str, dict[str, Any]] = form.schema.get("properties", {})
    for name, field in fields.items():
        while True:
            line = await _ask_field(_format_field(name, field, is_required=name in required))
            if line is None:
                return None
            if not line.strip():
                if name not in required or "default" in field:
                    break
                write_error(f"This value is required. {_DECLINE}\n")
                continue
            try:
                filled[name] = read_field(field, line.strip())
            except ValueError as problem:
                write_error(f"{problem} {_DECLINE}\n")
                continue
            break
    return filled


def read_field(field: dict[str, Any], text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a typed text.

    Raises:
        ValueError: The text is not valid; the message says what is expected.
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
            raise ValueError(f"The text must have {least} to {most} characters.")


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
        raise ValueError(f"The number must be {_describe_range(field)}.")
    return number


def _describe_range(field: dict[str, Any]) -> str:
    words = {"minimum": "at least", "maximum": "at most"}
    return " and ".join(f"{word} {field[key]}" for key, word in words.items() if key in field)


def _format_field(name: str, field: dict[str, Any], *, is_required: bool) -> str:
    about = field.get("description") or field.get("title")
    said = f" ({_escape_lines(about)})" if about else ""
    lines = [f"  {_escape_lines(name)}{said}\n"]
    shown = field.get("enumNames") or field.get("enum") or ()
    lines += [f"    {number}. {_escape_lines(one)}\n" for number, one in enumerate(shown, 1)]
    hints = ["y/n"] if field.get("type") == "boolean" else []
    if "default" in field:
        hints.append(f"Enter: {_escape_lines(field['default'])}")
    elif not is_required:
        hints.append("Enter: skip")
    return "".join(lines) + (f"  [{', '.join(hints)}]: " if hints else "  : ")


async def _ask_field(prompt: str) -> str | None:
    # Discard what the user typed before seeing the question.
    discard_typed_input()
    write_error(prompt)
    sys.stderr.flush()
    return await read_line()


def _escape_lines(value: object) -> str:
    return to_visible_text(str(value), lines=True).replace("\n", "\n    ")


def ask_for_trust(configuration: Configuration) -> None:
    """Ask whether to trust requests of the project's files that are not approved yet."""
    if "project" not in configuration.sources or not configuration.find_pending_requests():
        return
    record, wishes = configuration.trust, configuration.find_requests()
    write_error(describe_requests(record, configuration.root, wishes))
    if confirm_trust():
        trust_folder(record, configuration.root, wishes)
    else:
        print_error(
            "Not trusted: these files can only restrict. Run `handaxe trust` to be asked again."
        )


def confirm_trust() -> bool:
    """Ask, and read the answer from the terminal."""
    discard_typed_input()
    write_error("Trust these files? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def trust_folder(
    record: TrustRecord, folder: str, wishes: Sequence[TrustRequest[Any]]
) -> TrustedFolder:
    """Record that the files of a folder may do what was shown."""
    return record.trust(folder, {wish.key: wish.note for wish in wishes})


def describe_requests(record: TrustRecord, folder: str, wishes: Sequence[TrustRequest[Any]]) -> str:
    """The requests of a folder's files, and how they differ from the trusted ones."""
    approved: Mapping[str, str] = record.approved(folder)
    if not wishes and not approved:
        return f"The settings files of {to_visible_text(folder)} request nothing.\n"
    lines = [f"The settings files of {to_visible_text(folder)} request:"]
    is_known = record.find(folder) is not None
    for wish in wishes:
        earlier = approved.get(wish.key)
        mark = "=" if earlier == wish.note else "+" if earlier is None else "~"
        was = f"  (was {earlier})" if mark == "~" else ""
        name = wish.key.removesuffix(f"={wish.note}")
        lines.append(f"  {mark if is_known else ' '} {name} = {wish.note}{was}  ({wish.file})")
    gone = approved.keys() - {wish.key for wish in wishes}
    lines += [f"  - {key} = {approved[key]}" for key in sorted(gone)]
    return "".join(f"{to_visible_text(line)}\n" for line in lines)
