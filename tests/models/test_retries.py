"""When an attempt is made again."""

import time
from email.utils import formatdate

import pytest

from handaxe.models.failures import can_retry, compute_backoff_s, read_retry_after_s


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {}, True), (500, {}, True), (529, {}, True), (408, {}, True), (409, {}, True),
        (400, {}, False), (401, {}, False), (404, {}, False), (422, {}, False),
        (400, {"x-should-retry": "true"}, True), (529, {"x-should-retry": "false"}, False),
        (429, {"retry-after": "119"}, True), (429, {"retry-after": "3600"}, False),
        (429, {"retry-after": "3600", "x-should-retry": "true"}, False),
    ],
)  # fmt: skip
def test_what_is_tried_again(status: int, headers: dict[str, str], expected: bool):
    assert can_retry(status, headers) is expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None), ({"retry-after": "2"}, 2.0), ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25), ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "x", "retry-after": "3"}, 3.0), ({"retry-after": "nan"}, None),
    ],
)  # fmt: skip
def test_the_pause_a_server_asks_for(headers: dict[str, str], expected: float | None):
    assert read_retry_after_s(headers) == expected


def test_a_date_is_a_pause_too():
    asked = read_retry_after_s({"retry-after": formatdate(time.time() + 30, usegmt=True)})
    assert asked is not None
    assert 28 < asked < 31


def test_pauses_grow_and_have_an_end():
    pauses = [compute_backoff_s(taken, {}) for taken in range(8)]
    for pause, most in zip(pauses, [0.5, 1, 2, 4, 8, 8, 8, 8], strict=True):
        assert most * 0.75 <= pause <= most


@pytest.mark.parametrize("headers", [{"retry-after": "0"}, {"retry-after": "-5"}])
def test_a_pause_of_nothing_is_not_obeyed(headers: dict[str, str]):
    assert compute_backoff_s(0, headers) > 0.3
