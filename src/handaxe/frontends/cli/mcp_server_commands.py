"""`handaxe mcp list`, `get`, `add`, `remove`, `login`: the MCP servers that sessions use."""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from handaxe.app.session import Session, get_parts
from handaxe.config.mcp_definitions import read_definitions
from handaxe.config.settings_paths import PROJECT_SERVERS
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.ports.mcp_servers import McpServer, McpServers
from handaxe.frontends.cli.exit_codes import DONE, FAILED
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.option_values import parse_json_object, parse_pairs
from handaxe.frontends.cli.render import print_error, print_notice, print_out
from handaxe.frontends.cli.session_options import open_session
from handaxe.frontends.mcp_server.client_configs import edit_config_file
from handaxe.frontends.mcp_server.config_edit import ConfigEditError, drop_json, put_json
from handaxe.hooks.notify import fire_hooks
from handaxe.storage.home import get_shared_servers_file
from handaxe.text.escape import format_count, format_suggestion, to_visible_text

SCOPES = ("local", "project", "user")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


def list_servers(arguments: argparse.Namespace) -> int:
    """List every configured server, and whether it may start."""
    rows = _list_rows(arguments)
    if arguments.json:
        write_json(rows)
    elif not rows:
        print_out("No MCP servers are configured. `handaxe mcp add NAME COMMAND` adds one.")
    for row in () if arguments.json else rows:
        print_out(
            to_visible_text(
                f"{row.name}: {_format_target(row)} ({row.scope}) - {_format_state(row, arguments)}"
            )
        )
    return _compute_exit_code(rows)


def get_server(arguments: argparse.Namespace) -> int:
    """Show one server."""
    name = arguments.server
    rows = _list_rows(arguments, name)
    row = next((row for row in rows if row.name == name), None)
    if row is None:
        hint = format_suggestion(name, [row.name for row in rows])
        raise SetupError(
            f"There is no MCP server {name!r}.{hint} `handaxe mcp list` lists the servers."
        )
    if arguments.json:
        write_json(row)
        return _compute_exit_code([row])
    lines = [
        f"{row.name}:",
        f"  scope      {row.scope}",
        f"  transport  {(row.config or {}).get('type')}",
        f"  target     {_format_target(row)}",
        f"  status     {_format_state(row, arguments)}",
        *(f"  tool       {tool.name}" for tool in row.tools),
    ]
    print_out("\n".join(to_visible_text(line) for line in lines))
    return _compute_exit_code([row])


def add_server(arguments: argparse.Namespace) -> int:
    """Add a server's definition to the file of its scope."""
    name: str = arguments.server
    if arguments.action == "add-json":
        entry = parse_json_object(arguments.definition, "The definition") or {}
    else:
        entry = _build_entry(arguments, arguments.words)
    if not _NAME.fullmatch(name):
        raise SetupError(f"Invalid server name {name!r}. Use letters, digits, - and _.")
    # Report a wrong entry now, not when the next session starts.
    read_definitions(".", given=[{name: entry}], is_strict=True)
    file, path = _find_place(arguments)
    _edit_file(file, lambda text: put_json(text, (*path, name), entry))
    print_out(f"Added {name} to {file} ({arguments.scope or 'local'}).")
    return DONE


def remove_server(arguments: argparse.Namespace) -> int:
    """Remove a server's definition from the file of its scope, or from the only one that has it."""
    name: str = arguments.server
    wanted = (arguments.scope,) if arguments.scope else SCOPES
    having = [scope for scope in wanted if _has_entry(_find_place(arguments, scope), name)]
    if len(having) > 1:
        scopes = ", ".join(having)
        raise SetupError(f"{name!r} is defined in {scopes}. Choose one of them with --scope.")
    if not having:
        where = f" in the scope {arguments.scope}" if arguments.scope else ""
        raise SetupError(
            f"There is no MCP server {name!r}{where}. `handaxe mcp list` lists the servers."
        )
    file, path = _find_place(arguments, having[0])
    _edit_file(file, lambda text: drop_json(text, (*path, name)))
    print_out(f"Removed {name} from {file}.")
    return DONE


def _list_rows(arguments: argparse.Namespace, only: str | None = None) -> Sequence[McpServer]:
    session = open_session(arguments)
    if session.mcp is None:
        return ()
    if not arguments.check:
        return session.mcp.status()
    return asyncio.run(check_servers(session, only))


async def check_servers(session: Session, only: str | None = None) -> Sequence[McpServer]:
    """Connect to the servers of a session, or to one, and return their states."""
    async with session:
        get_parts(session).follow()
        assert session.mcp is not None
        known = {row.name for row in session.mcp.status()}
        if only is None or only in known:
            await session.mcp.settled(only)
        return session.mcp.status()


