"""May it run: validation, hooks before, permission.

Nothing outside the working directories is looked at before permission for it is given: a
validation that would have to look there is put off until then.
"""

from collections import ChainMap
from collections.abc import Callable
from typing import Any

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Ask, Decision, Deny, PermissionRequest
from handaxe.contract.display import Display
from handaxe.contract.events import CallAsked, CallDecided, CallProgress
from handaxe.contract.faults import Asked, Denied, HookBlocked, ToolFault
from handaxe.contract.ports.files import Files
from handaxe.contract.subjects import Access, CommandSubject, PathSubject, TextSubject
from handaxe.runtime.hooks.outcome import Outcome
from handaxe.runtime.permission.decide import JudgedPath, Request, decide, is_final
from handaxe.runtime.pipeline.collaborators import Collaborators
from handaxe.runtime.pipeline.heard import Heard
from handaxe.runtime.pipeline.parse import Parsed, followed, parse, situated
from handaxe.runtime.pipeline.telling import hook_event, plain, rule_covers
from handaxe.runtime.pipeline.voices import is_open, joined, proposals_with, sentence_of


class Prepared(msgspec.Struct, frozen=True):
    """A call that may run."""

    parsed: Parsed
    ctx: ToolContext
    decision: Decision
    messages: tuple[str, ...] = ()
    was_rewritten: bool = False
    notes: tuple[str, ...] = ()


class Refused(Exception):
    """Permission was not given; the fault for the model and the decision for the record."""

    def __init__(self, fault: ToolFault, decision: Decision) -> None:
        super().__init__(fault.sentence)
        self.fault = fault
        self.decision = decision
        self.messages: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.stops: str | None = None
        if isinstance(decision, Deny) and decision.interrupt:
            self.stops = fault.sentence


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
        if request.command is not None:
            # A file that is opened beside a command is judged as any file is.
            tool = "Read" if access == "read" else "Edit"
            request = Request(tool=tool, read_only=access == "read", paths=(path,))
        decision = decide(request, self._among.policy())
        if isinstance(decision, Allow):
            return
        if not self.settled:
            raise _Undecided
        if isinstance(decision, Deny):
            raise Denied(decision.reason)
        raise Asked(decision.reason)


class _Rewritten(Exception):
    """Whoever was asked for permission gave it for another input."""

    def __init__(self, call_input: dict[str, Any], word: Allow) -> None:
        super().__init__()
        self.input = call_input
        self.word = word


async def prepare(parsed: Parsed, among: Collaborators) -> Prepared:
    """Check the call, let hooks speak, decide; raises what stops it."""
    heard = Heard()
    try:
        return await _prepare(parsed, heard, among)
    except Refused as refused:
        refused.messages, refused.notes = heard.messages, heard.notes
        refused.stops = refused.stops or heard.stops
        raise


async def _prepare(parsed: Parsed, heard: Heard, among: Collaborators) -> Prepared:
    parsed, grants, ctx, validated = await _checked(parsed, among)
    hooks_word: Decision | None = None
    was_rewritten = False
    if among.hooks.watch_before:
        outcome = await _before(parsed, heard, among)
        hooks_word = outcome.decision
        if parsed.tool.asks_person and isinstance(hooks_word, Allow):
            # A yes alone is no answer; with an input it brings the person's own.
            heard.has_answer = outcome.input is not None
            hooks_word = hooks_word if heard.has_answer else None
        if outcome.input is not None and outcome.input != parsed.call.input:
            was_rewritten = True
            parsed, grants, ctx, validated = await _again(parsed, outcome.input, among)
    try:
        parsed, decision = await _permitted(parsed, ctx, hooks_word, heard, among)
    except _Rewritten as rewritten:
        was_rewritten = True
        parsed, grants, ctx, validated = await _again(parsed, rewritten.input, among)
        word = None if heard.answer is not None else rewritten.word
        parsed, decision = await _permitted(parsed, ctx, word, heard, among)
    for subject in parsed.subjects:
        if isinstance(subject, PathSubject):
            place = parsed.places[subject.path]
            grants.opened.update(((place.path, subject.access), (place.real, subject.access)))
    grants.settled = True
    if not validated:
        await parsed.tool.validate(parsed.args, ctx)
    return Prepared(parsed, ctx, decision, heard.messages, was_rewritten, heard.notes)


