"""`handaxe mcp login`, `logout`: who the user is to an MCP server at an address."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.frontends.cli.exits import DONE, FAILED
from handaxe.frontends.cli.opening import open_session, plain
from handaxe.runtime.pipeline.telling import fire

SECRET_VARIABLE = "MCP_CLIENT_SECRET"  # noqa: S105 - the name of a variable


def login(arguments: argparse.Namespace) -> int:
    """Log in at a server, in a browser."""
    name = _name(arguments)
    secret = os.environ.get(SECRET_VARIABLE) or None

    async def show(address: str) -> None:
        print(f"To log in at {plain(name)}, open:\n\n  {plain(address)}\n", file=sys.stderr)
        # Whoever reads our output through a pipe may have no screen.
        if not arguments.no_browser and sys.stderr.isatty():
            await asyncio.to_thread(_open, address)
        print("Waiting for the answer; Ctrl-C gives up.", file=sys.stderr, flush=True)

    async def work(servers: McpServers) -> str:
        await servers.login(name, show, client_secret=secret)
        return f"Logged in at {plain(name)}."

    return _done(arguments, work)


def logout(arguments: argparse.Namespace) -> int:
    """Forget a login."""
    name = _name(arguments)

    async def work(servers: McpServers) -> str:
        was_there = await servers.logout(name)
        return f"{plain(name)}: {'logged out' if was_there else 'there was no login'}."

    return _done(arguments, work)


def _done(arguments: argparse.Namespace, work: Callable[[McpServers], Awaitable[str]]) -> int:
    arguments.root = arguments.root or "."
    session = open_session(arguments)
    servers = session.mcp
    if servers is None:
        raise SetupError("No MCP servers are set up. `handaxe mcp add NAME URL` adds one.")

    async def run() -> str:
        said = await work(servers)
        if arguments.action == "login":
            about = {"notification_type": "auth_success", "title": "Logged in"}
            await fire(session.collaborators, "Notification", message=said, **about)
        await session.collaborators.hooks.close()
        return said

    try:
        print(asyncio.run(run()))
    except ToolFault as fault:
        print(f"handaxe: {plain(str(fault))}", file=sys.stderr)
        return FAILED
    except ImportError as error:
        raise SetupError(
            f"MCP servers need the extra `mcp` ({error.name} is missing): "
            "pip install 'handaxe[mcp]'."
        ) from None
    return DONE


def _name(arguments: argparse.Namespace) -> str:
    if len(arguments.words) != 1:
        raise SetupError(f"Write: handaxe mcp {arguments.action} NAME")
    return arguments.words[0]


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
