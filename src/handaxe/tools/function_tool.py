"""Turn a typed async function into a tool with one decorator.

The signature becomes the input type, `Annotated` texts its documentation, the docstring the prompt.
Schema, coercion, permission, hooks and events work as for a tool class, because the decorator
builds one.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import (
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec

from handaxe.contract import Effects, State, Tool, ToolArgs, ToolContext, ToolResult
from handaxe.contract.json_values import to_json_value
from handaxe.contract.tool import is_of_call
from handaxe.schema.tool_schema import from_annotations
from handaxe.text.sanitize import escape_surrogates, scrub

P = ParamSpec("P")
R = TypeVar("R")
EffectsOf = Effects | Callable[[Any], Effects]


class FunctionTool(Tool[Any], Generic[P, R]):
    """A tool made from a function; still callable like the function."""

    name = "FunctionTool"
    function: Callable[..., Awaitable[Any]]
    context_names: tuple[str, ...]
    ports_by_name: dict[str, type[Any]]
    """Parameters that the session provides, with their types."""
    effects_from: Callable[[Any], Effects] | None

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly, without checks; for tests."""
        return cast("R", await self.function(*args, **kwargs))

    def prompt(self) -> str:
        """The text of `prompt_file`, or the function's docstring."""
        if self.prompt_file is not None:
            return super().prompt()
        return inspect.cleandoc(type(self).__doc__ or "") or self.name.replace("_", " ")

    def effects_of(self, args: Any) -> Effects:  # noqa: ANN401 - built from the signature
        """The declared effects, or the result of the declared function for this input."""
        return self.effects_from(args) if self.effects_from else self.effects

    async def call(self, args: Any, ctx: ToolContext) -> ToolResult:  # noqa: ANN401
        """Run the function with its parameters, and with the context if it takes one."""
        values = {name: getattr(args, name) for name in args.__struct_fields__}
        values |= dict.fromkeys(self.context_names, ctx)
        for name, port in self.ports_by_name.items():
            values[name] = ctx.find(port)
        return _to_result(await self.function(**values), is_typed=self.output_type is not None)


