"""Permission questions as forms that a client shows to its user, and what the answers mean."""

import json
from typing import Any, cast

from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.display import Code, Diff, Display, Text
from handaxe.runtime.permission.suggestions import name_suggestions
from handaxe.text.visible import show


def form_for(request: PermissionRequest) -> dict[str, Any]:
    """The parameters of `elicitation/create`: the whole question, and the possible answers."""
    named = name_suggestions(request.suggestions)
    lasting = {name: _exact(one.answer) for name, one in named.items()}
    titles = {"once": "Yes, this once", **lasting, "no": "No"}
    return {
        "mode": "form",
        "message": question(request),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": {
                    "type": "string",
                    "title": f"Allow {_exact(request.tool)}?",
                    "enum": list(titles),
                    "enumNames": list(titles.values()),
                },
                "comment": {
                    "type": "string",
                    "title": "Comment",
                    "description": "What the agent is told if you say no.",
                },
            },
            "required": ["answer"],
        },
    }


def question(request: PermissionRequest) -> str:
    """The question in words; nothing is cut off, nothing is invisible."""
    lines = [f"{_exact(request.asked_for)} asks for permission in {_exact(request.cwd)}"]
    lines += [f"  {_exact(name)}: {_value(value)}" for name, value in request.told_input.items()]
    lines += _shown(request.preview or ())
    lines.append(_exact(request.reason))
    lines += [f"  destructive: {_exact(loss.reason)}" for loss in request.destructive]
    for proposal in request.proposals:
        lines.append(f"The rule {_exact(proposal.rule)}")
        if proposal.meaning:
            lines.append(f"  in words            {_exact(proposal.meaning)}")
        lines.append(f"  it would allow      {_exact(', '.join(proposal.would_match))}")
        lines.append(f"  it would not allow  {_exact(', '.join(proposal.would_not_match))}")
    return "\n".join(lines)


def read_answer(given: object, request: PermissionRequest) -> Allow | Deny:
    """What a client's answer means; whatever is not clearly a yes is a no."""
    answer = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    action, content = answer.get("action"), answer.get("content")
    if action == "cancel":
        return Deny("The user closed the question without an answer.", by="user")
    if action != "accept" or not isinstance(content, dict):
        return Deny("The user said no.", by="user")
    filled = cast("dict[str, Any]", content)
    chosen, comment = filled.get("answer"), filled.get("comment")
    if chosen == "once":
        return Allow("The user said yes.", by="user")
    named = name_suggestions(request.suggestions)
    if isinstance(chosen, str) and chosen in named:
        return named[chosen].accept("The user said yes.", by="user")
    said = comment.strip() if isinstance(comment, str) else ""
    return Deny(said or "The user said no.", by="user")


def _shown(preview: Display) -> list[str]:
    lines: list[str] = []
    for block in preview:
        if isinstance(block, Diff):
            shown = [line for hunk in block.hunks for line in hunk.lines]
        elif isinstance(block, Text | Code):
            shown = block.text.split("\n")
        else:
            shown = []
        lines += [f"  {_exact(line)}" for line in shown]
    return lines


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    lines = [_exact(line) for line in text.split("\n")]
    return lines[0] if len(lines) == 1 else "\n".join(["", *(f"    {line}" for line in lines)])


def _exact(value: object) -> str:
    return show(value, exact=True)
