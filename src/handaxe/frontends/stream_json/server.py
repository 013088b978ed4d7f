"""Serve one conversation: messages and requests come in line by line, messages go out.

A message that comes during a turn waits and becomes a turn of its own. When the input ends, what
waits is still done. The agent is opened by the first line, because a client may bring hooks and
agents of its own with it.
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
    """Tell of every open call, until somebody cancels this."""
    while True:
        await asyncio.sleep(interval_s)
        for message in codec.build_heartbeats(interval_s):
            write(message)


_NAME_CHARS = 200


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a client brings along to the agent that is opened for it."""

    on_ask: OnAsk | None = None
    on_question: OnQuestion | None = None
    on_elicit: OnElicit | None = None
    hooks: dict[str, list[Json]] | None = None
    agents: Mapping[str, Any] = {}
    skills: frozenset[str] | None = None
    """The names of the skills that count; None: all."""
    servers: Mapping[str, Any] = {}
    """MCP servers in the client's own process, by name what opens their streams."""
    context_apart: bool = False
    """Whether what differs from place to place stands in the first message."""
    source: str | None = None
    """How the session begins for its hooks, where that is not what its past says."""


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
    """Whether the client wants to know what the person may say next."""
    going_on: str | None = None
    """What is said to an agent whose conversation ended in the middle of a turn; None: nothing."""
    background_wait_s: tuple[float, float] = (0.0, 0.0)
    """How long agents, and commands, in the background may still work when the input has ended."""
    heartbeat_s: float = HEARTBEAT_S
    """How often calls that take long are told to be alive."""


class QueuedMessage(msgspec.Struct):
    """A message that waits for its turn."""

    prompt: Prompt | None
    """None: nobody said anything, but a hook or background work has something for the model."""
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
        """The agent, opened if it was not yet."""
        if self._agent is None:
            self._open({})
        assert self._agent is not None
        return self._agent

    @property
    def context_tokens(self) -> int:
        """How long the conversation was at the last answer."""
        return self._codec.context_tokens if self._codec is not None else 0

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Until the input ends and everything asked for is done."""
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
        """The process has to end: stop in a way that lets the work go on later."""
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
                raise SetupError("The agent is open already; hooks, agents and servers come first.")
            return
        self._open(request)

    def interrupt(self, *, cancel_queued: bool) -> Json:
        """Stop the turn under way; what waits stays unless it is cancelled too."""
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
        # Some clients name their own servers on the command line, others here.
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
        """The agent has something to hear: a turn of its own if none is under way."""
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
            self._complain(f"A line that is not JSON was passed over: {error}.")
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
                self._complain(f"A message of type {other!r} was passed over.")

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
                # It came while the turn ended.
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
        """After the end of the input: what background work has to tell, if it does so in time.

        Lines of a watch do not keep the connection for longer; the end of work does.
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
        """Tell what the person may say next; whatever comes before that makes it needless."""
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
                    # What was told about the session comes before the end.
                    await asyncio.sleep(0)
                for message in self._codec.messages(event):
                    self._write(message)

    async def _wait_for_servers(self) -> None:
        """The client's own servers are there before the model is asked."""
        if self.servers.inside:
            get_parts(self.agent.session).follow()
            await wait_for_servers(self.agent.session.mcp, self.servers.inside)

    def _tell(self, event: AgentEvent) -> None:
        """Tell what happened without a run."""
        assert self._codec is not None
        if isinstance(event, RunFinished):
            self.last = event
        for message in self._codec.messages(event):
            self._write(message)


def build_codec(agent: Agent, serving: ServeOptions) -> StreamCodec:
    """The codec for an agent's events."""
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
    """A message that says nothing an agent could work on."""


def parse_prompt(message: Json) -> str | Blocks:
    """The prompt in a user message: text as it is, or blocks of text and pictures."""
    inner = message.get("message")
    content = cast("Json", inner).get("content") if isinstance(inner, dict) else None
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidUserMessage(
            "A user message needs `message.content`: a text, or a list of blocks."
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
        raise InvalidUserMessage("A picture has to come as base64 data.")
    if kind == "document":
        source = cast("Json", block.get("source") or {})
        if source.get("type") == "text":
            return TextBlock(str(source.get("data")))
    raise InvalidUserMessage(f"A block of type {kind!r} cannot be said to the agent.")
