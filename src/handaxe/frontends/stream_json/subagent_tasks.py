"""Subagents as tasks of the stream: started, running, ended."""

import time
from collections.abc import Callable

import msgspec

from handaxe.agent.events import FromAgent
from handaxe.contract.events import AgentEnded, AgentStarted
from handaxe.contract.job_state import JobState
from handaxe.contract.messages import TokenUsage
from handaxe.frontends.stream_json.wire_types import Json

_STATUS = {"completed": "completed", "failed": "failed", "killed": "stopped"}


class _Task(msgspec.Struct):
    description: str
    call_id: str | None
    started_at: float
    tool_uses: int = 0
    tokens: int = 0

    def usage(self) -> Json:
        took_ms = round((time.monotonic() - self.started_at) * 1000)
        return {
            "total_tokens": self.tokens,
            "tool_uses": self.tool_uses,
            "duration_ms": took_ms,
        }


class SubagentTasks:
    """The usage of each subagent so far."""

    def __init__(self, output_of: Callable[[str], str]) -> None:
        self._output_of = output_of
        self._tasks: dict[str, _Task] = {}
        self._live: dict[str, Json] = {}

    def update_live(self, job: JobState) -> list[Json]:
        """The running background work, after a start or an end."""
        self._live.pop(job.job_id, None)
        if job.status == "running":
            self._live[job.job_id] = {
                "task_id": job.job_id,
                "task_type": "local_agent" if job.kind == "agent" else "local_bash",
                "description": job.description or job.command or job.job_id,
            }
        return list(self._live.values())

    def started(self, event: AgentStarted) -> Json:
        """The fields of a started subagent."""
        self._tasks[event.agent_id] = _Task(event.description, event.call_id, time.monotonic())
        return {
            "task_id": event.agent_id,
            "description": event.description,
            "task_type": "local_agent",
            "tool_use_id": event.call_id,
            "is_backgrounded": event.in_background,
            "subagent_type": event.agent_type,
        }

    def record_call(self, event: FromAgent, tool: str) -> Json:
        """The fields of a new call of a subagent."""
        task = self._task(event)
        task.tool_uses += 1
        return {
            "task_id": event.agent_id,
            "description": task.description,
            "tool_use_id": event.call_id,
            "last_tool_name": tool,
            "usage": task.usage(),
        }

    def record_usage(self, event: FromAgent, usage: TokenUsage) -> None:
        """Count an answer of a subagent's model."""
        self._task(event).tokens += usage.input_tokens + usage.output_tokens

    def ended(self, event: AgentEnded) -> Json:
        """The fields of an ended subagent."""
        task = self._tasks.pop(event.agent_id, None)
        return {
            "task_id": event.agent_id,
            "status": _STATUS[event.status],
            "summary": event.summary or (task.description if task else ""),
            "output_file": self._output_of(event.agent_id),
            "tool_use_id": task.call_id if task else None,
            "usage": task.usage() if task else None,
        }

    def _task(self, event: FromAgent) -> _Task:
        fresh = _Task(event.agent_type, event.call_id, time.monotonic())
        return self._tasks.setdefault(event.agent_id, fresh)


def build_task_started(job: JobState) -> Json:
    """The fields of a started background command."""
    return {
        "task_id": job.job_id,
        "description": job.description or job.command or job.job_id,
        "task_type": "local_bash",
        "tool_use_id": job.call_id or None,
        "is_backgrounded": True,
    }


def build_task_ended(job: JobState, summary: str) -> Json:
    """The fields of an ended background command."""
    return {
        "task_id": job.job_id,
        "status": _STATUS.get(job.status, "completed"),
        "summary": summary,
        "output_file": job.output_path,
        "tool_use_id": job.call_id or None,
    }
