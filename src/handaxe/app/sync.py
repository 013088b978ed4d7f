"""The synchronous API: a session, and agents in it, that run in a thread.

It works without asyncio, inside a running event loop, and from any number of threads.
"""

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from handaxe.app.session import PathLike, Session
from handaxe.contract.call import ToolCall
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.ports.undo import ChangedCall
from handaxe.contract.result import ToolResult
from handaxe.storage.event_recorder import Listener

if TYPE_CHECKING:
    from handaxe.agent.events import AgentEvent, RunFinished
    from handaxe.agent.input_messages import Prompt
    from handaxe.app.agent import Agent
    from handaxe.contract.messages import Message
    from handaxe.contract.ports.model import Model

T = TypeVar("T")


class LoopThread:
    """An event loop in its own thread; other threads submit work and wait."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="handaxe", daemon=True)
        self.is_open = True
        self._asked: set[Future[Any]] = set()
        self._door = threading.Lock()
        """Lock for submitting work and for ending the thread."""
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for its result; an interrupt cancels it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "A callback that runs in the session's own thread cannot wait for it. "
                "Make the callback a plain function, or use `handaxe.Session` and `await`."
            )
        with self._door:
            if not self.is_open:
                return _get_closed_answer(work)
            waited = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._asked.add(waited)
            waited.add_done_callback(self._asked.discard)
        try:
            return waited.result()
        finally:
            # Cancel it, unless it is done.
            waited.cancel()

    def do(self, work: Callable[[], T]) -> T:
        """Run a function in the thread and wait for its result."""

        async def run() -> T:
            return work()

        # A callback already runs in the thread.
        return work() if threading.current_thread() is self._thread else self.wait(run())

    def close(self) -> None:
        """End the thread after all pending work; closing twice is fine."""
        with self._door:
            if not self.is_open:
                return
            self.is_open = False
            # Pending work of other threads ends first.
            wait(tuple(self._asked))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def _get_closed_answer(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of a closed session, which answers at once without a loop."""
    try:
        work.send(None)
    except StopIteration as answer:
        return cast("T", answer.value)
    work.close()
    raise RuntimeError("The session is closed. Open a new one.")


