"""Analyze what a bash command would do, from its text, and whether rules allow it.

Belongs here: reading a command into facts, the walk through a script, tables of programs.
Does not: running anything, reading the disk, path rules (the caller passes them), settings.
May import: `text`, `contract`, msgspec; tree-sitter in `parser.cross_check` only, when used.
"""

from __future__ import annotations

from handaxe.shell.analysis.analyzer import analyze
from handaxe.shell.analysis.decision.decide import (
    CrossCheck,
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
    "CrossCheck",
    "DestructiveForm",
    "Mode",
    "PartDecision",
    "PathComponent",
    "PathUse",
    "PathVerdict",
    "Proposal",
    "Repository",
    "RestrictedPath",
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
