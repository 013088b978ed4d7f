"""Bash commands: what they do, and whether they may.

Belongs here: reading a command into facts (`analysis`), matching Bash rules, the verdict with its
reasons; option tables of programs as data.
Does not: running anything, touching the disk, path rules (the caller passes them in), settings.
May import: `handaxe.contract`, `handaxe.text`, msgspec; tree-sitter in `opinion` only, when used.
"""

from __future__ import annotations

from handaxe.shell.analysis.analyze import analyze
from handaxe.shell.decide import SecondOpinion, ShellDecision, decide, only_reads
from handaxe.shell.facts import CommandFacts, Loss, TreeCopy
from handaxe.shell.fences import Fence, Name, literal_name
from handaxe.shell.opinion import count_from_shfmt
from handaxe.shell.places import PathUse
from handaxe.shell.propose import Proposal
from handaxe.shell.verdicts import (
    Mode,
    PartDecision,
    PathVerdict,
    Repository,
    Rule,
    ShellRules,
    Verdict,
)

__all__ = [
    "CommandFacts",
    "Fence",
    "Loss",
    "Mode",
    "Name",
    "PartDecision",
    "PathUse",
    "PathVerdict",
    "Proposal",
    "Repository",
    "Rule",
    "SecondOpinion",
    "ShellDecision",
    "ShellRules",
    "TreeCopy",
    "Verdict",
    "analyze",
    "count_from_shfmt",
    "decide",
    "literal_name",
    "only_reads",
]
