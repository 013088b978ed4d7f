"""The revision without a handshake: every request names its client."""

import asyncio
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, cast

import msgspec

from handaxe.frontends.mcp_server.jsonrpc import JsonRpcPeer, JsonRpcRequest, Result
from handaxe.frontends.mcp_server.protocol import (
    CACHED,
    CAPABILITIES_KEY,
    ENVELOPE_REVISIONS,
    FETCHABLE,
    FETCHING,
    INSTRUCTIONS,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REVISION_KEY,
    SERVER_INFO,
    SERVER_INFO_KEY,
    SUBSCRIPTION_KEY,
    UNSUPPORTED_REVISION,
    Params,
    RequestId,
    RpcError,
)
from handaxe.frontends.mcp_server.request_params import (
    can_show_forms,
    check_cursor,
    create_progress_reporter,
)
from handaxe.frontends.mcp_server.server_session import CallChannel, InputRequired, ServerSession

_LISTABLE = "toolsListChanged"


class StatelessHandlers:
    """One client that speaks a revision without a handshake."""

    def __init__(self, peer: JsonRpcPeer, server_session: ServerSession) -> None:
        self._peer = peer
        self._server_session = server_session
        self._subscribed: dict[RequestId, asyncio.Event] = {}

    @property
    def is_listening(self) -> bool:
        """Whether the client wants notifications about changed tools."""
        return bool(self._subscribed)

    def answer(self, request: JsonRpcRequest) -> Result | Awaitable[Result]:
        """The result of a request, or a future of it."""
        check_envelope(request.meta)
        match request.method:
            case "server/discover":
                return complete_result(build_discovery())
            case "tools/list":
                return self._list_tools(request)
            case "tools/call":
                return self._call_tool(request)
            case "subscriptions/listen":
                return self._listen(request)
            case method if method in FETCHING:
                return self._fetch(request)
            case _:
                raise RpcError(METHOD_NOT_FOUND, f"There is no method {request.method!r}.")

    def notify_tools_changed(self) -> None:
        """Notify the client that the tools changed."""
        for number in self._subscribed:
            self._peer.notify("notifications/tools/list_changed", {"_meta": _build_meta(number)})

    def close(self) -> None:
        """End subscriptions."""
        for ended in self._subscribed.values():
            ended.set()

    async def _list_tools(self, request: JsonRpcRequest) -> Result:
        check_cursor(request.params)
        return complete_result(mark_cacheable({"tools": await self._server_session.tools()}))

    async def _fetch(self, request: JsonRpcRequest) -> Result:
        check_cursor(request.params)
        result = await self._server_session.fetch(request.method, request.params)
        return complete_result(mark_cacheable(result) if request.method in CACHED else result)

    async def _call_tool(self, request: JsonRpcRequest) -> Result:
        line = MultiRoundChannel(
            request.params,
            can_ask=can_show_forms(request.meta[CAPABILITIES_KEY]),
            progress=create_progress_reporter(self._peer, request),
        )
        result = await self._server_session.call(request.params, line, request.set_cancel_handler)
        return complete_result(line.outcome(result))

    async def _listen(self, request: JsonRpcRequest) -> Result:
        """A request that stays open while the client wants notifications."""
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            raise RpcError(INVALID_PARAMS, "`notifications` must be an object.")
        honoured = {_LISTABLE: True} if cast("Params", wanted).get(_LISTABLE) is True else {}
        mark = _build_meta(request.id)
        told = {"_meta": mark, "notifications": honoured}
        self._peer.notify("notifications/subscriptions/acknowledged", told)
        ended = asyncio.Event()
        if honoured:
            self._subscribed[request.id] = ended
        try:
            await ended.wait()
        finally:
            self._subscribed.pop(request.id, None)
        return complete_result({"_meta": mark})


def check_envelope(meta: Params) -> None:
    """Refuse a request that does not name its revision and the client's capabilities."""
    revision = meta.get(REVISION_KEY)
    if not isinstance(revision, str):
        raise RpcError(INVALID_PARAMS, f"`_meta` has no text under {REVISION_KEY!r}.")
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise RpcError(INVALID_PARAMS, f"`_meta` has no object under {CAPABILITIES_KEY!r}.")
    if revision not in ENVELOPE_REVISIONS:
        supported = {"supported": list(ENVELOPE_REVISIONS), "requested": revision}
        raise RpcError(UNSUPPORTED_REVISION, "Unsupported protocol version", supported)