async def _before(parsed: Parsed, heard: Heard, among: Collaborators) -> Outcome:
    """What the hooks before the call say, unless they stop it."""
    event = hook_event(parsed, among, "PreToolUse")
    outcome = await among.hooks.fire(
        event, aliases=parsed.other_names, covers=covers_of(parsed, among)
    )
    heard.take(outcome)
    reason = outcome.blocked
    if reason is None and outcome.stop is not None:
        reason = f"A hook stopped the work: {outcome.stop}"
    if reason is not None:
        raise Refused(HookBlocked(reason), Deny(reason, by="hook"))
    if not outcome.defers:
        return outcome
    from handaxe.runtime.pipeline.putting_off import put_off

    return await put_off(outcome, parsed.call.id, among)


async def _again(
    parsed: Parsed, call_input: dict[str, Any], among: Collaborators
) -> tuple[Parsed, _Grants, ToolContext, bool]:
    """The call with another input, checked from the start."""
    return await _checked(
        parse(ToolCall(parsed.call.id, parsed.call.tool, call_input), among), among
    )


def covers_of(parsed: Parsed, among: Collaborators) -> Callable[[str], bool]:
    """Which permission rules cover this call, for hooks that are meant for some calls only."""

    def covers(rule: str) -> bool:
        request = _request(parsed, _judged_paths(parsed, among))
        return rule_covers(rule, request, among.policy())

    return covers


async def _checked(
    parsed: Parsed, among: Collaborators
) -> tuple[Parsed, _Grants, ToolContext, bool]:
    """The call with what it touches by the session's state, and whether validation was finished.

    Validation raises if the call cannot work.
    """
    grants, ctx = _context(parsed, among)
    found = await parsed.tool.situate(parsed.args, ctx)
    if found is not None:
        parsed = situated(parsed, *found)
        grants, ctx = _context(parsed, among)
    try:
        await parsed.tool.validate(parsed.args, ctx)
    except _Undecided:
        return parsed, grants, ctx, False
    return parsed, grants, ctx, True


def _context(parsed: Parsed, among: Collaborators) -> tuple[_Grants, ToolContext]:
    tool, call_id = parsed.tool, parsed.call.id
    grants = _Grants(parsed, among)
    offers = among.offers
    if Files in tool.reach:
        offers = ChainMap({Files: among.files.judged_by(grants.judge)}, offers)
    emit = among.emit

    def report(text: str) -> None:
        emit(CallProgress(call_id=call_id, tool=tool.name, text=text))

    return grants, ToolContext(call_id, offers, tool.reach, report, among.workdir.current)


async def _permitted(
    parsed: Parsed,
    ctx: ToolContext,
    hooks_word: Decision | None,
    heard: Heard,
    among: Collaborators,
) -> tuple[Parsed, Decision]:
    """The call with what it touches followed to the end, and what lets it run, or `Refused`."""
    judged = _judged_paths(parsed, among)
    tools_word = None if heard.has_answer else await parsed.tool.decide(parsed.args, ctx)
    request = _request(parsed, judged)
    if request.command is None:
        rules = decide(request, among.policy())
    else:
        from handaxe.runtime.pipeline.commands import command_word

        rules = await command_word(request, parsed, ctx, among)
    decision = joined(rules, tools_word, hooks_word)
    if not isinstance(decision, Allow):
        decision = await _settle(decision, request, parsed, ctx, heard, among)
    # Beyond the roots links are followed only now, and what they lead to is judged as well.
    unfinished = [s for s, place in parsed.places.items() if not place.is_final]
    if not unfinished:
        return parsed, decision
    for spelling in unfinished:
        path = parsed.places[spelling].path
        parsed.places[spelling] = among.files.locate(path, among.workdir.roots, beyond=True)
    farther = _judged_paths(parsed, among)
    if farther != judged:
        # The places themselves are settled; what is left is where they lead.
        farther = tuple(msgspec.structs.replace(path, path=path.real) for path in farther)
        request = _request(parsed, farther)
        decision = joined(decide(request, among.policy()), tools_word, hooks_word)
        if not isinstance(decision, Allow):
            decision = await _settle(decision, request, parsed, ctx, heard, among)
    return followed(parsed, among), decision


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
            judged.append(JudgedPath(place.path, place.real, subject.access, subject.field, shared))
    return tuple(judged)


def _request(parsed: Parsed, paths: tuple[JudgedPath, ...]) -> Request:
    tool = parsed.tool
    texts = tuple([s.text for s in parsed.subjects if isinstance(s, TextSubject)])
    commands = [s.command for s in parsed.subjects if isinstance(s, CommandSubject)]
    return Request(
        tool=tool.name,
        aliases=tool.aliases,
        # Permission is about the world outside; what a session keeps for itself is free.
        read_only=parsed.effects.is_internal,
        paths=paths,
        texts=texts,
        input=plain(parsed.call.input),
        command=commands[0] if commands else None,
        asks_person=tool.asks_person,
        confined=not parsed.effects.writes_everything,
    )


