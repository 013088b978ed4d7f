"""Serve one conversation: messages and requests in, messages out, line by line.

A message during a turn waits and becomes a turn of its own. At the end of input, waiting messages
are still handled. The first line opens the agent, because a client may bring hooks and agents.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

import msgspec

from handaxe.agent.events import AgentEvent, RunFinished, RunStarted
from handaxe.agent.input_messages import Prompt, refuse_if_empty
from handaxe.agent.message_display import display_events
from handaxe.app.agent import Agent
from handaxe.app.prompt_suggestions import suggest_prompt
from handaxe.app.session import get_parts
from handaxe.app.slash_commands import expand_prompt
from handaxe.contract.content import ImageBlock, TextBlock
from handaxe.contract.events import Event
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.ports.questions import OnElicit, OnQuestion
from handaxe.frontends.stream_json.can_use_tool import StreamPermissionUi
from handaxe.frontends.stream_json.codec import StreamCodec, StreamOptions
from handaxe.frontends.stream_json.control_channel import (
    ControlChannel,
    build_openers,
    read_own_servers,
    wait_for_servers,
)
from handaxe.frontends.stream_json.control_requests import ControlHandler, build_client_hooks
from handaxe.frontends.stream_json.init_message import (
    ClientServers,
    build_init_fields,
    build_run_result,
    run_local_command,
)
from handaxe.frontends.stream_json.result_message import MessageLookups
from handaxe.frontends.stream_json.wire_types import Json
from handaxe.permission.prompts import OnAsk

HEARTBEAT_S = 30.0


async def send_heartbeats(
    codec: StreamCodec, write: Callable[[Json], None], interval_s: float = HEARTBEAT_S
) -> None:
    """Send heartbeats of open calls until cancelled."""
    while True:
        await asyncio.sleep(interval_s)
        for message in codec.build_heartbeats(interval_s):
            write(message)


_NAME_CHARS = 200


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The additions of a client to its agent."""

    on_ask: OnAsk | None = None
    on_question: OnQuestion | None = None
    on_elicit: OnElicit | None = None
    hooks: dict[str, list[Json]] | None = None
    agents: Mapping[str, Any] = {}
    skills: frozenset[str] | None = None
    """The names of the enabled skills; None: all."""
    servers: Mapping[str, Any] = {}
    """SDK servers by name, with the functions that open their streams."""
    context_apart: bool = False
    """Whether machine-specific context is in the first message."""
    source: str | None = None
    """The source of SessionStart, unless the session's past decides it."""


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation is served."""

    open_agent: Callable[[ClientOptions], Agent]
    open_model: Callable[[str | None], object]
    shown: StreamOptions = StreamOptions()
    asks: bool = False
    """Whether the client answers permission questions."""
    servers: ClientServers = ClientServers()
    lookups: MessageLookups = MessageLookups()
    suggests: bool = False
    """Whether the client wants suggestions for the next prompt."""
    going_on: str | None = None
    """The prompt for a conversation that ended in the middle of a turn, if any."""
    background_wait_s: tuple[float, float] = (0.0, 0.0)
    """Seconds that background agents, and commands, may run after the end of input."""
    heartbeat_s: float = HEARTBEAT_S
    """Seconds between heartbeats of long calls."""


class QueuedMessage(msgspec.Struct):
    """A waiting message."""

    prompt: Prompt | None
    """None: a hook or background work has news for the model."""
    uuid: str | None = None


class StreamConversation:
    """One client, one agent."""

    def __init__(self, serving: ServeOptions, write: Callable[[Json], None]) -> None:
        self.channel = ControlChannel(write)
        self.servers = serving.servers
        self.last: RunFinished | None = None
        self._serving = serving
        self._write = write
        self._agent: Agent | None = None
        self._codec: StreamCodec | None = None
        self._controls = ControlHandler(self, write, serving.open_model)
        self._queue: asyncio.Queue[QueuedMessage | None] = asyncio.Queue()
        self._held: list[str | Blocks] = []
        self._is_busy = False
        self._wants_interrupt = False
        self._suggesting: asyncio.Future[str | None] | None = None

    @property
    def agent(self) -> Agent:
        """The agent; opens it on first use."""
        if self._agent is None:
            self._open({})
        assert self._agent is not None
        return self._agent

    @property
    def context_tokens(self) -> int:
        """The length of the conversation at the last answer."""
        return self._codec.context_tokens if self._codec is not None else 0

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Serve until the input ends and all messages are handled."""
        working = asyncio.ensure_future(self._work())
        try:
            async for line in lines:
                self._take(line)
                if working.done():
                    break
            self.channel.close()
            self._queue.put_nowait(None)
            await working
            await self._controls.finish()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    def suspend(self) -> None:
        """The process ends: stop so that the work can be resumed later."""
        if self._agent is not None:
            self._agent.suspend()

    async def close(self) -> None:
        """Close the agent with its session."""
        if self._agent is not None:
            await self._agent.close()
            await self._agent.session.close()

    def initialize(self, request: Json) -> None:
        """Open the agent with the client's hooks, agents and servers."""
        if self._agent is not None:
            is_late = request.get("hooks") or request.get("agents")
            if is_late or not set(read_own_servers(request)) <= set(self.servers.inside):
                raise SetupError(
                    "The agent is already open. Send hooks, agents and servers before messages."
                )
            return
        self._open(request)

    def interrupt(self, *, cancel_queued: bool) -> Json:
        """Stop the running turn; waiting messages stay unless they are cancelled too."""
        waiting: list[str | None] = []
        kept: list[QueuedMessage | None] = []
        while not self._queue.empty():
            item = self._queue.get_nowait()
            kept.append(item)
            if item is not None:
                waiting.append(item.uuid)
        for item in kept:
            if item is None or not cancel_queued:
                self._queue.put_nowait(item)
        self._drop_suggestion()
        if self._is_busy and not self.agent.interrupt():
            self._wants_interrupt = True
        if cancel_queued:
            return {"still_queued": [], "cancelled": waiting}
        return {"still_queued": waiting}

    def _open(self, request: Json) -> None:
        # Some clients name SDK servers on the command line, others here.
        inside = dict.fromkeys((*self.servers.inside, *read_own_servers(request)))
        self.servers = msgspec.structs.replace(self.servers, inside=tuple(inside))
        serving = msgspec.structs.replace(self._serving, servers=self.servers)
        asker = StreamPermissionUi(self.channel, lambda: self.agent.session, self._open_calls)
        agents, skills = request.get("agents"), request.get("skills")
        agent = self._agent = serving.open_agent(
            ClientOptions(
                on_ask=asker.ask if serving.asks else None,
                on_question=asker.ask_question if serving.asks else None,
                on_elicit=asker.ask_form if serving.asks else None,
                hooks=build_client_hooks(request.get("hooks"), self.channel),
                agents=cast("dict[str, Any]", agents) if isinstance(agents, dict) else {},
                skills=frozenset(map(str, cast("list[Any]", skills)))
                if isinstance(skills, list)
                else None,
                servers=build_openers(serving.servers.inside, self.channel),
                context_apart=request.get("excludeDynamicSections") is True,
            )
        )
        if request.get("forwardSubagentText"):
            shown = msgspec.structs.replace(serving.shown, agents_text=True)
            serving = msgspec.structs.replace(serving, shown=shown)
        self._codec = codec = build_codec(agent, serving)

        def tell(event: Event) -> None:
            for message in codec.convert_session_event(event):
                self._write(message)

        agent.session.subscribe(tell)
        agent.wakes.on_wake = self._wake
        if serving.going_on and agent.loop.conversation.is_unfinished:
            self._queue.put_nowait(QueuedMessage(serving.going_on))

    def _wake(self) -> None:
        """Background work has news: start a turn unless one is running."""
        if not self._is_busy and self._queue.empty():
            self._drop_suggestion()
            self._queue.put_nowait(QueuedMessage(None))

    def _open_calls(self) -> dict[str, str]:
        return self._codec.open_calls if self._codec is not None else {}

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            value: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._complain(f"Skipped a line that is not JSON: {error}.")
            return
        message = cast("Json", value) if isinstance(value, dict) else {}
        match message.get("type"):
            case "user":
                self._hear(message)
            case "control_request":
                self._controls.start(message)
            case "control_response":
                response = message.get("response")
                self.channel.take(cast("Json", response) if isinstance(response, dict) else {})
            case "control_cancel_request":
                self._controls.cancel(str(message.get("request_id")))
            case "keep_alive":
                pass
            case other:
                self._complain(f"A message of type {other!r} was skipped.")

    def _hear(self, message: Json) -> None:
        try:
            prompt = parse_prompt(message)
        except InvalidUserMessage as error:
            self._complain(str(error))
            return
        if message.get("shouldQuery") is False:
            self._held.append(prompt)
            return
        prompts, self._held = [*self._held, prompt], []
        uuid = message.get("uuid")
        name = uuid if isinstance(uuid, str) and 0 < len(uuid) <= _NAME_CHARS else None
        self._drop_suggestion()
        self._queue.put_nowait(QueuedMessage(join_prompts(prompts), name))

    def _complain(self, sentence: str) -> None:
        self._write(
            {"type": "system", "subtype": "informational", "content": sentence, "level": "warning"}
        )

    async def _work(self) -> None:
        while (waiting := await self._queue.get()) is not None:
            await self._handle_message(waiting)
            if self._agent is not None and self._agent.wakes.wants_run:
                # News arrived while the turn ended.
                self._wake()
        if self._agent is not None:
            await self._hear_background(self._agent)

    async def _handle_message(self, waiting: QueuedMessage) -> None:
        self._is_busy = True
        try:
            if waiting.prompt is not None or self.agent.wakes.wants_run:
                await self._turn(waiting)
        finally:
            self._is_busy = self._wants_interrupt = False

    async def _hear_background(self, agent: Agent) -> None:
        """After the end of input: turns for news of background work, up to the time limit.

        Lines of a watch do not extend the limit; the end of work does.
        """
        jobs, loop = agent.session.jobs, asyncio.get_running_loop()
        agents_s, commands_s = self._serving.background_wait_s
        idle_since = loop.time()
        while agent.wakes.may_wake:
            idle_s = loop.time() - idle_since
            if not await jobs.wait_for_work(agents_s - idle_s, commands_s - idle_s):
                return
            if any(notice.is_final for notice in jobs.list_notices()):
                idle_since = loop.time()
            elif idle_s >= max(agents_s, commands_s):
                return
            await self._handle_message(QueuedMessage(None))

    async def _turn(self, waiting: QueuedMessage) -> None:
        agent = self.agent
        assert self._codec is not None
        prompt = waiting.prompt
        try:
            if isinstance(prompt, str):
                if (done := await run_local_command(agent, prompt)) is not None:
                    for event in done:
                        self._tell(event)
                    return
                prompt = await expand_prompt(agent.session, prompt)
            if prompt is not None:
                refuse_if_empty(prompt)
            await self._wait_for_servers()
        except (SetupError, ToolFault) as error:
            self._tell(build_run_result(agent, str(error), is_error=True))
            return
        beating = asyncio.ensure_future(
            send_heartbeats(self._codec, self._write, self._serving.heartbeat_s)
        )
        try:
            await self._run(agent, prompt, waiting)
        finally:
            beating.cancel()
        if self._serving.suggests and self._queue.empty():
            await self._suggest(agent)

    async def _suggest(self, agent: Agent) -> None:
        """Send a suggestion for the next prompt, unless a message arrives first."""
        assert self._codec is not None
        self._is_busy = False
        asking = self._suggesting = asyncio.ensure_future(suggest_prompt(agent, self.last))
        try:
            await asyncio.wait((asking,))
        finally:
            self._drop_suggestion()
        if not asking.cancelled() and (text := asking.result()) is not None:
            self._write(self._codec.wrap_message("prompt_suggestion", suggestion=text))

    def _drop_suggestion(self) -> None:
        if self._suggesting is not None:
            self._suggesting.cancel()
            self._suggesting = None

    async def _run(self, agent: Agent, prompt: Prompt | None, waiting: QueuedMessage) -> None:
        assert self._codec is not None
        shown = display_events(
            get_parts(agent.session).pipeline_context,
            agent.run(prompt, message_id=waiting.uuid),
            by_lines=False,
        )
        async with aclosing(shown) as events:
            async for event in events:
                if self._wants_interrupt and isinstance(event, RunStarted):
                    agent.interrupt()
                if isinstance(event, RunFinished):
                    self.last = event
                    # Send messages about the session before the result.
                    await asyncio.sleep(0)
                for message in self._codec.messages(event):
                    self._write(message)

    async def _wait_for_servers(self) -> None:
        """Wait for the client's SDK servers before the first model request."""
        if self.servers.inside:
            get_parts(self.agent.session).follow()
            await wait_for_servers(self.agent.session.mcp, self.servers.inside)

    def _tell(self, event: AgentEvent) -> None:
        """Send the messages of events without a run."""
        assert self._codec is not None
        if isinstance(event, RunFinished):
            self.last = event
        for message in self._codec.messages(event):
            self._write(message)


