"""Prompts and resources for clients.

Prompts are the skills and commands of the project and its user. Resources are files, read by the
tool Read with its permission and its record; the list has the files that the session read or
changed.
"""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, cast
from urllib.parse import quote

from handaxe.app.session import Session, get_parts
from handaxe.contract.call import ToolCall
from handaxe.contract.content import ImageBlock
from handaxe.contract.result import ToolResult
from handaxe.frontends.mcp_server.protocol import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    Params,
    RpcError,
)
from handaxe.session.read_ledger import ReadLedger
from handaxe.text.urls import parse_file_uri

MAX_COMPLETIONS = 100
MAX_LISTED = 200
MAX_PAGES = 25
_REST = "arguments"


class ContentProvider(ABC):
    """Prompts and resources as the protocol defines them."""

    @abstractmethod
    def prompts(self) -> Sequence[Params]:
        """The entries of `prompts/list`."""

    @abstractmethod
    async def prompt(self, name: str, arguments: dict[str, str]) -> Params:
        """The result of `prompts/get`."""

    @abstractmethod
    def resources(self) -> Sequence[Params]:
        """The entries of `resources/list`."""

    @abstractmethod
    def templates(self) -> Sequence[Params]:
        """The entries of `resources/templates/list`."""

    @abstractmethod
    async def read(self, uri: str) -> Sequence[Params]:
        """The contents of a resource."""

    async def complete(self, ref: Params, argument: str, begun: str) -> Sequence[str]:  # noqa: ARG002
        """Completions of an argument of a prompt or a template; empty if unknown."""
        return ()


class SessionContentProvider(ContentProvider):
    """The prompts and files of a session."""

    file_template: ClassVar[Params] = {
        "uriTemplate": "file://{path}",
        "name": "file",
        "title": "A file",
        "description": "A file by its absolute path, if it may be read.",
    }

    def __init__(self, session: Session) -> None:
        self._session = session

    def prompts(self) -> Sequence[Params]:
        """Every skill and command that a user may run."""
        from handaxe.app.slash_commands import list_slash_commands

        return [
            {
                "name": skill.name,
                "description": skill.description,
                "arguments": [
                    {"name": name, "description": skill.argument_hint, "required": False}
                    for name in skill.arguments or (_REST,)
                ],
            }
            for skill in list_slash_commands(self._session)
        ]

    async def prompt(self, name: str, arguments: dict[str, str]) -> Params:
        """The text of a skill or command; it grants no permissions."""
        from handaxe.app.slash_commands import list_slash_commands, render_command

        skill = next((one for one in list_slash_commands(self._session) if one.name == name), None)
        if skill is None:
            raise RpcError(INVALID_PARAMS, f"There is no prompt {name!r}.")
        if skill.arguments:
            given = " ".join(shlex.quote(arguments.get(one, "")) for one in skill.arguments)
        else:
            given = arguments.get(_REST, "")
        text = await render_command(self._session, skill, given)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": skill.description, "messages": [message]}

    def resources(self) -> Sequence[Params]:
        """The files that this session read or changed, in order."""
        paths = get_parts(self._session).pipeline_context.ports[ReadLedger].paths()
        root = self._session.workdir.root.rstrip("/") + "/"
        return [
            {"uri": f"file://{quote(path)}", "name": path.removeprefix(root)}
            for path in paths[:MAX_LISTED]
        ]

    def templates(self) -> Sequence[Params]:
        """Any file."""
        return [self.file_template]

    async def read(self, uri: str) -> Sequence[Params]:
        """A file whole, by the tool Read."""
        path = parse_file_uri(uri)
        if path is None:
            raise RpcError(RESOURCE_NOT_FOUND, "Only file: URIs can be read.", {"uri": uri})
        pieces: list[str] = []
        offset = 1
        for _ in range(MAX_PAGES):
            result = await self._call("Read", {"file_path": path, "offset": offset})
            if not result.ok:
                raise RpcError(RESOURCE_NOT_FOUND, result.text, {"uri": uri, "code": result.code})
            picture = next((one for one in result.content if isinstance(one, ImageBlock)), None)
            if picture is not None:
                return [{"uri": uri, "mimeType": picture.media_type, "blob": picture.data}]
            if result.data.get("type") != "text":
                return [{"uri": uri, "mimeType": "text/plain", "text": result.text}]
            file = result.data["file"]
            pieces.append(file["content"])
            offset += file["numLines"]
            if not file["numLines"] or offset > file["totalLines"]:
                return [{"uri": uri, "mimeType": "text/plain", "text": "\n".join(pieces)}]
        raise RpcError(
            INVALID_PARAMS, "The file is too long for a resource; use the tool Read.", {"uri": uri}
        )

    async def complete(self, ref: Params, argument: str, begun: str) -> Sequence[str]:
        """Paths of files that start like this."""
        if ref.get("uri") != self.file_template["uriTemplate"] or argument != "path":
            return ()
        root = self._session.workdir.root.rstrip("/") + "/"
        inside = begun.removeprefix(root).lstrip("/")
        escaped = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in inside)
        result = await self._call("Glob", {"pattern": f"{escaped}*"})
        return result.data.get("filenames", ()) if result.ok else ()

    async def _call(self, tool: str, call_input: dict[str, Any]) -> ToolResult:
        session = self._session
        call = ToolCall(get_parts(session).new_call_id(), tool, call_input)
        return get_parts(session).recorder.logged(await session.run(call))


async def handle_request(content: ContentProvider, method: str, params: Params) -> Params:
    """The result of a method for prompts or resources."""
    match method:
        case "prompts/list":
            return {"prompts": list(content.prompts())}
        case "prompts/get":
            return await content.prompt(_get_text(params, "name"), _get_arguments(params))
        case "resources/list":
            return {"resources": list(content.resources())}
        case "resources/templates/list":
            return {"resourceTemplates": list(content.templates())}
        case "resources/read":
            return {"contents": list(await content.read(_get_text(params, "uri")))}
        case _:
            ref, argument = _get_object(params, "ref"), _get_object(params, "argument")
            found = await content.complete(
                ref, _get_text(argument, "name"), _get_text(argument, "value")
            )
            shown = list(found[:MAX_COMPLETIONS])
            has_more = len(found) > len(shown)
            return {"completion": {"values": shown, "total": len(found), "hasMore": has_more}}


def _get_text(params: Params, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"`{name}` must be a string.")
    return value


def _get_object(params: Params, name: str) -> Params:
    value = params.get(name)
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"`{name}` must be an object.")
    return cast("Params", value)


def _get_arguments(params: Params) -> dict[str, str]:
    given = _get_object(params, "arguments") if params.get("arguments") is not None else {}
    return {name: str(value) for name, value in given.items()}
