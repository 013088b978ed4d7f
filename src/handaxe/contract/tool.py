"""The shape of a tool: facts as class attributes, behaviour as methods, safe defaults.

A subclass says what it does; whatever it leaves out is assumed at its worst (it changes
everything, for good, and has to be asked for).
"""

import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from string import ascii_letters, digits
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Decision, ToolDefinition
from handaxe.contract.display import Display
from handaxe.contract.effects import OWN_STATE, Effects
from handaxe.contract.permission_subjects import (
    Access,
    CommandSubject,
    HostSubject,
    PathSubject,
    Subject,
    TextSubject,
)
from handaxe.contract.result import ToolResult

if TYPE_CHECKING:
    from handaxe.contract.ports.conversation import SessionInfo

PATH_FIELDS = ("file_path", "notebook_path", "path")

_NAME_CHARS = frozenset(f"{ascii_letters}{digits}_-")
_MAX_NAME_CHARS = 64


class ToolArgs(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The input of a tool; a field's documentation is in `Annotated[type, "text"]`."""

    numbered: ClassVar[tuple[str, ...]] = ()
    """Parameters, by their names for models, that name numbered things: 7 is read as "7"."""


class State(msgspec.Struct, kw_only=True):
    """State of own tools in a session: a subclass with a default for every field.

    A tool declares it in `uses`, or as a parameter of its function. Changes by a call are
    saved with the session if the call succeeds, and reverted if it fails.
    """

    state_name: ClassVar[str] = OWN_STATE
    """The name of the state in `Effects.on_state`."""


Args = TypeVar("Args")


class Tool(Generic[Args]):
    """One thing a model can ask for.

    Name the input type once, as the generic parameter: `class Edit(Tool[EditArgs])`.
    """

    name: ClassVar[str]
    """The name for models, rules and logs. By default the name of the class."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names by which it can be called."""
    search_hint: ClassVar[str] = ""
    """Three to ten words by which a deferred tool is found."""
    input_examples: ClassVar[tuple[dict[str, Any], ...]] = ()
    """Inputs for the model to see; `problems_of` calls the tool with each."""
    prompt_file: ClassVar[str | None] = None
    """A Markdown file beside the module that holds the prompt; without one it is the docstring."""
    output_type: ClassVar[Any] = None
    """The type of `ToolResult.data`, or an `OutputShape` where only a schema is known."""
    output_check: ClassVar[Literal["", "open", "closed"]] = ""
    """How `data` is compared with `output_type`; "closed" refuses undeclared fields."""

    args_type: ClassVar[Any]
    """The type of the input, or an `InputShape` where only a schema is known."""
    uses: ClassVar[tuple[type[Any], ...]] = ()
    """Ports and state the tool cannot do without; it is on offer only where all are there."""
    may_use: ClassVar[tuple[type[Any], ...]] = ()
    """Ports and state that it uses where the session has them."""
    reach: ClassVar[frozenset[type[Any]]] = frozenset()
    """All that a call's context hands out; derived from `uses` and `may_use`."""

    states: ClassVar[tuple[type[State], ...]] = ()
    """The state of own tools among it."""
    has_display_name: ClassVar[bool] = False
    """Whether people see another name; derived from `user_facing_name`."""
    has_session_prompt: ClassVar[bool] = False
    """Whether the prompt depends on the session; derived from `prompt_for`."""
    follows_names: ClassVar[bool] = False
    """Whether the targets of a call are known only after permission; derived from `follow`."""
    has_own_ports: ClassVar[bool] = False
    """Whether some of it is made for each call: state, the conversation."""

    effects: ClassVar[Effects] = Effects.unknown()
    """The reads and writes of every call, unless `effects_of` depends on the input."""
    max_result_chars: ClassVar[float] = 50_000
    """Longer results go to the result store; `inf` if the tool bounds itself."""
    timeout_s: ClassVar[float | None] = None
    """After how long a call is cancelled; None: never."""
    interrupt: ClassVar[Literal["cancel", "block"]] = "block"
    """Whether new input from the user stops a running call. An explicit cancel always does."""
    asks_person: ClassVar[bool] = False
    """Whether it is there to ask a person; a hook's yes counts only with the answer."""
    tells_observers: ClassVar[bool] = False
    """Whether hooks and permission questions see more than the input: `for_observers`."""
    replaces_builtin: ClassVar[bool] = False
    """Whether an own tool replaces the built-in one of its name, which wins otherwise."""
    definition: ClassVar[ToolDefinition | None] = None
    """The definition that a lasting approval of a server's tool is bound to, else None."""
    strict: ClassVar[bool] = False
    """Whether providers that can are asked to hold the model to the schema."""
    defer: ClassVar[bool | None] = None
    """Send only the name until the tool is searched for; None leaves that to the host."""
    always_load: ClassVar[bool] = False
    """Whether the schema is sent from the start, however many tools there are."""

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 - passed through unseen
        """Fill what can be derived: the name from the class, the input type from the generic."""
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        _check_facts(cls.__dict__, cls.__name__)
        _check_methods(cls.__dict__, cls.__name__)
        if "aliases" in cls.__dict__ and len({cls.name, *cls.aliases}) <= len(cls.aliases):
            raise ValueError(f"{cls.__name__}: `aliases` has a name twice, or the tool's own name.")
        for spelling in (cls.name, *cls.aliases):
            if not 0 < len(spelling) <= _MAX_NAME_CHARS or not _NAME_CHARS.issuperset(spelling):
                raise ValueError(f"{spelling!r} is not a tool name: 1-64 letters, digits, _ or -.")
        cls.reach = frozenset((*cls.uses, *cls.may_use))
        cls.states = tuple(filter(_is_state, (*cls.uses, *cls.may_use)))
        cls.has_own_ports = bool(cls.states) or any(map(is_of_call, cls.reach))
        cls.has_display_name = is_overridden(cls, "user_facing_name")
        cls.follows_names = is_overridden(cls, "follow")
        cls.has_session_prompt = is_overridden(cls, "prompt_for")
        cls.tells_observers = is_overridden(cls, "for_observers")
        if "output_type" in cls.__dict__ and not cls.__module__.startswith("handaxe."):
            # What others promise is compared with what they give; tests do that for our own.
            cls.output_check = "" if cls.output_type is None else "open"
        if "args_type" in cls.__dict__:
            return
        for base in cls.__dict__.get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, Tool):
                cls.args_type = get_args(base)[0]

    def enabled(self) -> bool:
        """Whether this machine can offer the tool at all."""
        return True

    def prompt(self) -> str:
        """The prompt for the model: the text of `prompt_file`, or else the docstring."""
        return _read_prompt(type(self))

    def prompt_for(self, session: "SessionInfo") -> str:  # noqa: ARG002 - the default is the same
        """The prompt where it depends on the session: asked once, so that it stays the same."""
        return self.prompt()

    def user_facing_name(self, args: Args | None = None) -> str:  # noqa: ARG002
        """The name that users see. The input may not be known yet."""
        return self.name

    def effects_of(self, args: Args) -> Effects:  # noqa: ARG002 - the default looks at no input
        """The reads and writes of this call."""
        return self.effects

    def subjects(self, args: Args) -> tuple[Subject, ...]:
        """The subjects of permission rules: by default every path field, else the whole input."""
        access: Access | None = None
        subjects: list[Subject] = []
        for name in _find_path_fields(type(args)):
            path: Any = getattr(args, name, None)
            if hasattr(path, "__fspath__"):
                path = path.__fspath__()
            if isinstance(path, str):
                access = access or ("read" if self.effects_of(args).is_read_only else "write")
                subjects.append(PathSubject(path, access, name))
        return tuple(subjects) or (TextSubject(_to_text(args)),)

    def starts_in(self, args: Args) -> str | None:  # noqa: ARG002
        """The directory that the call names to run in; None: where the session stands."""
        return None

    async def situate(
        self,
        args: Args,  # noqa: ARG002
        ctx: ToolContext,  # noqa: ARG002
    ) -> tuple[Effects, tuple[Subject, ...]] | None:
        """Effects and subjects that only the session's state knows; None if the input says all.

        Asked when no earlier call that could matter is still running.
        """
        return None

    async def validate(self, args: Args, ctx: ToolContext) -> None:
        """Raise a fault if the call cannot work; cheap, and before any question."""

    async def for_observers(
        self,
        args: Args,  # noqa: ARG002
        ctx: ToolContext,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Facts for observers besides the input, computed once the call is known to work."""
        return {}

    async def decide(self, args: Args, ctx: ToolContext) -> Decision | None:  # noqa: ARG002
        """The tool's own word on permission; None leaves it to the rules."""
        return None

    async def follow(self, args: Args, ctx: ToolContext) -> tuple[Subject, ...]:  # noqa: ARG002
        """The targets of the call's names, resolved once the call may run, and checked too."""
        return ()

    async def preview(self, args: Args, ctx: ToolContext) -> Display | None:  # noqa: ARG002
        """The changes that the call would make, for the permission question."""
        return None

    async def call(self, args: Args, ctx: ToolContext) -> ToolResult:
        """Do the work."""
        raise NotImplementedError

    async def recheck(self, args: Args, ctx: ToolContext, result: ToolResult) -> ToolResult:  # noqa: ARG002
        """Take in what after-hooks changed behind the tool's back."""
        return result

    def classifier_text(self, args: Args) -> str:
        """The description of the call for a classifier in `auto` mode, besides its changes."""
        return " ".join((self.name, *map(_format_subject, self.subjects(args))))

    def title(self, partial_input: dict[str, Any]) -> str:
        """One line for the call, also while its input still streams in."""
        name = get_display_name(self) or self.name
        for value in partial_input.values():
            return f"{name}({value})"
        return name

    def show(self, args: Args, result: ToolResult) -> Display | None:  # noqa: ARG002
        """The display of the result for users, or None to show its text."""
        return result.display

    def summary(self, args: Args, result: ToolResult) -> str:  # noqa: ARG002
        """The result in one line, for condensed views."""
        first, _, rest = result.text.partition("\n")
        return f"{first} ..." if rest else first


def _format_subject(subject: Subject) -> str:
    if isinstance(subject, PathSubject):
        return subject.path
    if isinstance(subject, CommandSubject):
        return subject.command
    return subject.host if isinstance(subject, HostSubject) else subject.text


@lru_cache(maxsize=1024)
def _find_path_fields(args_type: type[Any]) -> tuple[str, ...]:
    """The path fields that an input of this type can have; of a type that does not say, all."""
    if not issubclass(args_type, msgspec.Struct):
        return PATH_FIELDS
    return tuple(name for name in PATH_FIELDS if hasattr(args_type, name))


_FACTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda name: isinstance(name, str), "a text"),
    "aliases": (lambda names: _is_listed(names, str), "a tuple of names"),
    "uses": (lambda ports: _is_listed(ports, type), "a tuple of types"),
    "may_use": (lambda ports: _is_listed(ports, type), "a tuple of types"),
    "search_hint": (lambda hint: isinstance(hint, str), "a text"),
    "prompt_file": (lambda name: name is None or isinstance(name, str), "the name of a file"),
    "input_examples": (lambda inputs: _is_listed(inputs, dict), "a tuple of inputs"),
    "defer": (lambda defer: defer is None or isinstance(defer, bool), "None, True or False"),
    "always_load": (lambda always: isinstance(always, bool), "True or False"),
    "strict": (lambda strict: isinstance(strict, bool), "True or False"),
    "replaces_builtin": (lambda replaces: isinstance(replaces, bool), "True or False"),
    "effects": (lambda effects: isinstance(effects, Effects), "an Effects"),
    "timeout_s": (lambda s: s is None or (_is_number(s) and s > 0), "None or a time above zero"),
    "max_result_chars": (lambda chars: _is_number(chars) and chars >= 0, "a number of characters"),
    "interrupt": (lambda word: word in ("cancel", "block"), '"cancel" or "block"'),
}


