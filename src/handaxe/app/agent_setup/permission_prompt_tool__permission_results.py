"""Answers to permission questions in the ecosystem's shape: `{behavior, updatedInput, message}`.

Programs at the other end of a stream and tools of MCP servers give them. What is no clear yes is
a no.
"""

from typing import Any

import msgspec

from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.permission_updates import PermissionChange
from handaxe.contract.ports.permission__permission_changes import PermissionChanges


class _AllowResult(msgspec.Struct, frozen=True, rename="camel"):
    updated_input: dict[str, Any] | None = None
    updated_permissions: tuple[PermissionChange, ...] | None = None


async def read_result(
    answer: dict[str, Any],
    request: PermissionRequest,
    changes: PermissionChanges,
    *,
    sent: dict[str, Any],
    giver: str,
) -> Allow | Deny:
    """The answer; changes of permissions that came with a yes are in force then.

    `sent` is the input as the giver saw it, which may have been shortened.
    """
    if answer.get("behavior") != "allow":
        reason = str(answer.get("message") or "It was refused.")
        return Deny(reason, interrupt=answer.get("interrupt") is True)
    try:
        yes = msgspec.convert(answer, _AllowResult)
    except msgspec.ValidationError as error:
        return Deny(f"The answer to the permission question is wrong: {error}.")
    new_input = yes.updated_input if yes.updated_input != sent else None
    if new_input is not None and sent is not request.input:
        return Deny("The input is too long to be changed this way.")
    if yes.updated_permissions:
        problems = await changes.make(
            yes.updated_permissions,
            by="callback",
            call_id=request.call_id,
            definitions=request.definitions,
        )
        if problems:
            return Deny(f"A change of permissions is wrong: {' '.join(problems)}")
    return Allow(f"{giver} said yes.", input=new_input)
