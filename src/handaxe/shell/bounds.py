"""What Read and Edit rules say about the files of a command, whatever Bash rules say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

from msgspec import Struct

from handaxe.shell.danger import Candidate, Danger
from handaxe.shell.effects import file_uses
from handaxe.shell.fences import Fence, may_hold, may_name, may_sweep
from handaxe.shell.fields import Field
from handaxe.shell.flow import Part, State
from handaxe.shell.places import Access, PathUse
from handaxe.shell.runners import inner_of, is_wrapper

_SAMPLES = ("q7-zw", "w.3kx")
_FED = frozenset({"xargs", "parallel"})


class SeesPath(Protocol):
    """Anything with the attributes of a `PathVerdict`."""

    @property
    def verdict(self) -> str:
        """Allow, ask or deny."""
        ...

    @property
    def reason(self) -> str:
        """Why, in plain words."""
        ...

    @property
    def rule(self) -> str | None:
        """The user's rule that decided, if one did."""
        ...

    @property
    def source(self) -> str | None:
        """Where that rule is from."""
        ...

    @property
    def is_binding(self) -> bool:
        """Whether it needs a yes whatever Bash rules allow."""
        ...


PathJudge = Callable[[str, Access], SeesPath]


class Bound(Struct, frozen=True):
    """A rule of the user that stands against a file of the command."""

    verdict: Literal["ask", "deny"]
    reason: str
    rule: str | None = None
    source: str | None = None


class Bounds(Struct):
    """The path rules of a session, for the files of its commands."""

    path_verdict: PathJudge
    fences: tuple[Fence, ...] = ()
    operands: list[PathUse] = []
    """Every file operand that was looked at."""

    def of(self, part: Part, danger: Danger) -> Bound | None:
        """The strictest word on any file `part` names, directly or in what it runs."""
        asked: Bound | None = None
        is_fed = part.reads_pipe or any(item.operator.startswith("<") for item in part.redirects)
        for certain, bound in self._all(danger, is_fed=is_fed):
            if bound.verdict == "deny" and certain:
                return bound
            asked = asked or bound
        if asked is not None and asked.verdict == "deny":
            return Bound("ask", asked.reason, asked.rule, asked.source)
        return asked

    def _all(self, danger: Danger, *, is_fed: bool) -> Iterator[tuple[bool, Bound]]:
        for use in danger.redirects:
            if (bound := self._on(use)) is not None:
                yield True, bound
        if self.fences and danger.rebinds:
            yield False, Bound("ask", f"{danger.rebinds}, and Read or Edit rules exist")
        for candidate in danger.candidates:
            for bound in self._candidate(candidate, is_fed=is_fed):
                yield candidate.certain, bound

    def _candidate(self, candidate: Candidate, *, is_fed: bool) -> Iterator[Bound]:
        fields, state = list(candidate.fields), State(candidate.cwds, {})
        # What a wrapper is given are the words of the command inside it.
        if is_wrapper(candidate.program):
            yield from self._wrapper(candidate.program or "", fields, state)
            return
        found = file_uses(fields, state, is_fed=is_fed, sweeps=bool(self.fences))
        for use in dict.fromkeys([*found.uses, *found.opaque]):
            is_file = found.holds_files or use in found.opaque
            if use.path is None and not (is_file and candidate.certain):
                continue
            if (bound := self._on(use)) is not None:
                yield bound
        for fence in self.fences:
            if any(fence.binds("read") and may_sweep(item, fence) for item in found.sweeps):
                yield _asking(fence, f"{_text(fields)} may read what lies below a directory")
            elif any(fence.binds("write") and may_hold(use, fence) for use in found.moved):
                yield _asking(fence, f"{_text(fields)} moves a directory")

    def _wrapper(self, program: str, fields: list[Field], state: State) -> Iterator[Bound]:
        inner = inner_of(fields)
        for field, access in inner.opened:
            opened = file_uses([Field("known", "cat", "cat"), field], state).uses
            for use in opened:
                bound = self._on(PathUse(use.path, access, use.text, use.joined, use.glob))
                if bound is not None:
                    yield bound
        if program not in _FED or not self.fences:
            return
        for command, sure in inner.commands:
            if sure and file_uses(command, state).holds_files:
                unknown = PathUse(None, "read", f"what {program} is fed")
                if (bound := self._on(unknown)) is not None:
                    yield bound

    def _on(self, use: PathUse) -> Bound | None:
        """What the rules say about one file operand."""
        if use.is_sure:
            self.operands.append(use)
        if use.path is None:
            return self._unknown(use)
        if use.glob:
            return self._glob(use)
        answer = self.path_verdict(use.path, use.access)
        reason = f"{use.access} of {use.path}: {answer.reason}"
        if answer.verdict == "deny":
            return Bound("deny" if use.is_sure else "ask", reason, answer.rule, answer.source)
        protected = answer.is_binding and use.is_sure
        if answer.verdict == "ask" and (answer.rule is not None or protected):
            return Bound("ask", reason, answer.rule, answer.source)
        return None

    def _unknown(self, use: PathUse) -> Bound | None:
        """A path that the text does not say may be any path."""
        for fence in self.fences:
            if fence.tool == ("Read" if use.access == "read" else "Edit"):
                return _asking(fence, f"which file {use.text} names is not known before it runs")
        return None

    def _glob(self, use: PathUse) -> Bound | None:
        path = use.path or ""
        answers = [self.path_verdict(sample, use.access) for sample in _samples(path)]
        if answers and all(answer.verdict == "deny" and answer.rule for answer in answers):
            reason = f"{use.access} of {path}: {answers[0].reason}"
            verdict = "deny" if use.is_sure else "ask"
            return Bound(verdict, reason, answers[0].rule, answers[0].source)
        for fence in self.fences:
            if fence.binds(use.access) and may_name(use, fence):
                return _asking(fence, f"{use.text} may name it")
        return None


def _samples(glob: str) -> list[str]:
    """Paths that fit a glob and differ in everything it leaves open; none if it has brackets."""
    if "[" in glob or "?" in glob:
        return []
    return [re.sub(r"\*+", sample, glob) for sample in _SAMPLES]


def _asking(fence: Fence, reason: str) -> Bound:
    return Bound(
        "ask", f"the {fence.verdict} rule {fence.rule}: {reason}", fence.rule, fence.source
    )


def _text(fields: list[Field]) -> str:
    return " ".join(field.text for field in fields)
