"""The words of verdicts: rules, what path rules say, what is decided of one part."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "auto"]
By = Literal["rule", "mode", "builtin"]
Cause = Literal["", "program", "redirection", "critical", "unreadable"]


class PathVerdict(Struct, frozen=True):
    """What the path rules say about one path; `rule` is set when a rule of the user decided."""

    verdict: Verdict
    reason: str = ""
    rule: str | None = None
    source: str | None = None
    is_binding: bool = False
    """Whether an ask holds whatever Bash rules allow: what is written there may run code."""
    is_above: bool = False
    """Whether it is about a directory around such a place: naming it does not change it."""


class Repository(Struct, frozen=True):
    """The facts about the repository's own configuration."""

    is_clean: bool = True
    doubt: str = ""
    """Which program it names, in words."""


class BashRule(Struct, frozen=True):
    """A Bash rule: the text between the parentheses (empty for all of Bash) and its source."""

    specifier: str
    source: str | None = None
    tool: str = "Bash"

    @property
    def text(self) -> str:
        """The rule as it is written in settings."""
        return f"{self.tool}({self.specifier})" if self.specifier else self.tool


class ShellRules(Struct, frozen=True):
    """The Bash rules of a session."""

    allow: tuple[BashRule, ...] = ()
    ask: tuple[BashRule, ...] = ()
    deny: tuple[BashRule, ...] = ()


class PartDecision(Struct, frozen=True):
    """The verdict on one part and why."""

    text: str
    verdict: Verdict
    reason: str
    rule: str | None = None
    source: str | None = None
    by: By = "builtin"
    cause: Cause = ""
    """What an ask is about; only "program" could be settled by an allow rule."""
    beside: str = ""
    """What would still ask if a rule allowed the program."""
