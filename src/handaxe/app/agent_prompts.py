"""What an agent of a session is told before anything else, looked up when it starts."""

import platform
import time

import msgspec

from handaxe.agent.prompt import Environment, MemoryText, PromptParts, system_prompt
from handaxe.app.session import Session
from handaxe.contract.ports.agents import AgentKind


class PromptOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a host may say about the system prompt."""

    replace: str | None = None
    append: str = ""
    style: str = ""
    memory: bool = True


class AgentPrompts:
    """The system prompt of one agent; its environment is looked up once."""

    def __init__(self, session: Session, model: str, options: PromptOptions) -> None:
        self._session = session
        self._model = model
        self._options = options
        self._environment: Environment | None = None
        self._memory: tuple[MemoryText, ...] = ()
        self._last: tuple[PromptParts, tuple[str, ...]] | None = None
        self.kinds: tuple[AgentKind, ...] = ()

    async def load(self) -> None:
        """Look at the machine and the project, once."""
        if self._environment is None:
            self._environment = environment_of(self._session, self._model)

    def system(self, tools: tuple[str, ...]) -> tuple[str, ...]:
        """The prompt for these tools; the very same value while nothing changes."""
        environment = self._environment or environment_of(self._session, self._model)
        parts = PromptParts(
            tools=tools,
            environment=environment,
            memory=self._memory,
            kinds=self.kinds,
            style=self._options.style,
            replace=self._options.replace,
            append=self._options.append,
        )
        if self._last is None or self._last[0] != parts:
            self._last = parts, system_prompt(parts)
        return self._last[1]


def environment_of(session: Session, model: str, *, git: str = "") -> Environment:
    """Where this session works, today."""
    return Environment(
        directory=session.workdir.current,
        more_directories=session.workdir.roots[1:],
        platform=f"{platform.system()} {platform.release()}",
        date=time.strftime("%Y-%m-%d"),
        git=git,
        model=model,
    )
