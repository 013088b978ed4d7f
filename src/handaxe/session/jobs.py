"""The background work of one session: what runs, how it ended, what the model must be told.

Every piece of work has exactly one `JobStarted` and one `JobEnded`; work that a dead process left
behind gets its end when the session is opened again. What ended is told to the model once, also
after a restart.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import msgspec

from handaxe.contract.events import JobEnded, JobSaid, JobStarted, JobsTold
from handaxe.contract.job_state import JobState
from handaxe.contract.ports.jobs import Job

if TYPE_CHECKING:
    from handaxe.contract.ports.agents import Agents, AgentState
    from handaxe.text.framing import Framed


MAX_RUNNING = 40
MAX_OF_USER = 200
MAX_LINES = 200
"""So many lines of one watched command wait for the model; older ones make way."""
HOST_ENDED = "was killed because handaxe ended"

Announce = Callable[[JobStarted | JobEnded | JobSaid | JobsTold], object]
AtEnd = Callable[[JobState], Awaitable[None]]
"""Sees to what work leaves behind, before anybody is told of its end."""


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
        """`elsewhere` says how much goes on in other sessions; a `max_running` of 0 allows nothing.

        `kept_agents` are those of earlier runs, for a session that starts none itself; `kept_work`
        gives what is kept of a command of an earlier run.
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
        self._untold: dict[str, str] = {}
        self._lines: dict[str, list[str]] = {}
        self._left_out: dict[str, int] = {}
        self._looked_at: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        self._owners: dict[str, str] = {}
        self._present: set[str] = set()
        self._viewer: str | None = None

    def share_with_agent(self, agent_id: str) -> Self:
        """The same work for a sub-agent: it is told of what it starts, as long as it is there."""
        # Most sessions have no sub-agent.
        import copy

        # Everything that changes is shared; only whose eyes these are is not.
        view = copy.copy(self)
        view._viewer = agent_id
        self._present.add(agent_id)
        return view

    async def leave(self, *, keeps: bool) -> None:
        """The sub-agent has ended; what it was not told is told to the session's own agent.

        With `keeps` its commands go on.
        """
        if not keeps:
            mine = [state.job_id for state in self.running() if self._is_mine(state)]
            await asyncio.gather(*(self._jobs[job_id].stop() for job_id in mine))
        self._present.discard(self._viewer or "")
        if self._untold or self._lines:
            self._news.set()

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
        """The work a call speaks of, with its state; a fault if there is none."""
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
        """Take over a running piece of work; its id."""
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
        """All work of this session, oldest first, as it stands now."""
        now = {job_id: job.state for job_id, job in self._jobs.items()}
        return [
            *(state for job_id, state in self._ended.items() if job_id not in now),
            *now.values(),
        ]

    def known(self) -> list[JobState]:
        """All work and all agents, also those of earlier runs and those somebody waits for."""
        from handaxe.contract.ports.agents import describe_worktree, to_job_state

        states = {state.job_id: state for state in self.listed()}
        for agent in self._list_agents():
            if agent.agent_id not in self._jobs:
                # What an agent had come to is only in what was kept of it.
                said = (agent.result, describe_worktree(agent).strip())
                states[agent.agent_id] = to_job_state(agent, "\n\n".join(filter(None, said)))
        return list(states.values())

    def running(self) -> list[JobState]:
        """The work that goes on."""
        states = (job.state for job_id, job in self._jobs.items() if job_id not in self._ended)
        return [state for state in states if state.status == "running"]

    def say(self, job_id: str, line: str) -> None:
        """A watched command printed a line that the model wants to know."""
        self._announce(JobSaid(job_id=job_id, line=line))
        lines = self._lines.setdefault(job_id, [])
        lines.append(line)
        if len(lines) > MAX_LINES:
            lines.pop(0)
            self._left_out[job_id] = self._left_out.get(job_id, 0) + 1
        self._news.set()

    def count_new_bytes(self, state: JobState) -> int:
        """How much work has said since somebody last looked; looking is noted."""
        before = self._looked_at.get(state.job_id, 0)
        self._looked_at[state.job_id] = state.output_bytes
        return max(0, state.output_bytes - before)

    async def mark_reported(self, job_id: str) -> None:
        """The model is about to see how this ended, so it need not be told.

        Whoever waited for the end may wake up before it was seen to; returns when it was.
        """
        job = self._jobs.get(job_id)
        if job is not None and job_id not in self._ended and job.state.status != "running":
            await asyncio.wait([self._ends[job_id]])
        if self._untold.pop(job_id, None) is not None:
            self._announce(JobsTold(job_ids=(job_id,)))

    async def news(self, timeout_s: float | None = None) -> bool:
        """Wait until there is something to tell; False if the time was up first."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def take_notices(self) -> tuple[str, ...]:
        """What the model has to be told, each thing once."""
        notices: list[str] = []
        for job_id in [
            job_id for job_id in self._lines if self._find_recipient(job_id) == self._viewer
        ]:
            notices.append(self._format_line_notice(job_id, self._lines.pop(job_id)))
            self._left_out.pop(job_id, None)
        ended = [job_id for job_id in self._untold if self._find_recipient(job_id) == self._viewer]
        notices += [self._untold.pop(job_id) for job_id in ended]
        if ended:
            self._announce(JobsTold(job_ids=tuple(ended)))
        if not self._lines and not self._untold:
            self._news.clear()
        return tuple(notices)

    def replay(self, event: JobStarted | JobEnded | JobsTold) -> None:
        """Take over what an earlier run of the session had announced."""
        match event:
            case JobStarted():
                self._lost[event.job.job_id] = event.job
            case JobEnded():
                self._lost.pop(event.job.job_id, None)
                self._ended[event.job.job_id] = event.job
                self._tell(event.job, event.summary)
            case JobsTold():
                for job_id in event.job_ids:
                    self._untold.pop(job_id, None)

    def close_lost(self) -> None:
        """Give work that an earlier run left without an end the end it had."""
        for state in tuple(self._lost.values()):
            killed = msgspec.structs.replace(
                state, status="killed", ended_by="host_ended", waiting_for_input=None
            )
            self._end(killed, f"{_describe_job(killed)} {HOST_ENDED}")
        self._lost.clear()

    def forget_lost(self) -> None:
        """Work without an end goes on in another process, which will tell it."""
        self._lost.clear()

    async def wait_for_commands(self, limit_s: float) -> None:
        """Let commands come to their end, if that is near."""
        states = self.running()
        ends = [self._ends[state.job_id] for state in states if state.kind != "agent"]
        if ends:
            await asyncio.wait(ends, timeout=limit_s)

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
        self._tell(state, summary)

    def _tell(self, state: JobState, summary: str) -> None:
        self._untold[state.job_id] = format_notice(
            state.job_id,
            output_file=state.output_path,
            status=state.status,
            summary=summary,
            result=state.result,
        )
        self._news.set()

    def _find_recipient(self, job_id: str) -> str | None:
        """The sub-agent that is told of work; None: the session's own agent."""
        owner = self._owners.get(job_id)
        return owner if owner in self._present else None

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

    def _format_line_notice(self, job_id: str, lines: list[str]) -> str:
        job = self._jobs.get(job_id)
        left_out = self._left_out.get(job_id, 0)
        more = [f"({left_out:,} earlier lines are only in the output file)"] if left_out else []
        named = f'"{job.state.description}"' if job is not None else job_id
        return format_notice(
            job_id,
            output_file=job.state.output_path if job is not None else "",
            summary=f"Monitor {named} saw:",
            event="\n".join([*more, *lines]),
        )


