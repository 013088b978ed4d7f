"""An MCP tool that answers permission questions without a user.

The tool is called outside the pipeline. Anything but a valid approval denies the call.
"""

import json
from typing import Any, cast

import msgspec

from handaxe.app.session import Session, get_parts
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.permission_updates import PermissionChange
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.contract.ports.permission import PermissionChanges

_FOR_A_PERSON = "MCP tool requires user interaction; not supported via --permission-prompt-tool"


class PermissionPromptTool:
    """Sends permission questions to one tool, `mcp__server__tool`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._session: Session | None = None

    def join(self, session: Session) -> None:
        """Use the servers of this session from now on."""
        self._session = session

    async def check(self) -> None:
        """Wait for the tool's server and check that it has the tool.

        Raises: SetupError: there is no such tool.
        """
        # Connect now, so that the tools of the servers are in the catalog.
        get_parts(self._joined).follow()
        if await self._found() is None:
            servers = self._servers
            rows = () if servers is None else servers.status()
            told = ", ".join(f"{row.name}: {row.error or row.status}" for row in rows)
            raise SetupError(
                f"--permission-prompt-tool: there is no MCP tool {self._name!r} here "
                f"({told or 'no server is configured'})."
            )

    async def ask(self, request: PermissionRequest) -> Allow | Deny:
        """The decision of the tool."""
        found, servers = await self._found(), self._servers
        if found is None or servers is None:
            return Deny(f"The permission tool {self._name} is not there.")
        question = {
            "tool_name": request.tool,
            "input": request.input,
            "tool_use_id": request.call_id,
        }
        try:
            result = await servers.call_tool(*found, question)
        except ToolFault as fault:
            return Deny(f"The permission tool {self._name} failed: {fault.sentence}")
        if not result.ok:
            return Deny(f"The permission tool {self._name} failed: {result.text}")
        return await self._read(result.text, request)

    async def _read(self, text: str, request: PermissionRequest) -> Allow | Deny:
        try:
            answer: object = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            return Deny(f"The permission tool {self._name} must answer with a JSON object.")
        session = self._joined
        given = cast("dict[str, Any]", answer)
        if given.get("behavior") == "allow" and _is_person_required(session, request.tool):
            return Deny(_FOR_A_PERSON)
        changes = get_parts(session).pipeline_context.ports[PermissionChanges]
        giver = f"The permission tool {self._name}"
        return await read_result(given, request, changes, sent=request.input, giver=giver)

    async def _found(self) -> tuple[str, str] | None:
        """The server and the name of the tool there."""
        from handaxe.mcp.remote_tool import build_tool_name

        servers = self._servers
        if servers is None:
            return None
        names = [row.name for row in servers.status()]
        for name in names:
            if self._name.startswith(build_tool_name(name, "x")[:-1]):
                await servers.settled(name)
        for row in servers.status():
            for tool in row.tools:
                if build_tool_name(row.name, tool.name) == self._name:
                    return row.name, tool.name
        return None

    @property
    def _joined(self) -> Session:
        assert self._session is not None
        return self._session

    @property
    def _servers(self) -> McpServers | None:
        return self._joined.mcp


def _is_person_required(session: Session, tool: str) -> bool:
    from handaxe.mcp.remote_tool import RemoteTool

    catalog = get_parts(session).catalog
    if not catalog.has(tool):
        return False
    found = catalog.find(tool)[0]
    return isinstance(found, RemoteTool) and found.always_asks


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
    """The decision, with its permission changes applied.

    `sent` is the input that the tool got, which may be shortened.
    """
    if answer.get("behavior") != "allow":
        reason = str(answer.get("message") or "The permission tool denied it.")
        return Deny(reason, interrupt=answer.get("interrupt") is True)
    try:
        yes = msgspec.convert(answer, _AllowResult)
    except msgspec.ValidationError as error:
        return Deny(f"Invalid answer to the permission question: {error}.")
    new_input = yes.updated_input if yes.updated_input != sent else None
    if new_input is not None and sent is not request.input:
        return Deny("The input is too long to be changed by an answer.")
    if yes.updated_permissions:
        problems = await changes.make(
            yes.updated_permissions,
            by="callback",
            call_id=request.call_id,
            definitions=request.definitions,
        )
        if problems:
            return Deny(f"Invalid permission change: {' '.join(problems)}")
    return Allow(f"{giver} approved it.", input=new_input)
