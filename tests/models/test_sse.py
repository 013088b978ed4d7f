"""Events come out the same however the bytes were cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.models import http_stream as sse
from handaxe.models.http_stream import EventParser, EventTooLong, ServerEvent

LINE = st.one_of(
    st.sampled_from(
        ["", "", "event: x", "data: a", "data:b", "data", "data: ", ": comment", "id: 7", "retry: 1",
         "event:", "data: ä€😀", "unknown: y", "data:  two blanks", "data: [DONE]", ":"]
    ),
    st.text(alphabet=st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=12),
)  # fmt: skip
BREAK = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def streams(draw) -> bytes:
    lines = draw(st.lists(st.tuples(LINE, BREAK), max_size=20))
    start = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return start + "".join(line + ending for line, ending in lines).encode()


def parsed(pieces) -> list[ServerEvent]:
    parser = EventParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.end()


@given(streams(), st.lists(st.integers(0, 400)))
def test_any_way_to_cut_a_stream_gives_the_same_events(stream: bytes, cuts: list[int]):
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert parsed(pieces) == parsed([stream])
    assert parsed(bytes([byte]) for byte in stream) == parsed([stream])


@given(streams())
def test_the_official_client_reads_the_same_events(stream: bytes):
    from anthropic._streaming import SSEDecoder

    # Theirs drops an event without its empty line, and gives events that have only an id.
    whole = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n\n"
    if whole.startswith(b"\xef\xbb\xbf"):
        return
    theirs = [(sse.event or "", sse.data) for sse in SSEDecoder().iter_bytes(iter([whole]))]
    ours = [tuple(event) for event in parsed([whole])]
    assert [each for each in ours if each[1]] == [each for each in theirs if each[1]]


def test_lines_of_data_are_joined_and_comments_are_passed_over():
    events = parsed([b": hi\nevent: a\ndata: 1\n: more\ndata: 2\nid: 3\n\ndata: x\n\n"])
    assert events == [("a", "1\n2"), ("", "x")]


def test_an_event_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    parser = EventParser()
    parser.feed(b"data: 1\n\n" + b"x" * 900)
    with pytest.raises(EventTooLong):
        parser.feed(b"y" * 200)
