"""Check in advance whether a call needs approval."""

import msgspec

from handaxe.contract.call import ToolCall
from handaxe.contract.decision import Defer, PermissionRequest
from handaxe.contract.faults import AnswerPending
from handaxe.contract.ports.permission import Asker
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.parse import parse
from handaxe.pipeline.permission_request import DeferredCall, HookFeedback
from handaxe.pipeline.prepare import prepare
from handaxe.session.pending_questions import PendingQuestions


async def check_approval(call: ToolCall, context: PipelineContext) -> bool:
    """Whether a call needs approval now; runs hooks, but not the call."""
    dry = msgspec.structs.replace(
        context, asker=_AbsentPerson(), questions=PendingQuestions(), emit=_ignore_event
    )
    try:
        if context.opening is not None:
            await context.opening()
        await prepare(parse(call, dry), HookFeedback(), dry)
    except DeferredCall as deferred:
        return isinstance(deferred.fault, AnswerPending)
    except Exception:  # noqa: BLE001 - what is wrong with it is told by the call itself
        return False
    return False


class _AbsentPerson(Asker):
    looks = False

    async def ask(self, request: PermissionRequest) -> Defer:  # noqa: ARG002 - always the same
        """Defer the question."""
        return Defer()


def _ignore_event(_: object) -> None:
    """End the check before the call runs."""