async def _preview(parsed: Parsed, ctx: ToolContext) -> Display | None:
    """What the call would do, if it can be told without looking where nobody may look yet."""
    try:
        return await parsed.tool.preview(parsed.args, ctx)
    except (_Undecided, ToolFault):
        return None


async def _settle(
    decision: Ask | Deny,
    request: Request,
    parsed: Parsed,
    ctx: ToolContext,
    heard: Heard,
    among: Collaborators,
) -> Decision:
    """What makes a yes of a call that may not just run; `Refused` if nothing does."""
    if isinstance(decision, Deny):
        raise Refused(Denied(sentence_of(decision)), decision)
    if is_final(decision):
        raise Refused(Asked(decision.reason), decision)
    if heard.answer is not None:
        return heard.answer
    if among.hooks.watches("PermissionRequest") and not heard.were_asked:
        word = await _ask_hooks(decision, request, parsed, heard, among)
        if word is not None:
            return word
    question = PermissionRequest(
        call_id=parsed.call.id,
        tool=parsed.tool.name,
        input={**plain(parsed.call.input), **parsed.derived()},
        reason=decision.reason,
        rule=decision.rule,
        source=decision.source,
        cwd=ctx.cwd,
        preview=await _preview(parsed, ctx),
        agent_id=among.agent_id,
        agent_type=among.agent_type,
        proposals=proposals_with(decision, request, among.policy()),
    )
    call_id = parsed.call.id
    answer = await _classified(question, decision, among)
    if isinstance(answer, Deny):
        await _tell_denial(answer, parsed, heard, among)
    if answer is None:
        if among.asker is None or not among.asker.is_there:
            raise Refused(Asked(f"{sentence_of(decision)} Nobody is here to ask."), decision)
        among.emit(
            CallAsked(
                call_id=call_id, tool=question.tool, reason=decision.reason, rule=decision.rule
            )
        )
        answer = await among.asker.ask(question)
    if decision.parts:
        answer = msgspec.structs.replace(
            answer, parts=decision.parts, destructive=decision.destructive
        )
    among.emit(CallDecided(call_id=call_id, decision=answer))
    if isinstance(answer, Deny):
        raise Refused(Denied(f"The call was refused. {answer.reason}".strip()), answer)
    if answer.input is not None and answer.input != question.input:
        heard.answer = answer
        raise _Rewritten(answer.input, answer)
    return answer


async def _classified(
    question: PermissionRequest, decision: Decision, among: Collaborators
) -> Allow | Deny | None:
    """What the host's classifier says in `auto` mode; rules and protected paths stay a human's."""
    if among.classifier is None or among.policy().mode != "auto" or not is_open(decision):
        return None
    return await among.classifier(msgspec.structs.replace(question, remarks=tuple(among.remarks)))


async def _tell_denial(answer: Deny, parsed: Parsed, heard: Heard, among: Collaborators) -> None:
    """Hooks hear what the classifier refused; they may let the model try once more."""
    if not among.hooks.watches("PermissionDenied"):
        return
    event = {**hook_event(parsed, among, "PermissionDenied"), "reason": answer.reason}
    outcome = await among.hooks.fire(
        event, aliases=parsed.other_names, covers=covers_of(parsed, among)
    )
    heard.take(outcome)
    if outcome.extra.get("retry") is True:
        heard.messages += ("You may try the call that was refused once more.",)


async def _ask_hooks(
    decision: Decision, request: Request, parsed: Parsed, heard: Heard, among: Collaborators
) -> Decision | None:
    """The hooks' word instead of a person's; None leaves it to the person."""
    heard.were_asked = True
    event = hook_event(parsed, among, "PermissionRequest")
    call_id = event.pop("tool_use_id")
    from handaxe.runtime.permission.suggestions import suggestions

    if offered := suggestions(proposals_with(decision, request, among.policy())):
        event["permission_suggestions"] = offered
    outcome = await among.hooks.fire(
        event, aliases=parsed.other_names, covers=covers_of(parsed, among), call_id=call_id
    )
    heard.take(outcome)
    word = outcome.decision
    if outcome.blocked is not None:
        word = Deny(outcome.blocked, by="hook")
    if isinstance(word, Deny):
        among.emit(CallDecided(call_id=call_id, decision=word))
        raise Refused(Denied(word.reason), word)
    if not isinstance(word, Allow) or not is_open(decision):
        return None
    if outcome.input is not None and outcome.input != parsed.call.input:
        raise _Rewritten(outcome.input, word)
    word = msgspec.structs.replace(word, by="hook")
    among.emit(CallDecided(call_id=call_id, decision=word))
    return word
