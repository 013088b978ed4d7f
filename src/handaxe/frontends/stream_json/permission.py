"""Permission questions to the other end, and what its answers change."""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from handaxe.app.assembly import working_directories
from handaxe.app.session import Session
from handaxe.contract.decision import Allow, Deny, PermissionRequest, Remember
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.questions import Question
from handaxe.frontends.stream_json.channel import Channel, OtherEndFailed
from handaxe.frontends.stream_json.lines import fits, shortened
from handaxe.frontends.stream_json.shapes import Json
from handaxe.runtime.permission.suggestions import suggestions
from handaxe.session.permission_state import RuleText

_SHORT_CHARS = 50_000
_LASTING: dict[str, Remember] = {
    "session": "session",
    "cliArg": "session",
    "localSettings": "project",
    "projectSettings": "project",
    "userSettings": "always",
}


class StreamAsker:
    """Asks the other end whether a call may run."""

    def __init__(
        self,
        channel: Channel,
        session: Callable[[], Session],
        open_calls: Callable[[], dict[str, str]],
    ) -> None:
        self._channel = channel
        self._session = session
        self._open_calls = open_calls

    async def ask(self, request: PermissionRequest) -> Allow | Deny:
        """What the other end says; no answer is a no."""
        sent = request.input
        fields = _question(request)
        if not fits(fields):
            sent = shortened(request.input, _SHORT_CHARS)
            fields["input"] = sent
        try:
            answer = await self._channel.ask("can_use_tool", **fields)
        except OtherEndFailed as failed:
            return Deny(f"Nobody could be asked: {failed}")
        return self._read(answer, request, sent)

    async def ask_question(self, questions: tuple[Question, ...]) -> dict[str, str] | str | None:
        """Answers to questions of the model, which come as a changed input."""
        listed = msgspec.to_builtins(questions)
        ids = [call for call, tool in self._open_calls().items() if tool == "AskUserQuestion"]
        try:
            answer = await self._channel.ask(
                "can_use_tool",
                tool_name="AskUserQuestion",
                input={"questions": listed},
                permission_suggestions=None,
                blocked_path=None,
                tool_use_id=ids[-1] if ids else "question",
            )
        except OtherEndFailed:
            return None
        changed = _mapping(answer.get("updatedInput"))
        given = _mapping(changed.get("answers"))
        if answer.get("behavior") == "allow" and given:
            return {str(key): str(value) for key, value in given.items()}
        said = answer.get("message") if answer.get("behavior") == "deny" else None
        return str(said) if said else None

    def _read(self, answer: Json, request: PermissionRequest, sent: Json) -> Allow | Deny:
        if answer.get("behavior") != "allow":
            reason = str(answer.get("message") or "It was refused.")
            return Deny(reason, interrupt=bool(answer.get("interrupt")))
        changed = answer.get("updatedInput")
        new_input: Json | None = None
        if isinstance(changed, dict) and changed != sent:
            if sent is not request.input:
                return Deny("The input is too long to be changed this way.")
            new_input = cast("Json", changed)
        allow = Allow("The other end said yes.", input=new_input)
        return self._with_updates(allow, answer.get("updatedPermissions"))

    def _with_updates(self, allow: Allow, updates: object) -> Allow | Deny:
        if not isinstance(updates, list):
            return allow
        session = self._session()
        for update in cast("list[object]", updates):
            given = _mapping(update)
            try:
                allow = _applied(session, allow, given)
            except SetupError as error:
                return Deny(f"The change of permissions is wrong: {error}")
        return allow


def _question(request: PermissionRequest) -> Json:
    fields: Json = {
        "tool_name": request.tool,
        "input": request.input,
        "permission_suggestions": suggestions(request.proposals) or None,
        "blocked_path": None,
        "tool_use_id": request.call_id,
        "decision_reason": request.reason,
    }
    if request.agent_id is not None:
        fields["agent_id"] = request.agent_id
    return fields


def _applied(session: Session, allow: Allow, update: Json) -> Allow:
    """One change of permissions put in force; rules that allow go along with the answer."""
    kind, lasting = update.get("type"), _LASTING.get(str(update.get("destination")), "session")
    if kind == "setMode":
        session.set_mode(str(update.get("mode")))
    elif kind == "addDirectories":
        place, more = session.workdir, _texts(update.get("directories"))
        place.roots = working_directories(place.root, (*place.roots[1:], *more))[0]
    elif kind in {"addRules", "replaceRules", "removeRules"}:
        return _with_rules(session, allow, update, lasting)
    else:
        raise SetupError(f"{kind!r} is not a change that can be made here.")
    return allow


def _with_rules(session: Session, allow: Allow, update: Json, lasting: Remember) -> Allow:
    behaviour = update.get("behavior")
    if behaviour not in ("allow", "ask", "deny"):
        raise SetupError(f"{behaviour!r} is not what a rule can do.")
    rules = [_rule_text(_mapping(rule)) for rule in _items(update.get("rules"))]
    texts = [RuleText(rule, behaviour, "session") for rule in rules]
    if update["type"] == "removeRules":
        session.permissions.remove_rules(texts)
    elif update["type"] == "replaceRules":
        same = [r for r in session.permissions.rules_from("session") if r.behaviour == behaviour]
        session.permissions.remove_rules(same)
        session.permissions.add_rules(texts)
    elif behaviour == "allow":
        return msgspec.structs.replace(allow, remember=lasting, rules=(*allow.rules, *rules))
    else:
        session.permissions.add_rules(texts)
    return allow


def _rule_text(rule: Json) -> str:
    tool, content = rule.get("toolName"), rule.get("ruleContent")
    if not isinstance(tool, str) or not tool:
        raise SetupError("A rule needs a `toolName`.")
    return f"{tool}({content})" if content else tool


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [str(item) for item in _items(value)]
