"""Permission questions as forms of the client, and the answers."""

import json
from typing import Any, cast

from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.display import Code, Diff, Display, Text
from handaxe.permission.suggestions import name_suggestions
from handaxe.text.escape import to_visible_text


def build_elicitation_form(request: PermissionRequest) -> dict[str, Any]:
    """The parameters of `elicitation/create`: the whole question, and the possible answers."""
    named = name_suggestions(request.suggestions)
    lasting = {name: _escape_text(one.answer) for name, one in named.items()}
    titles = {"once": "Yes, once", **lasting, "no": "No"}
    return {
        "mode": "form",
        "message": format_elicitation(request),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": {
                    "type": "string",
                    "title": f"Allow {_escape_text(request.display_name or request.tool)}?",
                    "enum": list(titles),
                    "enumNames": list(titles.values()),
                },
                "comment": {
                    "type": "string",
                    "title": "Comment",
                    "description": "Comment for the agent if you refuse.",
                },
            },
            "required": ["answer"],
        },
    }


def format_elicitation(request: PermissionRequest) -> str:
    """The question as text, complete, with invisible characters shown."""
    lines = [
        f"{_escape_text(request.asked_for)} asks for permission in {_escape_text(request.cwd)}"
    ]
    lines += [
        f"  {_escape_text(name)}: {_format_value(value)}"
        for name, value in request.told_input.items()
    ]
    lines += _format_preview(request.preview or ())
    lines.append(_escape_text(request.reason))
    lines += [f"  destructive: {_escape_text(loss.reason)}" for loss in request.destructive]
    for proposal in request.proposals:
        lines.append(f"The rule {_escape_text(proposal.rule)}")
        if proposal.meaning:
            lines.append(f"  in words            {_escape_text(proposal.meaning)}")
        lines.append(f"  it would allow      {_escape_text(', '.join(proposal.would_match))}")
        lines.append(f"  it would not allow  {_escape_text(', '.join(proposal.would_not_match))}")
    return "\n".join(lines)


def read_answer(given: object, request: PermissionRequest) -> Allow | Deny:
    """The decision of a client's answer; anything but a clear approval denies."""
    answer = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    action, content = answer.get("action"), answer.get("content")
    if action == "cancel":
        return Deny("The user closed the question without an answer.", by="user")
    if action != "accept" or not isinstance(content, dict):
        return Deny("The user denied it.", by="user")
    filled = cast("dict[str, Any]", content)
    chosen, comment = filled.get("answer"), filled.get("comment")
    if chosen == "once":
        return Allow("The user approved it.", by="user")
    named = name_suggestions(request.suggestions)
    if isinstance(chosen, str) and chosen in named:
        return named[chosen].accept("The user approved it.", by="user")
    said = comment.strip() if isinstance(comment, str) else ""
    return Deny(said or "The user denied it.", by="user")


def _format_preview(preview: Display) -> list[str]:
    lines: list[str] = []
    for block in preview:
        if isinstance(block, Diff):
            shown = [line for hunk in block.hunks for line in hunk.lines]
        elif isinstance(block, Text | Code):
            shown = block.text.split("\n")
        else:
            shown = []
        lines += [f"  {_escape_text(line)}" for line in shown]
    return lines


def _format_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    lines = [_escape_text(line) for line in text.split("\n")]
    return lines[0] if len(lines) == 1 else "\n".join(["", *(f"    {line}" for line in lines)])


def _escape_text(value: object) -> str:
    return to_visible_text(value, exact=True)
