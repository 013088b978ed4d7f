"""Tools and results in the form a provider or a front end wants them."""

from typing import Any

from handaxe.contract.display import Display
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.runtime.catalog.catalog import Catalog
from handaxe.runtime.catalog.deferral import Deferral
from handaxe.session.loaded_tools import LoadedTools
from handaxe.settings.model import Settings


def deferral_of(catalog: Catalog, loaded: LoadedTools, settings: Settings) -> Deferral:
    """Which of these tools wait to be searched for, as the settings say."""
    options = settings.tool_search
    return Deferral(catalog, loaded, when=options.when, limit_chars=options.limit_chars)


def schema_of(tool: Tool[Any], provider: str) -> dict[str, Any]:
    """One tool's schema in a provider's dialect."""
    from handaxe.text.dialects import tool_schema
    from handaxe.text.schema import input_schema

    return tool_schema(
        tool.name,
        tool.prompt(),
        input_schema(tool.args_type),
        provider,
        strict=tool.strict,
        examples=tool.input_examples,
    )


def shown(catalog: Catalog, result: ToolResult, call_input: dict[str, Any]) -> Display | None:
    """What a human sees of a result; None means its text."""
    from handaxe.text.coercion import InputProblems, read_input

    try:
        tool, _ = catalog.find(result.tool)
        return tool.show(read_input(tool.args_type, call_input)[0], result)
    except InputProblems:
        return None
