"""`handaxe prompt`: the system prompt part by part, with sizes."""

import argparse
import asyncio
import shutil
from collections.abc import AsyncIterator

import msgspec

from handaxe.agent.system_prompt import PromptSection, list_prompt_sections
from handaxe.app.agent import Agent
from handaxe.app.session import get_parts
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.model import Model, ModelEvent, ModelFailed, ModelRequest
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.option_values import parse_json_object, read_prompt_option
from handaxe.frontends.cli.render import print_out, write_out
from handaxe.frontends.cli.session_options import disable_hooks, open_session
from handaxe.frontends.cli.worktree_option import create_ephemeral_home
from handaxe.models.factory import open_model
from handaxe.storage.home import find_data_home
from handaxe.text.tokens import estimate_tokens


class PromptSummary(msgspec.Struct, kw_only=True):
    """The system prompt with its agent and model."""

    agent: str | None
    model: str
    sections: list[PromptSection]


def run(arguments: argparse.Namespace) -> int:
    """Print the prompt without calling a model, running hooks or keeping data."""
    summary = asyncio.run(_read(arguments))
    sizes = [(len(one.text), estimate_tokens(one.text)) for one in summary.sections]
    chars, tokens = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
    rows = list(zip(summary.sections, sizes, strict=True))
    if arguments.json:
        parts = [
            {
                "name": section.name,
                "block": section.block,
                "chars": size[0],
                "tokens": size[1],
                "text": section.text,
            }
            for section, size in rows
        ]
        named = {"agent": summary.agent, "model": summary.model or None}
        write_json({**named, "chars": chars, "tokens": tokens, "parts": parts})
        return DONE
    for section, size in rows:
        print_out(f"----- {section.name}: {_format_size(*size)}")
        write_out(f"{section.text}\n\n")
    print_out(f"----- {len(rows)} parts: {_format_size(chars, tokens)}")
    return DONE


def _format_size(chars: int, tokens: int) -> str:
    return f"{chars:,} characters, about {tokens:,} tokens"


async def _read(arguments: argparse.Namespace) -> PromptSummary:
    agents = parse_json_object(arguments.agents, "--agents")
    replace = read_prompt_option(arguments.system_prompt, arguments.system_prompt_file)
    append = read_prompt_option(arguments.append_system_prompt, arguments.append_system_prompt_file)
    arguments.settings = disable_hooks(arguments.settings)
    home = create_ephemeral_home(find_data_home())
    try:
        async with (
            open_session(arguments, home=home) as session,
            Agent(
                arguments.model,
                session,
                open_model=_open_for_name,
                agent=arguments.agent,
                agents=agents,
                system_prompt=replace,
                append_system_prompt=append or "",
            ) as agent,
        ):
            parts = get_parts(session)
            parts.follow()
            for service in parts.services.members:
                await service.wait_ready("needed")
            await agent.prompts.load(agent.workplace)
            shown = agent.prompts.list_parts(agent.workplace.specs())
            kind = None if agent.kind is None else agent.kind.name
            return PromptSummary(
                agent=kind, model=agent.model.name, sections=list_prompt_sections(shown)
            )
    finally:
        shutil.rmtree(home, ignore_errors=True)


class _UnopenedModel(Model):
    """A model that only has a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:  # noqa: ARG002
        """Fail: this model is never called."""
        raise ModelFailed("unreachable", "This command calls no model.")
        yield  # an iterator, as every model gives one


def _open_for_name(name: str | None) -> Model:
    """The model, or only its name if it has no key."""
    try:
        return open_model(name)
    except SetupError:
        return _UnopenedModel((name or "").removeprefix("anthropic/").removeprefix("openai/"))
