"""Apply Read and Edit rules to the files of a command, whatever Bash rules say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

from msgspec import Struct

from handaxe.shell.analysis.effects.glob_overlap import (
    RestrictedPath,
    can_contain,
    can_name,
    can_read_below,
)
from handaxe.shell.analysis.facts import CommandPart, GitHistoryRead, PossibleCommand, RecursiveRead
from handaxe.shell.analysis.paths import Access, PathUse, resolve

_SAMPLES = ("q7-zw", "w.3kx")


class PathVerdictLike(Protocol):
    """Anything with the attributes of a `PathVerdict`."""

    @property
    def verdict(self) -> str:
        """Allow, ask or deny."""
        ...

    @property
    def reason(self) -> str:
        """The reason in plain words."""
        ...

    @property
    def rule(self) -> str | None:
        """The user's rule that decided, if any."""
        ...

    @property
    def source(self) -> str | None:
        """The source of that rule."""
        ...

    @property
    def is_binding(self) -> bool:
        """Whether it needs approval whatever Bash rules allow."""
        ...

    @property
    def is_above(self) -> bool:
        """Whether it is about a directory above a protected path."""
        ...


PathJudge = Callable[[str, Access], PathVerdictLike]


class PathRuleMatch(Struct, frozen=True):
    """A user's rule that applies to a file of the command."""

    verdict: Literal["ask", "deny"]
    reason: str
    rule: str | None = None
    source: str | None = None
    is_guess: bool = False
    """Whether it is uncertain that the program opens the file."""


