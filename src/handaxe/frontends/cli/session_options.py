"""Open a session from the common options."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from handaxe.app.services.tool_selection import has_installed_tools
from handaxe.app.session import Session
from handaxe.config.env_vars import is_env_true
from handaxe.config.keys import BadSettingsJson
from handaxe.config.project import ADDED_SKILLS, EVERYTHING, NOTHING, Discovery, read_given
from handaxe.config.source import SettingsFragment, read_text
from handaxe.config.working_directories import make_absolute
from handaxe.contract.events import Event, SettingsChanged, WishRefused
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.render import print_notice
from handaxe.tools import BUILTIN

if TYPE_CHECKING:
    from handaxe.app.services.tool_selection import Tools
    from handaxe.permission.prompts import OnAsk


def open_session(
    arguments: argparse.Namespace,
    *,
    on_ask: "OnAsk | None" = None,
    default_tools: str | None = None,
    **more: Any,  # noqa: ANN401 - further options of `Session`
) -> Session:
    """The session of the options, not entered yet.

    `default_tools` are the built-in tools if no option names any.
    """
    from handaxe.rules.grammar import split_rules

    for option, name in (
        ("--root", arguments.root),
        *(("--add-dir", d) for d in arguments.add_dir),
    ):
        if not Path(make_absolute(name)).is_dir():
            raise SetupError(f"{option}: {name} is not a directory.")
    tools, problems = _choose_tools(arguments, default_tools)
    session = Session(
        arguments.root,
        add_dirs=arguments.add_dir,
        permission_mode=arguments.permission_mode,
        allow=[rule for text in arguments.allow for rule in split_rules(text)],
        deny=[rule for text in arguments.deny for rule in split_rules(text)],
        settings=read_settings_option(arguments.settings),
        setting_sources=arguments.setting_sources,
        trusted=True if arguments.trust_project else None,
        tools=tools,
        session_id=arguments.session_id,
        shared=arguments.shared_session,
        mcp_servers=arguments.mcp_config,
        strict_mcp=arguments.strict_mcp_config,
        on_ask=on_ask,
        **more,
    )
    warn((*problems, *session.warnings))
    session.subscribe(_print_warnings)
    return session


def _choose_tools(
    arguments: argparse.Namespace, default_tools: str | None
) -> tuple["Tools", list[str]]:
    """The tools of the options, own tools included, and problems of installed tools."""
    # `--tools default` means the same as no option, as in other programs.
    named: str | None = None if arguments.tools == "default" else arguments.tools
    selected = default_tools if named is None else named
    is_safe = is_env_true(SAFE_VARIABLE) or is_env_true(BARE_VARIABLE)
    has_installed = not is_safe and has_installed_tools()
    if not arguments.tools_from and not has_installed:
        return selected, []
    from handaxe.app.services.tool_files import load_installed_tools, load_tools

    own = [tool for source in arguments.tools_from for tool in load_tools(source)]
    words = [] if selected is None else selected.replace(",", " ").split()
    installed, problems = load_installed_tools() if has_installed else ([], [])
    taken = {tool.name for tool in own}
    # With --tools, an installed tool counts only if it is named.
    own += [
        tool
        for tool in installed
        if tool.name not in taken and (named is None or tool.name in words)
    ]
    names = {tool.name for tool in own}.difference(BUILTIN)
    builtin = " ".join(word for word in words if word not in names)
    return [*([] if selected is None else [builtin]), *own], problems


def warn(sentences: Iterable[str]) -> None:
    """Print warnings on standard error."""
    for sentence in sentences:
        print_notice(f"warning: {sentence}")


def read_settings_option(given: str | None) -> SettingsFragment | None:
    """Settings from `--settings`: a JSON object, or a file that holds one."""
    if given is None:
        return None
    if not given.strip():
        raise SetupError("--settings is empty. Give a file or a JSON object, or leave it out.")
    is_inline = given.lstrip().startswith("{")
    name = "the value" if is_inline else given
    try:
        text = given if is_inline else Path(given).read_text(encoding="utf-8")
        fragment = read_text(text, source="flags", file=None if is_inline else given)
    except OSError as error:
        raise SetupError(f"--settings: cannot read {given} ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise SetupError(f"--settings: {given} is not UTF-8 text.") from None
    except BadSettingsJson as bad:
        raise SetupError(f"--settings: {name} is not JSON: {bad}.") from None
    return read_given(fragment, where="--settings")


def _print_warnings(event: Event) -> None:
    if isinstance(event, SettingsChanged):
        warn(event.warnings)
    elif isinstance(event, WishRefused):
        warn((event.reason,))


BARE_VARIABLE = "CLAUDE_CODE_SIMPLE"
SAFE_VARIABLE = "CLAUDE_CODE_SAFE_MODE"
BARE_TOOLS = "Bash,Read,Edit"


def apply_mode(arguments: argparse.Namespace) -> Discovery:
    """Apply --bare and --safe-mode to the other options. Return what the session may load.

    The variables are also set for child processes, so that a nested agent runs in the same mode.
    """
    if arguments.bare or is_env_true(BARE_VARIABLE):
        os.environ[BARE_VARIABLE] = "1"
        arguments.strict_mcp_config = True
        if arguments.setting_sources is None:
            arguments.setting_sources = ""
        if arguments.tools is None:
            arguments.tools = BARE_TOOLS
        found = ADDED_SKILLS
    elif arguments.safe_mode or is_env_true(SAFE_VARIABLE):
        os.environ[SAFE_VARIABLE] = "1"
        arguments.strict_mcp_config, arguments.mcp_config = True, []
        arguments.settings = disable_hooks(arguments.settings)
        found = NOTHING
    else:
        found = EVERYTHING
    if arguments.disable_slash_commands:
        return msgspec.structs.replace(found, skills="none")
    return found


def disable_hooks(given: str | None) -> str:
    """The value of `--settings` with hooks disabled."""
    import json

    text = given or "{}"
    try:
        if not text.lstrip().startswith("{"):
            text = Path(text).read_text(encoding="utf-8")
        options = json.loads(text)
        options["disableAllHooks"] = True
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(f"--settings: cannot read {given} ({error}).") from None
    return json.dumps(options)
