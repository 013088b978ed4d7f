"""Worktrees run nothing that a repository names, and are made nowhere but in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from players import Player, calls, says
from tests.expected_types import get_result_text
from tests.git.repositories import SLOTS, Canary, git, make_repository

from handaxe import Agent, Allow, Deny, Session
from handaxe.agent.subagents.git_worktree import NoWorktree, close_worktree, open_worktree
from handaxe.config.settings import WorktreeOptions
from handaxe.config.trust_store import TrustRecord
from handaxe.contract.decision import PermissionRequest
from handaxe.storage.home import find_data_home

NEUTRAL = {
    "core.fsmonitor", "core.pager", "core.editor", "core.hooksPath", "diff.external",
    "diff.command", "diff.textconv", "merge.driver", "gpg.program", "alias",
}  # fmt: skip
"""What our own settings overrule, or git never reads for a worktree: such a repository needs no trust."""


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "canary")


@pytest.fixture
def repository(project: Path) -> Path:
    return make_repository(project)


async def start(root: Path, **options: Any) -> str:
    """What an agent is told that starts another one in a worktree."""
    async with Session(root, **options) as session:
        given = {"description": "x", "prompt": "y", "isolation": "worktree"}
        model = Player(calls(("t1", "Agent", given)), says("Done."), says("Done."))
        await Agent(model, session).ask("Go.")
    return get_result_text(model.requests[-1].messages[-1].content[0])


@pytest.mark.parametrize("slot", sorted(SLOTS.keys() - NEUTRAL))
async def test_a_worktree_runs_no_program_that_the_repository_names(
    slot: str, repository: Path, canary: Canary
):
    canary.set(repository / ".git/config", slot)
    with pytest.raises(NoWorktree, match=r"in .*/\.git/config"):
        await open_worktree(str(repository), "w")
    assert not (repository / ".claude").exists()
    assert not canary.has_run


async def test_programs_that_git_is_kept_from_need_no_trust(repository: Path, canary: Canary):
    for slot in NEUTRAL:
        canary.set(repository / ".git/config", slot)
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        (repository / ".git/hooks" / name).symlink_to(canary.program)
    made = await open_worktree(str(repository), "w")
    assert not await close_worktree(made.path, made.branch, made.base)
    assert not canary.has_run


async def test_before_trust_a_filter_of_the_repository_is_refused(repository: Path, canary: Canary):
    canary.set(repository / ".git/config", "filter.smudge")

    async def on_ask(_request: PermissionRequest) -> Allow | Deny:
        raise AssertionError("nobody is asked before the folder is trusted")

    told = await start(repository, on_ask=on_ask)
    assert "filter.x.smudge in " in told
    assert "handaxe trust" in told
    assert not canary.has_run


@pytest.mark.parametrize("answer", ["yes", "no", "nobody"])
async def test_after_trust_a_person_is_asked_about_filters(
    repository: Path, canary: Canary, answer: str
):
    canary.set(repository / ".git/config", "filter.smudge")
    TrustRecord(find_data_home()).trust(str(repository), {})
    asked: list[PermissionRequest] = []

    async def on_ask(request: PermissionRequest) -> Allow | Deny:
        asked.append(request)
        return Allow(by="user") if answer == "yes" else Deny("Not here.", by="user")

    told = await start(repository, **({} if answer == "nobody" else {"on_ask": on_ask}))
    assert canary.has_run is (answer == "yes")
    assert ("filter.x.smudge" in told) is (answer != "yes")
    assert len(asked) == (answer != "nobody")
    assert all(str(canary.program) in request.reason for request in asked)
    # Nothing was changed, so the worktree is gone, whatever the answer was.
    assert git(repository, "worktree", "list").count("\n") == 0


async def test_a_yes_holds_for_the_programs_it_was_given_for(repository: Path, canary: Canary):
    config = repository / ".git/config"
    plain = config.read_text()
    asked: list[str] = []

    async def on_ask(request: PermissionRequest) -> Allow | Deny:
        asked.append(request.reason)
        return Allow(by="user")

    async with Session(repository, on_ask=on_ask, trusted=True) as session:
        model = Player()
        agent = Agent(model, session)
        given = {"description": "x", "prompt": "y", "isolation": "worktree"}
        for slot, questions in (
            ("filter.smudge", 1), ("filter.smudge", 1), ("filter.process", 2), ("include", 3),
            ("include", 4),
        ):  # fmt: skip
            config.write_text(plain + canary.config(slot))
            model._turns += [
                calls((f"t{len(model.requests)}", "Agent", given)), says("Done."), says("Done."),
            ]  # fmt: skip
            await agent.ask("Go.")
            assert len(asked) == questions, slot


async def test_nobody_is_asked_in_a_mode_without_questions(repository: Path, canary: Canary):
    canary.set(repository / ".git/config", "filter.smudge")

    async def on_ask(_request: PermissionRequest) -> Allow | Deny:
        raise AssertionError("nobody wants to be asked")

    told = await start(repository, on_ask=on_ask, trusted=True, permission_mode="dontAsk")
    assert "this run cannot ask for approval" in told
    assert not canary.has_run


async def test_filters_of_the_user_are_the_users(
    repository: Path, canary: Canary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "gitconfig").write_text(canary.config("filter.smudge"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    await open_worktree(str(repository), "w")
    assert canary.has_run


def link(place: Path, outside: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)


LINKS: dict[str, Callable[[Path, Path], None]] = {
    ".claude": lambda root, outside: link(root / ".claude", outside),
    ".claude/worktrees": lambda root, outside: link(root / ".claude/worktrees", outside),
    "the worktree": lambda root, outside: link(root / ".claude/worktrees/w", outside),
    ".git/worktrees": lambda root, outside: link(root / ".git/worktrees", outside),
    ".git/logs": lambda root, outside: (
        (root / ".git/logs").rename(root / ".git/old"),
        link(root / ".git/logs", outside),
    )[-1],
}


@pytest.mark.parametrize("shape", LINKS)
async def test_no_link_leads_a_worktree_elsewhere(shape: str, repository: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    LINKS[shape](repository, outside)
    with pytest.raises(NoWorktree, match="is a link"):
        await open_worktree(str(repository), "w")
    assert list(outside.iterdir()) == []


@pytest.mark.proves("BT-12")
async def test_a_committed_link_is_refused_before_anything_is_written(
    repository: Path, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    LINKS[".claude/worktrees"](repository, outside)
    git(repository, "add", ".claude")
    git(repository, "commit", "-qm", "a link")
    assert "is a link" in await start(repository)
    assert list(outside.iterdir()) == []


async def test_files_of_ours_are_not_written_through_links(repository: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    folder = repository / ".claude/worktrees"
    folder.mkdir(parents=True)
    (folder / ".gitignore").symlink_to(outside)
    (repository / ".gitignore").write_text("node_modules/\n")
    (repository / "node_modules").mkdir()
    (repository / "node_modules/x").touch()
    exclude = repository / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.unlink(missing_ok=True)
    exclude.symlink_to(outside)
    options = WorktreeOptions(symlink_directories=("node_modules",))
    with pytest.raises(NoWorktree, match="node_modules cannot be linked"):
        await open_worktree(str(repository), "w", options=options)
    assert not outside.exists()


async def test_included_files_are_not_copied_through_a_link(repository: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository / "d").symlink_to(outside)
    (repository / ".gitignore").write_text(".env\n")
    (repository / ".worktreeinclude").write_text(".env\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "a link")
    (repository / "d").unlink()
    (repository / "d").mkdir()
    (repository / "d/.env").write_text("KEY=1\n")
    await open_worktree(str(repository), "w")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("pointer", ["", "gitdir: {canary}\n"])
async def test_a_directory_that_is_no_worktree_of_ours_is_not_used(
    pointer: str, repository: Path, tmp_path: Path, canary: Canary
):
    other = make_repository(tmp_path / "other")
    canary.set(other / ".git/config", "core.fsmonitor")
    place = repository / ".claude/worktrees/w"
    place.mkdir(parents=True)
    if pointer:
        (place / ".git").write_text(pointer.format(canary=other / ".git"))
    with pytest.raises(NoWorktree, match="not a worktree of this repository"):
        await open_worktree(str(repository), "w")
    assert await close_worktree(str(place), "worktree-w", "")
    assert not canary.has_run


async def test_a_filter_that_is_set_meanwhile_keeps_the_worktree(repository: Path, canary: Canary):
    made = await open_worktree(str(repository), "w")
    (Path(made.path) / "a").touch()
    canary.set(repository / ".git/config", "filter.clean")
    assert await close_worktree(made.path, made.branch, made.base)
    assert "locked" not in git(repository, "worktree", "list", "--porcelain")
    assert not canary.has_run