def _check_facts(given: Mapping[str, Any], tool: str) -> None:
    """Fail where the tool is written, not where a model first calls it."""
    for name, (fits, wanted) in _FACTS.items():
        value = given.get(name, given)
        if value is not given and not isinstance(value, property) and not fits(value):
            raise TypeError(f"{tool}: `{name}` is {wanted}, not {value!r}.")


def get_display_name(tool: Tool[Args], args: Args | None = None) -> str | None:
    """The name that users see for a tool, or None if it is the tool's name."""
    if not tool.has_display_name:
        return None
    try:
        shown = cast("object", tool.user_facing_name(args))
    except (Exception, SystemExit):  # noqa: BLE001 - a name that fails is no reason to fail
        return None
    return shown if isinstance(shown, str) and shown.strip() and shown != tool.name else None


def is_overridden(kind: type[Any], method: str) -> bool:
    """Whether a class of tools has its own version of a method."""
    return getattr(kind, method) is not getattr(Tool, method)


def is_of_call(port: object) -> bool:
    """Whether every call gets an object of its own of this type."""
    return getattr(port, "is_of_call", False) is True


def _is_state(port: type[Any]) -> bool:
    """Whether a tool asks for state of its own; a `TypeError` if it cannot be kept."""
    if port.__class__ is not type(State) or not issubclass(port, State):
        return False
    try:
        msgspec.json.schema(port)
        port()
    except TypeError as error:
        raise TypeError(f"The state {port.__name__} cannot be kept: {error}.") from None
    if port.__struct_config__.frozen:
        raise TypeError(f"The state {port.__name__} is frozen, so that no call could change it.")
    return True


