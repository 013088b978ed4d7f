"""Permission questions in a terminal: everything shown in full, answered with one key.

Questions go to standard error and answers come from the terminal, so that standard output stays
the result's alone.
"""

import json
import sys
from typing import Any

import msgspec

from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.frontends.cli.paint import Painter
from handaxe.frontends.cli.terminal_lines import read_line
from handaxe.runtime.permission.suggestions import name_suggestions
from handaxe.text.visible import visible

SAID_NO = "The user said no."
_LETTERS = {"session": "s", "project": "p", "always": "a"}


async def ask_in_terminal(request: PermissionRequest, *, no_stops: bool = False) -> Allow | Deny:
    """Show the whole question and wait for an answer that can be understood.

    `no_stops`: a no without a word stops the work, so that the person can say what they want
    instead; with one, the work goes on knowing it.
    """
    sys.stderr.write(shown_question(request, Painter.for_stderr()))
    while True:
        sys.stderr.write(_choices(request, no_stops=no_stops))
        sys.stderr.flush()
        line = await read_line()
        answer = read_answer(line, request)
        if isinstance(answer, Deny) and answer.reason == SAID_NO:
            return msgspec.structs.replace(answer, interrupt=no_stops)
        if answer is not None:
            return answer
        sys.stderr.write("Please answer with one of the letters.\n")


def shown_question(request: PermissionRequest, painter: Painter) -> str:
    """The question as a person sees it; nothing is cut off, nothing is invisible."""
    lines = [f"\n{visible(request.asked_for)} asks for permission in {visible(request.cwd)}\n"]
    lines += [f"  {name}: {_value(value)}\n" for name, value in request.told_input.items()]
    if request.preview:
        lines += [painter.block(block) for block in request.preview]
    lines.append(f"{visible(request.reason)}\n")
    lines += [f"  destructive: {visible(loss.reason)}\n" for loss in request.destructive]
    for proposal in request.proposals:
        lines.append(f"  rule {visible(proposal.rule)}\n")
        lines.append(f"    would allow      {visible(', '.join(proposal.would_match))}\n")
        lines.append(f"    would not allow  {visible(', '.join(proposal.would_not_match))}\n")
    return "".join(lines)


def read_answer(line: str | None, request: PermissionRequest) -> Allow | Deny | None:
    """What a typed line means; None if that is unclear. No answer at all is a no."""
    if line is None:
        return Deny("Nobody answered.", by="user")
    word, _, comment = line.strip().partition(" ")
    word = word.lower()
    if word in {"n", "no"}:
        return Deny(comment.strip() or SAID_NO, by="user")
    if comment:
        return None
    if word in {"y", "yes"}:
        return Allow("The user said yes.", by="user")
    for name, suggestion in name_suggestions(request.suggestions).items():
        if word in {name, _letters(name)}:
            return suggestion.accept("The user said yes.", by="user")
    return None


def _choices(request: PermissionRequest, *, no_stops: bool) -> str:
    no = (
        "No, and stop; with a comment: no, and go on."
        if no_stops
        else "No, with a comment if you like."
    )
    named = name_suggestions(request.suggestions)
    lasting = {_letters(name): visible(one.answer) for name, one in named.items()}
    choices = {"y": "Yes, once.", **lasting, "n": no}
    lines = [f"  {key:<3} {meaning}\n" for key, meaning in choices.items()]
    return f"{''.join(lines)}Allow?  [{'/'.join(choices)}]: "


def _letters(name: str) -> str:
    """The answer as few keys: `s`, `s2`, `p`, `a`."""
    word = name.rstrip("0123456789")
    return _LETTERS[word] + name[len(word) :]


def _value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    lines = [visible(line) for line in text.split("\n")]
    return lines[0] if len(lines) == 1 else "\n".join(["", *(f"    {line}" for line in lines)])
