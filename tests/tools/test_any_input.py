"""Whatever a model sends to whatever tool, there is one result, and it is never our own mistake."""

import asyncio
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.waiting import HANG_S

from handaxe import Session
from handaxe.app.session import get_parts
from handaxe.contract.events import CallFinished, CallStarted
from handaxe.schema.tool_schema import build_input_schema
from handaxe.storage.event_log import LoggedEvents
from handaxe.storage.sessions import LOG_NAME
from handaxe.tools import BUILTIN, build_loaders

EXAMPLES = int(os.environ.get("HANDAXE_FUZZ_EXAMPLES", "60"))

NAMES = st.sampled_from(
    ["a.txt", "b.bin", "n.ipynb", "sub", "sub/x.py", "missing", "link", "loop", "fifo", ".", "..", "/", "",
     "~", "~x", "a\0b", "x" * 300, "/etc/passwd", "/dev/null", "/proc/self/mem", "sub/../a.txt", "\udcff", "é"]
)  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=20)
    | NAMES
    | st.sampled_from(
        ["1", "-1", "true", "[", "{}", "*", "**/*", "(", "(?i)x", "--pre=x", "\\", "one"]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3),
    max_leaves=6,
)


def fields_of(tool):
    return list(build_input_schema(build_loaders()[tool]().args_type)["properties"])


def inputs_for(tool):
    fields = fields_of(tool)
    known = st.dictionaries(st.sampled_from(fields), SCALARS, min_size=1) if fields else st.just({})
    return known | st.dictionaries(st.sampled_from([*fields, "x"]), VALUES) | VALUES


def fill(root: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "b.bin").write_bytes(bytes(range(256)))
    (root / "n.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    (root / "sub").mkdir()
    (root / "sub/x.py").write_text("x = 1\n")
    (root / "link").symlink_to("a.txt")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "fifo")


@pytest.mark.proves("PL-2")
@pytest.mark.parametrize("tool", BUILTIN)
def test_no_input_is_too_strange(tool):
    @given(st.lists(inputs_for(tool), min_size=1, max_size=3))
    @settings(max_examples=EXAMPLES, database=None)
    def send(inputs):
        async def play():
            with tempfile.TemporaryDirectory() as directory:
                root = Path(directory) / "p"
                root.mkdir()
                fill(root)
                async with Session(
                    root, permission_mode="acceptEdits", home=Path(directory) / "h"
                ) as session:
                    await session.call("Read", file_path="a.txt")
                    for call_input in inputs:
                        async with asyncio.timeout(HANG_S):
                            if tool == "Sleep":
                                # It waits as long as it is told; here nobody wants to.
                                asyncio.get_running_loop().call_later(0.05, session.cancel)
                            result = await session.run(call(session, tool, call_input))
                        assert result.ok == (result.code is None)
                        assert result.code != "internal.error", (call_input, result.text)
                        result.to_json()

        asyncio.run(play())

    send()


def call(session, tool, call_input):
    from handaxe import ToolCall

    return ToolCall(get_parts(session).new_call_id(), tool, call_input)


class Unspeakable:
    """Cannot even say what it is."""

    def __repr__(self) -> str:
        raise ValueError("no")


def without_end():
    ring: dict[str, object] = {}
    ring["x"] = ring
    return ring


def very_deep():
    nested: list[object] = []
    for _ in range(5_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize("make", [without_end, very_deep, Unspeakable, lambda: 10**5_000])
async def test_what_no_log_can_hold_is_refused_and_all_else_is_kept(project, make):
    def ends(session_id):
        home = Path(os.environ["HANDAXE_HOME"], "sessions", session_id)
        return [event for _, event in LoggedEvents(home / LOG_NAME)]

    async with Session(project) as session:
        for given in (
            {"file_path": make()},
            {"x": {"y": make()}},
            {"file_path": "a", "limit": make()},
        ):
            assert (await session.call("Read", given)).code == "call.bad_input"
            both = await session.call_many([("Read", given), ("Glob", {"pattern": "*"})])
            assert [result.code for result in both] == ["call.bad_input", None]
    logged = ends(session.id)
    assert sum(isinstance(event, CallStarted) for event in logged) == 9
    assert sum(isinstance(event, CallFinished) for event in logged) == 9
