"""The host's own function as the one who answers permission questions, one at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.ports.asker import Asker
from handaxe.session.permission_state import Answer, PermissionState

OnAsk = Callable[[PermissionRequest], Awaitable[Allow | Deny]]

_log = logging.getLogger("handaxe.asking")


class CallbackAsker(Asker):
    """Asks an async function; what it does not clearly allow is refused."""

    def __init__(self, on_ask: OnAsk, state: PermissionState) -> None:
        self._on_ask = on_ask
        self._state = state
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, request: PermissionRequest) -> Allow | Deny:
        """Wait for the answer and keep it."""
        async with self._one_at_a_time:
            answer = await self._answer(request)
        answer = msgspec.structs.replace(answer, by="callback")
        self._state.record(
            Answer(
                call_id=request.call_id,
                tool=request.tool,
                accepted=isinstance(answer, Allow),
                by=answer.by,
                reason=answer.reason,
            )
        )
        return answer

    async def _answer(self, request: PermissionRequest) -> Allow | Deny:
        try:
            answer: object = await self._on_ask(request)
        except Exception as error:  # noqa: BLE001 - a failing callback must not turn into a yes
            _log.warning("on_ask failed", exc_info=error)
            return Deny(f"The permission callback failed ({type(error).__name__}: {error}).")
        if not isinstance(answer, Allow | Deny):
            return Deny(f"The permission callback answered {answer!r}, not Allow or Deny.")
        return answer
