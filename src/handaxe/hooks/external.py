"""Hooks outside this process: send the event to a program or a server, and read the answer."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec

from handaxe.contract.decision import Deny
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.hooks import (
    HookCommand,
    HookCommandResult,
    HookModels,
    HookPrograms,
    HookQuestion,
    HookRequest,
    HookUnreachable,
)
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.hooks.config import (
    AgentHook,
    CommandHook,
    ConfiguredHook,
    HttpHook,
    McpToolHook,
    PromptHook,
)
from handaxe.hooks.env_file import add_env_variables
from handaxe.hooks.event_types import OCCASIONS, encode_event
from handaxe.hooks.outcome import NOTHING, Outcome
from handaxe.hooks.output import NO_REASON, InvalidHookOutput, from_command, from_reply
from handaxe.text.sanitize import escape_surrogates
from handaxe.text.secrets import is_secret_name

_EVENT_PATH = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_PLACEHOLDER = re.compile(r"\$\{(CLAUDE_\w+|HANDAXE_\w+)\}")


class HookPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of hook programs and servers, and which may be used."""

    env: Mapping[str, str] = {}
    """Added to the environment of every program."""
    prefix: tuple[str, ...] = ()
    """The program that runs shell lines instead of the shell."""
    http_urls: tuple[str, ...] | None = None
    """Allowed addresses, with `*` for any text; None: all."""
    http_env_names: tuple[str, ...] | None = None
    """Variables that headers may contain; None: those that a hook names itself."""
    closing_s: float | None = None
    """The total time for hooks at the session's end; None: the longest timeout of them."""
    env_names: tuple[str, ...] = ()
    """Variables of this process for every program, as names or patterns."""
    steers: Callable[[str], bool] = lambda _: False
    """Whether a variable influences which program runs; a project's hook may not set those."""
    watch: Callable[[object], None] = lambda _: None
    """Receives the files that hooks want to watch, as written."""


class ExternalHooks:
    """Runs hooks outside this process."""

    def __init__(
        self,
        programs: HookPrograms | None,
        policy: HookPolicy,
        servers: Callable[[], McpServers | None] = lambda: None,
        models: Callable[[], HookModels | None] = lambda: None,
        variables: Mapping[str, str] = {},
    ) -> None:
        """`variables` are those that hooks have set so far."""
        self._programs = programs
        self._policy = policy
        self._servers = servers
        self._models = models
        self._variables = variables

    async def ask(self, placed: ConfiguredHook, event: dict[str, Any], timeout_s: float) -> Outcome:
        """Send the event and read the answer; raises `HookUnreachable` or `InvalidHookOutput`."""
        name, hook = placed.event, placed.hook
        if isinstance(hook, McpToolHook):
            return from_command(name, await self._call(hook, event, timeout_s))
        if isinstance(hook, PromptHook | AgentHook):
            return from_verdict(name, await self._judge(hook, event, timeout_s), hook)
        if self._programs is None:
            raise HookUnreachable("this session has no access to programs or servers for hooks")
        if isinstance(hook, CommandHook):
            command = self._command(placed, hook, event, timeout_s)
            end = await self._programs.run(command, encode_event(event))
            outcome = from_command(name, end, rewakes=hook.async_rewake)
            return add_env_variables(outcome, end.variables, self._may_set(placed))
        if isinstance(hook, HttpHook):
            request = self._request(hook, timeout_s)
            return from_reply(name, await self._programs.post(request, encode_event(event)))
        raise TypeError(f"{type(hook).__name__} runs inside this process")

    def _may_set(self, placed: ConfiguredHook) -> Callable[[str], bool]:
        steers = self._policy.steers
        return lambda name: not (placed.is_projects and steers(name))

    async def _judge(
        self, hook: PromptHook | AgentHook, event: dict[str, Any], timeout_s: float
    ) -> str:
        models = self._models()
        if models is None:
            raise HookUnreachable("it needs a model, and this session has no agent")
        try:
            async with asyncio.timeout(timeout_s):
                return await models.answer(build_hook_question(hook, event))
        except TimeoutError:
            raise HookUnreachable(_describe_timeout(timeout_s), timed_out=True) from None

    async def _call(
        self, hook: McpToolHook, event: dict[str, Any], timeout_s: float
    ) -> HookCommandResult:
        """The answer of a server's tool, in the form of program output."""
        servers = self._servers()
        if servers is None:
            raise HookUnreachable("no MCP server is configured")
        arguments = {key: _fill_placeholders(value, event) for key, value in hook.input.items()}
        try:
            async with asyncio.timeout(timeout_s):
                result = await servers.call_tool(hook.server, hook.tool, arguments)
        except TimeoutError:
            raise HookUnreachable(_describe_timeout(timeout_s), timed_out=True) from None
        except ToolFault as fault:
            raise HookUnreachable(fault.sentence) from None
        if not result.ok:
            raise HookUnreachable(result.text)
        return HookCommandResult(0, result.text.encode(), b"")

    def _command(
        self, placed: ConfiguredHook, hook: CommandHook, event: dict[str, Any], timeout_s: float
    ) -> HookCommand:
        env = {**self._policy.env, "CLAUDE_CODE_SESSION_ID": str(event.get("session_id", ""))}

        effort = event.get("effort")
        if isinstance(effort, dict):
            env["CLAUDE_EFFORT"] = str(cast("dict[str, Any]", effort).get("level", ""))

        def filled(text: str) -> str:
            return _PLACEHOLDER.sub(lambda found: env.get(found[1], found[0]), text)

        # A shell fills in its variables itself, and quoting stays what its author wrote.
        args = None if hook.args is None else tuple(filled(arg) for arg in hook.args)
        return HookCommand(
            command=hook.command if args is None else filled(hook.command),
            args=args,
            shell=hook.shell or "sh",
            prefix=self._policy.prefix,
            cwd=str(event.get("cwd", "/")),
            env=env,
            env_names=(*self._policy.env_names, *_find_named(placed, hook)),
            timeout_s=timeout_s,
            variables=self._variables if OCCASIONS[event["hook_event_name"]].prepares else None,
        )

    def _request(self, hook: HttpHook, timeout_s: float) -> HookRequest:
        allowed, names = self._policy.http_urls, hook.allowed_env_vars
        if allowed is not None and not any(_is_url_match(pattern, hook.url) for pattern in allowed):
            raise HookUnreachable("the settings do not allow this address")
        if self._policy.http_env_names is not None:
            names = tuple(name for name in names if name in self._policy.http_env_names)
        return HookRequest(
            url=hook.url,
            headers=hook.headers,
            env_names=names,
            env=self._policy.env,
            timeout_s=timeout_s,
        )