def build_discovery() -> Result:
    """The result of `server/discover`."""
    return mark_cacheable(
        {
            "supportedVersions": list(ENVELOPE_REVISIONS),
            "capabilities": {"tools": {"listChanged": True}, **FETCHABLE},
            "instructions": INSTRUCTIONS,
        }
    )


def mark_cacheable(result: Result) -> Result:
    """A result with its lifetime: until the next request."""
    return {**result, "ttlMs": 0, "cacheScope": "private"}


def complete_result(result: Result) -> Result:
    """A result with the fields that this revision requires."""
    meta: dict[str, Any] = {**result.get("_meta", {}), SERVER_INFO_KEY: SERVER_INFO}
    return {"resultType": "complete", **result, "_meta": meta}


def _build_meta(number: RequestId) -> Params:
    return {SUBSCRIPTION_KEY: number}


_QUESTION = "permission"
_MAC_BYTES = 32
_key = os.urandom(32)


class _RoundState(msgspec.Struct):
    asked: str
    """The fingerprint of the form that the client was asked to show."""
    answers: dict[str, Any] = {}
    """The answers of earlier rounds by fingerprint."""


class MultiRoundChannel(CallChannel):
    """Requests to the client for a call that may be repeated."""

    def __init__(
        self, params: dict[str, Any], *, can_ask: bool, progress: Callable[[str], None] | None
    ) -> None:
        self._can_ask = can_ask
        self._progress = progress
        self._call = msgspec.json.encode(
            [params.get("name"), params.get("arguments")], enc_hook=str, order="deterministic"
        )
        self._answers = self._given(params)
        self._form: dict[str, Any] | None = None

    @property
    def can_ask(self) -> bool:
        """Whether the client declared that it can show forms."""
        return self._can_ask

    @property
    def wants_progress(self) -> bool:
        """Whether the client gave a progress token."""
        return self._progress is not None

    async def ask(self, form: dict[str, Any]) -> object:
        """The answer of this or an earlier round; without one the call ends here."""
        fingerprint = _hash_form(form)
        if fingerprint in self._answers:
            return self._answers[fingerprint]
        self._form = form
        raise InputRequired

    def progress(self, text: str) -> None:
        """Report the progress of the call."""
        if self._progress is not None:
            self._progress(text)

    def outcome(self, result: dict[str, Any]) -> dict[str, Any]:
        """The result of the call, or the question to answer first."""
        if self._form is None:
            return result
        state = msgspec.json.encode(
            _RoundState(_hash_form(self._form), self._answers), enc_hook=str
        )
        signed = digest(_key, state + self._call, "sha256") + state
        return {
            "resultType": "input_required",
            "inputRequests": {
                _QUESTION: {"method": "elicitation/create", "params": self._form},
            },
            "requestState": urlsafe_b64encode(signed).decode(),
        }

    def _given(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answers so far; raises if the state is not of this call."""
        text = params.get("requestState")
        if text is None:
            return {}
        try:
            signed = urlsafe_b64decode(text)
            mac, raw = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
            # The decoder accepts unknown fields.
            is_whole = urlsafe_b64encode(signed).decode() == text
        except (TypeError, ValueError):
            mac, raw, is_whole = b"", b"", False
        if not is_whole or not compare_digest(mac, digest(_key, raw + self._call, "sha256")):
            raise RpcError(INVALID_PARAMS, "`requestState` does not belong to this call.")
        state = msgspec.json.decode(raw, type=_RoundState)
        responses = params.get("inputResponses")
        given = cast("dict[str, Any]", responses) if isinstance(responses, dict) else {}
        # A repeated call without an answer gets the question again.
        said = {state.asked: given[_QUESTION]} if _QUESTION in given else {}
        return {**state.answers, **said}


def _hash_form(form: dict[str, Any]) -> str:
    return sha256(msgspec.json.encode(form, enc_hook=str, order="deterministic")).hexdigest()
