"""`handaxe mcp`: serve tools to other agents, and manage the MCP servers of sessions."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from handaxe.app.session import Session
from handaxe.config.working_directories import resolve_project
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.render import print_notice, print_out, write_out
from handaxe.frontends.cli.session_options import open_session
from handaxe.frontends.mcp_server.server_session import SessionFactory
from handaxe.frontends.mcp_server.tool_list import list_default_tools
from handaxe.permission.prompts import OnAsk
from handaxe.tools import BUILTIN

TOKEN_VARIABLE = "HANDAXE_MCP_TOKEN"  # noqa: S105 - the name of a variable
_MIN_TOKEN_CHARS = 16


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client disconnects, or manage servers."""
    if arguments.action == "install":
        return _install(arguments)
    if arguments.action != "serve":
        return _run_server_action(arguments)
    if arguments.http is not None:
        return _serve_http(arguments)
    from handaxe.frontends.mcp_server.handlers import serve
    from handaxe.frontends.mcp_server.stdio_transport import take_stdio
    from handaxe.frontends.signals import SignalListener, list_ending_signals

    source, sink = take_stdio()
    with SignalListener(*list_ending_signals()) as signals:
        signal_number = asyncio.run(serve(_build_session_factory(arguments), source, sink, signals))
    return DONE if signal_number is None else 128 + signal_number


def _run_server_action(arguments: argparse.Namespace) -> int:
    from handaxe.frontends.cli import mcp_server_commands

    return {
        "login": mcp_server_commands.log_in,
        "logout": mcp_server_commands.log_out,
        "list": mcp_server_commands.list_servers,
        "get": mcp_server_commands.get_server,
        "add": mcp_server_commands.add_server,
        "add-json": mcp_server_commands.add_server,
        "remove": mcp_server_commands.remove_server,
    }[arguments.action](arguments)


def _serve_http(arguments: argparse.Namespace) -> int:
    try:
        from handaxe.frontends.mcp_server.http import PATH, bind, serve
    except ImportError as error:
        raise SetupError(
            f"MCP over HTTP needs the extra `mcp` ({error.name} is missing): "
            "pip install 'handaxe[mcp]'."
        ) from None
    token, is_new = _read_token(arguments.token_file)
    blueprint = _build_session_factory(arguments)
    listening = bind(arguments.http)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
    print_notice(f"MCP server on {address}")
    if is_new:
        print_notice(f"token {token}")
    signal_number = asyncio.run(serve(blueprint, listening, token))
    return DONE if signal_number is None else 128 + signal_number


def _read_token(file: str | None) -> tuple[str, bool]:
    """The token, and whether it is new."""
    given = os.environ.pop(TOKEN_VARIABLE, None)
    where = f"${TOKEN_VARIABLE}"
    if file is not None:
        where = file
        try:
            given = Path(file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"--token-file: cannot read {file} ({error}).") from None
    if given is None:
        from secrets import token_urlsafe

        return token_urlsafe(32), True
    if len(given) < _MIN_TOKEN_CHARS or not given.isascii() or not given.isprintable():
        raise SetupError(
            f"The token in {where} needs at least {_MIN_TOKEN_CHARS} printable ASCII characters."
        )
    return given, False


def _build_session_factory(arguments: argparse.Namespace) -> SessionFactory:
    served = ",".join(list_default_tools(BUILTIN))

    def open_one(root: str, add_dirs: Sequence[str], on_ask: OnAsk) -> Session:
        chosen = {**vars(arguments), "root": root, "add_dir": list(add_dirs)}
        # A project may list handaxe as a server; do not start it again from inside.
        chosen["strict_mcp_config"] = True
        # --trust-project is for the project of this command, not for those that a client names.
        is_own = resolve_project(root) == resolve_project(arguments.root or ".")
        chosen["trust_project"] = arguments.trust_project and is_own
        # Over HTTP each client has a session object, all with the same id.
        chosen["shared_session"] = arguments.shared_session or arguments.http is not None
        return open_session(argparse.Namespace(**chosen), on_ask=on_ask, default_tools=served)

    return SessionFactory(
        open_one,
        arguments.root,
        tuple(arguments.add_dir),
        output_schemas=arguments.output_schemas,
    )


def _install(arguments: argparse.Namespace) -> int:
    from handaxe.frontends.mcp_server.client_configs import (
        build_entry,
        find_client,
        format_entry,
        install,
    )

    client = find_client(arguments.client)
    project = Path(os.path.abspath(arguments.root or "."))
    root = project if arguments.root is not None or not client.knows_projects else None
    program = _find_program(is_shared=client.is_shared)
    entry = build_entry(client, program, _build_arguments(arguments, root))
    file = client.file(project)
    if not arguments.write:
        print_notice(f"for {client.title}, in {file} (--write adds it):")
        write_out(format_entry(client, arguments.name, entry, file))
        return DONE
    is_new = install(client, arguments.name, entry, file)
    print_out(f"{file}: {'written' if is_new else 'already up to date'}")
    return DONE


def _find_program(*, is_shared: bool) -> list[str]:
    """The program of the entry: by name in shared files, else by path."""
    from shutil import which

    found = which("handaxe")
    if found is None:
        return [sys.executable, "-m", "handaxe"]
    return ["handaxe"] if is_shared else [found]


def _build_arguments(arguments: argparse.Namespace, root: Path | None) -> list[str]:
    """The session options of this command line as arguments of the entry."""
    words: list[str] = [] if root is None else ["--root", str(root)]
    # The client starts the server in another directory.
    tools_from = [os.path.abspath(x) if x.endswith(".py") else x for x in arguments.tools_from]
    for option, values in (
        ("--add-dir", arguments.add_dir),
        ("--allowed-tools", arguments.allow),
        ("--disallowed-tools", arguments.deny),
        ("--tools-from", tools_from),
    ):
        for value in values:
            words += [option, value]
    for option, value in (
        ("--permission-mode", arguments.permission_mode),
        ("--settings", arguments.settings),
        ("--setting-sources", arguments.setting_sources),
        ("--tools", arguments.tools),
    ):
        if value is not None:
            words += [option, value]
    return words
