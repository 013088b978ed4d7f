"""The settings entry that makes a client start the server: its file and its form."""

import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from handaxe.contract.faults import SetupError
from handaxe.disk import atomic
from handaxe.frontends.mcp_server.config_edit import ConfigEditError, put_json, put_toml
from handaxe.storage.home import get_user_home
from handaxe.text.escape import format_suggestion

_MAX_BYTES = 8 << 20


class ClientConfig(NamedTuple):
    """A program that starts MCP servers."""

    title: str
    file: Callable[[Path], Path]
    """Its settings file, given the project."""
    section: str = "mcpServers"
    """The key of its servers."""
    extras: tuple[tuple[str, str], ...] = ()
    """More fields of an entry."""
    knows_projects: bool = True
    """Whether it names the project, by roots or by the directory it starts the server in."""
    is_shared: bool = False
    """Whether the file is in the project and shared."""


def _join_home(*parts: str) -> Callable[[Path], Path]:
    return lambda _project: Path(get_user_home(), *parts)


def _join_project(*parts: str) -> Callable[[Path], Path]:
    return lambda project: project.joinpath(*parts)


def _join_config_home(*parts: str) -> Callable[[Path], Path]:
    """A file of a desktop application."""
    if sys.platform == "darwin":
        return _join_home("Library", "Application Support", *parts)
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path(get_user_home(), ".config"))
    return lambda _project: config.joinpath(*parts)


CLIENTS: dict[str, ClientConfig] = {
    "claude-code": ClientConfig("Claude Code", _join_project(".mcp.json"), is_shared=True),
    "claude-desktop": ClientConfig(
        "Claude Desktop",
        _join_config_home("Claude", "claude_desktop_config.json"),
        knows_projects=False,
    ),
    "codex": ClientConfig("Codex", _join_home(".codex", "config.toml"), "mcp_servers"),
    "cursor": ClientConfig("Cursor", _join_project(".cursor", "mcp.json"), is_shared=True),
    "gemini": ClientConfig("Gemini CLI", _join_project(".gemini", "settings.json"), is_shared=True),
    "vscode": ClientConfig(
        "VS Code",
        _join_project(".vscode", "mcp.json"),
        "servers",
        (("type", "stdio"),),
        is_shared=True,
    ),
    "windsurf": ClientConfig(
        "Windsurf", _join_home(".codeium", "windsurf", "mcp_config.json"), knows_projects=False
    ),
    "zed": ClientConfig(
        "Zed",
        _join_home(".config", "zed", "settings.json"),
        "context_servers",
        (("source", "custom"),),
    ),
}


def find_client(name: str | None) -> ClientConfig:
    """The client of that name."""
    names = ", ".join(CLIENTS)
    if name is None:
        raise SetupError(f"Name the client: {names}.")
    client = CLIENTS.get(name)
    if client is None:
        hint = format_suggestion(name, list(CLIENTS))
        raise SetupError(f"Unknown client {name!r}.{hint} Clients: {names}.")
    return client


def build_entry(
    client: ClientConfig, program: Sequence[str], words: Sequence[str]
) -> dict[str, Any]:
    """The entry that starts the server with these arguments."""
    command, *first = program
    return {**dict(client.extras), "command": command, "args": [*first, "mcp", *words]}


def format_entry(client: ClientConfig, name: str, entry: dict[str, Any], file: Path) -> str:
    """The entry in an otherwise empty file."""
    return _edit_text("", client, name, entry, file)


def install(client: ClientConfig, name: str, entry: dict[str, Any], file: Path) -> bool:
    """Add the entry to the client's file and return whether the file changed."""
    return edit_config_file(file, lambda text, real: _edit_text(text, client, name, entry, real))


def edit_config_file(file: Path, edit: Callable[[str, Path], str]) -> bool:
    """Edit a settings file of another program atomically and return whether it changed."""
    real = Path(os.path.realpath(file))
    before, version = _read(real)
    after = edit(before, real)
    if after == before:
        return False
    try:
        atomic.replace(real, [after.encode()], expect=version, make_parents=True)
    except (atomic.DiskFault, OSError) as error:
        raise SetupError(f"Cannot write {file}: {error}.") from None
    return True


def _read(file: Path) -> tuple[str, atomic.Version | atomic.Absent]:
    try:
        data, version = atomic.read_regular(file, max_bytes=_MAX_BYTES)
        return data.decode(), version
    except FileNotFoundError:
        return "", atomic.ABSENT
    except (atomic.DiskFault, OSError, UnicodeDecodeError) as error:
        raise SetupError(f"Cannot read {file}: {error}.") from None


def _edit_text(
    text: str, client: ClientConfig, name: str, entry: dict[str, Any], file: Path
) -> str:
    path = (client.section, name)
    try:
        if file.suffix != ".toml":
            return put_json(text, path, entry)
        before = tomllib.loads(text)
        edited = put_toml(text, path, entry)
        after = tomllib.loads(edited)
    except (ConfigEditError, tomllib.TOMLDecodeError) as bad:
        raise SetupError(f"Cannot edit {file} ({bad}). Add the entry by hand.") from None
    wanted = before.setdefault(client.section, {})
    wanted[name] = {**wanted.get(name, {}), **entry}
    if after != before:
        raise SetupError(
            f"{file} writes [{client.section}.{name}] in a form that handaxe cannot edit. "
            "Add the entry by hand."
        )
    return edited
