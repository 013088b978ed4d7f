"""`handaxe tools`: the tools, or the prompt and schema of one."""

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any

from handaxe.app.session import get_parts
from handaxe.app.tool_listing import (
    explain_withheld_tool,
    find_builtin_tool,
    find_unavailable_tool,
    get_data_schema,
    get_tool_schema,
    list_withheld_tools,
)
from handaxe.catalog.catalog import Catalog
from handaxe.contract.faults import SetupError, UnknownTool
from handaxe.contract.tool import Tool
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_line
from handaxe.frontends.cli.render import print_error, print_out, write_out
from handaxe.frontends.cli.session_options import open_session
from handaxe.permission.decide import Policy
from handaxe.text.escape import to_visible_text


def run(arguments: argparse.Namespace) -> int:
    """Print the tools."""
    schemas, tool, remark = asyncio.run(_read(arguments))
    if arguments.json:
        shown = schemas if arguments.name is None else _add_output(schemas[0], tool, arguments)
        if remark:
            # The remark is not part of the schema, which goes to a provider as it is.
            print_error(f"{to_visible_text(tool.name)}: {remark}")
        write_line(json.dumps(shown, indent=2, ensure_ascii=False))
    elif tool is not None:
        output = get_data_schema(tool)
        head = "\n\n".join(filter(None, (tool.name, remark, tool.prompt())))
        write_out(f"{head}\n\nInput schema:\n")
        write_line(json.dumps(schemas[0], indent=2, ensure_ascii=False))
        if output is not None:
            write_out("\nOutput schema:\n")
            write_line(json.dumps(output, indent=2, ensure_ascii=False))
    return DONE


def _add_output(
    schema: dict[str, Any], tool: Tool[Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Add the output schema in the json-schema format; no provider accepts one."""
    output = get_data_schema(tool) if arguments.provider == "json-schema" else None
    return schema if output is None else {**schema, "outputSchema": output}


async def _read(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], Any, str]:
    async with open_session(arguments) as session:
        catalog = get_parts(session).catalog
        policy = get_parts(session).session_context.policy()
        if arguments.name is None:
            # With --tools, list only those tools.
            withheld = [] if arguments.tools else list_withheld_tools(catalog, policy)
            schemas = session.tools(provider=arguments.provider)
            if not arguments.json:
                _print_list(catalog, withheld)
            elif arguments.provider == "json-schema":
                schemas += [
                    {**get_tool_schema(tool, arguments.provider), "withheld": why}
                    for tool, why in withheld
                ]
            return schemas, None, ""
        tool, remark = _find(arguments.name, catalog, policy)
        prompt = catalog.describe(tool)
        return [get_tool_schema(tool, arguments.provider, prompt)], tool, remark


def _print_list(catalog: Catalog, withheld: Sequence[tuple[Tool[Any], str]]) -> None:
    for tool in catalog.list_offered():
        head = catalog.describe(tool).partition("\n")[0]
        print_out(f"{to_visible_text(tool.name):18} {to_visible_text(head)}")
    if withheld:
        print_out("\nNot offered here:")
    for tool, why in withheld:
        print_out(f"{to_visible_text(tool.name):18} {to_visible_text(why)}")


def _find(name: str, catalog: Catalog, policy: Policy) -> tuple[Tool[Any], str]:
    """A tool, and the reason why it is not offered."""
    try:
        tool, _ = catalog.find(name)
    except UnknownTool as unknown:
        if found := find_unavailable_tool(name):
            return found
        own = (tool for tool in catalog.own_tools if tool.name == name)
        tool = next(own, None) or find_builtin_tool(name)
        if tool is None:
            raise SetupError(unknown.sentence) from None
    return tool, explain_withheld_tool(tool, catalog, policy)
