"""`handaxe tour`: an agent at work in a temporary project, with a scripted model."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from handaxe.frontends.cli.exit_codes import DONE, FAILED
from handaxe.frontends.cli.render import BlockRenderer, write_out

NEXT = """
What to try next in one of your projects:

   On the command line
      handaxe call Grep pattern=TODO output_mode=content       one call, no model
      handaxe                                                  an agent in the terminal
      handaxe -p "Which functions have no test?"               one answer, for scripts
      handaxe history && handaxe undo                          list changes, undo the last one
   From another agent, over MCP
      handaxe mcp install claude-code --write                  or codex, cursor, vscode, zed, ...
   In a Python program
      async with handaxe.Session(".") as session:              tools for your own agent loop
          await session.call("Read", file_path="README.md")
      async with handaxe.Agent("sonnet", root=".") as agent:   a complete agent
          print((await agent.ask("What is this?")).result)

An agent needs a model: set ANTHROPIC_API_KEY, OPENAI_API_KEY or, for your own server,
OPENAI_BASE_URL. `handaxe doctor` checks what works on this machine.
"""


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - it takes no arguments
    """Run the tour; 0 if every call ended as the story says."""
    from handaxe.frontends.cli.tour.page import TourPage, load_story
    from handaxe.frontends.cli.tour.runner import TourRunner

    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        # Print a question mark for characters that the terminal lacks.
        reconfigure(errors="replace")
    story = load_story()
    began_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="handaxe-tour-") as place:
        project, home = Path(place).resolve() / "project", Path(place).resolve() / "home"
        project.mkdir()
        page = TourPage(Path(place).resolve(), BlockRenderer.create_for_stdout())
        page.line(
            f"A temporary project, an agent and a scripted model: {len(story.chapter)} chapters.",
            margin="",
        )
        walk = TourRunner(story, project, page)
        went_well = asyncio.run(walk.go(home))
    took_s = time.perf_counter() - began_s
    write_out(f"\n{walk.calls} calls in {took_s:.1f} s; the temporary project is deleted.\n")
    if not went_well:
        write_out("A call did not end as the tour expects. Run `handaxe doctor` to find out why.\n")
        return FAILED
    write_out(NEXT)
    return DONE