def format_notice(job_id: str, **fields: str) -> "Framed":
    """A message for the model; nothing inside can be taken for its frame."""
    from handaxe.text.framing import frame, frame_field

    named = {"task-id": job_id, **{name.replace("_", "-"): value for name, value in fields.items()}}
    inside = [frame_field(name, value) for name, value in named.items() if value]
    return frame("task-notification", *inside)


def summarize_job(state: JobState) -> str:
    """How work ended, in one sentence."""
    if state.exit_code is not None and state.status in {"completed", "failed"}:
        return f"{_describe_job(state)} {state.status} (exit code {state.exit_code})"
    if state.ended_by == "output_limit":
        return f"{_describe_job(state)} was ended because it printed more than may be kept"
    if state.ended_by == "own_output":
        return f"{_describe_job(state)} was ended because it printed its own output again and again"
    if state.ended_by == "time_up":
        return f"{_describe_job(state)} was ended because its time was up"
    if state.status == "killed":
        return f"{_describe_job(state)} was stopped"
    return f"{_describe_job(state)} {state.status}"


def _describe_job(state: JobState) -> str:
    kind = {"shell": "Background command", "monitor": "Monitor", "agent": "Agent"}[state.kind]
    return f'{kind} "{state.description or state.command or state.job_id}"'


class Wakeups:
    """Who sleeps, and what wakes them: input of a person, work that ended."""

    def __init__(self) -> None:
        self._sleepers: set[asyncio.Future[str]] = set()

    def wake(self, reason: str) -> int:
        """Wake everybody who sleeps now; how many there were."""
        sleepers = [sleeper for sleeper in self._sleepers if not sleeper.done()]
        for sleeper in sleepers:
            sleeper.set_result(reason)
        return len(sleepers)

    async def sleep(self, duration_s: float) -> str | None:
        """Sleep that long; the reason if something woke us before."""
        sleeper: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            with suppress(TimeoutError):
                return await asyncio.wait_for(sleeper, duration_s)
            return None
        finally:
            self._sleepers.discard(sleeper)
