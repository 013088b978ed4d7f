"""The context of one running call: the ports and state that its tool declared."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from handaxe.contract.result import ToolResult

if TYPE_CHECKING:
    from handaxe.contract.ports.conversation import ModelQuestion

P = TypeVar("P")
Filled = TypeVar("Filled")

_NOTHING: Mapping[type[Any], Any] = {}
_OUT_OF_REACH: frozenset[type[Any]] = frozenset()
_MAX_PROGRESS_CHARS = 500
CallInside = Callable[[str, str, dict[str, Any] | None, dict[str, Any]], Awaitable[ToolResult]]
"""Makes a call inside the one of an id: its tool, its input, its input as keyword arguments."""


class CallHost(Protocol):
    """The methods of a session for the tool of a running call, or None without a session."""

    call_inside: CallInside | None
    ask_model: "Callable[[str, ModelQuestion], Awaitable[str]] | None"
    """Asks a model for the call of an id."""
    elicit: Callable[[str, str, Any], Awaitable[Any]] | None
    """Puts a form to a person for the call of an id: the message, the form."""


class UndeclaredReachError(Exception):
    """A tool asked for a port or a piece of state that it does not list in `uses`."""


class CallOverError(Exception):
    """A tool reached for a port or a piece of state after its call had ended."""


def _ignore_report(_text: str, _data: object = None) -> None:
    """The report of a finished call: dropped."""


class ToolContext:
    """Handed to a tool with every call.

    `ctx[Files]` gives the port or state object of that type. Only what the tool lists in
    `uses` (always there) or `may_use` (there if the host offers it) can be had.
    """

    __slots__ = (
        "_allowed",
        "_host",
        "_own",
        "_ports",
        "_report",
        "call_id",
        "cwd",
        "is_closed",
    )  # fmt: skip

    def __init__(
        self,
        call_id: str,
        ports: Mapping[type[Any], Any],
        allowed: frozenset[type[Any]],
        report: Callable[..., object],
        cwd: str = "/",
        own: Mapping[type[Any], Any] = _NOTHING,
        host: CallHost | None = None,
    ) -> None:
        """`own` is made for this call and comes before the ports of the session.

        `report` takes a text and, from `progress`, data.
        """
        self._host = host
        self.call_id = call_id
        """The id of the call."""
        self.cwd = cwd
        """The current directory when the call was decided; a command has to run there."""
        self._ports = ports
        self._own = own
        self._allowed = allowed
        self._report = report
        self.is_closed = False

    def __getitem__(self, port: type[P]) -> P:
        if port not in self._allowed:
            raise self._refusal(port, "uses")
        own = self._own
        return own[port] if port in own else self._ports[port]

    def find(self, port: type[P]) -> P | None:
        """A port the tool may use, or None where the host does not offer it."""
        if port not in self._allowed:
            raise self._refusal(port, "may_use")
        own = self._own
        return own[port] if port in own else self._ports.get(port)

    async def call(
        self,
        tool: str,
        input: dict[str, Any] | None = None,
        /,
        **arguments: Any,  # noqa: ANN401 - the tool's own types
    ) -> ToolResult:
        """Make a call inside this one. Pass its input as keyword arguments or as one dict.

        It has its own permission and its own result, and runs while this one waits for it.
        """
        host = self._get_host()
        if host is None or host.call_inside is None:
            raise RuntimeError("Calls can be made in a session only.")
        return await host.call_inside(self.call_id, tool, input, arguments)

    async def ask_model(
        self, prompt: str, *, system: str = "", model: str | None = None, max_tokens: int = 2_000
    ) -> str:
        """Ask the session's model one question, without the conversation, and return its text.

        `model` names another one, as `--model` takes it; `small` is the vendor's small one. What
        it costs counts for the run.

        Raises:
            ToolFault: `model.none`, `model.failed`, `model.budget`.
        """
        host = self._get_host()
        if host is None or host.ask_model is None:
            raise RuntimeError("A model can be asked in a session only.")
        from handaxe.contract.ports.conversation import ModelQuestion

        question = ModelQuestion(prompt=prompt, system=system, model=model, max_tokens=max_tokens)
        return await host.ask_model(self.call_id, question)

    @overload
    async def elicit(self, message: str, form: type[Filled]) -> Filled: ...
    @overload
    async def elicit(self, message: str, form: dict[str, Any]) -> dict[str, Any]: ...
    async def elicit(self, message: str, form: Any) -> Any:
        """Ask the user to fill in a form and return the values.

        `form` is a class with simple fields (`str`, `int`, `float`, `bool`, `Literal`, `Enum`), or
        the JSON Schema of such an object.

        Raises:
            ToolFault: `elicitation.unavailable`, `elicitation.declined`, `elicitation.bad_answer`.
        """
        host = self._get_host()
        if host is None or host.elicit is None:
            raise RuntimeError("A person can be asked in a session only.")
        return await host.elicit(self.call_id, message, form)

    def report(self, text: str) -> None:
        """Report the progress of the call."""
        self._report(text)

    def progress(self, value: object, text: str = "") -> None:
        """Report the progress of the call as data: a struct, a data class, a dict.

        Listeners get it as JSON in `CallProgress.data`; `text` is what people see of it.
        """
        from handaxe.contract.json_values import to_json_copy

        data = to_json_copy(value)
        self._report(text or _describe_progress(data), data)

    def _get_host(self) -> CallHost | None:
        if self.is_closed:
            raise CallOverError(f"The call {self.call_id} is over: nothing can be done in it.")
        return self._host

    def mute(self) -> None:
        """The call has its result: what is reported from now on would come after its end."""
        self._report = _ignore_report

    def close(self) -> None:
        """Refuse all access: the call is over, and only its background work continues."""
        self.is_closed = True
        self._allowed = _OUT_OF_REACH
        self._report = _ignore_report

    def _refusal(self, port: type[Any], fact: str) -> Exception:
        if self.is_closed:
            return CallOverError(
                f"The call {self.call_id} is over: {port.__name__} is out of reach."
            )
        return UndeclaredReachError(f"{port.__name__} is not in this tool's `{fact}`.")


def _describe_progress(data: Any) -> str:  # noqa: ANN401 - any JSON value
    """Data in a few words: its message if it has one, otherwise its fields."""
    if not isinstance(data, dict):
        return str(data)
    fields = cast("dict[str, Any]", data)
    for name in ("message", "text"):
        if isinstance(fields.get(name), str):
            return fields[name]
    told = (f"{name}: {value}" for name, value in fields.items() if value is not None)
    return ", ".join(told)[:_MAX_PROGRESS_CHARS]
