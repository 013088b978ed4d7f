"""The options every command shares that opens a session, and the session they describe."""

import argparse
import json
from pathlib import Path
from typing import Any, cast

from handaxe.app.session import Session
from handaxe.contract.faults import SetupError


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Declare the common options."""
    group = parser.add_argument_group("session")
    group.add_argument("--root", default=".", metavar="DIR", help="the project (default: here)")
    group.add_argument(
        "--add-dir", action="append", default=[], metavar="DIR", help="one more working directory"
    )
    group.add_argument("--permission-mode", metavar="MODE", help="default, acceptEdits, plan, ...")
    group.add_argument(
        "--allowedTools",
        "--allowed-tools",
        dest="allow",
        action="append",
        default=[],
        metavar="RULES",
        help="rules for calls that run without a question",
    )
    group.add_argument(
        "--disallowedTools",
        "--disallowed-tools",
        dest="deny",
        action="append",
        default=[],
        metavar="RULES",
        help="rules for calls that never run",
    )
    group.add_argument("--settings", metavar="FILE|JSON", help="settings for this run")
    group.add_argument(
        "--setting-sources",
        metavar="LIST",
        help="which settings files are read (user,project,local)",
    )
    group.add_argument("--tools", metavar="LIST|PRESET", help="which tools are on offer")
    group.add_argument("--session-id", metavar="ID", help="the session to go on with, or to name")


def open_session(arguments: argparse.Namespace) -> Session:
    """The session that the options describe; not yet entered."""
    from handaxe.runtime.permission.rules import split_rules

    return Session(
        arguments.root,
        add_dirs=arguments.add_dir,
        permission_mode=arguments.permission_mode,
        allow=[rule for text in arguments.allow for rule in split_rules(text)],
        deny=[rule for text in arguments.deny for rule in split_rules(text)],
        settings=read_settings_option(arguments.settings),
        tools=arguments.tools,
        session_id=arguments.session_id,
    )


def read_settings_option(given: str | None) -> dict[str, Any] | None:
    """Settings from `--settings`: a JSON object, or a file that holds one."""
    if given is None:
        return None
    is_inline = given.lstrip().startswith("{")
    try:
        text = given if is_inline else Path(given).read_text(encoding="utf-8")
        settings = json.loads(text)
    except OSError as error:
        raise SetupError(f"--settings: {given} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise SetupError(
            f"--settings: {'the value' if is_inline else given} is not JSON: {error}"
        ) from None
    if not isinstance(settings, dict):
        raise SetupError("--settings wants a JSON object.")
    return cast("dict[str, Any]", settings)
