"""May this call run: allow, ask or deny, who said so and why."""

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import msgspec

from handaxe.contract.display import Code, Diff, Display

DecidedBy = Literal["rule", "mode", "builtin", "tool", "hook", "user", "callback"]
Verdict = Literal["allow", "ask", "deny"]
Remember = Literal["once", "session", "project", "always"]
SuggestedDestination = Literal["session", "localSettings", "userSettings"]
_REMEMBERED: dict[str, Remember] = {
    "session": "session",
    "localSettings": "project",
    "userSettings": "always",
}


class ToolDefinition(msgspec.Struct, frozen=True):
    """A tool as its server defines it, with how that server is started or reached.

    A lasting approval is bound to it.
    """

    tool: str
    """The name of the tool in the session."""
    server: str
    digest: str
    """The digest of the tool's whole definition and of the server's definition."""
    parts: tuple[tuple[str, str], ...] = ()
    """Name and text of each part, shortened if long, to show the user what changed."""


class DecidedPart(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one part of a call: one command of several."""

    text: str
    verdict: Verdict
    reason: str
    rule: str | None = None
    source: str | None = None
    by: str = "builtin"
    cause: str = ""
    """The cause of a question. An allow rule can settle only `program`."""


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """One destructive form in a command, with what it destroys in plain words."""

    text: str
    form: str
    reason: str
    critical: bool = False
    paths: tuple[str, ...] = ()


class RuleProposal(msgspec.Struct, frozen=True):
    """A rule that would have allowed the call, with examples of its reach."""

    rule: str
    would_match: tuple[str, ...]
    would_not_match: tuple[str, ...]
    for_part: str = ""
    """The part of the call it would have allowed, where it is not the whole of it."""
    meaning: str = ""
    """The meaning of the rule in plain words."""


def join_remedy(reason: str, remedy: str) -> str:
    """Both as one text."""
    return f"{reason} {remedy}" if remedy else reason


class _Word(msgspec.Struct, frozen=True, tag_field="verdict"):
    verdict: ClassVar[Verdict]

    reason: str = ""
    by: DecidedBy = "callback"
    rule: str | None = None
    source: str | None = None
    parts: tuple[DecidedPart, ...] = ()
    """For a command: the decision about each of its parts."""
    destructive: tuple[Loss, ...] = ()
    proposals: tuple[RuleProposal, ...] = ()
    proposals_leave_questions: bool = False
    """Whether the call would still ask if every proposed rule were there."""
    remedy: str = ""
    """The action that would change the verdict."""

    @property
    def sentence(self) -> str:
        """The reason, and what would change it, unless proposals say that."""
        return self.reason if self.proposals else join_remedy(self.reason, self.remedy)

    def to_json(self) -> dict[str, Any]:
        """The decision as in a result object and in the output of `handaxe explain`."""
        plain: dict[str, Any] = {
            "verdict": self.verdict,
            "by": self.by,
            "rule": self.rule,
            "source": self.source,
            "reason": self.reason,
        }
        if self.remedy:
            plain["remedy"] = self.remedy
        if self.parts:
            from handaxe.contract.json_values import replace_tuples

            plain["parts"] = replace_tuples(msgspec.to_builtins(self.parts))
            plain["destructive"] = replace_tuples(msgspec.to_builtins(self.destructive))
            plain["proposals"] = replace_tuples(msgspec.to_builtins(self.proposals))
            plain["proposals_leave_questions"] = self.proposals_leave_questions
        return plain


class Allow(_Word, frozen=True, tag="allow"):
    """The call may run."""

    verdict: ClassVar[Verdict] = "allow"

    remember: Remember = "once"
    """How long the yes holds; beyond `once` it is kept as `rules`."""
    rules: tuple[str, ...] = ()
    mode: str | None = None
    """The permission mode for the rest of the session, where the yes is for more than once."""
    input: dict[str, Any] | None = None
    """The input to run with instead, if the answer changed it."""


class Ask(_Word, frozen=True, tag="ask"):
    """A human has to agree first."""

    verdict: ClassVar[Verdict] = "ask"

    preview: Display = ()
    """The changes to show to the user before an approval, beside the effects of the call."""


class Deny(_Word, frozen=True, tag="deny"):
    """The call may not run."""

    verdict: ClassVar[Verdict] = "deny"

    interrupt: bool = False
    """Whether the whole work should stop, not only this call."""


Decision = Allow | Ask | Deny


class Defer(msgspec.Struct, frozen=True, tag_field="verdict", tag="defer"):
    """No answer now: the call waits for a later answer, possibly in another process."""


class PermissionSuggestion(msgspec.Struct, frozen=True):
    """More than this one call that a person can allow, and for how long."""

    sentence: str
    """The meaning of the rules in plain words."""
    destination: SuggestedDestination = "session"
    """The session ends with it; the local and the user's settings keep it."""
    rules: tuple[str, ...] = ()
    mode: str | None = None
    """A permission mode to change to, instead of rules."""

    @property
    def answer(self) -> str:
        """The sentence as an answer to a question."""
        return f"Yes. {self.sentence}"

    def accept(self, reason: str = "", *, by: DecidedBy = "callback") -> Allow:
        """The answer that allows the call and this."""
        remember = _REMEMBERED[self.destination]
        return Allow(reason, by=by, remember=remember, rules=self.rules, mode=self.mode)


_IN_A_DIFF = frozenset({"content", "old_string", "new_string", "new_source"})


class PermissionRequest(msgspec.Struct, frozen=True):
    """A question to a human: this call, with this input, for this reason."""

    call_id: str
    tool: str
    input: dict[str, Any]
    reason: str
    rule: str | None = None
    source: str | None = None
    cwd: str = ""
    preview: Display | None = None
    """The changes that the call would make, if they are known beforehand."""
    proposals: tuple[RuleProposal, ...] = ()
    """Rules that together would have allowed the call, each with examples."""
    suggestions: tuple[PermissionSuggestion, ...] = ()
    """Other rules that the user can allow with an approval, narrow and wide, each separately."""
    agent_id: str | None = None
    """Which sub-agent asks; None for the main one."""
    agent_type: str | None = None
    destructive: tuple[Loss, ...] = ()
    """Data that a command would destroy irrecoverably."""
    definitions: tuple[ToolDefinition, ...] = ()
    """A server's tool and its siblings as they are now. A lasting approval applies to these."""
    display_name: str | None = None
    """The name that users see for the tool, if it differs from the tool's name."""
    remarks: tuple[str, ...] = ()
    """For a classifier: unchecked messages of hooks about the results of earlier calls."""
    classifier_text: str = ""
    """For a classifier: what the tool says of the call."""

    @property
    def asked_for(self) -> str:
        """The tool, and the sub-agent that wants to use it."""
        kind = f" ({self.agent_type})" if self.agent_type else ""
        tool = f"{self.display_name} ({self.tool})" if self.display_name else self.tool
        return f"{tool} of agent {self.agent_id}{kind}" if self.agent_id else tool

    @property
    def told_input(self) -> dict[str, Any]:
        """The input without the texts that the preview shows in full."""
        blocks = self.preview or ()
        whole = {block.text for block in blocks if isinstance(block, Code)} - {""}
        has_diff = any(isinstance(block, Diff) and block.hunks for block in blocks)
        return {
            name: value
            for name, value in self.input.items()
            if not isinstance(value, str)
            or "\r" in value
            or not (value in whole or (has_diff and name in _IN_A_DIFF))
        }


def find_bound_definitions(
    rule: str, definitions: Iterable[ToolDefinition]
) -> tuple[ToolDefinition, ...] | None:
    """The tools that a new allow rule from an answer is bound to, or None if to none.

    Rules for tools of servers are bound: to the tool they name, or to all that the server offers.
    """
    if not rule.startswith("mcp__"):
        return None
    stem = rule.partition("*")[0].partition("(")[0]
    found = tuple(one for one in definitions if one.tool.startswith(stem))
    return tuple(one for one in found if one.tool == stem) or found