class Connection:
    """A session for code that does not use asyncio; each method is that of `Session`."""

    def __init__(self, root: PathLike, options: dict[str, Any]) -> None:
        for name in ("on_ask", "on_elicit"):
            given = options.get(name)
            if callable(given) and not inspect.iscoroutinefunction(given):
                options = {**options, name: _run_in_thread(given)}
        self._thread = LoopThread()
        self._agents: list[AgentConnection] = []
        try:
            self._session = self._thread.wait(_open_session(root, options))
        except BaseException:
            self._thread.close()
            raise

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._session.id

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems of settings and rules, and repairs after earlier runs, for the user."""
        return self._thread.do(lambda: self._session.warnings)

    def call(
        self,
        tool: str,
        input: dict[str, Any] | None = None,
        /,
        **arguments: Any,  # noqa: ANN401 - the tool's own types
    ) -> ToolResult:
        """Make one call. Pass its input as keyword arguments or as one dict."""
        return self._thread.wait(self._session.call(tool, input, **arguments))

    def call_many(
        self, calls: Sequence[tuple[str, dict[str, Any]]], *, stop_on_error: bool = False
    ) -> list[ToolResult]:
        """Make the calls of one message."""
        return self._thread.wait(self._session.call_many(calls, stop_on_error=stop_on_error))

    def run(self, call: ToolCall, *, answer: Allow | Deny | None = None) -> ToolResult:
        """Make one call under your own id; `answer` answers its question in `pending`."""
        return self._thread.wait(self._session.run(call, answer=answer))

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The open permission questions, oldest first."""
        return self._thread.do(lambda: self._session.pending)

    def run_many(
        self, calls: Sequence[ToolCall], *, stop_on_error: bool = False
    ) -> list[ToolResult]:
        """Make the calls of one message under your own ids."""
        return self._thread.wait(self._session.run_many(calls, stop_on_error=stop_on_error))

    def tools(
        self, provider: str = "json-schema", *, deferred: bool | Literal["native"] = False
    ) -> list[dict[str, Any]]:
        """The schemas of the offered tools."""
        return self._thread.do(lambda: self._session.tools(provider, deferred=deferred))

    def deferred_tools(self) -> str:
        """The names of the deferred tools, for the system prompt of your agent loop."""
        return self._thread.do(self._session.deferred_tools)

    def user_turn(self, results: Sequence[ToolResult], provider: str) -> Any:  # noqa: ANN401
        """The user message with the results of an answer's calls; for OpenAI a list of messages."""
        return self._thread.do(lambda: self._session.user_turn(results, provider))

    def undo(self, call_id: str | None = None, **options: Any) -> ToolResult:  # noqa: ANN401
        """Undo the last change or a call; the options are those of `Session.undo`."""
        return self._thread.wait(self._session.undo(call_id, **options))

    def redo(self) -> ToolResult:
        """Take the last undo back."""
        return self._thread.wait(self._session.redo())

    def history(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call of this session that changed a file, oldest first."""
        return self._thread.do(lambda: self._session.history(diffs=diffs))

    def cancel(self, call_id: str | None = None) -> int:
        """Cancel one running call, or all, and return the number of cancelled calls."""
        return self._thread.do(lambda: self._session.cancel(call_id))

    def set_mode(self, mode: str) -> None:
        """Switch the permission mode."""
        self._thread.do(lambda: self._session.set_mode(mode))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every event, in the session's thread; the returned function ends it.

        An async listener is awaited there.
        """
        stop = self._thread.do(lambda: self._session.subscribe(listener))
        return lambda: self._thread.do(stop)

    def agent(self, model: "Model | str | None" = None, **options: Any) -> "AgentConnection":  # noqa: ANN401
        """Open an agent in this session; takes the options of `Agent`."""
        from handaxe.app.agent import Agent

        if not self._thread.is_open:
            raise RuntimeError("The session is closed. Open a new one.")
        agent = self._thread.do(lambda: Agent(model, self._session, **options))
        made = AgentConnection(agent, self._thread)
        self._agents.append(made)
        return made

    def close(self) -> None:
        """End agents, session and thread; closing twice is fine."""
        for agent in self._agents:
            agent.close()
        self._thread.wait(self._session.close())
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AgentConnection:
    """An agent for code that does not use asyncio; each method is that of `Agent`."""

    def __init__(self, agent: "Agent", thread: LoopThread) -> None:
        self._agent = agent
        self._thread = thread
        self._is_closed = False

    @property
    def messages(self) -> "tuple[Message, ...]":
        """The conversation so far."""
        return self._thread.do(lambda: self._agent.messages)

    def run(
        self, prompt: "Prompt | None", *, answers: Mapping[str, Allow | Deny] | None = None
    ) -> "Iterator[AgentEvent]":
        """Run a prompt; yields every event. Leaving the loop stops the run.

        `answers` answers questions of `pending`, by call id.
        """
        events = self._agent.run(prompt, answers=answers)
        try:
            while (event := self._thread.wait(_get_next(events))) is not None:
                yield event
        finally:
            self._thread.wait(_close(events))

    def ask(
        self, prompt: "Prompt | None", *, answers: Mapping[str, Allow | Deny] | None = None
    ) -> "RunFinished":
        """Run a prompt to its end; `answers` as in `run`."""
        return self._thread.wait(self._agent.ask(prompt, answers=answers))

    def wait_for_work(self, timeout_s: float | None = None) -> bool:
        """Wait until background work has news for the model; then `run(None)` delivers it."""
        return self._thread.wait(self._agent.wait_for_work(timeout_s))

    def send(self, prompt: "Prompt") -> None:
        """Send a message to the agent while it works."""
        self._thread.do(lambda: self._agent.send(prompt))

    def interrupt(self) -> bool:
        """Stop the run now and return whether one was running."""
        return self._thread.do(self._agent.interrupt)

    def close(self) -> None:
        """Stop the run; the session stays open."""
        if not self._is_closed:
            self._is_closed = True
            self._thread.wait(self._agent.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _open_session(root: PathLike, options: dict[str, Any]) -> Session:
    return await Session(root, **options).__aenter__()


async def _get_next(events: "AsyncGenerator[AgentEvent, None]") -> "AgentEvent | None":
    return await anext(events, None)


async def _close(events: "AsyncGenerator[AgentEvent, None]") -> None:
    await events.aclose()


def _run_in_thread(ask: Callable[..., Any]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """Wrap a callback so that it may block and use the connection."""

    async def asked(request: object) -> object:
        answer: object = await asyncio.to_thread(ask, request)
        return await answer if inspect.isawaitable(answer) else answer

    return asked


def connect(root: PathLike = ".", **options: Any) -> Connection:  # noqa: ANN401
    """Open a session with synchronous methods; takes the options of `Session`."""
    return Connection(root, options)