@overload
def tool(function: Callable[P, Awaitable[R]], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    effects: EffectsOf = ...,
    search_hint: str | None = None,
    uses: tuple[type[Any], ...] = (),
    may_use: tuple[type[Any], ...] = (),
    **facts: Any,  # noqa: ANN401 - any other fact of `Tool`
) -> Callable[[Callable[P, Awaitable[R]]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    effects: EffectsOf | None = None,
    **facts: Any,
) -> Any:
    """Make a tool from a typed async function: `@tool`, or `@tool(effects=Effects.none())`.

    A parameter annotated with `ToolContext`, with a type in `uses` or `may_use`, or with a `State`
    receives that object and is not part of the input. The function returns a result, its text, or
    any JSON-able data. Without `effects`, the tool is assumed to change everything. Other options
    set the attributes of `Tool` with the same names.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        given = getattr(function, "__name__", "") if name is None else name
        return _build_tool(function, given, effects, facts)

    return decorate if function is None else decorate(function)


def _build_tool(
    function: Callable[..., Any], name: str, effects: EffectsOf | None, facts: dict[str, Any]
) -> FunctionTool[..., Any]:
    unknown = sorted(fact for fact in facts if not hasattr(Tool, fact))
    if unknown:
        raise TypeError(f"@tool has no option {unknown[0]!r}. Use an attribute of handaxe.Tool.")
    if not (effects is None or isinstance(effects, Effects) or callable(effects)):
        raise TypeError(
            f"@tool: `effects` must be an Effects or a function of the input: {effects!r}."
        )
    if effects is Effects or getattr(effects, "__self__", None) is Effects:
        raise TypeError(
            "@tool: `effects` must be an Effects or a function of the input, not "
            f"{effects!r}. Call it, as in `effects=Effects.unknown()`."
        )
    hints = _read_type_hints(function)
    contexts = tuple(param for param, hint in hints.items() if _is_context(hint))
    declared = (*_read_types("uses", facts), *_read_types("may_use", facts))
    ports = _find_ports(hints, declared)
    states = (port for port in ports.values() if port not in declared)
    facts["uses"] = (*_read_types("uses", facts), *dict.fromkeys(states))
    facts.setdefault("search_hint", _extract_search_hint(function.__doc__ or ""))
    returned = hints.pop("return", None)
    if returned not in _UNTYPED_RETURNS and _has_schema(returned):
        facts.setdefault("output_type", returned)
    members: dict[str, Any] = {
        **facts,
        **{part: _make_method(part, facts[part], name) for part in _METHODS if part in facts},
        "name": name,
        "function": staticmethod(function),
        "context_names": contexts,
        "ports_by_name": ports,
        "effects": effects if isinstance(effects, Effects) else Effects.unknown(),
        "effects_from": staticmethod(effects) if callable(effects) else None,
        "__doc__": escape_surrogates(function.__doc__) if function.__doc__ else None,
        "__module__": function.__module__,
    }
    made = type(_make_class_name(function), (FunctionTool,), members)
    # Last, because the class derives one from its generic parameter while it is being made.
    made.args_type = _build_args_type(function, hints, (*contexts, *ports))
    return made()


_ASYNC = ("validate", "decide", "preview", "recheck")
_METHODS = (
    *_ASYNC, "title", "summary", "show", "subjects", "user_facing_name", "prompt_for",
    "classifier_text",
)  # fmt: skip
"""Methods of a tool that the decorator takes as functions without `self`."""


def _make_method(part: str, given: Any, name: str) -> Any:  # noqa: ANN401 - any value
    if part == "user_facing_name":
        return staticmethod(_make_name(given, name))
    if not callable(given):
        raise TypeError(f"@tool: `{part}` must be a function, not {given!r:.100}.")
    if part in _ASYNC and not inspect.iscoroutinefunction(given):
        raise TypeError(f"@tool: `{part}` must be an async function. Write `async def`.")
    return staticmethod(given)


def _make_name(given: Any, name: str) -> Callable[..., Any]:  # noqa: ANN401 - any value
    def show_name(args: Any = None) -> Any:  # noqa: ANN401 - built from the signature
        if isinstance(given, str):
            return given
        return name if args is None else given(args)

    if not isinstance(given, str) and not callable(given):
        raise TypeError(
            f"@tool: `user_facing_name` must be a text or a function, not {given!r:.100}."
        )
    return show_name


def _has_schema(returned: Any) -> bool:  # noqa: ANN401 - any annotation
    """Whether a return type has a JSON Schema.

    A `ToolResult` has none, because its data can be anything.
    """
    if ToolResult in get_args(returned):
        return False
    from handaxe.schema.tool_schema import build_output_schema

    try:
        build_output_schema(returned)
    except (TypeError, ValueError, NameError):
        return False
    return True


def _read_types(fact: str, facts: dict[str, Any]) -> tuple[type[Any], ...]:
    types: object = facts.get(fact, ())
    if not isinstance(types, tuple | list):
        raise TypeError(f"@tool: `{fact}` must be a tuple of types, not {types!r:.100}.")
    return tuple(cast("Iterable[type[Any]]", types))


def _find_ports(hints: dict[str, Any], declared: tuple[Any, ...]) -> dict[str, type[Any]]:
    """The parameters that the session provides instead of the input."""
    found: dict[str, type[Any]] = {}
    for name, hint in hints.items():
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        for kind in (plain, *get_args(plain)):
            is_handed = is_of_call(kind) or (isinstance(kind, type) and issubclass(kind, State))
            if is_handed or any(kind is port for port in declared):
                found[name] = kind
    return found


def _is_context(hint: Any) -> bool:  # noqa: ANN401 - any annotation
    """Whether a parameter takes the context, even if it is optional or annotated."""
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    return hint is ToolContext or ToolContext in get_args(hint)


_UNTYPED_RETURNS = (None, type(None), str, Any, ToolResult)


def _read_type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of all parameters and of the return value.

    Raises:
        TypeError: a type cannot be resolved.
    """
    title = f"@tool: {getattr(function, '__qualname__', function)!s}"
    if inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{title} uses yield. Return the result; call `ctx.report` to show progress."
        )
    is_function = inspect.isfunction(function) or inspect.ismethod(function)
    if not is_function or not inspect.iscoroutinefunction(function):
        raise TypeError(f"{title} is not async. Write `async def`.")
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{title} has an annotation that cannot be resolved: {error}.") from None
    for name, param in inspect.signature(function).parameters.items():
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD, param.POSITIONAL_ONLY):
            raise TypeError(f"{title} takes {param}; use named parameters only.")
        if name.startswith("__"):
            raise TypeError(
                f"{title} has a parameter {name!r}; a name must not start with two underscores."
            )
        if name not in hints:
            raise TypeError(f"{title} has no annotation for the parameter {name!r}.")
    return {name: from_annotations(hint) for name, hint in hints.items()}