def build_codec(agent: Agent, serving: ServeOptions) -> StreamCodec:
    """The codec for the events of an agent."""
    return StreamCodec(
        agent.session.id,
        lambda started: build_init_fields(agent, serving.servers, started),
        serving.shown,
        msgspec.structs.replace(
            serving.lookups,
            output_of=_create_output_lookup(agent),
            context_of=_create_context_lookup(agent),
        ),
        agent.session.presenter(),
    )


def _create_context_lookup(agent: Agent) -> Callable[[str], int | None]:
    def context_of(name: str) -> int | None:
        return agent.model.context_tokens if name == agent.model.name else None

    return context_of


def _create_output_lookup(agent: Agent) -> Callable[[str], str]:
    def output_of(agent_id: str) -> str:
        states = agent.agents.listed()
        return next((state.output_file for state in states if state.agent_id == agent_id), "")

    return output_of


Blocks = list[TextBlock | ImageBlock]


class InvalidUserMessage(Exception):
    """A message without content for the agent."""


def parse_prompt(message: Json) -> str | Blocks:
    """The prompt of a user message: text, or text and image blocks."""
    inner = message.get("message")
    content = cast("Json", inner).get("content") if isinstance(inner, dict) else None
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidUserMessage(
            "A user message needs `message.content`: a string or a list of blocks."
        )
    blocks = [_parse_block(item) for item in cast("list[object]", content)]
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return blocks


def join_prompts(prompts: Sequence[str | Blocks]) -> Prompt:
    """Several prompts as one."""
    if len(prompts) == 1:
        return prompts[0]
    blocks: Blocks = []
    for prompt in prompts:
        blocks += [TextBlock(prompt)] if isinstance(prompt, str) else prompt
    return blocks


def _parse_block(item: object) -> TextBlock | ImageBlock:
    block = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return TextBlock(block["text"])
    if kind == "image":
        source = cast("Json", block.get("source") or {})
        if source.get("type") == "base64":
            try:
                return ImageBlock(str(source.get("media_type")), str(source.get("data")))
            except ValueError as error:
                raise InvalidUserMessage(str(error)) from None
        raise InvalidUserMessage("An image must have base64 data.")
    if kind == "document":
        source = cast("Json", block.get("source") or {})
        if source.get("type") == "text":
            return TextBlock(str(source.get("data")))
    raise InvalidUserMessage(f"A block of type {kind!r} cannot be sent to the agent.")
