"""What a server's refusal means, and what a person can do about it."""

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
"""A server that wants more time than this is not waited for: the person is told instead."""

_RETRIED = (408, 409, 429)


class AttemptFailed(Exception):
    """One attempt failed; whether another may help."""

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

    Once something was said there is no second attempt: it would be said twice.
    """
    for taken in range(max_retries + 1):
        has_spoken = False
        events = attempt()
        try:
            async for event in events:
                has_spoken = True
                yield event
        except AttemptFailed as failed:
            if has_spoken or not failed.can_retry or taken == max_retries:
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
    wish = headers.get("x-should-retry")
    if wish in ("true", "false"):
        return wish == "true"
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
    """The pause the server asks for: milliseconds, seconds or a date."""
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
        # No calendar has such a day.
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
