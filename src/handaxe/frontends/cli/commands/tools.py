"""`handaxe tools [NAME]`: the tools on offer, or one tool's schema and prompt."""

import argparse
import asyncio
import json
from typing import Any

from handaxe.app.session import get_parts
from handaxe.app.tool_listing import (
    explain_hidden_tool,
    find_unavailable_tool,
    get_data_schema,
    get_tool_schema,
)
from handaxe.contract.faults import SetupError, UnknownTool
from handaxe.contract.tool import Tool
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_line
from handaxe.frontends.cli.render import print_error, print_out, write_out
from handaxe.frontends.cli.session_options import add_session_options, open_session
from handaxe.text.escape import to_visible_text


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this tool alone")
    parser.add_argument("--json", action="store_true", help="print schemas as JSON")
    parser.add_argument(
        "--provider",
        default="json-schema",
        metavar="P",
        help="the dialect: anthropic, openai, gemini or json-schema",
    )
    add_session_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is on offer."""
    schemas, tool, remark = asyncio.run(_read(arguments))
    if arguments.json:
        shown = schemas if arguments.name is None else _add_output(schemas[0], tool, arguments)
        if remark:
            # The schema stays what a provider takes, so the remark stands beside it.
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
    """In the neutral dialect the schema of the data, too; a provider takes no such thing."""
    output = get_data_schema(tool) if arguments.provider == "json-schema" else None
    return schema if output is None else {**schema, "outputSchema": output}


async def _read(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], Any, str]:
    async with open_session(arguments) as session:
        parts = get_parts(session)
        if arguments.name is None:
            schemas = session.tools(provider=arguments.provider)
            if not arguments.json:
                for tool in parts.catalog.list_offered():
                    head = parts.catalog.describe(tool).partition("\n")[0]
                    print_out(f"{to_visible_text(tool.name):18} {to_visible_text(head)}")
            return schemas, None, ""
        try:
            tool, _ = parts.catalog.find(arguments.name)
            remark = explain_hidden_tool(tool.name, parts.session_context.policy())
        except UnknownTool as unknown:
            found = find_unavailable_tool(arguments.name)
            if found is None:
                raise SetupError(unknown.sentence) from None
            tool, remark = found
        prompt = parts.catalog.describe(tool)
        return [get_tool_schema(tool, arguments.provider, prompt)], tool, remark