class PathRuleChecker(Struct):
    """The path rules of a session, for the files of its commands."""

    path_verdict: PathJudge
    fences: tuple[RestrictedPath, ...] = ()
    operands: list[PathUse] = []
    """Every checked file operand."""

    def of(self, part: CommandPart) -> PathRuleMatch | None:
        """The strictest match for any file that `part` names, directly or in what it runs."""
        asked: PathRuleMatch | None = None
        for certain, bound in self._all(part):
            if bound.verdict == "deny" and certain:
                return bound
            asked = asked or bound
        if asked is not None and asked.verdict == "deny":
            return PathRuleMatch("ask", asked.reason, asked.rule, asked.source)
        return asked

    def _all(self, part: CommandPart) -> Iterator[tuple[bool, PathRuleMatch]]:
        for use in part.inner_redirects:
            if (bound := self._check_use(use)) is not None:
                yield True, bound
        if self.fences and part.rebinds:
            yield False, PathRuleMatch("ask", f"{part.rebinds}, and Read or Edit rules exist")
        for command in part.commands:
            for bound in self._command(command):
                yield command.certain, bound
        for loss in part.losses:
            for fence in (fence for fence in self.fences if fence.is_binding_for("write")):
                if loss.in_checkout or any(can_contain(use, fence) for use in loss.targets):
                    yield False, _make_ask(fence, f"{loss.text} may change it")
        if part.history is not None:
            yield from ((False, bound) for bound in self._history(part.history, part.cwds))

    def _history(self, history: GitHistoryRead, cwds: frozenset[str]) -> Iterator[PathRuleMatch]:
        """Git may print any tracked file, or those below its pathspecs."""
        paths = [resolve(path, cwd) for path in history.paths for cwd in sorted(cwds)]
        places = [PathUse(path, "read", history.text) for path in paths]
        sweeps = [RecursiveRead(use) for use in places or [PathUse(None, "read", history.text)]]
        for fence in self.fences:
            # Git's data does not include handaxe's own data.
            binds = fence.is_binding_for("read") and bool(fence.rule)
            if binds and any(can_read_below(item, fence) for item in sweeps):
                yield _make_ask(fence, f"{history.text} may print it")

    def _command(self, command: PossibleCommand) -> Iterator[PathRuleMatch]:
        # What a wrapper is given are the words of the command inside it.
        for use in command.opened:
            if (use.path is not None or self.fences) and (
                bound := self._check_use(use)
            ) is not None:
                yield bound
        found = command.files
        for use in (*found.uses, *found.opaque):
            is_file = found.holds_files or use in found.opaque
            if use.path is None and not (is_file and command.certain):
                continue
            if (bound := self._check_use(use, may_write=found.may_write)) is not None:
                yield bound
        for use in command.writes.uses:
            if use.path is not None and (bound := self._check_use(use)) is not None:
                yield bound
        text = " ".join(field.text for field in command.fields)
        own = next(
            (one for one in self.fences if one.is_binding_for("write") and not one.rule), None
        )
        if found.changes_tree and own is not None:
            yield _make_ask(own, f"{text} may change it")
        for fence in self.fences:
            if any(
                fence.is_binding_for("read") and can_read_below(item, fence)
                for item in found.sweeps
            ):
                yield _make_ask(fence, f"{text} may read files below a directory")
            elif any(
                fence.is_binding_for("write") and can_contain(use, fence) for use in found.moved
            ):
                yield _make_ask(fence, f"{text} moves a directory")

    def _check_use(self, use: PathUse, *, may_write: bool = False) -> PathRuleMatch | None:
        """The rules' match for one file operand; `may_write`: the program may do more than read."""
        if use.is_sure:
            self.operands.append(use)
        if use.path is None:
            return self._handle_unknown(use)
        if use.glob:
            return self._check_glob(use)
        answer = self.path_verdict(use.path, use.access)
        reason = f"{use.access} of {use.path}: {answer.reason}"
        if answer.verdict == "deny":
            return PathRuleMatch(
                "deny" if use.is_sure else "ask", reason, answer.rule, answer.source
            )
        # A protected path counts among the words of any program, a read where one is certain.
        may_mean_it = use.access == "write" and not answer.is_above
        is_bound = answer.is_binding and (use.is_sure or may_mean_it)
        if answer.verdict == "ask" and (answer.rule is not None or is_bound):
            guess = not use.is_sure
            return PathRuleMatch("ask", reason, answer.rule, answer.source, is_guess=guess)
        if may_write and use.access == "read":
            written = self.path_verdict(use.path, "write")
            is_bound = written.is_binding and not written.is_above
            if written.verdict != "allow" and (is_bound or written.rule is not None):
                reason = f"it may write {use.path}: {written.reason}"
                return PathRuleMatch("ask", reason, written.rule, written.source, is_guess=True)
        return None

    def _handle_unknown(self, use: PathUse) -> PathRuleMatch | None:
        """An unknown path may be any path."""
        for fence in self.fences:
            if fence.tool == ("Read" if use.access == "read" else "Edit"):
                return _make_ask(fence, f"the file of {use.text} is unknown before it runs")
        return None

    def _check_glob(self, use: PathUse) -> PathRuleMatch | None:
        path = use.path or ""
        answers = [self.path_verdict(sample, use.access) for sample in _make_samples(path)]
        if answers and all(answer.verdict == "deny" and answer.rule for answer in answers):
            reason = f"{use.access} of {path}: {answers[0].reason}"
            verdict = "deny" if use.is_sure else "ask"
            return PathRuleMatch(verdict, reason, answers[0].rule, answers[0].source)
        for fence in self.fences:
            if fence.is_binding_for(use.access) and can_name(use, fence):
                return _make_ask(fence, f"{use.text} may name it")
        return None


def _make_samples(glob: str) -> list[str]:
    """Example paths that match a glob and differ in its open parts; none if it has brackets."""
    if "[" in glob or "?" in glob:
        return []
    return [re.sub(r"\*+", sample, glob) for sample in _SAMPLES]


def _make_ask(fence: RestrictedPath, reason: str) -> PathRuleMatch:
    if not fence.rule:
        told = f"it contains data or settings of handaxe, and {reason}"
        return PathRuleMatch("ask", told, None, fence.source)
    return PathRuleMatch(
        "ask", f"the {fence.verdict} rule {fence.rule}: {reason}", fence.rule, fence.source
    )
