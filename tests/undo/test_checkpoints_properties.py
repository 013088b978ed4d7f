"""Whatever mix of calls, failures and crashes: undo gives every earlier tree back, to the byte."""

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.undo.undoable import NOTEBOOK, in_a_process, open_session, tree

NAMES = st.sampled_from(["a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "big.txt"])
TEXTS = st.sampled_from(["", "one\n", "one\ntwo\n", "dos\r\nlines\r\n", "ä€\n", "BIG"])
# A kill loses nothing that was written, so the tree may as well be in memory.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
MODES = st.sampled_from([0o600, 0o644, 0o755, 0o444])


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[tuple[str, dict]], int | None]:
    """One change with the Read it needs, and where it is killed, if it is."""
    name = draw(NAMES)
    kind = draw(
        st.sampled_from(
            [
                *("Write", "Write", "Edit", "NotebookEdit", "set_mode", "remove", "overwrite"),
                *("link", "move", "shake"),
            ]
        )
    )
    read = ("Read", {"file_path": "n.ipynb" if kind == "NotebookEdit" else name})
    change = {
        "Write": ("Write", {"file_path": name, "content": draw(TEXTS)}),
        "Edit": ("Edit", {"file_path": name, "old_string": "one", "new_string": "uno"}),
        "NotebookEdit": (
            "NotebookEdit",
            {"notebook_path": "n.ipynb", "cell_id": "c", "new_source": draw(TEXTS)},
        ),
        "set_mode": ("set_mode", {"path": name, "mode": draw(MODES)}),
        "remove": ("remove", {"path": name}),
        "overwrite": ("overwrite", {"path": name, "content": draw(TEXTS)}),
        "link": ("make_link", {"path": name, "target": "a.txt"}),
        "move": ("move", {"path": name, "to": draw(NAMES)}),
        "shake": ("shake", {"path": "d"}),
    }[kind]
    return [read, change], draw(st.none() | st.integers(0, 30))


@pytest.mark.proves("SS-4")
@settings(max_examples=25, derandomize=True)
@given(st.lists(calls(), min_size=1, max_size=7))
def test_undo_restores_every_earlier_tree_after_any_mix_of_calls_and_crashes(mix):
    place = Path(tempfile.mkdtemp(prefix="undoable-", dir=IN_MEMORY))
    root, home = place / "project", place / "home"
    root.mkdir()
    (root / "a.txt").write_text("one\nand only\n")
    (root / "n.ipynb").write_text(NOTEBOOK)
    (root / "d").mkdir()
    try:
        earlier = _play(mix, root, home)
        asyncio.run(_go_back(earlier, root, home))
    finally:
        shutil.rmtree(place)


def _play(mix, root: Path, home: Path) -> list[dict]:
    """The trees before each call that changed something."""
    earlier: list[dict] = []
    for made, kill_at in mix:
        before = tree(root)
        absolute = [(name, _absolute(given_input, root)) for name, given_input in made]
        in_a_process(root, home, absolute, kill_at)
        if tree(root) != before:
            earlier.append(before)
    return earlier


def _absolute(call_input: dict, root: Path) -> dict:
    paths = ("file_path", "notebook_path", "path", "to")
    filled = {key: "x" * 70_000 if value == "BIG" else value for key, value in call_input.items()}
    return {key: str(root / value) if key in paths else value for key, value in filled.items()}


async def _go_back(earlier: list[dict], root: Path, home: Path) -> None:
    last = tree(root)
    async with open_session(root, home) as session:
        for before in reversed(earlier):
            result = await session.undo()
            assert result.ok, result.text
            assert tree(root) == before
        result = await session.undo()
        assert result.code == "undo.nothing", (result.text, session.history())
        while (result := await session.undo(redo=True)).ok:
            pass
        assert result.code == "undo.nothing", result.text
        # Empty directories that a crash left are put away for good.
        assert _without_directories(tree(root)) == _without_directories(last)


def _without_directories(found: dict[str, tuple]) -> dict[str, tuple]:
    return {name: what for name, what in found.items() if what != ("directory",)}
