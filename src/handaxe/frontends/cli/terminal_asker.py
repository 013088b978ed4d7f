"""Permission questions in a terminal: everything shown in full, answered with one key.

Questions go to standard error and answers come from the terminal, so that standard output stays
the result's alone.
"""

import json
import sys
from typing import Any

import msgspec

from handaxe.contract.decision import Allow, Deny, PermissionRequest, Remember
from handaxe.frontends.cli.paint import Painter
from handaxe.frontends.cli.terminal_lines import read_line
from handaxe.text.visible import visible

SAID_NO = "The user said no."
_ANSWERS: dict[str, Remember] = {
    "y": "once",
    "yes": "once",
    "s": "session",
    "p": "project",
    "a": "always",
}


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
        if proposal.meaning:
            lines.append(f"    in words         {visible(proposal.meaning)}\n")
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
    remember = _ANSWERS.get(word)
    if remember is None or comment:
        return None
    if remember == "once":
        return Allow("The user said yes.", by="user")
    if not request.proposals:
        return None
    rules = tuple(proposal.rule for proposal in request.proposals)
    return Allow("The user said yes.", by="user", remember=remember, rules=rules)


def _choices(request: PermissionRequest, *, no_stops: bool) -> str:
    lasting = "  [s]ession  [p]roject  [a]lways" if request.proposals else ""
    no = "[n]o, stop; with a comment: no, go on" if no_stops else "[n]o, with a comment if you like"
    return f"Allow?  [y]es, once{lasting}  {no}: "


def _value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    lines = [visible(line) for line in text.split("\n")]
    return lines[0] if len(lines) == 1 else "\n".join(["", *(f"    {line}" for line in lines)])