def _find_named(placed: ConfiguredHook, hook: CommandHook) -> list[str]:
    """The variables in a hook's command line; a project's hook gets no secrets that way."""
    names = _VARIABLE.findall(" ".join((hook.command, *(hook.args or ()))))
    return [name for name in names if not (placed.is_projects and is_secret_name(name))]


def _describe_timeout(timeout_s: float) -> str:
    return f"it gave no answer within {timeout_s:g} s"


def _fill_placeholders(value: Any, event: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """The value with `${tool_input.file_path}` and similar placeholders replaced."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _fill_placeholders(item, event) for key, item in pairs}
    if isinstance(value, list):
        return [_fill_placeholders(item, event) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    whole = _EVENT_PATH.fullmatch(value)
    if whole is not None:
        return _find_value(whole[1], event)
    return _EVENT_PATH.sub(lambda found: _to_text(_find_value(found[1], event)), value)


def _find_value(path: str, event: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    place: Any = event
    for name in path.split("."):
        place = cast("dict[str, Any]", place).get(name) if isinstance(place, dict) else None
    return place


def _to_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode_event(value).decode()


def _is_url_match(pattern: str, url: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), url, re.DOTALL) is not None


PLACEHOLDER: Final = "$ARGUMENTS"
MAX_EVENT_CHARS = 200_000
"""Longer events are cut in the middle, because no model would read them."""
_SHOWN_CHARS = 200
_json = json.JSONDecoder()
_UNHEARD = frozenset({"PermissionRequest", "PermissionDenied"})
"""Decisions are ignored at these events."""
_ENDING = frozenset({"UserPromptSubmit", "UserPromptExpansion", "PostToolBatch"})
_STOPPING = frozenset({"Stop", "SubagentStop"})
_ADJUSTABLE = frozenset({"PreToolUse", "PostToolUse", "TeammateIdle"})


class _Verdict(msgspec.Struct, frozen=True):
    ok: bool
    reason: str | None = None
    impossible: bool | None = None


def build_hook_question(hook: PromptHook | AgentHook, event: dict[str, Any]) -> HookQuestion:
    """The question: the hook's prompt with the event inserted or appended."""
    told = encode_event(event).decode()
    if len(told) > MAX_EVENT_CHARS:
        half, left_out = MAX_EVENT_CHARS // 2, len(told) - MAX_EVENT_CHARS
        told = f"{told[:half]} [... {left_out:,} characters left out ...] {told[-half:]}"
    if PLACEHOLDER in hook.prompt:
        prompt = hook.prompt.replace(PLACEHOLDER, told)
    else:
        prompt = f"{hook.prompt}\n\n{told}"
    return HookQuestion(
        prompt=escape_surrogates(prompt),
        model=hook.model,
        may_look=isinstance(hook, AgentHook),
        cwd=str(event.get("cwd", "")),
    )


def from_verdict(event: str, said: str, hook: PromptHook | AgentHook) -> Outcome:
    """The outcome of a model's answer at this event. An approval only means no objection.

    Raises:
        InvalidHookOutput: it has no verdict.
    """
    verdict = _parse_verdict(said)
    if verdict.ok or event in _UNHEARD:
        return NOTHING
    reason = (verdict.reason or "").strip() or NO_REASON
    goes_on = isinstance(hook, AgentHook) or hook.continue_on_block
    if event in _STOPPING:
        # An impossible goal must not keep the agent working.
        hopeless = verdict.impossible is True and not isinstance(hook, AgentHook)
        return Outcome(told=(reason,)) if hopeless else Outcome(blocked=reason)
    if event in _ENDING:
        return Outcome(blocked=reason, told=(reason,))
    if event in _ADJUSTABLE and not goes_on:
        return Outcome(blocked=reason, stop=reason, told=(reason,))
    if event == "PreToolUse":
        return Outcome(decision=Deny(reason, by="hook"))
    return Outcome(blocked=reason)


def _parse_verdict(said: str) -> _Verdict:
    """The verdict in an answer, which may be inside a code fence or a sentence."""
    found: _Verdict | None = None
    at = said.find("{")
    while at != -1:
        end = at + 1
        try:
            value, end = _json.raw_decode(said, at)
            found = msgspec.convert(value, _Verdict)
        except (ValueError, RecursionError):
            # Another brace; msgspec's complaint about a shape is a ValueError too.
            pass
        at = said.find("{", end)
    if found is None:
        shown = " ".join(said.split())[:_SHOWN_CHARS]
        told = f"it said {shown!r}" if shown else "the answer was empty"
        raise InvalidHookOutput(f'the model gave no verdict like {{"ok": true}}; {told}')
    return found
