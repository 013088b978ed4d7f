"""May it run: validation, hooks before, permission.

Nothing outside the working directories is looked at before permission for it is given: a
validation that would have to look there is put off until then.
"""

from typing import Any, cast

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Ask, Decision, Deny, PermissionRequest
from handaxe.contract.events import CallAsked, CallDecided, CallProgress
from handaxe.contract.faults import Asked, Denied, HookBlocked, ToolFault
from handaxe.contract.ports.files import Files
from handaxe.contract.subjects import Access, PathSubject, TextSubject
from handaxe.runtime.hooks.run import strictest
from handaxe.runtime.permission.decide import JudgedPath, Request, decide, is_binding
from handaxe.runtime.pipeline.collaborators import Collaborators
from handaxe.runtime.pipeline.parse import Parsed, followed, parse, situated


class Prepared(msgspec.Struct, frozen=True):
    """A call that may run."""

    parsed: Parsed
    ctx: ToolContext
    decision: Decision
    messages: tuple[str, ...] = ()
    was_rewritten: bool = False


class Refused(Exception):
    """Permission was not given; the fault for the model and the decision for the record."""

    def __init__(self, fault: ToolFault, decision: Decision) -> None:
        super().__init__(fault.sentence)
        self.fault = fault
        self.decision = decision


class _Undecided(Exception):
    """Validation wanted to look at a file that permission has not been given for."""


class _Grants:
    """What this call may open: what it was allowed for, and what the rules leave free."""

    def __init__(self, parsed: Parsed, among: Collaborators) -> None:
        self.opened: set[tuple[str, Access]] = set()
        self.settled = False
        self._parsed = parsed
        self._among = among

    def judge(self, real: str, access: Access) -> None:
        """Raise unless this real path may be opened this way."""
        if (real, access) in self.opened or (access == "read" and (real, "write") in self.opened):
            return
        path = JudgedPath(path=real, real=real, access=access, field=None)
        # Opening one file is never more than that, whatever else the tool may do.
        request = msgspec.structs.replace(_request(self._parsed, (path,)), confined=True)
        decision = decide(request, self._among.policy())
        if isinstance(decision, Allow):
            return
        if not self.settled:
            raise _Undecided
        if isinstance(decision, Deny):
            raise Denied(decision.reason)
        raise Asked(decision.reason)


async def prepare(parsed: Parsed, among: Collaborators) -> Prepared:
    """Check the call, let hooks speak, decide; raises what stops it."""
    parsed, grants, ctx = await _situated(parsed, among)
    validated = await _validates(parsed, ctx)
    hooks_word: Decision | None = None
    messages: tuple[str, ...] = ()
    was_rewritten = False
    if among.hooks.watch_before:
        outcome = await among.hooks.before(hook_event(parsed, among, "PreToolUse"))
        if outcome.blocked is not None:
            raise HookBlocked(outcome.blocked)
        hooks_word, messages = outcome.decision, outcome.messages
        if outcome.input is not None and outcome.input != parsed.call.input:
            was_rewritten = True
            parsed = parse(ToolCall(parsed.call.id, parsed.call.tool, outcome.input), among)
            parsed, grants, ctx = await _situated(parsed, among)
            validated = await _validates(parsed, ctx)
    has_more_to_follow = any(not place.is_final for place in parsed.places.values())
    decision = await _permit(parsed, ctx, hooks_word, among)
    if has_more_to_follow:
        parsed = followed(parsed, among)
    for subject in parsed.subjects:
        if isinstance(subject, PathSubject):
            place = parsed.places[subject.path]
            grants.opened.update(((place.path, subject.access), (place.real, subject.access)))
    grants.settled = True
    if not validated:
        await parsed.tool.validate(parsed.args, ctx)
    return Prepared(parsed, ctx, decision, messages, was_rewritten)


def hook_event(parsed: Parsed, among: Collaborators, name: str) -> dict[str, object]:
    """What a hook is told about a call; observers see resolved paths."""
    return {
        "hook_event_name": name,
        "session_id": among.session_id,
        "cwd": among.workdir.current,
        "tool_name": parsed.tool.name,
        "tool_input": {**_plain(parsed.call.input), **parsed.derived()},
        "tool_use_id": parsed.call.id,
    }


async def _situated(
    parsed: Parsed, among: Collaborators
) -> tuple[Parsed, _Grants, ToolContext]:
    """The call with what it touches, where only the session's state can tell."""
    grants, ctx = _context(parsed, among)
    found = await parsed.tool.situate(parsed.args, ctx)
    if found is None:
        return parsed, grants, ctx
    parsed = situated(parsed, *found)
    return (parsed, *_context(parsed, among))


