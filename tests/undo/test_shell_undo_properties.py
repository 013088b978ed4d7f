"""Whatever commands do to a tree, in whatever order: undo goes back through every earlier tree."""

import asyncio
import os
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.undo.commanding import open_session, run, whole_tree

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
PATHS = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "d", "d/e", "n\nl", "f/g/h"])
WORDS = st.sampled_from(["true", "echo one", "printf two", "printf %70000d 1"])
MODES = st.sampled_from(["600", "644", "755", "444", "700"])


@st.composite
def operations(draw: st.DrawFn) -> str:
    """One thing a shell can do to a tree; it may well fail."""
    one, other = shlex.quote(draw(PATHS)), shlex.quote(draw(PATHS))
    word = draw(WORDS)
    return draw(
        st.sampled_from(
            [
                f"{word} > {one}",
                f"{word} >> {one}",
                f"mkdir -p {one}",
                f"rmdir {one}",
                f"rm -rf {one}",
                f"rm -f {one}",
                f"mv {one} {other}",
                f"mv -T {one} {other}",
                f"cp -r {one} {other}",
                f"ln -s {other} {one}",
                f"ln -sfn ../{other} {one}",
                f"ln {one} {other}",
                f"ln -f {one} {other}",
                f"chmod {draw(MODES)} {one}",
                f"chmod -R {draw(MODES)} {one}",
                f"sed -i s/o/0/g {one}",
                f"touch {one}",
                "touch $'caf\\xe9'",
                "rm -f $'caf\\xe9'",
            ]
        )
    )


@pytest.mark.proves("SH-8")
@settings(max_examples=40, derandomize=True)
@given(
    st.lists(operations(), max_size=8),
    st.lists(st.lists(operations(), min_size=1, max_size=5), min_size=1, max_size=4),
    st.booleans(),
)
def test_undo_and_redo_go_through_every_tree_that_commands_made(first, commands, in_git):
    place = Path(tempfile.mkdtemp(prefix="commanded-", dir=IN_MEMORY))
    root = place / "project"
    root.mkdir()
    try:
        asyncio.run(_there_and_back(root, place / "home", first, commands, in_git=in_git))
    finally:
        for directory, _, _ in os.walk(place):
            os.chmod(directory, 0o700)
        shutil.rmtree(place)


async def _there_and_back(root, home, first, commands, *, in_git: bool) -> None:
    async with open_session(root, home, "one") as session:
        init = ["git init -q", "git add -A 2>/dev/null"] if in_git else []
        await _shell(root, [*init[:1], *first, *init[1:]])
        trees = [whole_tree(root)]
        for command in commands:
            text = "\n".join(f"({part}) 2>/dev/null" for part in command)
            await run(session, root, f"umask 022\n{text}\ntrue")
            now = whole_tree(root)
            if now != trees[-1]:
                trees.append(now)
        await _go(session, root, trees[-2::-1], redo=False)
    async with open_session(root, home, "one") as session:
        await _go(session, root, trees[1:], redo=True)
        await _go(session, root, trees[-2::-1], redo=False)
        assert (await session.undo()).code == "undo.nothing"


async def _go(session, root, trees, *, redo: bool) -> None:
    for tree in trees:
        result = await session.undo(redo=redo)
        assert result.ok, result.text
        assert whole_tree(root) == tree


async def _shell(root: Path, commands: list[str]) -> None:
    text = "\n".join(f"({part}) 2>/dev/null" for part in commands) + "\ntrue"
    process = await asyncio.create_subprocess_exec("bash", "-c", f"umask 022\n{text}", cwd=root)
    assert await process.wait() == 0
