"""Bash commands: what they do, and whether they may.

Belongs here: reading a command into facts (`analysis`), matching Bash rules, the verdict with its
reasons; option tables of programs as data.
Does not: running anything, touching the disk, path rules (the caller passes them in), settings.
May import: `handaxe.contract`, `handaxe.text`, msgspec; tree-sitter in `opinion` only, when used.
"""

from __future__ import annotations

from handaxe.shell.analysis.analyze import analyze
from handaxe.shell.decide import SecondOpinion, ShellDecision, decide, is_read_only
from handaxe.shell.facts import CommandFacts, DestructiveForm, TreeCopy
from handaxe.shell.fences import PathComponent, RestrictedPath, make_literal_component
from handaxe.shell.opinion import count_from_shfmt
from handaxe.shell.places import PathUse
from handaxe.shell.propose import Proposal
from handaxe.shell.verdicts import (
    BashRule,
    Mode,
    PartDecision,
    PathVerdict,
    Repository,
    ShellRules,
    Verdict,
)

__all__ = [
    "BashRule",
    "CommandFacts",
    "DestructiveForm",
    "Mode",
    "PartDecision",
    "PathComponent",
    "PathUse",
    "PathVerdict",
    "Proposal",
    "Repository",
    "RestrictedPath",
    "SecondOpinion",
    "ShellDecision",
    "ShellRules",
    "TreeCopy",
    "Verdict",
    "analyze",
    "count_from_shfmt",
    "decide",
    "is_read_only",
    "make_literal_component",
]
