"""The list of built-in tools: made ahead, and the same as from the loaded tools."""

import subprocess
import sys

from handaxe import Session, Tool, ToolArgs
from handaxe.app.session import get_parts
from handaxe.catalog.edit_formats import EDIT_TOOLS
from handaxe.frontends.mcp_server import tool_list
from handaxe.frontends.mcp_server.tool_list import (
    build_definitions,
    list_default_tools,
    list_definitions,
    list_names,
    read_prepared_definitions,
)
from handaxe.tools import BUILTIN


async def test_a_list_from_prepared_definitions_is_that_of_the_loaded_tools(project):
    prepared = read_prepared_definitions()
    assert set(prepared) == {*list_default_tools(BUILTIN), *EDIT_TOOLS.values()}
    async with Session(project, tools=list_default_tools(BUILTIN)) as session:
        catalog = get_parts(session).catalog
        names = list_names(catalog)
        listed = list_definitions(catalog, names)
        loaded = catalog.list_offered()
        assert list(names) == [tool.name for tool in loaded]
        assert listed == build_definitions(loaded, catalog.describe)
        with_output = list_definitions(catalog, names, output_schemas=True)
        assert with_output == build_definitions(loaded, catalog.describe, output_schemas=True)


async def test_a_list_loads_no_tool_that_is_prepared(project):
    code = (
        "import asyncio, sys\n"
        "from handaxe import Session\n"
        "from handaxe.app.session import get_parts\n"
        "from handaxe.frontends.mcp_server.tool_list import SERVED, list_definitions, list_names\n"
        "async def main():\n"
        "    async with Session('.', tools=list(SERVED)) as session:\n"
        "        catalog = get_parts(session).catalog\n"
        "        names = list_names(catalog)\n"
        "        assert 'Bash' in names and len(list_definitions(catalog, names)) == len(names)\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('handaxe.tools.')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True
    )
    assert done.stdout == "[]\n"


async def test_an_own_tool_in_place_of_a_built_in_one_is_listed_as_it_is(project):
    class Args(ToolArgs):
        file_path: str

    class Read(Tool[Args]):
        """Reads in its own way."""

        replaces_builtin = True

    async with Session(project, tools=[*list_default_tools(BUILTIN), Read]) as session:
        catalog = get_parts(session).catalog
        listed = {one["name"]: one for one in list_definitions(catalog, list_names(catalog))}
        assert listed["Read"]["description"] == "Reads in its own way."
        assert listed["Write"]["description"] != "Reads in its own way."


async def test_a_denied_tool_is_not_listed(project):
    names = list_default_tools(BUILTIN)
    async with Session(project, tools=names, deny=["Bash", "Undo"]) as session:
        assert not {"Bash", "Undo"} & set(list_names(get_parts(session).catalog))


async def test_without_prepared_definitions_the_tools_are_loaded(project, monkeypatch):
    monkeypatch.setattr(tool_list, "read_prepared_definitions", dict)
    async with Session(project, tools=list_default_tools(BUILTIN)) as session:
        catalog = get_parts(session).catalog
        listed = list_definitions(catalog, list_names(catalog))
        assert listed == build_definitions(catalog.list_offered(), catalog.describe)