def _context(parsed: Parsed, among: Collaborators) -> tuple[_Grants, ToolContext]:
    tool, call_id = parsed.tool, parsed.call.id
    grants = _Grants(parsed, among)
    offers = among.offers
    if Files in tool.reach:
        offers = {**offers, Files: among.files.judged_by(grants.judge)}
    emit = among.emit

    def report(text: str) -> None:
        emit(CallProgress(call_id=call_id, tool=tool.name, text=text))

    return grants, ToolContext(call_id, offers, tool.reach, report)


async def _validates(parsed: Parsed, ctx: ToolContext) -> bool:
    """Whether validation could be finished; it raises if the call cannot work."""
    try:
        await parsed.tool.validate(parsed.args, ctx)
    except _Undecided:
        return False
    return True


async def _permit(
    parsed: Parsed, ctx: ToolContext, hooks_word: Decision | None, among: Collaborators
) -> Decision:
    """The decision that lets the call run; `Refused` if there is none."""
    judged = _judged_paths(parsed, among)
    tools_word = await parsed.tool.decide(parsed.args, ctx)
    decision = _decide(parsed, judged, tools_word, hooks_word, among)
    decision = await _settle(decision, parsed, among)
    # Beyond the roots links are followed only now, and what they lead to is judged as well.
    for spelling, place in parsed.places.items():
        if not place.is_final:
            final = among.files.locate(place.path, among.workdir.roots, beyond=True)
            parsed.places[spelling] = final
    farther = _judged_paths(parsed, among)
    if farther != judged:
        # The places themselves are settled; what is left is where they lead.
        farther = tuple(msgspec.structs.replace(path, path=path.real) for path in farther)
        decision = _decide(parsed, farther, tools_word, hooks_word, among)
        decision = await _settle(decision, parsed, among)
    return decision


def _judged_paths(parsed: Parsed, among: Collaborators) -> tuple[JudgedPath, ...]:
    judged: list[JudgedPath] = []
    for subject in parsed.subjects:
        if isinstance(subject, PathSubject):
            place = parsed.places[subject.path]
            shared = (
                subject.access == "write"
                and place.is_final
                and among.files.has_name_outside(place.real, among.workdir.roots)
            )
            judged.append(
                JudgedPath(place.path, place.real, subject.access, subject.field, shared)
            )
    return tuple(judged)


def _request(parsed: Parsed, paths: tuple[JudgedPath, ...]) -> Request:
    tool = parsed.tool
    return Request(
        tool=tool.name,
        aliases=tool.aliases,
        read_only=parsed.effects.is_read_only,
        paths=paths,
        texts=tuple(s.text for s in parsed.subjects if isinstance(s, TextSubject)),
        input=_plain(parsed.call.input),
        confined=not parsed.effects.writes_everything,
    )


def _decide(
    parsed: Parsed,
    paths: tuple[JudgedPath, ...],
    tools_word: Decision | None,
    hooks_word: Decision | None,
    among: Collaborators,
) -> Decision:
    """Rules first; a tool or a hook may be stricter, or say yes where no rule speaks."""
    decision = decide(_request(parsed, paths), among.policy())
    for word, by in ((tools_word, "tool"), (hooks_word, "hook")):
        if word is None:
            continue
        spoken = msgspec.structs.replace(word, by=by)
        if isinstance(spoken, Allow):
            if isinstance(decision, Ask) and decision.by != "tool" and not is_binding(decision):
                decision = spoken
        else:
            decision = strictest(decision, spoken) or decision
    return decision


async def _settle(decision: Decision, parsed: Parsed, among: Collaborators) -> Decision:
    if isinstance(decision, Allow):
        return decision
    if isinstance(decision, Deny):
        raise Refused(Denied(decision.reason), decision)
    if among.asker is None:
        raise Refused(Asked(f"{decision.reason} Nobody is here to ask."), decision)
    call_id, tool = parsed.call.id, parsed.tool.name
    among.emit(CallAsked(call_id=call_id, tool=tool, reason=decision.reason, rule=decision.rule))
    answer = await among.asker.ask(
        PermissionRequest(
            call_id=call_id,
            tool=tool,
            input={**_plain(parsed.call.input), **parsed.derived()},
            reason=decision.reason,
            rule=decision.rule,
            source=decision.source,
        )
    )
    among.emit(CallDecided(call_id=call_id, decision=answer))
    if isinstance(answer, Deny):
        raise Refused(Denied(f"The call was refused. {answer.reason}".strip()), answer)
    return answer


def _plain(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
