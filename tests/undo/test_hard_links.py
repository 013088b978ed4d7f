"""Files with several names: whichever name a call or a person uses, undo gives back all of them."""

import os
from pathlib import Path
from random import Random

import pytest
from tests.undo.commanding import whole_tree

from handaxe import Session

NAMES = "abh"
RUNS = 12
JOINED = "person ln a h"
ORDERS = [
    ["ln -f a h", "edit a"],
    ["cp a b", JOINED, "mv -f a b"],
    ["ln -f b a", "edit a", "edit a"],
    [JOINED, "edit a", "echo one >> h"],
    [JOINED, "edit a", "edit h"],
    [JOINED, "edit a", "sed -i s/one/uno/ a"],
    [JOINED, "edit a", "rm -f a", "sh -c 'cp b a'"],
    [JOINED, "edit h", "sh -c 'ln -f b h'"],
    [JOINED, "edit h", "mv -f h b", "edit b"],
    [JOINED, "rm -f h", "mv -f a h"],
    ["sed -i s/one/uno/ b", JOINED, "sh -c 'sed -i s/one/uno/ a'"],
    ["sed -i s/one/uno/ b", JOINED, "sh -c 'rm -f h'"],
    ["sed -i s/one/uno/ b", JOINED, "rm -f a"],
    ["sed -i s/one/uno/ b", JOINED, "chmod 600 h"],
]


class Project:
    """A project with calls that change it, and what it was before each of them."""

    def __init__(self, session: Session, root: Path) -> None:
        self.session = session
        self.root = root
        self.before: list[tuple[str, dict]] = []

    async def do(self, step: str) -> None:
        words = step.split()
        if words[0] == "person":
            # What people do between calls is not to be undone, so only later calls count.
            self.before.clear()
            (self.root / words[3]).unlink(missing_ok=True)
            os.link(self.root / words[2], self.root / words[3])
            return
        tree = whole_tree(self.root)
        if words[0] == "edit":
            await self.session.call("Read", file_path=words[1], limit=5)
            change = {"old_string": "one", "new_string": "one more", "replace_all": True}
            result = await self.session.call("Edit", file_path=words[1], **change)
        else:
            result = await self.session.call("Bash", command=step)
        if whole_tree(self.root) == tree:
            return
        if result.id in {call.call_id for call in self.session.history()}:
            self.before.append((result.id, tree))
        else:
            self.before.clear()


def open_project(root: Path, large: Random | None = None) -> Project:
    root.mkdir(exist_ok=True)
    for name in "ab":
        (root / name).write_text(f"one {name}\n" * (large.choice([1, 4000]) if large else 1))
    return Project(Session(root, permission_mode="bypassPermissions"), root)


@pytest.mark.proves("BT-32")
@pytest.mark.parametrize("steps", ORDERS, ids="; ".join)
async def test_every_name_of_a_file_is_undone_from_the_first_call(project, steps):
    one = open_project(project)
    async with one.session:
        for step in steps:
            await one.do(step)
        call_id, tree = one.before[0]
        result = await one.session.undo(call_id)
        assert result.ok, result.text
        assert whole_tree(project) == tree


async def test_another_name_that_a_person_gave_to_another_file_since_is_left_alone(project):
    one = open_project(project)
    async with one.session:
        for step in [JOINED, "edit a", "sed -i s/one/uno/ a"]:
            await one.do(step)
        (project / "h").unlink()
        (project / "h").write_text("of a person\n")
        assert (await one.session.undo(one.before[0][0])).ok
        assert (project / "a").read_text() == "one a\n"
        assert (project / "h").read_text() == "of a person\n"


def pick_step(random: Random) -> str:
    one, other = random.choice(NAMES), random.choice(NAMES)
    if random.random() < 0.3 and one != other:
        return f"person ln {one} {other}"
    if random.random() < 0.4:
        return f"edit {one}"
    command = random.choice(
        [
            "ln -f {} {}",
            "mv -f {} {}",
            "cp {} {}",
            "rm -f {}",
            "echo one >> {}",
            "sed -i s/one/uno/ {}",
        ]
    ).format(one, other)
    return random.choice([command, f"sh -c '{command}'"])


async def test_links_calls_and_people_in_any_order_are_undone_exactly(project):
    for seed in range(RUNS):
        random = Random(seed)
        one = open_project(project / str(seed), random)
        async with one.session:
            steps = [pick_step(random) for _ in range(random.randint(3, 5))]
            for step in steps:
                needed = step.split()[-2 if step.startswith("person") else 1]
                if step.startswith(("person", "edit")) and not (one.root / needed).exists():
                    continue
                await one.do(step)
            if one.before:
                call_id, tree = random.choice(one.before)
                result = await one.session.undo(call_id)
                assert result.ok, (seed, steps, result.text)
                assert whole_tree(one.root) == tree, (seed, steps)


@pytest.mark.parametrize("text", ["", "one\n", "one\n" * 30_000])
async def test_a_redo_joins_a_file_to_a_name_that_only_a_person_knows_of(project, text):
    async with Session(project, permission_mode="acceptEdits") as session:
        written = await session.call("Write", file_path="b", content=text)
        os.link(project / "b", project / "a")
        tree = whole_tree(project)
        assert (await session.undo(written.id)).ok
        assert not (project / "b").exists()
        assert (await session.redo()).ok
        assert whole_tree(project) == tree
        assert (project / "a").samefile(project / "b")
