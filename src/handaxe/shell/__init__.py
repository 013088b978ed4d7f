"""Bash commands as text: what they say, what they could run, whether they may.

Belongs here: reading a command, proving that it only looks, finding what it could run or destroy,
matching Bash rules, the verdict with its reasons; option tables of programs as data.
Does not: running anything, touching the disk, path rules (the caller passes them in), settings.
May import: `handaxe.contract`, `handaxe.text`, msgspec; tree-sitter in `opinion` only, when used.
"""

from __future__ import annotations

from handaxe.shell.decide import SecondOpinion, ShellDecision, decide
from handaxe.shell.destructive import Destruction
from handaxe.shell.fences import Fence, Name, literal_name
from handaxe.shell.judge import Mode, PartDecision, PathVerdict, Rule, ShellRules, Verdict
from handaxe.shell.opinion import count_from_shfmt
from handaxe.shell.parse import parse
from handaxe.shell.places import PathUse
from handaxe.shell.propose import Proposal

__all__ = [
    "Destruction",
    "Fence",
    "Mode",
    "Name",
    "PartDecision",
    "PathUse",
    "PathVerdict",
    "Proposal",
    "Rule",
    "SecondOpinion",
    "ShellDecision",
    "ShellRules",
    "Verdict",
    "count_from_shfmt",
    "decide",
    "literal_name",
    "parse",
]
