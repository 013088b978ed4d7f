"""The broker for permission prompts: one prompt at a time; answers are stored with their calls.

Prompts of background work have a deadline.
"""

import asyncio
import heapq
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec

from handaxe.contract.call import CallSlot, find_open_call
from handaxe.contract.cancellation import is_external_stop
from handaxe.contract.decision import (
    Allow,
    DecidedBy,
    Defer,
    Deny,
    PermissionRequest,
    ToolDefinition,
)
from handaxe.contract.faults import describe_error
from handaxe.contract.permission_updates import PermissionChange
from handaxe.contract.ports.permission import Asker, PermissionChanges
from handaxe.permission.saved_rules import SavedRules
from handaxe.rules.tool_families import HOST_TOOL
from handaxe.session.permission_state import PermissionAnswer, PermissionState
from handaxe.text.sanitize import escape_surrogates, to_safe_text

OnAsk = Callable[[PermissionRequest], Awaitable[Allow | Deny | Defer]]
_log = logging.getLogger("handaxe.asking")


class PermissionBroker(Asker):
    """Sends prompts to an async function; everything it does not clearly allow is refused.

    The main agent and background work share one queue; foreground prompts come first.
    """

    def __init__(
        self,
        on_ask: OnAsk | None,
        state: PermissionState,
        keeper: Callable[[Iterable[ToolDefinition]], SavedRules],
        background_deadline_s: Callable[[], float | None] = lambda: None,
        changes: Callable[[], PermissionChanges | None] = lambda: None,
        *,
        in_parallel: bool = False,
    ) -> None:
        """Without `on_ask` nothing can prompt, but later answers are accepted.

        `in_parallel` sends each prompt at once, next to open ones.
        """
        # A host's function may return anything.
        self._on_ask: Callable[[PermissionRequest], Awaitable[object]] | None = on_ask
        self._is_parallel = in_parallel
        self._state = state
        self._keeper = keeper
        self._turns = PromptQueue()
        self._deadline_s = background_deadline_s
        self._changes = changes
        self.is_background = lambda _: False

    @property
    def is_there(self) -> bool:
        """Whether prompting is possible now."""
        return self._on_ask is not None and not self._state.never_prompt

    def put_off(self) -> None:
        """Let prompts wait for later answers when no immediate one is available."""
        self._on_ask = self._on_ask or put_off

    async def ask(self, request: PermissionRequest) -> Allow | Deny | Defer:
        """Wait for the answer, store it, and remember it for its duration."""
        if request.agent_id is None:
            answer = await self._in_turn(request)
        else:
            answer = await self._ask_with_deadline(request, request.agent_id)
        return answer if isinstance(answer, Defer) else await self.accept(answer, request)

    async def accept(self, answer: Allow | Deny, request: PermissionRequest) -> Allow | Deny:
        """Store the answer, and remember it for its duration."""
        by = "user" if answer.by == "user" else "callback"
        answer = msgspec.structs.replace(answer, by=by, reason=escape_surrogates(answer.reason))
        if isinstance(answer, Allow):
            await self._remember(answer, request)
        self._state.record(
            PermissionAnswer(
                call_id=request.call_id,
                tool=request.tool,
                accepted=isinstance(answer, Allow),
                by=answer.by,
                reason=answer.reason,
            )
        )
        return answer

    async def _in_turn(self, request: PermissionRequest) -> Allow | Deny | Defer:
        if self._is_parallel:
            return await self._answer(request)
        agent = request.agent_id
        in_background = agent is not None and self.is_background(agent)
        async with self._turns.turn(in_background=in_background):
            return Allow() if self._is_host_granted(request) else await self._answer(request)

    def _is_host_granted(self, request: PermissionRequest) -> bool:
        """Whether the host was allowed while this question waited for its turn."""
        if request.tool != HOST_TOOL or request.rule is not None:
            return False
        granted = {rule.text for rule in self._state.grants}
        return bool(request.proposals) and all(one.rule in granted for one in request.proposals)

    async def _ask_with_deadline(
        self, request: PermissionRequest, agent: str
    ) -> Allow | Deny | Defer:
        """The answer to a subagent's prompt; refused at the deadline if it is in the background."""
        limit = self._deadline_s()
        asking = asyncio.ensure_future(self._in_turn(request))
        try:
            # An agent may go to the background while its question stands.
            while not (await asyncio.wait((asking,), timeout=limit))[0]:
                if self.is_background(agent):
                    return Deny(
                        f"No answer within {limit:g} seconds, and the agent works in the "
                        "background: the call is refused. Continue without it, and "
                        "report what is missing.",
                        by="callback",
                    )
            return asking.result()
        finally:
            asking.cancel()

    async def _answer(self, request: PermissionRequest) -> Allow | Deny | Defer:
        assert self._on_ask is not None
        try:
            answer = await self._on_ask(request)
        except BaseException as error:
            # A failing callback must not approve anything.
            if is_external_stop(error):
                raise
            _log.warning("on_ask failed", exc_info=error)
            return Deny(
                f"The permission callback failed ({type(error).__name__}: {describe_error(error)})."
            )
        if isinstance(answer, Defer):
            return answer
        if not isinstance(answer, Allow | Deny):
            words = repr(answer) if isinstance(answer, str) else to_safe_text(answer)
            return Deny(f"The permission callback returned {words}, not Allow, Deny or Defer.")
        try:
            return validate_answer(answer)
        except (TypeError, ValueError, RecursionError) as error:
            return Deny(f"The permission callback returned an invalid answer: {error}.")

    async def _remember(self, answer: Allow, request: PermissionRequest) -> None:
        if answer.remember == "once":
            if request.tool == HOST_TOOL:
                # The question says so: a host is asked for once in a session.
                self._state.grant([proposal.rule for proposal in request.proposals])
            return
        if answer.mode is not None:
            await self._change_mode(answer.mode, by=answer.by, call_id=request.call_id)
        if not answer.rules:
            return
        self._state.grant(answer.rules, definitions=request.definitions)
        if answer.remember != "session":
            keeper = self._keeper(request.definitions)
            await keeper.keep(answer.rules, answer.remember)

    async def _change_mode(self, mode: str, *, by: DecidedBy, call_id: str) -> None:
        """Change the mode for the rest of the session, if the mode may be chosen.

        The call itself was allowed either way.
        """
        changes = self._changes()
        if changes is None:
            return
        change = PermissionChange(type="setMode", mode=mode, destination="session")
        for problem in await changes.make([change], by=by, call_id=call_id):
            _log.warning("%s", problem)


