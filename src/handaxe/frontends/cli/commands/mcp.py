"""`handaxe mcp`: the tools of a session for other agents, on stdio or on loopback HTTP."""

import argparse
import asyncio
from collections.abc import Sequence

from handaxe.app.asking import OnAsk
from handaxe.app.session import Session
from handaxe.frontends.cli.exits import DONE, TERMINATED
from handaxe.frontends.cli.opening import add_session_options, open_session
from handaxe.frontends.mcp_server.desk import Blueprint
from handaxe.frontends.mcp_server.offer import default_tools
from handaxe.tools import BUILTIN


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session_options(parser)
    parser.set_defaults(root=None)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client goes."""
    from handaxe.frontends.mcp_server.lines import take_standard_pipes
    from handaxe.frontends.mcp_server.stdio import serve

    source, sink = take_standard_pipes()
    is_done = asyncio.run(serve(_blueprint(arguments), source, sink))
    return DONE if is_done else TERMINATED


def _blueprint(arguments: argparse.Namespace) -> Blueprint:
    tools = arguments.tools if arguments.tools is not None else ",".join(default_tools(BUILTIN))

    def open_one(root: str, add_dirs: Sequence[str], on_ask: OnAsk) -> Session:
        chosen = {**vars(arguments), "root": root, "add_dir": list(add_dirs), "tools": tools}
        return open_session(argparse.Namespace(**chosen), on_ask=on_ask)

    return Blueprint(open_one, arguments.root, tuple(arguments.add_dir))
