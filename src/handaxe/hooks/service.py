"""The hooks of a session, for the code that sends events.

Most sessions have none; the implementation is loaded with the first hook.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handaxe.contract.events import HookRan
from handaxe.contract.faults import SetupError
from handaxe.hooks.outcome import NOTHING, Outcome
from handaxe.text.secrets import ENCODED_COPIES

if TYPE_CHECKING:
    from handaxe.contract.ports.hooks import HookModels, HookPrograms
    from handaxe.contract.ports.mcp_servers import McpServers
    from handaxe.hooks.config import HookConfig
    from handaxe.hooks.dispatcher import Covers, HookDispatcher
    from handaxe.hooks.external import HookPolicy


class Hooks:
    """All hooks of one session, shared by its agents."""

    def __init__(
        self,
        hooks: Mapping[str, Sequence[object]] | None = None,
        *,
        programs: "HookPrograms | None" = None,
        policy: "HookPolicy | None" = None,
        emit: Callable[[HookRan], object] | None = None,
        keep: Callable[[str], str] | None = None,
    ) -> None:
        self._emit = emit
        self._keep = keep
        self._rounds: HookDispatcher | None = None
        self._events: frozenset[str] = frozenset()
        self.servers: McpServers | None = None
        """The servers whose tools hooks may call."""
        self.models: HookModels | None = None
        """Answers hooks that ask a model."""
        self.variables: dict[str, str] = {}
        """Variables that hooks set for later commands."""
        self._is_within = False
        self.late: list[str] = []
        """Messages of background hooks to the model, not yet delivered."""
        self.wake: Callable[[], None] = lambda: None
        """Wakes an idle agent for a late message."""
        self.watch_before = self.watch_after = False
        if hooks is not None:
            self.configure(_read(hooks), policy, programs)

    def configure(
        self,
        book: "HookConfig",
        policy: "HookPolicy | None" = None,
        programs: "HookPrograms | None" = None,
    ) -> None:
        """Replace the configured hooks."""
        from handaxe.hooks.dispatcher import HookDispatcher
        from handaxe.hooks.external import HookPolicy

        if self._rounds is None:
            self._rounds = HookDispatcher(
                servers=lambda: self.servers,
                models=lambda: self.models,
                say_late=self._say_late,
                wake=self._wake_up,
                emit=self._emit,
                keep=self._keep,
                variables=self.variables,
            )
        self._rounds.configure(book, policy or HookPolicy(), programs)
        self._events = events = self._rounds.events
        self.watch_before = "PreToolUse" in events
        self.watch_after = "PostToolUse" in events or "PostToolUseFailure" in events

    def resume(self, ran: Iterable[HookRan]) -> None:
        """Restore which once-only hooks ran in an earlier run of the session."""
        if self._rounds is not None:
            self._rounds.resume(ran)

    def watches(self, event: str) -> bool:
        """Whether the event has hooks."""
        return event in self._events

    def take_late(self) -> tuple[str, ...]:
        """Return late messages once."""
        if not self.late:
            return ()
        said, self.late = tuple(self.late), []
        return said

    async def fire(
        self,
        event: dict[str, Any],
        *,
        aliases: tuple[str, ...] = (),
        covers: "Covers | None" = None,
        call_id: str | None = None,
    ) -> Outcome:
        """The merged outcome of all hooks for an event; a failing hook stops no other."""
        if self._rounds is None:
            return NOTHING
        return await self._rounds.fire(
            event,
            aliases=aliases,
            covers=covers,
            call_id=call_id,
            within_a_hook=self._is_within,
        )

    def tell(self, event: dict[str, Any]) -> None:
        """Send an event to hooks without waiting."""
        if self._rounds is not None:
            self._rounds.tell(event)

    async def get_command_variables(self) -> dict[str, str]:
        """Variables for the next command; waits briefly for running programs."""
        if self._rounds is not None:
            await self._rounds.wait_for_variables()
        return {name: value for name, value in self.variables.items() if name not in ENCODED_COPIES}

    def make_nested(self) -> "Hooks":
        """The same hooks for an agent that answers a hook.

        They guard its calls, but its work sends no other events and asks no agents, so it cannot
        wait for itself.
        """
        from handaxe.hooks.event_types import TOOL_EVENTS

        view = Hooks()
        view._rounds, view._is_within = self._rounds, True
        view._events = self._events & TOOL_EVENTS
        view.variables = self.variables
        view.watch_before, view.watch_after = self.watch_before, self.watch_after
        return view

    async def close(self) -> None:
        """End running hooks, after a short wait for background ones."""
        if self._rounds is not None:
            await self._rounds.close()

    def _wake_up(self) -> None:
        self.wake()

    def _say_late(self, said: tuple[str, ...]) -> None:
        self.late += said


def _read(hooks: Mapping[str, Sequence[object]]) -> "HookConfig":
    from handaxe.hooks.config import ARGUMENTS, read_hooks

    book = read_hooks(hooks, source=ARGUMENTS)
    if book.problems:
        listed = "\n".join(f"  {problem}" for problem in book.problems)
        raise SetupError(f"The hooks are invalid:\n{listed}")
    return book
