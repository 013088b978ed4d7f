"""The permission query of a call."""

from collections.abc import Callable
from typing import Any

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Decision, Deny
from handaxe.contract.faults import Asked, Cancelled, Denied, ToolFault
from handaxe.contract.permission_subjects import (
    Access,
    CommandSubject,
    HostSubject,
    PathSubject,
    TextSubject,
)
from handaxe.hooks.outcome import HookPermissionChange, Outcome
from handaxe.permission.decide import JudgedPath, PermissionQuery, decide
from handaxe.permission.protected_paths import find_protected_name
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.hook_events import is_covered_by_rule
from handaxe.pipeline.parse import ParsedCall, to_input_dict
from handaxe.text.paths import is_inside


def collect_judged_paths(parsed: ParsedCall, context: PipelineContext) -> tuple[JudgedPath, ...]:
    """Every path of the call with its target and access."""
    judged: list[JudgedPath] = []
    for subject in parsed.subjects:
        if isinstance(subject, PathSubject):
            place = parsed.places[subject.path]
            shared = subject.access == "write" and place.is_final and is_shared(place.real, context)
            judged.append(JudgedPath(place.path, place.real, subject.access, subject.field, shared))
    return tuple(judged)


def is_shared(real: str, context: PipelineContext) -> bool:
    """Whether a file has a hard link outside the roots, or one that is write-protected."""

    def is_closed(path: str) -> bool:
        own = context.policy().own_places
        return find_protected_name(path) is not None or own.around(path) is not None

    return context.files.has_name_outside(real, context.workdir.roots, is_closed)


def build_permission_query(
    parsed: ParsedCall, paths: tuple[JudgedPath, ...], *, only_opens: bool = False
) -> PermissionQuery:
    """The query for rules and modes; optionally only for opening a file."""
    tool, effects = parsed.tool, parsed.effects
    texts: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    command: str | None = None
    for subject in parsed.subjects:
        if isinstance(subject, TextSubject):
            texts += (subject.text,)
        elif isinstance(subject, HostSubject):
            hosts += (subject.host,)
            names += (subject.name,) if subject.name else ()
        elif command is None and isinstance(subject, CommandSubject):
            command = subject.command
    has_named = effects.reads or effects.writes
    return PermissionQuery(
        tool=tool.name,
        aliases=tool.aliases,
        # Permission is about the world outside; what a session keeps for itself is free.
        read_only=effects.is_internal,
        paths=paths,
        texts=texts,
        hosts=hosts,
        names=names,
        input=to_input_dict(parsed.call.input),
        command=command,
        asks_person=tool.asks_person,
        # Opening one file is never more than that, whatever else the tool may do.
        confined=only_opens or effects.is_confined,
        external=effects.external_names if has_named and not only_opens else (),
        definition=tool.definition,
    )


def build_rule_check(parsed: ParsedCall, context: PipelineContext) -> Callable[[str], bool]:
    """A function that tells whether a permission rule covers this call; for hooks with `if`."""

    def covers(rule: str) -> bool:
        request = build_permission_query(parsed, collect_judged_paths(parsed, context))
        return is_covered_by_rule(rule, request, context.policy())

    return covers


class DeferredCall(Exception):
    """The call does not run now; the work stops and can continue with it later."""

    def __init__(self, fault: ToolFault, decision: Decision | None = None) -> None:
        super().__init__(fault.sentence)
        self.fault = fault
        self.decision = decision


class CallRefused(Exception):
    """Permission was refused. Holds the fault for the model and the decision for the log."""

    def __init__(self, fault: ToolFault, decision: Decision) -> None:
        super().__init__(fault.sentence)
        self.fault = fault
        self.decision = decision
        self.stops: str | None = None
        if isinstance(decision, Deny) and decision.interrupt:
            self.stops = fault.sentence


class Undecided(Exception):
    """Validation needs a file that has no permission yet."""


class InputRewritten(Exception):
    """The user or the tool changed the input of the call."""

    def __init__(self, call_input: dict[str, Any], word: Allow, *, by_tool: bool = False) -> None:
        super().__init__()
        self.input = call_input
        self.word = word
        self.by_tool = by_tool


class HookFeedback:
    """Results of hooks before the call, besides their decisions."""

    messages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stops: str | None = None
    changes: tuple[HookPermissionChange, ...] = ()
    """Permission changes to apply if the call runs."""
    were_asked = False
    has_answer = False
    """Whether a hook gave the answer that the user would have given."""
    answer: Allow | None = None
    """The user's approval of a changed input; it applies to that input too."""
    tools_answer: Allow | None = None
    """The tool's own approval of an input that it changed."""

    def take(self, outcome: Outcome) -> None:
        """Collect the messages of an outcome."""
        self.messages += outcome.messages
        self.notes += outcome.notes
        self.stops = self.stops or outcome.stop


class PathGrants:
    """The paths that this call may open: approved ones and free ones."""

    def __init__(self, parsed: ParsedCall, context: PipelineContext) -> None:
        self.opened: set[tuple[str, Access]] = set()
        self.settled = False
        self.ctx: ToolContext | None = None
        self._parsed = parsed
        self._context = context

    def judge(self, real: str, access: Access) -> None:
        """Raise unless this real path may be opened this way."""
        if self.ctx is not None and self.ctx.is_closed:
            raise Cancelled(started=True)
        if (real, access) in self.opened or (access == "read" and (real, "write") in self.opened):
            return
        if not self.settled and self._is_leading_outside(real):
            raise Undecided
        path = JudgedPath(path=real, real=real, access=access, field=None)
        request = build_permission_query(self._parsed, (path,), only_opens=True)
        if request.command is not None:
            # A file that is opened beside a command is judged as any file is.
            tool = "Read" if access == "read" else "Edit"
            request = PermissionQuery(tool=tool, read_only=access == "read", paths=(path,))
        decision = decide(request, self._context.policy())
        if isinstance(decision, Allow):
            return
        if not self.settled:
            raise Undecided
        if isinstance(decision, Deny):
            raise Denied(decision.sentence)
        raise Asked(decision.sentence)

    def _is_leading_outside(self, path: str) -> bool:
        """Whether a name inside the working directories leads outside."""
        roots = self._context.workdir.roots
        if not any(is_inside(path, root) for root in roots):
            return False
        for place in self._parsed.places.values():
            if path in {place.path, place.real}:
                return not place.is_final
        return not self._context.files.locate(path, roots).is_final
