"""The permission state of a session: mode, rules by source, and approvals.

Rules are kept as the texts people wrote; `runtime.permission` reads them. Nothing here decides.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from handaxe.contract.decision import ToolDefinition, find_bound_definitions

Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"]
RuleSource = Literal["policy", "flags", "local", "project", "user", "session"]
RuleBehaviour = Literal["allow", "ask", "deny"]

MAX_ANSWERS = 1000


class SourcedRule(msgspec.Struct, frozen=True):
    """A rule as it was written, and where."""

    text: str
    behaviour: RuleBehaviour
    source: RuleSource = "session"
    file: str | None = None
    line: int | None = None
    root: str | None = None
    """The directory that a leading `/` is relative to. None is the project's root."""
    approved: tuple[ToolDefinition, ...] | None = None
    """The server's tools it was given for, as an answer; None if it was written by hand."""


class PermissionAnswer(msgspec.Struct, frozen=True):
    """The answer about one call."""

    call_id: str
    tool: str
    accepted: bool
    by: str
    reason: str = ""


class _Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    mode: Mode = "default"
    mode_before_plan: Mode | None = None
    rules: list[SourcedRule] = []
    grants: list[SourcedRule] = []
    answers: list[PermissionAnswer] = []
    never_prompt: bool = False


class PermissionState:
    """The permission context of one session or agent."""

    def __init__(
        self,
        *,
        mode: Mode = "default",
        rules: Iterable[SourcedRule] = (),
        never_prompt: bool = False,
    ) -> None:
        self._mode: Mode = mode
        self._before_plan: Mode | None = None
        self._rules = tuple(rules)
        self._grants: tuple[SourcedRule, ...] = ()
        self._turn_grants: tuple[SourcedRule, ...] = ()
        self._answers: deque[PermissionAnswer] = deque(maxlen=MAX_ANSWERS)
        self.never_prompt = never_prompt
        """Whether questions are switched off; calls that would ask are refused and recorded."""
        self.may_grant: Callable[[], bool] = lambda: True
        """Whether more can be allowed while the session runs; managed settings can forbid it."""
        self.may_files_grant: Callable[[], bool] = lambda: True
        """Whether files may allow more, such as a skill for its turn."""
        self.may_enter: Callable[[Mode], bool] = lambda _: True
        """Whether settings let a mode be in force."""
        self.announce: Callable[[Mode], object] = lambda _: None
        """Told every change of mode."""
        self.revision = 0
        """Grows with every change of mode or rules, so that readers know what to read again."""

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._mode

    @property
    def mode_before_plan(self) -> Mode | None:
        """The mode that leaving plan mode returns to; None outside plan mode."""
        return self._before_plan

    @property
    def rules(self) -> tuple[SourcedRule, ...]:
        """Every rule in force, this session's grants last."""
        return self._rules + self._grants + self._turn_grants

    @property
    def grants(self) -> tuple[SourcedRule, ...]:
        """The rules that were allowed for the rest of this session."""
        return self._grants

    @property
    def answers(self) -> tuple[PermissionAnswer, ...]:
        """The newest accepts and rejects, oldest first."""
        return tuple(self._answers)

    def set_mode(self, mode: Mode) -> None:
        """Change the mode; plan mode remembers the one before."""
        if mode == self._mode:
            return
        self._before_plan = self._mode if mode == "plan" else None
        self._mode = mode
        self.revision += 1
        self.announce(mode)

    def leave_plan(self) -> Mode:
        """Return to the mode before plan mode; elsewhere nothing changes."""
        if self._mode == "plan":
            before = self._before_plan or "default"
            self.set_mode(before if self.may_enter(before) else "default")
        return self._mode

    def list_rules(self, source: RuleSource) -> tuple[SourcedRule, ...]:
        """The rules of one source."""
        return tuple(rule for rule in self.rules if rule.source == source)

    def add_rules(self, rules: Iterable[SourcedRule]) -> None:
        """Put more rules in force; those already there are not repeated."""
        self._rules = tuple(dict.fromkeys((*self._rules, *rules)))
        self.revision += 1

    def replace_rules(self, source: RuleSource, rules: Iterable[SourcedRule]) -> None:
        """Exchange all rules of a source, for example when its file has changed."""
        kept = [rule for rule in self._rules if rule.source != source]
        self._rules = (*kept, *(rule for rule in rules if rule.source == source))
        self.revision += 1

    def remove_rules(self, rules: Iterable[SourcedRule]) -> None:
        """Take rules and grants out of force."""
        gone = set(rules)
        self._rules = tuple(rule for rule in self._rules if rule not in gone)
        self._grants = tuple(rule for rule in self._grants if rule not in gone)
        self.revision += 1

    def grant(
        self, texts: Iterable[str], *, definitions: Iterable[ToolDefinition] | None = None
    ) -> None:
        """Allow more for the rest of the session, as a person said.

        With the servers' tools as that person saw them, rules for such tools hold for these only.
        """
        if not self.may_grant():
            return
        known = None if definitions is None else tuple(definitions)
        rules = (
            SourcedRule(
                text,
                "allow",
                "session",
                approved=None if known is None else find_bound_definitions(text, known),
            )
            for text in texts
        )
        self._grants = tuple(dict.fromkeys((*self._grants, *rules)))
        self.revision += 1

    def allow_for_turn(self, texts: Iterable[str], *, behaviour: RuleBehaviour = "allow") -> None:
        """Allow more, or less, until the model has finished its turn, as a skill's author said."""
        if behaviour == "allow" and not (self.may_grant() and self.may_files_grant()):
            return
        rules = (SourcedRule(text, behaviour, "session") for text in texts)
        self._turn_grants = tuple(dict.fromkeys((*self._turn_grants, *rules)))
        self.revision += 1

    @contextmanager
    def apply_turn_grants(self, allow: Iterable[str], deny: Iterable[str]) -> Generator[None]:
        """Allow and forbid more until the end of the turn, unless the body raises."""
        before = self._turn_grants
        self.allow_for_turn(allow)
        self.allow_for_turn(deny, behaviour="deny")
        try:
            yield
        except BaseException:
            self._turn_grants = before
            self.revision += 1
            raise

    def end_turn(self) -> None:
        """Remove the rules of one turn."""
        if self._turn_grants:
            self._turn_grants = ()
            self.revision += 1

    def record(self, answer: PermissionAnswer) -> None:
        """Keep the answer about a call."""
        self._answers.append(answer)

    def to_json(self) -> dict[str, Any]:
        """The state as plain data."""
        return msgspec.to_builtins(
            _Snapshot(
                mode=self._mode,
                mode_before_plan=self._before_plan,
                rules=list(self._rules),
                grants=list(self._grants),
                answers=list(self._answers),
                never_prompt=self.never_prompt,
            )
        )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "PermissionState":
        """The state that `to_json` wrote; raises `msgspec.ValidationError` on anything else."""
        kept = msgspec.convert(data, _Snapshot)
        state = cls(mode=kept.mode, rules=kept.rules, never_prompt=kept.never_prompt)
        state._before_plan = kept.mode_before_plan
        state._grants = tuple(kept.grants)
        state._answers.extend(kept.answers)
        return state
