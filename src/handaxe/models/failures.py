"""What a server's refusal means, and what a person can do about it."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from handaxe.contract.ports.model import Failure, ModelFailed
from handaxe.models.failures__retries import AttemptFailed, can_retry, read_retry_after_s
from handaxe.models.http.transport import TransportFailed

_MAX_WORDS_CHARS = 600

_TOO_LONG = (
    r"prompt is too long|context.?length|context.?window|context.?size|context limit"
    r"|maximum.{0,20}context|too many (input )?tokens|request.?too.?large"
    r"|reduce the length of the (messages|prompt|input)|exceeds? the (model'?s )?maximum"
)
_NO_MONEY = r"insufficient_quota|billing|credit balance|exceeded your current quota"

_KINDS: dict[str, tuple[Failure, int]] = {
    # Errors that arrive by name, in the middle of a stream that began with a 200.
    "invalid_request_error": ("bad_request", 400),
    "authentication_error": ("authentication", 401),
    "billing_error": ("rate_limited", 402),
    "permission_error": ("authentication", 403),
    "not_found_error": ("not_found", 404),
    "request_too_large": ("too_long", 413),
    "rate_limit_error": ("rate_limited", 429),
    "api_error": ("overloaded", 500),
    "timeout_error": ("timed_out", 504),
    "overloaded_error": ("overloaded", 529),
}


class ModelServer(NamedTuple):
    """Who was asked, for sentences."""

    vendor: str
    url: str
    model: str
    key_variable: str
    address_variable: str


class ErrorBody(NamedTuple):
    """What an error's body says."""

    message: str
    kind: str
    code: str

    def hold(self, pattern: str) -> bool:
        """Whether the pattern stands anywhere in them; compiled here, as few runs meet an error."""
        everything = f"{self.message} {self.kind} {self.code}"
        return re.search(pattern, everything, re.IGNORECASE) is not None


def parse_error_body(body: Any) -> ErrorBody:  # noqa: ANN401 - decoded JSON, text or bytes
    """The message, type and code in any of the shapes servers use."""
    if isinstance(body, bytes):
        text = body.decode("utf-8", "replace").strip()
        try:
            return parse_error_body(msgspec.json.decode(text))
        except (msgspec.DecodeError, RecursionError):
            return ErrorBody("" if text[:1] == "<" else text[:_MAX_WORDS_CHARS], "", "")
    if not isinstance(body, dict):
        return ErrorBody(str(body)[:_MAX_WORDS_CHARS], "", "")
    fields = cast("dict[str, Any]", body)
    inner = fields.get("error")
    if isinstance(inner, dict):
        fields = cast("dict[str, Any]", inner)
    elif isinstance(inner, str):
        fields = {**fields, "message": inner}
    said = fields.get("message") or fields.get("detail") or ""
    message = said if isinstance(said, str) else msgspec.json.encode(said).decode()
    kind, code = fields.get("type"), fields.get("code")
    return ErrorBody(message[:_MAX_WORDS_CHARS], str(kind or ""), str(code or ""))


def make_status_failure(
    server: ModelServer,
    status: int,
    headers: Mapping[str, str],
    body: Any,  # noqa: ANN401
) -> AttemptFailed:
    """The failure behind an error status."""
    words = parse_error_body(body)
    failure = _classify_failure(status, words)
    sentence = _describe_failure(server, failure, status, words)
    asked_s = read_retry_after_s(headers)
    if asked_s is not None and asked_s > 0 and failure in ("rate_limited", "overloaded"):
        sentence += f" The server asks to wait {asked_s:.0f} s."
    may_help = can_retry(status, headers) and not words.hold(_NO_MONEY)
    failed = ModelFailed(failure, sentence, status=status)
    return AttemptFailed(failed, can_retry=may_help, headers=headers)


def make_stream_failure(server: ModelServer, body: Any) -> AttemptFailed:  # noqa: ANN401
    """The failure behind an error that arrived as an event."""
    words = parse_error_body(body)
    failure, status = _KINDS.get(words.kind, ("broken_stream", 500))
    if words.code.isdecimal() and words.kind not in _KINDS:
        status = int(words.code)
        failure = _classify_failure(status, words)
    if words.hold(_TOO_LONG):
        failure = "too_long"
    sentence = _describe_failure(server, failure, status, words)
    may_help = can_retry(status, {}) and not words.hold(_NO_MONEY)
    return AttemptFailed(ModelFailed(failure, sentence, status=status), can_retry=may_help)


def make_transport_failure(server: ModelServer, failed: TransportFailed) -> AttemptFailed:
    """The failure behind a connection that could not be made or broke."""
    sentence = failed.sentence
    if failed.how == "unreachable":
        sentence += f" Check the network, and {server.address_variable} if the server is your own."
    return AttemptFailed(ModelFailed(failed.how, sentence), can_retry=True)


def make_truncation_failure(server: ModelServer) -> AttemptFailed:
    """The failure of a stream that ended before its last event."""
    sentence = f"{server.vendor}'s answer ended in the middle. Ask again."
    return AttemptFailed(ModelFailed("broken_stream", sentence), can_retry=True)


def make_format_failure(server: ModelServer, about: str) -> AttemptFailed:
    """The failure of a stream that holds something else than its format."""
    sentence = (
        f"{server.url} answered with something that is not a model's stream ({about}). "
        f"Check {server.address_variable}."
    )
    return AttemptFailed(ModelFailed("broken_stream", sentence), can_retry=False)


def _classify_failure(status: int, words: ErrorBody) -> Failure:
    if status in (400, 413, 422, 500) and words.hold(_TOO_LONG):
        return "too_long"
    if status == 529 or words.kind == "overloaded_error":
        return "overloaded"
    by_status: dict[int, Failure] = {
        401: "authentication", 403: "authentication", 402: "rate_limited", 404: "not_found",
        408: "timed_out", 413: "too_long", 429: "rate_limited", 504: "timed_out",
    }  # fmt: skip
    return by_status.get(status, "overloaded" if status >= 500 else "bad_request")


def _describe_failure(server: ModelServer, failure: Failure, status: int, words: ErrorBody) -> str:
    said = f" It says: {words.message.strip()}" if words.message.strip() else ""
    who = server.vendor
    if 300 <= status < 400:
        return f"{server.url} answered {status}, a redirect. Set {server.address_variable} anew."
    if failure == "rate_limited" and words.hold(_NO_MONEY):
        return f"{who} refused because the account has no quota left ({status}).{said}"
    sentences: dict[str, str] = {
        "authentication": (
            f"{who} refused the key ({status}). Check {server.key_variable} "
            f"and that it may use {server.model!r}.{said}"
        ),
        "not_found": (
            f"{server.url} knows no model {server.model!r} or no such address ({status}). "
            f"Check --model and {server.address_variable}.{said}"
        ),
        "rate_limited": f"{who} limits how much may be asked at a time ({status}).{said}",
        "overloaded": f"{who} cannot answer at the moment ({status}).{said}",
        "timed_out": f"{who} took too long ({status}).{said}",
        "too_long": f"The conversation is too long for {server.model!r} ({status}).{said}",
        "bad_request": f"{who} refused the request ({status}).{said}",
        "broken_stream": f"{who} broke off its answer.{said}",
    }
    return sentences[failure]
