"""A tool of an MCP server that answers permission questions where no person is.

The tool is called past the pipeline, as a person would be asked; what it cannot answer is a no.
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
    """Puts permission questions to one tool, known by its full name `mcp__server__tool`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._session: Session | None = None

    def join(self, session: Session) -> None:
        """Ask the servers of this session from now on."""
        self._session = session

    async def check(self) -> None:
        """Wait for the tool's server, and raise unless it has the tool.

        Raises:
            SetupError: there is no such tool.
        """
        # The session begins to connect here, so that the tools of its servers reach its catalog.
        get_parts(self._joined).follow()
        if await self._found() is None:
            servers = self._servers
            rows = () if servers is None else servers.status()
            told = ", ".join(f"{row.name}: {row.error or row.status}" for row in rows)
            raise SetupError(
                f"--permission-prompt-tool: there is no MCP tool {self._name!r} here "
                f"({told or 'no server is set up'})."
            )

    async def ask(self, request: PermissionRequest) -> Allow | Deny:
        """What the tool says."""
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
            return Deny(f"The permission tool {self._name} gave no JSON object as its answer.")
        session = self._joined
        given = cast("dict[str, Any]", answer)
        if given.get("behavior") == "allow" and _is_person_required(session, request.tool):
            return Deny(_FOR_A_PERSON)
        changes = get_parts(session).pipeline_context.ports[PermissionChanges]
        giver = f"The permission tool {self._name}"
        return await read_result(given, request, changes, sent=request.input, giver=giver)

    async def _found(self) -> tuple[str, str] | None:
        """The server and the tool's own name there."""
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
