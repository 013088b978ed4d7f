"""The agent's conversation and model, for the tools that it calls."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from handaxe.agent.compaction import request_text
from handaxe.agent.limits import Meter
from handaxe.contract.content import TextBlock
from handaxe.contract.faults import SetupError
from handaxe.contract.faults.agent import ModelBudgetReached, ModelUnreachable
from handaxe.contract.messages import UserMessage
from handaxe.contract.ports.conversation import AgentAccess, Conversation, ModelQuestion
from handaxe.contract.ports.model import Model, ModelFailed, ModelRequest, RequestOrigin
from handaxe.pipeline.context import PipelineContext

if TYPE_CHECKING:
    from handaxe.agent.loop import AgentLoop

SMALL = "small"


class LoopAccess(AgentAccess):
    """The agent of one loop, for its next tool calls."""

    def __init__(self, loop: "AgentLoop", context: PipelineContext, origin: RequestOrigin) -> None:
        self._loop = loop
        self._origin = origin
        self._context = context
        context.agent = self

    @property
    def model(self) -> Model:
        """The current model."""
        return self._loop.model

    def read_conversation(self, call_ids: Sequence[str]) -> Conversation:
        """The conversation before the first of these calls."""
        return self._loop.conversation.read_before(call_ids)

    async def ask_model(self, question: ModelQuestion) -> str:
        """The text of the answer; its cost counts for the run."""
        origin = msgspec.structs.replace(self._origin, agent=f"{self._origin.agent}.tool")
        return await ask_question(
            self._choose_model(question.model), question, self._loop.meter, origin
        )

    def _choose_model(self, name: str | None) -> Model:
        model, open_model = self._loop.model, self._context.open_model
        if name == SMALL:
            from handaxe.models.factory import find_small_model

            name = find_small_model(model.name)
        if name is None or name == model.name:
            return model
        if open_model is None:
            raise ModelUnreachable(sentence=f"the model {name!r} cannot be opened here.")
        try:
            return open_model(name)
        except SetupError as error:
            raise ModelUnreachable(sentence=str(error)) from None


async def ask_question(
    model: Model, question: ModelQuestion, meter: Meter, origin: RequestOrigin | None = None
) -> str:
    """A model's answer within the budget of a run.

    Raises:
        ToolFault: the budget is used up, or the model does not answer.
    """
    reached = meter.check_limits()
    if reached is not None and reached.reason != "max_turns":
        raise ModelBudgetReached(sentence=reached.sentence)
    request = ModelRequest(
        system=(question.system,) if question.system else (),
        messages=(UserMessage((TextBlock(question.prompt),)),),
        max_tokens=question.max_tokens,
        origin=origin or RequestOrigin(),
    )
    try:
        return await request_text(model, request, meter)
    except ModelFailed as failed:
        raise ModelUnreachable(sentence=failed.sentence) from None
