"""Bash commands: what they do, and whether they may.

Belongs here: reading a command into facts (`analysis`), matching Bash rules, the verdict with its
reasons; option tables of programs as data.
Does not: running anything, touching the disk, path rules (the caller passes them in), settings.
May import: `handaxe.contract`, `handaxe.text`, msgspec; tree-sitter in `opinion` only, when used.
"""

from __future__ import annotations

from handaxe.shell.analysis.analyzer import analyze
from handaxe.shell.analysis.decision.decide import (
    SecondOpinion,
    ShellDecision,
    decide,
    is_read_only,
)
from handaxe.shell.analysis.decision.suggestions import Proposal
from handaxe.shell.analysis.decision.verdicts import (
    BashRule,
    Mode,
    PartDecision,
    PathVerdict,
    Repository,
    ShellRules,
    Verdict,
)
from handaxe.shell.analysis.effects.glob_overlap import (
    PathComponent,
    RestrictedPath,
    make_literal_component,
)
from handaxe.shell.analysis.facts import CommandFacts, DestructiveForm, TreeCopy
from handaxe.shell.analysis.parser.cross_check import count_from_shfmt
from handaxe.shell.analysis.paths import PathUse

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
