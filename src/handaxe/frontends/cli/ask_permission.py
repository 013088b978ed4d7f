"""Permission questions in a terminal: everything shown in full, answered with one key.

Questions go to standard error and answers come from the terminal, so that standard output stays
the result's alone.
"""

import json
import os
import re
import sys
from typing import Any

import msgspec

from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.frontends.cli.render import BlockRenderer, write_error, write_rendered
from handaxe.frontends.cli.tty_input import ESCAPE, ask_line
from handaxe.permission.suggestions import name_suggestions
from handaxe.text.escape import to_visible_text

SAID_NO = "The user said no."
_GOES_ON = "    | "
_SIGN = re.compile("\x1b\\[[0-9]+m|.", re.DOTALL)
_LETTERS = {"session": "s", "project": "p", "always": "a"}


async def ask_in_terminal(request: PermissionRequest, *, no_stops: bool = False) -> Allow | Deny:
    """Show the whole question and wait for an answer that can be understood.

    `no_stops`: a no without a word stops the work, so that the person can say what they want
    instead; with one, the work goes on knowing it.
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
    """The question as a person sees it; nothing is cut off, nothing is invisible."""
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
    """Lines broken by us, with a mark, where the terminal would go on at its left edge."""
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
    """What a typed line means; None if that is unclear. No answer at all is a no, and so is Esc."""
    if line is None:
        return Deny("Nobody answered.", by="user")
    word, _, comment = line.strip().partition(" ")
    word = word.lower()
    if line == ESCAPE or word in {"n", "no"}:
        return Deny(comment.strip() or SAID_NO, by="user")
    if comment:
        return None
    if word in {"y", "yes"}:
        return Allow("The user said yes.", by="user")
    for name, suggestion in name_suggestions(request.suggestions).items():
        if word in {name, _get_letters(name)}:
            return suggestion.accept("The user said yes.", by="user")
    return None


def _format_choices(request: PermissionRequest, *, no_stops: bool) -> str:
    no = (
        "No, and stop; with a comment: no, and go on."
        if no_stops
        else "No, with a comment if you like."
    )
    named = name_suggestions(request.suggestions)
    lasting = {_get_letters(name): _escape_text(one.answer) for name, one in named.items()}
    choices = {"y": "Yes, once.", **lasting, "n": no}
    return "".join(f"  {key:<3} {meaning}\n" for key, meaning in choices.items())


def _list_letters(request: PermissionRequest) -> list[str]:
    return ["y", *map(_get_letters, name_suggestions(request.suggestions)), "n"]


def _get_letters(name: str) -> str:
    """The answer as few keys: `s`, `s2`, `p`, `a`."""
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
