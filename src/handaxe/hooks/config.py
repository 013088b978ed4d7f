"""The hook configuration: groups with matchers, each with its hooks.

The format is the ecosystem's, plus Python functions and `on_failure`. Reading never fails: an
invalid part becomes a problem with its place, and the rest applies.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from handaxe.hooks.event_types import EVENTS, OCCASIONS, TOOL_EVENTS
from handaxe.rules.grammar import parse_rule
from handaxe.schema.validate import InputProblems, read_input
from handaxe.text.escape import format_suggestion


def find_bad_conditions(book: "HookConfig") -> list[str]:
    """The `if` conditions that are not valid rules."""
    return [
        (
            f"hooks.{placed.event}: the `if` of {placed.hook.name!r} is not a valid rule: "
            f"{rule.problem}"
        )
        for placed in book.placed
        if placed.hook.condition is not None
        and (rule := parse_rule(placed.hook.condition, "deny")).is_dead
    ]


Fits = Callable[[Iterable[str]], bool]
"""Whether one of these names matches."""

_PLAIN = r"[A-Za-z0-9_\- ,|]*"
_WORDS = r"[A-Za-z0-9_|]*"
_NAMED_GROUP = r"(?<!\\)\(\?<(?=[A-Za-z_])"
MAX_SUBJECT_CHARS = 200
"""Longer names match nothing, so that patterns are not applied to them."""


def compile_matcher(text: str | None, *, literal: bool = False) -> Fits:
    """Compile a matcher: nothing or `*` for all, names with `|` or `,`, or a pattern.

    Raises:
        ValueError: it is neither names nor a pattern.
    """
    if not text or text == "*":
        return _match_all
    if literal and re.fullmatch(_WORDS, text):
        return _match_names(text.split("|"))
    if not literal and re.fullmatch(_PLAIN, text):
        return _match_names(re.split(r"[|,]", text))
    try:
        pattern = re.compile(re.sub(_NAMED_GROUP, "(?P<", text), re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        if literal:
            # The names of files hold all kinds of signs.
            return _match_names(text.split("|"))
        raise ValueError(f"{text!r} is not a pattern: {error}") from None

    def fits(names: Iterable[str]) -> bool:
        return any(pattern.search(name[:MAX_SUBJECT_CHARS]) for name in names)

    return fits


def _match_names(parts: Iterable[str]) -> Fits:
    wanted = frozenset(part.strip() for part in parts) - {""}

    def fits(names: Iterable[str]) -> bool:
        return not wanted.isdisjoint(names)

    return fits


def _match_all(names: Iterable[str]) -> bool:  # noqa: ARG001 - every name is meant
    return True


Hook = Callable[[dict[str, Any]], Awaitable[Any]]
"""A Python hook: an async function of the event."""
OnFailure = Literal["open", "closed"]

_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_NAME_CHARS = 120
ARGUMENTS = "the session's arguments"
"""The source of hooks from a host program."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    condition: Annotated[
        str | None, "A permission rule; the hook runs only for calls that it covers."
    ] = msgspec.field(name="if", default=None)
    timeout: Annotated[_Seconds | None, "Timeout in seconds."] = None
    on_failure: Annotated[
        OnFailure | None, "`closed`: a failure of the hook stops what it guards."
    ] = None
    status_message: str | None = msgspec.field(name="statusMessage", default=None)
    once: Annotated[bool, "For skills and hosts: it runs once per session."] = False

    @property
    def in_background(self) -> bool:
        """Whether it runs in the background."""
        return False


class CommandHook(_Entry, frozen=True, kw_only=True):
    """A program that gets the event on its standard input."""

    command: str
    args: tuple[str, ...] | None = None
    shell: Literal["bash", "powershell", "sh"] | None = None
    is_async: bool = msgspec.field(name="async", default=False)
    async_rewake: bool = msgspec.field(name="asyncRewake", default=False)

    @property
    def in_background(self) -> bool:
        """Whether it runs in the background."""
        return self.is_async or self.async_rewake

    @property
    def name(self) -> str:
        """Its name in the log."""
        return _shorten_name(" ".join((self.command, *(self.args or ()))))


