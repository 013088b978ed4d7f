"""`handaxe mcp login`, `logout`: who the user is to an MCP server at an address."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.frontends.cli.exit_codes import DONE, FAILED
from handaxe.frontends.cli.render import print_error, print_notice, print_out
from handaxe.frontends.cli.session_options import open_session
from handaxe.hooks.notify import fire_hooks
from handaxe.text.escape import to_visible_text

SECRET_VARIABLE = "MCP_CLIENT_SECRET"  # noqa: S105 - the name of a variable


def login(arguments: argparse.Namespace) -> int:
    """Log in at a server, in a browser."""
    name = _get_name(arguments)
    secret = os.environ.get(SECRET_VARIABLE) or None

    async def tell_address(address: str) -> None:
        print_error(
            f"To log in at {to_visible_text(name)}, open:\n\n  {to_visible_text(address)}\n"
        )
        # Whoever reads our output through a pipe may have no screen.
        if not arguments.no_browser and sys.stderr.isatty():
            await asyncio.to_thread(_open_browser, address)
        print_error("Waiting for the answer; Ctrl-C gives up.")

    async def work(servers: McpServers) -> str:
        await servers.login(name, tell_address, client_secret=secret)
        return f"Logged in at {to_visible_text(name)}."

    return _run_login_action(arguments, work)


def logout(arguments: argparse.Namespace) -> int:
    """Forget a login."""
    name = _get_name(arguments)

    async def work(servers: McpServers) -> str:
        was_there = await servers.logout(name)
        return f"{to_visible_text(name)}: {'logged out' if was_there else 'there was no login'}."

    return _run_login_action(arguments, work)


def _run_login_action(
    arguments: argparse.Namespace, work: Callable[[McpServers], Awaitable[str]]
) -> int:
    arguments.root = arguments.root or "."
    session = open_session(arguments)
    servers = session.mcp
    if servers is None:
        raise SetupError("No MCP servers are set up. `handaxe mcp add NAME URL` adds one.")

    async def run() -> str:
        said = await work(servers)
        if arguments.action == "login":
            about = {"notification_type": "auth_success", "title": "Logged in"}
            await fire_hooks(session.collaborators, "Notification", message=said, **about)
        await session.collaborators.hooks.close()
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


def _get_name(arguments: argparse.Namespace) -> str:
    if len(arguments.words) != 1:
        raise SetupError(f"Write: handaxe mcp {arguments.action} NAME")
    return arguments.words[0]


def _open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
