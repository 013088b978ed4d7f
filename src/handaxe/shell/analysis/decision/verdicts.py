"""Types of the decision: rules, path verdicts, part decisions."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "auto"]
By = Literal["rule", "mode", "builtin"]
Cause = Literal["", "program", "redirection", "critical", "unreadable"]


class PathVerdict(Struct, frozen=True):
    """The path rules' decision on one path; `rule` is set if a user's rule decided."""

    verdict: Verdict
    reason: str = ""
    rule: str | None = None
    source: str | None = None
    is_binding: bool = False
    """Whether the ask applies whatever Bash rules allow: files there may run code."""
    is_above: bool = False
    """Whether it is about a directory above such a path, which naming does not change."""


class Repository(Struct, frozen=True):
    """The repository's own configuration."""

    is_clean: bool = True
    doubt: str = ""
    """The program it names, in words."""


class BashRule(Struct, frozen=True):
    """A Bash rule: the text between the parentheses (empty for all of Bash) and its source."""

    specifier: str
    source: str | None = None
    tool: str = "Bash"

    @property
    def text(self) -> str:
        """The rule as written in settings."""
        return f"{self.tool}({self.specifier})" if self.specifier else self.tool


class ShellRules(Struct, frozen=True):
    """The Bash rules of a session."""

    allow: tuple[BashRule, ...] = ()
    ask: tuple[BashRule, ...] = ()
    deny: tuple[BashRule, ...] = ()


class PartDecision(Struct, frozen=True):
    """The decision on one part and its reason."""

    text: str
    verdict: Verdict
    reason: str
    rule: str | None = None
    source: str | None = None
    by: By = "builtin"
    cause: Cause = ""
    """The cause of an ask; only "program" can be settled by an allow rule."""
    beside: str = ""
    """The parts that would still ask if a rule allowed the program."""