class HttpHook(_Entry, frozen=True, kw_only=True):
    """A server that gets the event by POST."""

    url: str
    headers: dict[str, str] = {}
    allowed_env_vars: tuple[str, ...] = msgspec.field(name="allowedEnvVars", default=())

    @property
    def name(self) -> str:
        """Its name in the log, without the query, which may contain a key."""
        parts = urlsplit(self.url)
        return _shorten_name(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


class McpToolHook(_Entry, frozen=True, kw_only=True):
    """A tool of an MCP server."""

    server: str
    tool: str
    input: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Its name in the log."""
        return _shorten_name(f"mcp__{self.server}__{self.tool}")


class _ModelHook(_Entry, frozen=True, kw_only=True):
    prompt: str
    model: str | None = None

    @property
    def name(self) -> str:
        """Its name in the log."""
        return _shorten_name(self.prompt)


class PromptHook(_ModelHook, frozen=True, kw_only=True):
    """A question to a model."""

    continue_on_block: bool = msgspec.field(name="continueOnBlock", default=False)


class AgentHook(_ModelHook, frozen=True, kw_only=True):
    """A question to an agent that can read files before it answers."""


class CallableHook(_Entry, frozen=True, kw_only=True):
    """A Python function of the host program."""

    call: Hook
    is_async: bool = msgspec.field(name="async", default=False)

    @property
    def in_background(self) -> bool:
        """Whether it runs in the background."""
        return self.is_async

    @property
    def name(self) -> str:
        """Its name in the log."""
        return _shorten_name(getattr(self.call, "__qualname__", None) or repr(self.call))


AnyHook = CommandHook | HttpHook | McpToolHook | PromptHook | AgentHook | CallableHook
KINDS: dict[str, type[AnyHook]] = {
    "command": CommandHook,
    "http": HttpHook,
    "mcp_tool": McpToolHook,
    "prompt": PromptHook,
    "agent": AgentHook,
    "callable": CallableHook,
}


class ConfiguredHook(msgspec.Struct, frozen=True, eq=False):
    """A hook with its event and its group."""

    event: str
    hook: AnyHook
    matcher: str
    fits: Fits
    source: str
    is_projects: bool = False
    """Whether it comes from a file of the project."""
    skill: str = ""
    """The file of the skill that defines it."""

    @property
    def may_be_once(self) -> bool:
        """Whether `once` applies: in files, only for skills."""
        return bool(self.skill) or self.source == ARGUMENTS


class HookConfig(msgspec.Struct, frozen=True):
    """All hooks of one source in order, and their problems."""

    placed: tuple[ConfiguredHook, ...] = ()
    problems: tuple[str, ...] = ()

    def __add__(self, other: "HookConfig") -> "HookConfig":
        """Both configurations, this one first."""
        return HookConfig((*self.placed, *other.placed), (*self.problems, *other.problems))


def read_hooks(
    raw: object, *, source: str, is_projects: bool = False, skill: str = ""
) -> HookConfig:
    """The hooks of one source; a plugin's wrapper `{description, hooks}` is accepted."""
    if raw is None:
        return HookConfig()
    problems: list[str] = []
    if not isinstance(raw, Mapping):
        return HookConfig(problems=(f"hooks: expected events with their hooks, got {raw!r}.",))
    events = cast("Mapping[str, object]", raw)
    if isinstance(events.get("hooks"), Mapping) and events.keys() <= {"hooks", "description"}:
        events = cast("Mapping[str, object]", events["hooks"])
    placed: list[ConfiguredHook] = []
    for event, groups in events.items():
        if event not in OCCASIONS:
            problems.append(_describe_unknown_event(event))
        elif isinstance(groups, str) or not isinstance(groups, Sequence):
            problems.append(f"hooks.{event}: expected a list of groups, got {groups!r}.")
        else:
            for number, group in enumerate(cast("Sequence[object]", groups)):
                reader = _GroupReader(event, f"hooks.{event}[{number}]", problems)
                placed += (
                    ConfiguredHook(event, hook, text, fits, source, is_projects, skill)
                    for hook, text, fits in reader.read(group)
                )
    return HookConfig(tuple(placed), tuple(problems))


class _GroupReader:
    """Reads one group and collects its problems."""

    def __init__(self, event: str, place: str, problems: list[str]) -> None:
        self._event = event
        self._place = place
        self._problems = problems

    def read(self, group: object) -> Iterator[tuple[AnyHook, str, Fits]]:
        """The hooks of a group, or of a single function in place of one."""
        if callable(group):
            group = {"hooks": [group]}
        if not isinstance(group, Mapping):
            self._complain("", f"expected `matcher` and `hooks`, got {group!r}.")
            return
        given = cast("Mapping[str, object]", group)
        occasion = OCCASIONS[self._event]
        text, hooks = given.get("matcher"), given.get("hooks")
        self._name_strangers(given, {"matcher", "hooks", "timeout", "on_failure"}, "")
        if text is not None and not isinstance(text, str):
            self._complain(".matcher", f"{text!r} is not a text.")
            return
        try:
            fits = compile_matcher(text if occasion.matched else None, literal=occasion.literal)
        except ValueError as error:
            self._complain(".matcher", f"{error}.")
            return
        if isinstance(hooks, str) or not isinstance(hooks, Sequence):
            self._complain("", f"expected a list `hooks`, got {hooks!r}.")
            return
        for number, entry in enumerate(cast("Sequence[object]", hooks)):
            hook = self._hook(entry, given, f".hooks[{number}]")
            if hook is not None:
                yield hook, text or "", fits

    def _hook(self, entry: object, group: Mapping[str, object], place: str) -> AnyHook | None:
        if callable(entry):
            shared = {key: group[key] for key in ("timeout", "on_failure") if key in group}
            entry = {"type": "callable", "call": entry, **shared}
        if not isinstance(entry, Mapping):
            return self._complain(place, f"expected a hook, got {entry!r}.")
        given = dict(cast("Mapping[str, object]", entry))
        named = given.pop("type", None)
        kind = KINDS.get(str(named))
        if kind is None:
            return self._complain(place, _describe_unknown_kind(named))
        known = set(kind.__struct_encode_fields__)
        self._name_strangers(given, known, place)
        given = {key: value for key, value in given.items() if key in known}
        try:
            hook = _make_python_hook(given) if kind is CallableHook else read_input(kind, given)[0]
        except InputProblems as wrong:
            return self._complain(place, "; ".join(wrong.problems) + ".")
        return self._check_hook(hook, place)

    def _check_hook(self, hook: AnyHook, place: str) -> AnyHook | None:
        if hook.in_background and hook.on_failure == "closed":
            return self._complain(place, "a background hook cannot be `closed`.")
        if isinstance(hook, _ModelHook) and not OCCASIONS[self._event].asks_models:
            kind = "agent" if isinstance(hook, AgentHook) else "prompt"
            return self._complain(
                place,
                f"a model cannot decide at {self._event}; {kind!r} hooks are for "
                f"{_list_model_events()}.",
            )
        if hook.condition is not None and self._event not in TOOL_EVENTS:
            return self._complain(place, "a hook with `if` runs only for tool calls.")
        if isinstance(hook, HttpHook) and OCCASIONS[self._event].is_local:
            return self._complain(place, f"servers are not called at {self._event}.")
        if isinstance(hook, HttpHook) and (problem := _find_url_problem(hook.url)):
            return self._complain(place, problem)
        return hook

    def _name_strangers(self, given: Mapping[str, object], known: set[str], place: str) -> None:
        for key in given.keys() - known:
            hint = format_suggestion(str(key), known)
            self._complain(place, f"{key!r} is unknown and ignored.{hint}")

    def _complain(self, place: str, sentence: str) -> None:
        self._problems.append(f"{self._place}{place}: {sentence}")


def _make_python_hook(given: dict[str, Any]) -> CallableHook:
    call, is_async = given.pop("call", None), given.pop("async", False)
    if not inspect.iscoroutinefunction(call) and not inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004 - whether calling it gives a coroutine
    ):
        raise InputProblems([f"{call!r} is not an async function"])
    options = read_input(_Entry, given)[0]
    fields = {name: getattr(options, name) for name in options.__struct_fields__}
    return CallableHook(call=call, is_async=bool(is_async), **fields)


def _list_model_events() -> str:
    return ", ".join(name for name, occasion in OCCASIONS.items() if occasion.asks_models)


def _describe_unknown_event(event: object) -> str:
    hint = format_suggestion(str(event), EVENTS)
    return f"{event!r} is not a hook event.{hint} Events: {', '.join(EVENTS)}."


def _describe_unknown_kind(kind: object) -> str:
    hint = format_suggestion(str(kind), KINDS)
    return f"{kind!r} is not a type of hook.{hint} Types: {', '.join(KINDS)}."


def _find_url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"{url!r} is not a valid address ({error})."
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return f"{url!r} is not an http or https address."
    if parts.username is not None:
        return "put credentials in `headers`, not in the address."
    return None


def _shorten_name(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _NAME_CHARS else f"{text[:_NAME_CHARS]}…"