def _build_args_type(
    function: Callable[..., Any], hints: dict[str, Any], contexts: tuple[str, ...]
) -> type[ToolArgs]:
    fields: list[Any] = []
    for name, param in inspect.signature(function).parameters.items():
        if name in contexts:
            continue
        if param.default is param.empty:
            fields.append((name, hints[name]))
            continue
        try:
            fields.append((name, hints[name], _prepare_default(param.default, hints[name])))
        except (TypeError, ValueError) as error:
            title = f"@tool: the default of {name!r} in {function.__qualname__}"
            raise TypeError(f"{title} does not fit its type: {error}") from None
    args_type = msgspec.defstruct(
        f"{_make_class_name(function)}Args",
        fields,
        bases=(ToolArgs,),
        module=function.__module__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    _check_types(args_type, function)
    # A parameter that is not a msgspec field, such as a `ClassVar`, would never get a value.
    for name, *_ in fields:
        if name not in args_type.__struct_fields__:
            raise TypeError(
                f"@tool: {function.__qualname__} has a parameter {name!r} without a type."
            )
    return cast("type[ToolArgs]", args_type)


def _check_types(args_type: type[Any], function: Callable[..., Any]) -> None:
    """Check the types when the tool is defined, not at its first call."""
    from handaxe.schema.tool_schema import build_input_schema

    try:
        msgspec.json.Decoder(args_type)
        build_input_schema(args_type)
    except (TypeError, ValueError, NameError) as error:
        title = f"@tool: {function.__qualname__}"
        raise TypeError(
            f"{title} has a parameter without a JSON form: {error} If the session "
            "provides it, name its type in `uses`."
        ) from None


def _prepare_default(value: Any, hint: Any) -> Any:  # noqa: ANN401 - any default of any type
    """The default of a field, copied for each call."""
    if value is not None:
        # None says that it was left out, whatever the type.
        from handaxe.schema.from_type import convert_with_class

        plain = msgspec.to_builtins(value, enc_hook=to_json_value)
        msgspec.convert(plain, hint, dec_hook=convert_with_class)
    try:
        hash(value)
    except TypeError:
        return msgspec.field(default_factory=partial(deepcopy, value))
    return value


def _make_class_name(function: Callable[..., Any]) -> str:
    return function.__name__.title().replace("_", "")


def _extract_search_hint(doc: str) -> str:
    """The docstring's first line, if it is short enough for a search hint."""
    words = (doc.strip().splitlines() or [""])[0].rstrip(".").split()
    return " ".join(words) if 3 <= len(words) <= 10 else ""


def _to_result(value: Any, *, is_typed: bool) -> ToolResult:  # noqa: ANN401 - any value
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        # A text is data, too, where it is one of several things that a function may give.
        return ToolResult(value, data=str.__str__(value) if is_typed else None)
    if value is None:
        return ToolResult("Done.")
    plain = _to_plain(value)
    try:
        encoded = msgspec.json.encode(plain)
    except UnicodeEncodeError:
        # Names of files may hold halves of characters, which no text can.
        encoded = msgspec.json.encode(scrub(plain))
    # Text and data say the same, also of what JSON cannot hold, such as NaN.
    return ToolResult(encoded.decode(), data=msgspec.json.decode(encoded))


def _to_plain(value: Any) -> Any:  # noqa: ANN401 - any JSON-able value
    """The value as JSON data, without infinities and with text for other keys."""
    try:
        return msgspec.to_builtins(value, enc_hook=to_json_value, str_keys=True)
    except (TypeError, RecursionError):
        return msgspec.to_builtins(scrub(value), enc_hook=to_json_value, str_keys=True)
