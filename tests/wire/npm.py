"""Programs of the protocol's authors, from npm, in a directory outside the repository."""

import json
import os
import shutil
import subprocess
from pathlib import Path

PACKAGES = {
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/sdk": "1.32.2",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    # The conformance suite needs a newer Node.js than many systems have.
    "node": "22.23.3",
}


class Unavailable(Exception):
    """What is needed cannot be had here; why."""


def directory() -> Path:
    """Where the packages are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "handaxe-npm"


def installed() -> Path:
    """The directory with all packages in the pinned versions, installed if necessary."""
    place = directory()
    if _has_all(place):
        return place
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"private": true}\n')
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    words = [npm, "install", "--no-audit", "--no-fund", "--save-exact", *wanted]
    try:
        out = subprocess.run(
            words, cwd=place, capture_output=True, text=True, timeout=90, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("npm did not finish in time") from None
    if out.returncode or not _has_all(place):
        raise Unavailable(f"npm could not install the packages: {out.stderr[-300:]}")
    return place


def node(place: Path) -> str:
    """A Node.js that is new enough."""
    return str(place / "node_modules" / ".bin" / "node")


def _has_all(place: Path) -> bool:
    for name, version in PACKAGES.items():
        try:
            found = json.loads((place / "node_modules" / name / "package.json").read_text())
        except (OSError, ValueError):
            return False
        if found["version"] != version:
            return False
    return True