_COROUTINE = 0x80
"""The flag of an `async def` that yields nothing, as `inspect` has it."""
_ASYNC_METHODS = (
    "situate", "validate", "for_observers", "decide", "preview", "call", "recheck",
)  # fmt: skip


def _check_methods(given: Mapping[str, Any], tool: str) -> None:
    """Fail where the tool is written, not where it is first called."""
    for name in _ASYNC_METHODS:
        code = getattr(given.get(name), "__code__", None)
        # What wraps an async function may give what that gives.
        is_wrapper = hasattr(given.get(name), "__wrapped__")
        if code is not None and not code.co_flags & _COROUTINE and not is_wrapper:
            raise TypeError(f"{tool}: `{name}` is not an async function. Write `async def {name}`.")


def _is_listed(values: Any, kind: type[Any]) -> bool:  # noqa: ANN401 - any fact
    return isinstance(values, tuple | list) and all(
        isinstance(value, kind) for value in cast("tuple[object, ...]", values)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _to_text(args: object) -> str:
    return _encoder.encode(args).decode()


def _encode_foreign(value: object) -> object:
    from handaxe.contract.json_values import to_json_or_text

    return to_json_or_text(value)


_encoder = msgspec.json.Encoder(enc_hook=_encode_foreign)


def _read_prompt(tool_type: type[Tool[Any]]) -> str:
    if tool_type.prompt_file is not None:
        owner = next(kind for kind in tool_type.__mro__ if "prompt_file" in kind.__dict__)
        source = Path(getattr(sys.modules.get(owner.__module__), "__file__", None) or "")
        text = source.with_name(tool_type.prompt_file).read_text(encoding="utf-8")
        return _fill(text, tool_type).strip()
    # A file of somebody else that happens to have a tool's name is no prompt.
    is_builtin = tool_type.__module__.startswith("handaxe.tools.")
    file = getattr(sys.modules.get(tool_type.__module__), "__file__", None)
    if not file or not is_builtin:
        return (tool_type.__doc__ or "").strip()
    source = Path(file)
    beside = source.with_name("prompt.md" if source.stem == "__init__" else f"{source.stem}.md")
    try:
        return _fill(beside.read_text(encoding="utf-8"), tool_type).strip()
    except OSError:
        return (tool_type.__doc__ or "").strip()


def _fill(text: str, tool_type: type[Tool[Any]]) -> str:
    def value_of(match: re.Match[str]) -> str:
        value = getattr(tool_type, match[1])
        return f"{value:,}" if isinstance(value, int) else str(value)

    return re.sub(r"\$([a-z][a-z_]*)", value_of, text)