def _format_state(row: McpServer, arguments: argparse.Namespace) -> str:
    if row.status == "disabled":
        return f"disabled: {row.error}"
    if not arguments.check:
        return "may start"
    why = f": {row.error}" if row.error else ""
    tools = f", {format_count(len(row.tools), 'tool')}" if row.status == "connected" else ""
    return f"{row.status}{tools}{why}"


def _format_target(row: McpServer) -> str:
    config = row.config or {}
    if "url" in config:
        return config["url"]
    return " ".join(map(str, [config.get("command", "?"), *config.get("args", ())]))


def _compute_exit_code(rows: Sequence[McpServer]) -> int:
    return FAILED if any(row.status in {"failed", "needs-auth"} for row in rows) else DONE


def _build_entry(arguments: argparse.Namespace, words: Sequence[str]) -> dict[str, Any]:
    """The definition that the arguments describe."""
    is_address = re.match(r"https?://", words[0]) is not None
    kind = arguments.transport or ("http" if is_address else "stdio")
    if kind != "stdio":
        if len(words) > 1:
            raise SetupError(f"Unexpected argument {words[1]!r} after the address of a server.")
        headers = parse_pairs(arguments.header, ":", "--header")
        entry: dict[str, Any] = {"type": kind, "url": words[0]}
        return {**entry, "headers": headers} if headers else entry
    env = parse_pairs(arguments.env, "=", "--env")
    entry = {"type": "stdio", "command": words[0], "args": list(words[1:])}
    return {**entry, "env": env} if env else entry


def _find_place(
    arguments: argparse.Namespace, scope: str | None = None
) -> tuple[Path, tuple[str, ...]]:
    """The file of a scope, and the key that holds its servers."""
    root = os.path.realpath(arguments.root)
    scope = scope or arguments.scope or "local"
    if scope == "project":
        return Path(root) / PROJECT_SERVERS, ("mcpServers",)
    shared = Path(get_shared_servers_file())
    if scope == "user":
        return shared, ("mcpServers",)
    return shared, ("projects", root, "mcpServers")


def _has_entry(place: tuple[Path, tuple[str, ...]], name: str) -> bool:
    file, path = place
    try:
        value: Any = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    for key in (*path, name):
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value is not None


def _edit_file(file: Path, edit: Callable[[str], str]) -> None:
    def edited(text: str, _: Path) -> str:
        try:
            return edit(text)
        except ConfigEditError as bad:
            raise SetupError(f"Cannot edit {file}: {bad}. Edit it by hand.") from None

    edit_config_file(file, edited)


SECRET_VARIABLE = "MCP_CLIENT_SECRET"  # noqa: S105 - the name of a variable


def log_in(arguments: argparse.Namespace) -> int:
    """Log in to a server in a browser."""
    name: str = arguments.server
    secret = os.environ.get(SECRET_VARIABLE) or None

    async def tell_address(address: str) -> None:
        print_error(
            f"To log in to {to_visible_text(name)}, open:\n\n  {to_visible_text(address)}\n"
        )
        # A program that reads stderr through a pipe may have no screen.
        if not arguments.no_browser and sys.stderr.isatty():
            await asyncio.to_thread(_open_browser, address)
        print_error("Waiting for the login. Press Ctrl-C to cancel.")

    async def work(servers: McpServers) -> str:
        await servers.login(name, tell_address, client_secret=secret)
        return f"Logged in to {to_visible_text(name)}."

    return _run_login_action(arguments, work)


def log_out(arguments: argparse.Namespace) -> int:
    """Delete a login."""
    name: str = arguments.server

    async def work(servers: McpServers) -> str:
        was_there = await servers.logout(name)
        state = "Logged out of" if was_there else "There was no login for"
        return f"{state} {to_visible_text(name)}."

    return _run_login_action(arguments, work)


def _run_login_action(
    arguments: argparse.Namespace, work: Callable[[McpServers], Awaitable[str]]
) -> int:
    session = open_session(arguments)
    servers = session.mcp
    if servers is None:
        raise SetupError("No MCP servers are configured. `handaxe mcp add NAME URL` adds one.")

    async def run() -> str:
        said = await work(servers)
        if arguments.action == "login":
            about = {"notification_type": "auth_success", "title": "Logged in"}
            await fire_hooks(
                get_parts(session).pipeline_context, "Notification", message=said, **about
            )
        await get_parts(session).pipeline_context.hooks.close()
        return said

    try:
        print_out(asyncio.run(run()))
    except ToolFault as fault:
        print_notice(str(fault))
        return FAILED
    except ImportError as error:
        raise SetupError(
            f"MCP servers need the extra `mcp` ({error.name} is missing): "
            "pip install 'handaxe[mcp]'."
        ) from None
    return DONE


def _open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
