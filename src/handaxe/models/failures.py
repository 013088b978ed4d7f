"""Failures of model servers: what they mean, whether to retry, and what the user can do."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from handaxe.contract.ports.model import Failure, ModelEvent, ModelFailed, Retrying
from handaxe.models.http.transport import TransportFailed

MAX_RETRIES = 10
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
LONGEST_ASKED_PAUSE_S = 120.0
"""If a server asks for a longer pause, the request fails instead."""

_RETRIED = (408, 409, 429)


class AttemptFailed(Exception):
    """One attempt failed."""

    def __init__(
        self,
        failure: ModelFailed,
        *,
        can_retry: bool,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(failure.sentence)
        self.failure = failure
        self.can_retry = can_retry
        self.headers = headers or {}


async def retry_attempts(
    attempt: Callable[[], AsyncGenerator[ModelEvent, None]], max_retries: int = MAX_RETRIES
) -> AsyncGenerator[ModelEvent, None]:
    """The events of the first attempt that succeeds, with a `Retrying` before each new one.

    After the first event there is no other attempt, because its text would come twice.
    """
    for taken in range(max_retries + 1):
        has_output = False
        events = attempt()
        try:
            async for event in events:
                has_output = True
                yield event
        except AttemptFailed as failed:
            if has_output or not failed.can_retry or taken == max_retries:
                raise failed.failure from failed
            again = failed
        else:
            return
        finally:
            await events.aclose()
        delay_s = compute_backoff_s(taken, again.headers)
        yield Retrying(
            attempt=taken + 1,
            delay_s=delay_s,
            status=again.failure.status,
            sentence=again.failure.sentence,
        )
        await asyncio.sleep(delay_s)


def can_retry(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the same request may succeed later."""
    asked_s = read_retry_after_s(headers)
    if asked_s is not None and asked_s > LONGEST_ASKED_PAUSE_S:
        return False
    advice = headers.get("x-should-retry")
    if advice in ("true", "false"):
        return advice == "true"
    return status in _RETRIED or status >= 500


def compute_backoff_s(retries_taken: int, headers: Mapping[str, str]) -> float:
    """How long to wait before the next attempt."""
    asked_s = read_retry_after_s(headers)
    if asked_s is not None and 0 < asked_s <= LONGEST_ASKED_PAUSE_S:
        return asked_s
    grown_s = min(FIRST_PAUSE_S * 2.0 ** min(retries_taken, 10), LONGEST_PAUSE_S)
    import random

    return grown_s * (1 - 0.25 * random.random())  # noqa: S311 - spreads clients, guards nothing


