"""The hooks that the guide "How commands run" shows for direnv, mise and virtual environments."""

import json
import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parents[3] / "docs/guides/shell.md"


def read_guide_hooks(name: str) -> dict[str, Any]:
    """The settings that the guide shows; for mise with the words that it names."""
    blocks = re.findall(r"```json\n(\{\"hooks\".*?)```", GUIDE.read_text(), re.DOTALL)
    (block,) = (one for one in blocks if {"mise": "direnv"}.get(name, name) in one)
    if name == "mise":
        block = block.replace("direnv export bash", "mise hook-env -s bash")
        block = block.replace(".envrc", "mise.toml")
    return json.loads(block)
