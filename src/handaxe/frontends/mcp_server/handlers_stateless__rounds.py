"""Questions in revisions where a server may not ask: the client asks, and calls again.

A call that needs an answer ends with `input_required` and a state; nothing was done and nothing
waits. The client repeats the request with the state and what its user said, and the call runs
from the start with the answer at hand. The state is signed, so that it fits this call only.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, cast

import msgspec

from handaxe.frontends.mcp_server.protocol import INVALID_PARAMS, RpcError
from handaxe.frontends.mcp_server.server_session import CallChannel, InputRequired

_QUESTION = "permission"
_MAC_BYTES = 32
_key = os.urandom(32)


class _RoundState(msgspec.Struct):
    asked: str
    """The fingerprint of the form that the client was asked to show."""
    answers: dict[str, Any] = {}
    """What was said in earlier rounds, by fingerprint."""


class MultiRoundChannel(CallChannel):
    """The way back for a call that may have to come again."""

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
        """Whether the client said that it can show forms."""
        return self._can_ask

    @property
    def wants_progress(self) -> bool:
        """Whether the client gave a token for it."""
        return self._progress is not None

    async def ask(self, form: dict[str, Any]) -> object:
        """What was said in this or an earlier round; otherwise the call ends here."""
        fingerprint = _hash_form(form)
        if fingerprint in self._answers:
            return self._answers[fingerprint]
        self._form = form
        raise InputRequired

    def progress(self, text: str) -> None:
        """Say how far the call is."""
        if self._progress is not None:
            self._progress(text)

    def outcome(self, result: dict[str, Any]) -> dict[str, Any]:
        """The call's result, or the question that has to be answered first."""
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
        """The answers so far; raises if the state is not one that this call was given."""
        text = params.get("requestState")
        if text is None:
            return {}
        try:
            signed = urlsafe_b64decode(text)
            mac, raw = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
            # The decoder forgives what does not belong there.
            is_whole = urlsafe_b64encode(signed).decode() == text
        except (TypeError, ValueError):
            mac, raw, is_whole = b"", b"", False
        if not is_whole or not compare_digest(mac, digest(_key, raw + self._call, "sha256")):
            raise RpcError(INVALID_PARAMS, "`requestState` does not belong to this call.")
        state = msgspec.json.decode(raw, type=_RoundState)
        responses = params.get("inputResponses")
        given = cast("dict[str, Any]", responses) if isinstance(responses, dict) else {}
        # Who comes again without an answer is asked again.
        said = {state.asked: given[_QUESTION]} if _QUESTION in given else {}
        return {**state.answers, **said}


def _hash_form(form: dict[str, Any]) -> str:
    return sha256(msgspec.json.encode(form, enc_hook=str, order="deterministic")).hexdigest()