def read_retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The pause that the server asks for: milliseconds, seconds or a date."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None or not asked:
        return seconds
    from email.utils import mktime_tz, parsedate_tz

    date = parsedate_tz(asked)
    try:
        return None if date is None else mktime_tz(date) - time.time()
    except (OverflowError, ValueError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if number - number == 0 else None


_MAX_WORDS_CHARS = 600

_TOO_LONG = (
    r"prompt is too long|context.?length|context.?window|context.?size|context limit"
    r"|maximum.{0,20}context|too many (input )?tokens|request.?too.?large"
    r"|reduce the length of the (messages|prompt|input)|exceeds? the (model'?s )?maximum"
)
_NO_MONEY = r"insufficient_quota|billing|credit balance|exceeded your current quota"

_KINDS: dict[str, tuple[Failure, int]] = {
    # Names of errors within a stream that began with status 200.
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
    """The server of a model, for error messages."""

    vendor: str
    url: str
    model: str
    key_variable: str
    address_variable: str


class ErrorBody(NamedTuple):
    """The parts of the body of an error."""

    message: str
    kind: str
    code: str

    def has_match(self, pattern: str) -> bool:
        """Whether the pattern matches any part."""
        everything = f"{self.message} {self.kind} {self.code}"
        return re.search(pattern, everything, re.IGNORECASE) is not None


def parse_error_body(body: Any) -> ErrorBody:  # noqa: ANN401 - decoded JSON, text or bytes
    """The message, type and code, in any form that servers use."""
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
    given = fields.get("message") or fields.get("detail") or ""
    message = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    kind, code = fields.get("type"), fields.get("code")
    return ErrorBody(message[:_MAX_WORDS_CHARS], str(kind or ""), str(code or ""))


def make_status_failure(
    server: ModelServer,
    status: int,
    headers: Mapping[str, str],
    body: Any,  # noqa: ANN401
) -> AttemptFailed:
    """The failure for an error status."""
    words = parse_error_body(body)
    return _make_failure(server, _classify_failure(status, words), status, words, headers)


def make_stream_failure(server: ModelServer, body: Any) -> AttemptFailed:  # noqa: ANN401
    """The failure for an error that arrived as an event of a stream."""
    words = parse_error_body(body)
    failure, status = _KINDS.get(words.kind, ("broken_stream", 500))
    if words.code.isdecimal() and words.kind not in _KINDS:
        status = int(words.code)
        failure = _classify_failure(status, words)
    if words.has_match(_TOO_LONG):
        failure = "too_long"
    return _make_failure(server, failure, status, words, {})


def _make_failure(
    server: ModelServer,
    failure: Failure,
    status: int,
    words: ErrorBody,
    headers: Mapping[str, str],
) -> AttemptFailed:
    sentence = _describe_failure(server, failure, status, words)
    asked_s = read_retry_after_s(headers)
    if asked_s is not None and asked_s > 0 and failure in ("rate_limited", "overloaded"):
        sentence += f" The server asks for a pause of {asked_s:.0f} s."
    may_help = can_retry(status, headers) and not words.has_match(_NO_MONEY)
    failed = ModelFailed(failure, sentence, status=status)
    return AttemptFailed(failed, can_retry=may_help, headers=headers)


def make_transport_failure(server: ModelServer, failed: TransportFailed) -> AttemptFailed:
    """The failure for a connection that could not be made or broke."""
    advice = f" Check the network and {server.address_variable}."
    sentence = failed.sentence + (advice if failed.how == "unreachable" else "")
    return AttemptFailed(ModelFailed(failed.how, sentence), can_retry=True)


def make_truncation_failure(server: ModelServer) -> AttemptFailed:
    """The failure for a stream that ended before its last event."""
    sentence = f"The answer of {server.vendor} ended too early. Send the request again."
    return AttemptFailed(ModelFailed("broken_stream", sentence), can_retry=True)


def make_format_failure(server: ModelServer, about: str) -> AttemptFailed:
    """The failure for an answer in another format."""
    sentence = (
        f"{server.url} did not answer in the format of a model server ({about}). "
        f"Check {server.address_variable}."
    )
    return AttemptFailed(ModelFailed("broken_stream", sentence), can_retry=False)


def _classify_failure(status: int, words: ErrorBody) -> Failure:
    if status in (400, 413, 422, 500) and words.has_match(_TOO_LONG):
        return "too_long"
    if status == 529 or words.kind == "overloaded_error":
        return "overloaded"
    by_status: dict[int, Failure] = {
        401: "authentication", 403: "authentication", 402: "rate_limited", 404: "not_found",
        408: "timed_out", 413: "too_long", 429: "rate_limited", 504: "timed_out",
    }  # fmt: skip
    return by_status.get(status, "overloaded" if status >= 500 else "bad_request")


def _describe_failure(server: ModelServer, failure: Failure, status: int, words: ErrorBody) -> str:
    said = f" The server says: {words.message.strip()}" if words.message.strip() else ""
    who = server.vendor
    if 300 <= status < 400:
        return (
            f"{server.url} redirects ({status}). Set {server.address_variable} to the new address."
        )
    if failure == "rate_limited" and words.has_match(_NO_MONEY):
        return f"The quota of the account at {who} is used up ({status}).{said}"
    sentences: dict[str, str] = {
        "authentication": (
            f"{who} rejected the key ({status}). Check {server.key_variable} "
            f"and that the key may use {server.model!r}.{said}"
        ),
        "not_found": (
            f"{server.url} does not have the model {server.model!r} ({status}). "
            f"Check --model and {server.address_variable}.{said}"
        ),
        "rate_limited": f"The rate limit of {who} is reached ({status}).{said}",
        "overloaded": f"{who} is overloaded or has an error ({status}).{said}",
        "timed_out": f"{who} did not answer in time ({status}).{said}",
        "too_long": f"The conversation is too long for {server.model!r} ({status}).{said}",
        "bad_request": f"{who} refused the request ({status}).{said}",
        "broken_stream": f"{who} ended its answer with an error.{said}",
    }
    return sentences[failure]
