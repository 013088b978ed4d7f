"""Messages to the model: from the user, hooks, background work and the runtime."""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast
from uuid import uuid4

from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import AgentEvent, MessageAdded
from handaxe.agent.loop_context import LoopContext
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.events import UserSaid
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import UserBlock, UserMessage
from handaxe.text.framing import frame_reminder

Prompt = str | Sequence[TextBlock | ImageBlock]


class InputMessages:
    """Adds messages to one conversation, and holds those that must wait."""

    def __init__(
        self,
        workplace: LoopContext,
        conversation: AgentConversation,
        tell: Callable[[AgentEvent], None],
    ) -> None:
        self._workplace = workplace
        self._conversation = conversation
        self._tell = tell
        self._waiting: list[Prompt] = []
        self._arrived = asyncio.Event()

    def say(
        self,
        prompt: Prompt,
        *,
        synthetic: bool = False,
        message_id: str | None = None,
        is_beside_results: bool = False,
        notices: tuple[str, ...] = (),
    ) -> None:
        """Add a message; it is in the log before the model gets it."""
        content: tuple[UserBlock, ...] = (
            (TextBlock(str(prompt)),) if isinstance(prompt, str) else tuple(prompt)
        )
        message = UserMessage(content, synthetic=synthetic)
        said = UserSaid(
            message_id=message_id or make_message_id(), message=message, notices=notices
        )
        self._workplace.pipeline_context.emit(said)
        self._conversation.take(said)
        self._tell(MessageAdded(said.message, said.message_id, (), is_beside_results))

    def remind(self, texts: Sequence[str]) -> None:
        """Add messages of the runtime, marked as such."""
        for text in texts:
            self.say(frame_reminder(text), synthetic=True)

    def keep(self, prompt: Prompt) -> None:
        """Hold a message until the model can get it."""
        self._waiting.append(prompt)
        self._arrived.set()

    @property
    def has_waiting(self) -> bool:
        """Whether a message of the user is waiting."""
        return bool(self._waiting)

    @property
    def has_news(self) -> bool:
        """Whether there are messages other than lines of running work."""
        if self._waiting or self._workplace.pipeline_context.hooks.late:
            return True
        return any(notice.is_final for notice in self._workplace.notices())

    @property
    def has_anything(self) -> bool:
        """Whether there are any messages."""
        return self.has_news or bool(self._workplace.notices())

    def flush_queue(self) -> bool:
        """Add waiting messages: from the user, and from background work."""
        waiting, self._waiting = self._waiting, []
        self._arrived.clear()
        for prompt in waiting:
            self.say(prompt)
        notices = self._workplace.notices()
        for notice in notices:
            # The log has the notice and its delivery as one record.
            self.say(frame_reminder(notice.text), synthetic=True, notices=(notice.id,))
        self._workplace.mark_told(notices)
        late = self._workplace.pipeline_context.hooks.take_late()
        self.remind(late)
        return bool(waiting or notices or late)

    def stop_waiting(self) -> None:
        """Wake the waiting for background work because of another message."""
        self._arrived.set()

    async def wait_for_work(self, agents_s: float, commands_s: float) -> None:
        """Wait for messages of background work, or for the user."""
        waits = (
            asyncio.ensure_future(self._workplace.await_work(agents_s, commands_s)),
            asyncio.ensure_future(self._arrived.wait()),
        )
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def refuse_if_empty(prompt: Prompt) -> None:
    """Raise `SetupError` for an empty prompt, which no provider accepts."""
    if not isinstance(prompt, str):
        _refuse_other_types(prompt)
    has_picture = not isinstance(prompt, str) and any(isinstance(b, ImageBlock) for b in prompt)
    if not has_picture and not extract_prompt_text(prompt).strip():
        raise SetupError("The prompt is empty. Say what to do.")


def _refuse_other_types(prompt: object) -> None:
    """Raise `SetupError` for anything but a list of texts and images."""
    if isinstance(prompt, Sequence):
        parts = cast("Sequence[object]", prompt)
        wrong = [part for part in parts if not isinstance(part, TextBlock | ImageBlock)]
        if not wrong:
            return
        prompt = wrong[0]
    raise SetupError(
        f"A prompt must be a text or a list of `TextBlock` and `ImageBlock`, not {prompt!r:.100}."
    )


def extract_prompt_text(prompt: Prompt) -> str:
    """A prompt without its images."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(block.text for block in prompt if isinstance(block, TextBlock))


def make_message_id() -> str:
    """A new message id."""
    return str(uuid4())