async def put_off(_request: PermissionRequest) -> Defer:
    """Defer every prompt."""
    return Defer()


def validate_answer(answer: Allow | Deny) -> Allow | Deny:
    """Check the types of an answer and its parts at run time.

    Raises:
        TypeError, ValueError, RecursionError: a part is not valid.
    """
    return msgspec.convert(msgspec.to_builtins(answer), type(answer))


class PromptQueue:
    """A queue in which foreground prompts go before background ones.

    Raises:
        NestedCall: the current prompt is of a call that waits for this one.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._holder: CallSlot | None = None
        self._waiting: list[tuple[bool, int, asyncio.Future[None], CallSlot | None]] = []
        self._count = 0

    @asynccontextmanager
    async def turn(self, *, in_background: bool) -> AsyncGenerator[None]:
        """Wait for the turn, hold it, and pass it on."""
        asking = find_open_call()
        if self._is_taken:
            if asking is None:
                await self._wait(None, in_background=in_background)
            else:
                await self._wait_inside(asking, in_background=in_background)
        self._is_taken, self._holder = True, asking
        try:
            yield
        finally:
            self._release()

    async def _wait_inside(self, asking: CallSlot, *, in_background: bool) -> None:
        """Wait for the prompt. Raises a fault if the call that holds it waits for this one."""
        from handaxe.session.call_cycles import refuse_cycle

        asking.waits = lambda: () if self._holder is None else (self._holder,)
        try:
            refuse_cycle(asking)
            await self._wait(asking, in_background=in_background)
        finally:
            asking.waits = None

    async def _wait(self, asking: CallSlot | None, *, in_background: bool) -> None:
        self._count += 1
        called = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (in_background, self._count, called, asking))
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                # It was called and went away: the turn is the next one's.
                self._release()
            raise

    def _release(self) -> None:
        while self._waiting:
            _, _, called, asking = heapq.heappop(self._waiting)
            if not called.done():
                # It stays taken, so that no new caller gets in between. The last holder may ask
                # again before the next one runs, and then it waits for that one.
                self._holder = asking
                called.set_result(None)
                return
        self._is_taken = False
