"""`handaxe update`: how this installation is updated; downloads nothing."""

import argparse
import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.render import print_out
from handaxe.version import __version__

_NAME = "handaxe"
_ENVIRONMENTS = {
    "uv-receipt.toml": ("uv tool", "uv tool upgrade handaxe"),
    "pipx_metadata.json": ("pipx", "pipx upgrade handaxe"),
    "conda-meta/history": ("conda", "conda update handaxe"),
}
"""Files in the environments of some installers, with the installer and its command."""


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - there are no arguments
    """Print the version, the place and the command that updates it."""
    installed, command = describe_update()
    print_out(f"handaxe {__version__}, {installed}.")
    print_out(f"To update it: {command}")
    return DONE


def describe_update() -> tuple[str, str]:
    """How handaxe was installed, and the command that updates it."""
    prefix = Path(sys.prefix)
    for file, (name, command) in _ENVIRONMENTS.items():
        if (prefix / file).is_file():
            return f"installed with {name} in {prefix}", command
    try:
        found = distribution(_NAME)
    except PackageNotFoundError:
        place = str(Path(__file__).parents[5])
        return f"run from the source in {place}", f"git -C {shlex.quote(place)} pull"
    installer = (found.read_text("INSTALLER") or "pip").strip()
    python = shlex.quote(sys.executable)
    is_uv = installer == "uv"
    install = f"uv pip install --python {python}" if is_uv else f"{python} -m pip install"
    origin: dict[str, Any] = json.loads(found.read_text("direct_url.json") or "{}")
    address = str(origin.get("url", ""))
    if "dir_info" in origin:
        place = unquote(urlsplit(address).path)
        pull = f"git -C {shlex.quote(place)} pull"
        again = f" && {install} --upgrade {shlex.quote(place)}"
        is_editable = origin["dir_info"].get("editable")
        return f"installed from {place}", pull if is_editable else f"{pull}{again}"
    source = f"{origin['vcs_info']['vcs']}+{address}" if "vcs_info" in origin else _NAME
    how = f"from {address}" if "vcs_info" in origin else f"with {installer}"
    return f"installed {how} in {prefix}", f"{install} --upgrade {shlex.quote(source)}"
