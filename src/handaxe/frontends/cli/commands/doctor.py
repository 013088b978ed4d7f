"""`handaxe doctor`: what works on this machine and how to fix the rest."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import msgspec

from handaxe.app.doctor.checks import Finding, examine
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.mcp_servers import McpServer
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import can_show_colour, print_out, write_rendered
from handaxe.storage.home import find_data_home
from handaxe.text.escape import format_count, to_visible_text

_COLOURS = {"ok": "32", "weak": "33", "no": "31"}


def run(arguments: argparse.Namespace) -> int:
    """Print the findings."""
    found = _examine()
    if arguments.check:
        found = _check_servers(found)
    if arguments.json:
        by_key = {finding.key: _to_json(finding) for finding in found}
        write_json(by_key)
        return DONE
    is_coloured = can_show_colour(sys.stdout)
    width = max(len(finding.key) for finding in found)
    group = ""
    for finding in found:
        if group and finding.key.partition(".")[0] != group and _is_first_of_many(finding, found):
            print_out()
        group = finding.key.partition(".")[0]
        mark = f"{finding.standing:4}"
        if is_coloured:
            mark = f"\033[{_COLOURS[finding.standing]}m{mark}\033[0m"
        key, value = to_visible_text(finding.key), to_visible_text(finding.value, exact=True)
        write_rendered(f"{mark}  {key:{width}}  {value}\n")
        if finding.advice:
            print_out(f"      {'':{width}}  {to_visible_text(finding.advice, exact=True)}")
    return DONE


def _examine() -> list[Finding]:
    """The findings for the current directory and the data directory, if they exist."""
    problems: list[Finding] = []
    root, home = "/nonexistent", Path("/nonexistent")
    try:
        root = os.path.realpath(".")
    except OSError as error:
        value = f"the current directory does not exist ({error.strerror})"
        problems.append(Finding(key="problem.directory", standing="no", value=value))
        os.chdir("/")  # The programs that are examined start in a directory that exists.
    try:
        home = find_data_home()
    except SetupError as error:
        problems.append(Finding(key="problem.home", standing="no", value=str(error)))
    return [*examine(root, home), *problems]


def _check_servers(found: list[Finding]) -> list[Finding]:
    """The findings with the connection state of each MCP server."""
    from handaxe.app.session import Session
    from handaxe.frontends.cli.mcp_server_commands import check_servers

    try:
        session = Session(".")
    except (SetupError, OSError) as error:
        value = f"connection failed: {error}"
        return [*found, Finding(key="problem.servers", standing="no", value=value)]
    rows = asyncio.run(check_servers(session)) if session.mcp is not None else ()
    by_key = {f"mcp.server.{row.name}": row for row in rows if row.status != "disabled"}
    return [
        _merge_status(finding, by_key[finding.key]) if finding.key in by_key else finding
        for finding in found
    ]


def _merge_status(finding: Finding, server: McpServer) -> Finding:
    if server.status == "connected":
        value = f"{finding.value}; connected, {format_count(len(server.tools), 'tool')}"
        return msgspec.structs.replace(finding, value=value)
    return msgspec.structs.replace(
        finding,
        standing="weak" if server.status == "needs-auth" else "no",
        value=f"{finding.value}; {server.status}{f': {server.error}' if server.error else ''}",
        advice=finding.advice or f"`handaxe mcp get {server.name} --check` shows details.",
    )


def _is_first_of_many(finding: Finding, found: list[Finding]) -> bool:
    group = finding.key.partition(".")[0] + "."
    return sum(other.key.startswith(group) for other in found) > 1


def _to_json(finding: Finding) -> dict[str, str]:
    facts = msgspec.structs.asdict(finding)
    return {name: value for name, value in facts.items() if name != "key"}
