"""When an attempt is made again, and after which pause.

The same rules as the vendors' own clients: what the server says in its headers comes first, then
the status, then growing pauses with some chance in them.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping

from handaxe.contract.ports.model import ModelEvent, ModelFailed, Retrying

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
