"""The background work of one session: running and ended work, and messages for the model.

Every piece of work has exactly one `JobStarted` and one `JobEnded`; work that a dead process left
behind gets its end when the session is opened again. The model gets each end once, also after a
restart.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import msgspec

from handaxe.contract.events import (
    JobEnded,
    JobSaid,
    JobStarted,
    JobsTold,
    MessagePosted,
    UserSaid,
)
from handaxe.contract.job_state import EndedBy, JobState
from handaxe.contract.ports.jobs import Job

if TYPE_CHECKING:
    from handaxe.contract.ports.agents import Agents, AgentState
    from handaxe.text.framing import Framed


MAX_RUNNING = 40
MAX_OF_USER = 200
HOST_ENDED = "was killed because handaxe ended"

Announcement = JobStarted | JobEnded | JobSaid | JobsTold | MessagePosted
Announce = Callable[[Announcement], object]
AtEnd = Callable[[JobState], Awaitable[None]]
"""Handles the results of work before its end is announced."""


MAX_LINES = 200
"""Up to this many lines of one watched command wait for the model. Older ones are dropped."""


class Notice(msgspec.Struct, frozen=True):
    """One message for an agent."""

    id: str
    """Its name in the log after delivery."""
    text: str
    is_final: bool = True
    """Whether it is more than lines of a watched command, which may be followed by many more."""


class PendingNotices:
    """Undelivered messages: lines of watched commands, messages of agents, ends of work."""

    def __init__(
        self,
        find_recipient: Callable[[str], str | None],
        find_state: Callable[[str], JobState | None],
    ) -> None:
        """`find_recipient` returns the subagent for messages of work; None: the main agent."""
        self._find_recipient = find_recipient
        self._find_state = find_state
        self._ends: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        self._lines: dict[str, list[str]] = {}
        self._left_out: dict[str, int] = {}
        self._waiters: set[asyncio.Future[None]] = set()
        self.listeners: list[Callable[[], object]] = []
        """Called whenever there is something new to tell."""

    def add_end(self, state: JobState, summary: str) -> None:
        """Work has ended."""
        self._ends[state.job_id] = format_notice(
            state.job_id,
            output_file=state.output_path,
            status=state.status,
            summary=summary,
            result=state.result,
        )
        self._announce()

    def add_line(self, job_id: str, line: str) -> bool:
        """A watched command printed a line; False if too many lines wait already."""
        lines = self._lines.setdefault(job_id, [])
        lines.append(line)
        has_room = len(lines) <= MAX_LINES
        if not has_room:
            lines.pop(0)
            self._left_out[job_id] = self._left_out.get(job_id, 0) + 1
        self._announce()
        return has_room

    def add_message(self, posted: MessagePosted) -> None:
        """An agent has something to say to the session's own."""
        self._messages[posted.message_id] = posted.text
        self._announce()

    def forget(self, notice_id: str) -> bool:
        """Mark it as delivered and return whether it was waiting."""
        if notice_id.endswith(":"):
            job_id = notice_id.removesuffix(":")
            self._left_out.pop(job_id, None)
            return self._lines.pop(job_id, None) is not None
        waits = (self._ends.pop(notice_id, None), self._messages.pop(notice_id, None))
        return any(text is not None for text in waits)

    def is_empty(self, viewer: str | None) -> bool:
        """Whether there is nothing to tell this agent."""
        if viewer is None and self._messages:
            return False
        return not any(self._find_recipient(job_id) == viewer for job_id in self._list_job_ids())

    def list_for(self, viewer: str | None) -> tuple[Notice, ...]:
        """The messages for this agent; the lines of a command come before its end."""
        notices = [
            Notice(f"{job_id}:", self._format_lines(job_id, lines), is_final=False)
            for job_id, lines in self._lines.items()
            if self._find_recipient(job_id) == viewer
        ]
        if viewer is None:
            notices += [Notice(one, text) for one, text in self._messages.items()]
        notices += [
            Notice(job_id, text)
            for job_id, text in self._ends.items()
            if self._find_recipient(job_id) == viewer
        ]
        return tuple(notices)

    async def wait_until(self, is_met: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait until something holds that only changes here; False if the time was up first."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                while not is_met():
                    waiter = loop.create_future()
                    self._waiters.add(waiter)
                    try:
                        await waiter
                    finally:
                        self._waiters.discard(waiter)
        except TimeoutError:
            return is_met()
        return True

    async def wait_while(
        self,
        goes_on: Callable[[tuple[bool, ...]], bool],
        viewer: str | None,
        agents_s: float | None,
        commands_s: float | None,
    ) -> None:
        """Wait until there is something to tell, while agents or others go on, each so long."""
        agents = math.inf if agents_s is None else agents_s
        commands = math.inf if commands_s is None else commands_s
        loop = asyncio.get_running_loop()
        began = loop.time()
        for limit_s, kinds in (
            (min(agents, commands), (True, False)),
            (max(agents, commands), (agents > commands,)),
        ):
            left_s = limit_s - (loop.time() - began)
            if left_s > 0:
                is_over = partial(self._is_over, goes_on, kinds, viewer)
                await self.wait_until(is_over, None if left_s == math.inf else left_s)

    def _is_over(
        self,
        goes_on: Callable[[tuple[bool, ...]], bool],
        kinds: tuple[bool, ...],
        viewer: str | None,
    ) -> bool:
        return not self.is_empty(viewer) or not goes_on(kinds)

    def notify(self) -> None:
        """Wake all waiting tasks."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def pass_on(self) -> None:
        """A recipient of messages has ended; waiting messages may have another recipient now."""
        self._announce()

    def _announce(self) -> None:
        self.notify()
        for listener in tuple(self.listeners):
            listener()

    def _list_job_ids(self) -> Iterable[str]:
        yield from self._lines
        yield from self._ends

    def _format_lines(self, job_id: str, lines: Sequence[str]) -> str:
        state = self._find_state(job_id)
        left_out = self._left_out.get(job_id, 0)
        more = [f"({left_out:,} earlier lines are only in the output file)"] if left_out else []
        named = f'"{state.description}"' if state is not None else job_id
        return format_notice(
            job_id,
            output_file=state.output_path if state is not None else "",
            summary=f"Monitor {named} saw:",
            event="\n".join([*more, *lines]),
        )


def format_notice(job_id: str, **fields: str) -> "Framed":
    """A message for the model; nothing inside can be taken for its frame."""
    from handaxe.text.framing import frame, frame_field

    named = {"task-id": job_id, **{name.replace("_", "-"): value for name, value in fields.items()}}
    inside = [frame_field(name, value) for name, value in named.items() if value]
    return frame("task-notification", *inside)


class Jobs:
    """Everything that runs on after the call that started it."""

    def __init__(
        self,
        announce: Announce = lambda _: None,
        *,
        max_running: int = MAX_RUNNING,
        max_of_user: int = MAX_OF_USER,
        elsewhere: Callable[[], int] = lambda: 0,
        at_end: AtEnd | None = None,
        kept_agents: "Callable[[], Iterable[AgentState]]" = tuple,
        kept_work: Callable[[JobState], Job] | None = None,
    ) -> None:
        """`elsewhere` counts running work of other sessions; a `max_running` of 0 allows nothing.

        `kept_agents` are those of earlier runs, for a session without agents; `kept_work` returns
        the kept record of a command of an earlier run.
        """
        self._announce = announce
        self._at_end = at_end
        self._max_running = max_running
        self._max_of_user = max_of_user
        self._elsewhere = elsewhere
        self._kept_agents = kept_agents
        self._kept_work = kept_work
        self.agents: Agents | None = None
        """Who knows the agents of this session, once it can start some."""
        self._jobs: dict[str, Job] = {}
        self._ended: dict[str, JobState] = {}
        self._lost: dict[str, JobState] = {}
        self._looked_at: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._owners: dict[str, str] = {}
        self._present: set[str] = set()
        self._viewer: str | None = None
        self.notices = PendingNotices(self._find_recipient, self._find_state)
        """The undelivered messages."""

    def share_with_agent(self, agent_id: str) -> Self:
        """The same work for a subagent, which gets the messages of its own work while it runs."""
        # Most sessions have no sub-agent.
        import copy

        # Everything that changes is shared; only whose eyes these are is not.
        view = copy.copy(self)
        view._viewer = agent_id
        self._present.add(agent_id)
        return view

    async def leave(self, *, keeps: bool) -> None:
        """The subagent has ended; its undelivered messages go to the main agent.

        With `keeps` its commands continue.
        """
        if not keeps:
            mine = [state.job_id for state in self.running() if self._is_mine(state)]
            await asyncio.gather(*(self._jobs[job_id].stop() for job_id in mine))
        self._present.discard(self._viewer or "")
        self.notices.pass_on()

    def refuse_if_full(self) -> None:
        """Raise a fault if so much runs that nothing may be added."""
        from handaxe.contract.faults.agent import NoBackground, TooManyTasks

        if not self._max_running:
            raise NoBackground
        running = self.running()
        if len(running) >= self._max_running:
            raise TooManyTasks(len(running), running)
        everywhere = len(running) + self._elsewhere()
        if everywhere >= self._max_of_user:
            raise TooManyTasks(everywhere, running)

    def named(self, job_id: str | None) -> tuple[JobState, Job | None]:
        """The work that a call names, with its state; raises a fault if it is unknown."""
        from handaxe.contract.faults.agent import NoTaskNamed, UnknownJob

        if not job_id:
            raise NoTaskNamed(self.running())
        job = self._jobs.get(job_id)
        if job is None and self.agents is not None:
            job = self.agents.find(job_id)
        if job is not None:
            return job.state, job
        for state in reversed(self.known()):
            if job_id in {state.job_id, state.name}:
                return state, self._jobs.get(state.job_id) or self._kept(state)
        raise UnknownJob(job_id, self.running())

    def add(self, job: Job) -> str:
        """Take over running work and return its id."""
        job_id = job.state.job_id
        if job_id not in self._jobs or job_id in self._ended:
            # An agent that was woken works on under its old id.
            self._ended.pop(job_id, None)
            self._jobs[job_id] = job
            if self._viewer is not None:
                self._owners[job_id] = self._viewer
            else:
                self._owners.pop(job_id, None)
            self._announce(JobStarted(job=job.state))
            self._ends[job_id] = self.start_task(self._wait_for_end(job))
        return job_id

    def start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let something go on until it is done or the session closes."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def listed(self) -> list[JobState]:
        """All work of this session with its current state, oldest first."""
        now = {job_id: job.state for job_id, job in self._jobs.items()}
        return [
            *(state for job_id, state in self._ended.items() if job_id not in now),
            *now.values(),
        ]

    def known(self) -> list[JobState]:
        """All work and all agents, also those of earlier runs and in the foreground."""
        from handaxe.contract.ports.agents import describe_worktree, to_job_state

        states = {state.job_id: state for state in self.listed()}
        for agent in self._list_agents():
            if agent.agent_id not in self._jobs:
                # What an agent had come to is only in what was kept of it.
                said = (agent.result, describe_worktree(agent).strip())
                states[agent.agent_id] = to_job_state(agent, "\n\n".join(filter(None, said)))
        return list(states.values())

    def running(self) -> list[JobState]:
        """The running work."""
        states = (job.state for job_id, job in self._jobs.items() if job_id not in self._ended)
        return [state for state in states if state.status == "running"]

    def say(self, job_id: str, line: str) -> None:
        """A watched command printed a line that the model wants to know."""
        is_kept = self.notices.add_line(job_id, line)
        self._announce(JobSaid(job_id=job_id, line=line, is_kept=is_kept))

    def post_message(self, text: str) -> None:
        """Send the main agent a message as soon as it can get one."""
        posted = MessagePosted(message_id=str(uuid4()), text=text)
        self._announce(posted)
        self.notices.add_message(posted)

    def count_new_bytes(self, state: JobState) -> int:
        """How much output work has written since the last look, which this call is."""
        before = self._looked_at.get(state.job_id, 0)
        self._looked_at[state.job_id] = state.output_bytes
        return max(0, state.output_bytes - before)

    async def mark_reported(self, job_id: str) -> None:
        """The model is about to see how this ended, so it needs no message.

        A waiting call may wake up before the end was processed; returns when it was.
        """
        job = self._jobs.get(job_id)
        if job is not None and job_id not in self._ended and job.state.status != "running":
            await asyncio.wait([self._ends[job_id]])
        if self.notices.forget(job_id):
            self._announce(JobsTold(job_ids=(job_id,)))
            self.notices.notify()

    async def news(self, timeout_s: float | None = None) -> bool:
        """Wait until there is something to tell; False if the time was up first."""
        return await self.notices.wait_until(lambda: self.has_notices, timeout_s)

    async def wait_for_work(
        self, agents_s: float | None = None, commands_s: float | None = None
    ) -> bool:
        """Wait for a message; False if no running work could send one.

        The limits are for agents, and for commands and watches; None means unlimited.
        """
        await self.notices.wait_while(self._goes_on, self._viewer, agents_s, commands_s)
        return self.has_notices

    @property
    def has_notices(self) -> bool:
        """Whether there is something to tell."""
        return not self.notices.is_empty(self._viewer)

    def list_notices(self) -> tuple[Notice, ...]:
        """The messages for the model; `mark_told` marks them as delivered."""
        return self.notices.list_for(self._viewer)

    def mark_told(self, notices: Iterable[Notice]) -> None:
        """Mark these as delivered."""
        told = tuple(notice.id for notice in notices if self.notices.forget(notice.id))
        if told:
            self._announce(JobsTold(job_ids=told))

    def take_notices(self) -> tuple[str, ...]:
        """The messages for the model, each once."""
        notices = self.list_notices()
        self.mark_told(notices)
        return tuple(notice.text for notice in notices)

    def replay(self, event: Announcement | UserSaid) -> None:
        """Take over what an earlier run of the session had announced."""
        match event:
            case JobStarted():
                self._lost[event.job.job_id] = event.job
            case JobEnded():
                self._lost.pop(event.job.job_id, None)
                self._ended[event.job.job_id] = event.job
                self.notices.add_end(event.job, event.summary)
            case JobSaid():
                self.notices.add_line(event.job_id, event.line)
            case MessagePosted():
                self.notices.add_message(event)
            case JobsTold():
                for notice_id in event.job_ids:
                    self.notices.forget(notice_id)
            case UserSaid():
                for notice_id in event.notices:
                    self.notices.forget(notice_id)

    def close_lost(self) -> None:
        """Give work that an earlier run left without an end the end it had."""
        for state in tuple(self._lost.values()):
            killed = msgspec.structs.replace(
                state, status="killed", ended_by="host_ended", waiting_for_input=None
            )
            self._end(killed, f"{_describe_job(killed)} {HOST_ENDED}")
        self._lost.clear()

    def forget_lost(self) -> None:
        """Work without an end runs in another process, which will report it."""
        self._lost.clear()

    async def close(self) -> None:
        """Stop all work and see to its end."""
        going = [job for job_id, job in self._jobs.items() if job_id not in self._ended]
        await asyncio.gather(*(job.stop() for job in going), return_exceptions=True)
        for job in going:
            await self._finish(job.state)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_for_end(self, job: Job) -> None:
        await job.wait()
        await self._finish(job.state)

    async def _finish(self, state: JobState) -> None:
        if state.job_id in self._ended:
            return
        try:
            if self._at_end is not None:
                await self._at_end(state)
        finally:
            if state.job_id not in self._ended:
                self._end(state, summarize_job(state))

    def _end(self, state: JobState, summary: str) -> None:
        self._ended[state.job_id] = state
        self._announce(JobEnded(job=state, summary=summary))
        self.notices.add_end(state, summary)

    def _find_recipient(self, job_id: str) -> str | None:
        """The subagent that gets messages of work; None: the main agent."""
        owner = self._owners.get(job_id)
        return owner if owner in self._present else None

    def _find_state(self, job_id: str) -> JobState | None:
        job = self._jobs.get(job_id)
        return job.state if job is not None else self._ended.get(job_id) or self._lost.get(job_id)

    def _goes_on(self, kinds: tuple[bool, ...]) -> bool:
        """Whether work of this agent is running: agents, others, or both."""
        return any(
            job_id not in self._ended
            and (job.state.kind == "agent") in kinds
            and self._find_recipient(job_id) == self._viewer
            for job_id, job in self._jobs.items()
        )

    def _is_mine(self, state: JobState) -> bool:
        return state.kind != "agent" and self._owners.get(state.job_id) == self._viewer

    def _kept(self, state: JobState) -> Job | None:
        if self._kept_work is None or state.kind == "agent" or state.status == "running":
            return None
        return self._kept_work(state)

    def _list_agents(self) -> "Iterable[AgentState]":
        if self.agents is not None:
            return self.agents.listed()
        return (
            msgspec.structs.replace(agent, status="interrupted")
            if agent.status == "running"
            else agent
            for agent in self._kept_agents()
        )


_ENDS: dict[EndedBy | None, str] = {
    "output_limit": "was ended because it printed more than may be kept",
    "own_output": "was ended because it printed its own output again and again",
    "time_up": "was ended because its time was up",
    "user": "was stopped by the user",
    "parent": "was stopped by the agent that started it",
    "call": "was stopped together with the call that started it",
    "limit": "failed because a limit of its work was reached",
    "session": "was stopped because the session ended",
}


def summarize_job(state: JobState) -> str:
    """How work ended, in one sentence."""
    if state.exit_code is not None and state.status in {"completed", "failed"}:
        return f"{_describe_job(state)} {state.status} (exit code {state.exit_code})"
    how = "was stopped" if state.status == "killed" else state.status
    return f"{_describe_job(state)} {_ENDS.get(state.ended_by, how)}"


def _describe_job(state: JobState) -> str:
    kind = {"shell": "Background command", "monitor": "Monitor", "agent": "Agent"}[state.kind]
    return f'{kind} "{state.description or state.command or state.job_id}"'


class Wakeups:
    """Who sleeps, and what wakes them: input of a person, work that ended."""

    def __init__(self) -> None:
        self._sleepers: set[asyncio.Future[str]] = set()

    def wake(self, reason: str) -> int:
        """Wake all sleeping tasks; returns how many there were."""
        sleepers = [sleeper for sleeper in self._sleepers if not sleeper.done()]
        for sleeper in sleepers:
            sleeper.set_result(reason)
        return len(sleepers)

    async def sleep(self, duration_s: float) -> str | None:
        """Sleep for a time, and return the reason for an earlier end, if any."""
        sleeper: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            with suppress(TimeoutError):
                return await asyncio.wait_for(sleeper, duration_s)
            return None
        finally:
            self._sleepers.discard(sleeper)
