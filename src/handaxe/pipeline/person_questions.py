"""Ask the user about a call, now or later. The log has the prompt before it is shown."""

import asyncio
import contextlib

import msgspec

from handaxe.contract.call import find_open_call
from handaxe.contract.decision import Allow, Ask, Decision, Defer, Deny, PermissionRequest
from handaxe.contract.events import CallAsked, CallDecided
from handaxe.contract.faults import AnswerPending, Asked, Denied, ToolFault
from handaxe.permission.decide import PermissionQuery
from handaxe.permission.reasons import to_display
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.permission_request import CallRefused, DeferredCall
from handaxe.session.pending_questions import compute_question_digest
from handaxe.text.paths import normalize


def compute_digest(
    question: PermissionRequest, request: PermissionQuery, decision: Ask, context: PipelineContext
) -> str:
    """Identifies the question that an answer applies to; empty if no answer is possible."""
    if context.asker is None and not context.questions.is_open(question.call_id):
        return ""
    places = _locate_operands(request, context)
    return compute_question_digest(question, (request.paths, request.hosts, decision.parts, places))


async def take_later_answer(
    question: PermissionRequest, digest: str, context: PipelineContext
) -> Allow | Deny | None:
    """The user's later answer to exactly this question."""
    answer = context.questions.find_answer(question.call_id, digest)
    if answer is None or context.asker is None:
        return answer
    return await context.asker.accept(answer, question)


async def ask_person(
    question: PermissionRequest, digest: str, decision: Ask, context: PipelineContext
) -> Allow | Deny:
    """Ask the user. The log has the prompt before it is shown.

    Raises:
        CallRefused: prompting is not possible.
        DeferredCall: the answer comes later.
    """
    call_id, questions = question.call_id, context.questions
    is_there = context.asker is not None and context.asker.is_there
    waits = questions.is_open(call_id)
    if not (is_there or waits):
        raise CallRefused(
            Asked(f"{explain_decision(decision)} This run cannot prompt for approval."), decision
        )
    if waits and questions.asked[call_id].digest != digest:
        changed = f"The previous question no longer applies. {question.reason}"
        question = msgspec.structs.replace(question, reason=changed)
    if is_there or questions.asked[call_id].digest != digest:
        await _record(
            CallAsked(
                call_id=call_id,
                tool=question.tool,
                reason=decision.sentence,
                rule=decision.rule,
                request=question,
                digest=digest,
            ),
            context,
        )
    try:
        answer = await context.asker.ask(question) if context.asker and is_there else Defer()
    except asyncio.CancelledError:
        if not questions.outlive_work:
            raise
        answer = Defer()
    if not isinstance(answer, Defer):
        return answer
    here = find_open_call()
    if context.agent_id is None and (here is None or here.parent is None):
        raise DeferredCall(AnswerPending(call_id, explain_decision(decision)), decision)
    sentence = "The answer was deferred, but only calls of the session itself can be deferred."
    refusal = Deny(sentence, by="callback")
    await record_decision(CallDecided(call_id=call_id, decision=refusal), context)
    raise CallRefused(Asked(f"{explain_decision(decision)} {sentence}"), decision)


async def record_decision(event: CallDecided, context: PipelineContext) -> None:
    """Log the answer before acting on it."""
    context.questions.decide(event)
    written = context.emit(event)
    if written is not None:
        await asyncio.shield(written)


async def refuse_later(call_id: str, answer: Deny, context: PipelineContext) -> None:
    """Refuse a call that the user refused after it was deferred."""
    question = context.questions.asked.get(call_id)
    context.questions.answers.pop(call_id)
    if question is not None and context.asker is not None:
        accepted = await context.asker.accept(answer, question.request)
        answer = accepted if isinstance(accepted, Deny) else answer
    await record_decision(CallDecided(call_id=call_id, decision=answer), context)
    raise CallRefused(Denied(f"The call was refused. {answer.sentence}".strip()), answer)


async def _record(event: CallAsked, context: PipelineContext) -> None:
    context.questions.ask(event, context.session_id)
    written = context.emit(event)
    if written is not None:
        await asyncio.shield(written)


def _locate_operands(
    request: PermissionQuery, context: PipelineContext
) -> tuple[tuple[str, str], ...]:
    """The current targets of a command's paths; an answer applies only to them."""
    if request.command is None:
        return ()
    from handaxe.permission.shell_commands import Machine, analyze_command, decide_command

    policy, place = context.policy(), context.workdir
    machine = Machine(cwd=place.current)
    shell = decide_command(
        analyze_command(request, policy, machine), policy, machine, tool=request.tool
    )
    named = {use.path for use in shell.operands if use.path is not None and not use.glob}
    located: list[tuple[str, str]] = []
    for path in sorted(named):
        with contextlib.suppress(ToolFault):
            found = context.files.locate(normalize(path), place.roots)
            located.append((path, found.real))
    return tuple(located)


def explain_decision(decision: Decision) -> str:
    """Explain the decision to the model, with the part of the command and the remedy."""
    if not decision.parts:
        return decision.sentence
    verb = "was denied" if decision.verdict == "deny" else "needs approval"
    part = next((p for p in decision.parts if p.reason == decision.reason), None)
    is_one_of_many = part is not None and len(decision.parts) > 1
    about = f" (in `{to_display(part.text)}`)" if part is not None and is_one_of_many else ""
    rules = " and ".join(to_display(proposal.rule) for proposal in decision.proposals)
    end = "" if decision.sentence.endswith(".") else "."
    said = f"The command {verb}{about}: {decision.sentence}{end}"
    if rules and decision.proposals_leave_questions:
        return f"{said} The allow rule {rules} would cover part of it; the rest would still ask."
    return f"{said} To run it without approval, add the allow rule {rules}." if rules else said
