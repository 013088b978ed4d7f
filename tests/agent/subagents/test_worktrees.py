"""Agents with a checkout of their own: real git, real worktrees."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from players import Player, calls, ended, says
from tests.expected_types import expect_type, get_result_text, get_text

from handaxe import Agent, Session
from handaxe.agent.events import ToolAnswered
from handaxe.agent.subagents.git_worktree import NoWorktree, close_worktree, open_worktree
from handaxe.agent.subagents.registry import SpawnLimits
from handaxe.config.settings import WorktreeOptions
from handaxe.contract.messages import ToolResultBlock
from handaxe.contract.ports.model import ModelRequest


def git(directory: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
    done = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "-q", "-b", "main")
    (project / "a.txt").write_text("one\n")
    (project / "src").mkdir()
    (project / "src/b.txt").write_text("two\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    return project


def task(call_id: str = "t1", prompt: str = "Do it.", **more: object):
    return call_id, "Agent", {
        "description": "A task", "prompt": prompt, "isolation": "worktree", **more
    }  # fmt: skip


def worktrees(repository: Path) -> list[str]:
    return [line for line in git(repository, "worktree", "list").splitlines()[1:] if line]


def answer(seen: Sequence[object]):
    return next(event.result for event in seen if isinstance(event, ToolAnswered))


@pytest.mark.proves("BT-12")
async def test_changes_stay_in_the_worktree_and_are_named(repository: Path):
    async with Session(repository, permission_mode="acceptEdits") as session:
        model = Player(
            calls(task()),
            calls(("w1", "Write", {"file_path": "new.txt", "content": "x"})),
            says("Written."),
            says("Done."),
        )
        seen = [event async for event in Agent(model, session).run("Go.")]
    assert not (repository / "new.txt").exists()
    data = answer(seen).data
    place = Path(data["worktreePath"])
    assert place.parent == repository / ".claude/worktrees"
    assert (place / "new.txt").read_text() == "x"
    assert data["worktreeBranch"] == f"worktree-{place.name}"
    assert git(place, "branch", "--show-current") == data["worktreeBranch"]
    assert str(place) in answer(seen).text
    assert str(place) in "".join(model.requests[1].system)
    assert git(repository, "status", "--porcelain") == ""
    assert "locked" not in git(repository, "worktree", "list", "--porcelain")


async def test_a_worktree_without_changes_is_gone_afterwards(repository: Path):
    async with Session(repository) as session:
        model = Player(
            calls(task()), calls(("r1", "Read", {"file_path": "a.txt"})), says("x"), says("Done.")
        )
        seen = [event async for event in Agent(model, session).run("Go.")]
    assert "worktreePath" not in answer(seen).data
    assert worktrees(repository) == []
    assert git(repository, "branch", "--list", "worktree-*") == ""


async def test_a_commit_counts_as_a_change(repository: Path):
    made = await open_worktree(str(repository), "w")
    (Path(made.path) / "c").write_text("x")
    git(Path(made.path), "add", ".")
    git(Path(made.path), "commit", "-qm", "more")
    assert await close_worktree(made.path, made.branch, made.base)
    again = await open_worktree(str(repository), "w", base=made.base)
    assert again == made


@pytest.mark.proves("BT-12")
async def test_commits_on_its_branch_are_kept_wherever_its_head_is(repository: Path):
    made = await open_worktree(str(repository), "w")
    place = Path(made.path)
    (place / "c").write_text("x")
    git(place, "add", ".")
    git(place, "commit", "-qm", "more")
    git(place, "checkout", "-q", "--detach", made.base)
    assert await close_worktree(made.path, made.branch, made.base)
    assert git(repository, "log", "-1", "--format=%s", made.branch) == "more"


@pytest.mark.parametrize(
    ("name", "stays"),
    [("notes.local", True), ("sub/.env", True), ("a.pyc", False), ("build/out", False)],
)
async def test_ignored_files_are_kept_unless_a_build_leaves_them(
    repository: Path, name: str, stays: bool
):
    (repository / ".gitignore").write_text("*.local\n.env\n*.pyc\nbuild/\n")
    (repository / ".worktreeinclude").write_text(".env\n")
    (repository / ".env").write_text("KEY=1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "ignores")
    made = await open_worktree(str(repository), "w")
    assert (Path(made.path) / ".env").read_text() == "KEY=1\n"
    file = Path(made.path) / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("work\n")
    assert await close_worktree(made.path, made.branch, made.base) is stays
    assert file.exists() is stays


async def test_a_changed_copy_of_an_ignored_file_is_kept(repository: Path):
    (repository / ".gitignore").write_text(".env\n")
    (repository / ".worktreeinclude").write_text(".env\n")
    (repository / ".env").write_text("KEY=1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "ignores")
    made = await open_worktree(str(repository), "w")
    (Path(made.path) / ".env").write_text("KEY=2\n")
    assert await close_worktree(made.path, made.branch, made.base)


@pytest.mark.parametrize(("base_ref", "content"), [("head", "later\n"), ("fresh", "one\n")])
async def test_a_setting_says_what_a_worktree_begins_with(
    repository: Path, tmp_path: Path, base_ref: str, content: str
):
    origin = tmp_path / "origin"
    git(repository, "clone", "-q", "--bare", str(repository), str(origin))
    git(repository, "remote", "add", "origin", str(origin))
    git(repository, "fetch", "-q")
    (repository / "a.txt").write_text("later\n")
    git(repository, "commit", "-qam", "second")
    async with Session(repository, settings={"worktree": {"baseRef": base_ref}}) as session:
        model = Player(
            calls(task()), calls(("r1", "Read", {"file_path": "a.txt"})), says("x"), says("Done.")
        )
        await Agent(model, session).ask("Go.")
    result = model.requests[2].messages[-1].content[0]
    assert content.strip() in get_result_text(result)
    assert worktrees(repository) == []


async def test_without_an_origin_a_fresh_worktree_begins_with_what_is_checked_out(repository: Path):
    made = await open_worktree(str(repository), "w", options=WorktreeOptions(base_ref="fresh"))
    assert made.base == git(repository, "rev-parse", "HEAD")


async def test_where_the_parent_stands_the_agent_stands_in_its_own_checkout(repository: Path):
    async with Session(repository) as session:
        session.workdir.move(str(repository / "src"))
        model = Player(
            calls(task()), calls(("r1", "Read", {"file_path": "b.txt"})), says("x"), says("Done.")
        )
        await Agent(model, session).ask("Go.")
    result = model.requests[2].messages[-1].content[0]
    assert "two" in get_result_text(result)


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
async def test_the_main_checkout_cannot_be_changed_from_a_worktree(repository: Path, mode: str):
    target = repository / "fresh.txt"
    allow = ["Edit", "Write", "Bash"]
    async with Session(repository, permission_mode=mode, allow=allow) as session:
        model = Player(
            calls(task()),
            calls(
                ("w1", "Write", {"file_path": str(target), "content": "no"}),
                ("b1", "Bash", {"command": f"echo no > {target}"}),
                ("b2", "Bash", {"command": f"cd {repository} && touch fresh.txt"}),
            ),
            says("No."),
            says("Done."),
        )
        await Agent(model, session).ask("Go.")
    assert not target.exists()
    for block in model.requests[2].messages[-1].content:
        assert "main checkout" in get_result_text(block)


WAYS_OUT = [
    "env -C PARENT touch fresh.txt",
    "env -C ../../.. touch fresh.txt",
    "find PARENT -maxdepth 0 -exec touch {}/fresh.txt \\;",
    "cd $(git rev-parse --git-common-dir)/.. && touch fresh.txt",
    'cd "$(git worktree list | head -1 | cut -d" " -f1)" && touch fresh.txt',
    "ln -s PARENT up; touch up/fresh.txt",
    "ln -s ../../.. up && touch up/fresh.txt",
    "touch ../../../fresh.txt",
    "python3 -c \"open('../../../fresh.txt', 'w')\"",
    "bash -c 'cd PARENT; touch fresh.txt'",
    "git -C PARENT commit --allow-empty -m x",
    "git -C ../../.. commit --allow-empty -m x",
    "git --git-dir=PARENT/.git commit --allow-empty -m x",
    "g'i't --git-dir ../../../.git commit --allow-empty -m x",
    "GIT_DIR=PARENT/.git git commit --allow-empty -m x",
    "export GIT_DIR=../../../.git; git commit --allow-empty -m x",
    "git commit --allow-empty -m x && git update-ref refs/heads/main HEAD",
    "git commit --allow-empty -m x; git push . HEAD:main",
    "git push PARENT HEAD:main",
    "git symbolic-ref HEAD refs/heads/main",
    "GIT_DIR+=../../../.git git commit --allow-empty -m x",
    "read GIT_DIR <<< ../../../.git; export GIT_DIR; git commit --allow-empty -m x",
    "read GIT_'DI'R <<< ../../../.git; export GIT_DI\\R; git commit --allow-empty -m x",
    "git commit --allow-empty -m x; git checkout -B main",
    "git commit --allow-empty -m x; git checkout -qB main",
    "git checkout --ignore-other-w main",
    "git commit --allow-empty -m x; git switch -C main",
    "git branch -m main other",
    "git branch --mov main other",
    "git branch -f main HEAD",
    "git config core.hooksPath hooks",
    "git config set core.fsmonitor ./evil",
    "git config --add core.fsmonitor ./evil",
    "git config core.hooksPath listed",
]


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
async def test_no_command_leads_out_of_the_worktree(repository: Path, mode: str):
    head = git(repository, "rev-parse", "main")
    tried = [
        (f"b{at}", "Bash", {"command": command.replace("PARENT", str(repository))})
        for at, command in enumerate(WAYS_OUT)
    ]
    tried += [
        ("r", "Read", {"file_path": str(repository / "a.txt")}),
        ("g", "Grep", {"pattern": "one", "path": str(repository)}),
        ("l", "Glob", {"pattern": "*", "path": str(repository)}),
    ]
    async with Session(repository, permission_mode=mode, allow=["Bash", "Read"]) as session:
        model = Player(calls(task()), *[calls(one) for one in tried], says("No."), says("Done."))
        await Agent(model, session).ask("Go.")
    assert not (repository / "fresh.txt").exists()
    assert git(repository, "rev-parse", "main") == head
    blocks = [request.messages[-1].content[0] for request in model.requests[2:-1]]
    for (_, _, given), block in zip(tried, blocks, strict=True):
        assert "main checkout" in get_result_text(block), given


async def test_ordinary_work_goes_on_in_the_worktree(repository: Path):
    commands = [
        "touch fresh.txt && git add . && git -c user.name=a -c user.email=a@b commit -qm x",
        "cd src && cat ../a.txt",
        "cat ../a.txt && cd ..",
        "git status; git log --oneline -3; git branch",
        "for f in *.txt; do cat $f; done",
        "git diff HEAD~1..HEAD",
        "git config user.name a && git config --get user.name && git config user.email",
        "git branch topic && git checkout -q topic && git switch -q -c other && git branch -vv",
        "echo a..b",
    ]
    tried = [(f"b{at}", "Bash", {"command": command}) for at, command in enumerate(commands)]
    async with Session(repository, permission_mode="acceptEdits", allow=["Bash"]) as session:
        model = Player(calls(task()), *[calls(one) for one in tried], says("Ok."), says("Done."))
        await Agent(model, session).ask("Go.")
    for (_, _, given), request in zip(tried, model.requests[2:], strict=False):
        block = request.messages[-1].content[0]
        assert not expect_type(ToolResultBlock, block).is_error, (given, get_result_text(block))


@pytest.mark.parametrize(
    "rule", ["Read(./src/**)", "Read(/src/**)", "Read(src/**)", "Read(b.txt)", "Read(//{0}/src/**)"]
)
async def test_what_is_forbidden_in_the_project_is_forbidden_in_the_worktree(
    repository: Path, rule: str
):
    rule = rule.replace("//{0}", f"/{repository}")
    async with Session(repository, deny=[rule]) as session:
        model = Player(
            calls(task()),
            calls(
                ("r1", "Read", {"file_path": "src/b.txt"}),
                ("r2", "Read", {"file_path": str(repository / "src/b.txt")}),
            ),
            says("No."),
            says("Done."),
        )
        await Agent(model, session).ask("Go.")
    for block in model.requests[2].messages[-1].content:
        assert expect_type(ToolResultBlock, block).is_error
        assert "two" not in get_result_text(block)


async def test_a_type_can_ask_for_a_worktree(repository: Path):
    folder = repository / ".claude/agents"
    folder.mkdir(parents=True)
    (folder / "apart.md").write_text(
        "---\nname: apart\ndescription: Works apart.\nisolation: worktree\n---\nWork.\n"
    )
    async with Session(repository, permission_mode="acceptEdits") as session:
        model = Player(
            calls(("t1", "Agent", {"description": "x", "prompt": "y", "subagent_type": "apart"})),
            calls(("w1", "Write", {"file_path": "new.txt", "content": "x"})),
            says("Written."),
            says("Done."),
        )
        seen = [event async for event in Agent(model, session).run("Go.")]
    assert Path(answer(seen).data["worktreePath"], "new.txt").exists()


async def test_an_agent_woken_again_finds_its_checkout(repository: Path):
    async with Session(repository, permission_mode="acceptEdits") as session:
        model = Player(
            calls(task(name="ann")),
            calls(("w1", "Write", {"file_path": "new.txt", "content": "x"})),
            says("Written."),
            calls(("m1", "SendMessage", {"to": "ann", "message": "Go on."})),
            says("Waiting."),
        )
        agent = Agent(model, session, wait_for_agents_s=0.0)
        await agent.ask("Go.")
        model._turns += [
            calls(("r1", "Read", {"file_path": "new.txt"})),
            says("It is there."),
        ]
        run = agent.agents.find("ann")
        if run is not None:
            await run.wait()
        state = agent.agents.listed()[0]
        assert Path(state.worktree_path, "new.txt").exists()
        assert len(worktrees(repository)) == 1


async def test_remote_is_refused_and_so_is_a_place_without_a_repository(project: Path):
    for isolation, why in (("remote", "no other machine"), ("worktree", "not a git repository")):
        async with Session(project) as session:
            model = Player(calls(task(isolation=isolation)), says("Oh."))
            agent = Agent(model, session)
            await agent.ask("Go.")
            block = model.requests[-1].messages[-1].content[0]
            assert expect_type(ToolResultBlock, block).is_error
            assert why in get_result_text(block)
            assert agent.agents.listed() == ()


async def test_a_repository_without_a_commit_has_no_worktrees(project: Path):
    git(project, "init", "-q")
    with pytest.raises(NoWorktree):
        await open_worktree(str(project), "w")


async def test_an_agent_that_cannot_start_leaves_no_worktree(repository: Path):
    agents = {"odd": {"description": "Has nothing.", "tools": "Nonesuch"}}
    async with Session(repository) as session:
        model = Player(calls(task(subagent_type="odd")), says("Oh."))
        await Agent(model, session, agents=agents).ask("Go.")
    assert worktrees(repository) == []


async def test_a_stopped_agent_gives_its_worktree_back(repository: Path):
    never = asyncio.Event()
    async with Session(repository) as session:
        model = Player(
            calls(task(run_in_background=True)), [never, ended()], says("Launched."), says("End.")
        )
        agent = Agent(model, session, wait_for_agents_s=0.0)
        await agent.ask("Go.")
        state = agent.agents.listed()[0]
        assert Path(state.worktree_path).is_dir()
        assert "locked" in git(repository, "worktree", "list", "--porcelain")
        await agent.agents.stop(state.agent_id)
        assert worktrees(repository) == []


async def say_yes(_obstacles: tuple[str, ...]) -> str:
    return ""


def assert_as_before(repository: Path) -> None:
    assert worktrees(repository) == []
    assert git(repository, "branch", "--format=%(refname:short)") == "main"
    folder = repository / ".claude/worktrees"
    assert not folder.exists() or [place.name for place in folder.iterdir()] == [".gitignore"]
    admin = repository / ".git/worktrees"
    assert not admin.exists() or list(admin.iterdir()) == []


def is_dead(pid: str) -> bool:
    """Whether it is gone, or nobody has come to fetch it yet."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", pid], check=False, capture_output=True)
    return not shown.stdout.strip() or shown.stdout.startswith(b"Z")


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


async def test_a_cancel_while_files_are_checked_out_leaves_nothing(
    repository: Path, tmp_path: Path
):
    marker = tmp_path / "smudging"
    (repository / ".gitattributes").write_text("a.txt filter=slow\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    slow = f"sh -c 'echo $$ > {marker}; exec sleep 1000'"
    git(repository, "config", "filter.slow.smudge", slow)
    opening = asyncio.ensure_future(open_worktree(str(repository), "w", approve=say_yes))
    await until(lambda: marker.exists() and marker.read_text().endswith("\n"))
    opening.cancel()
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert_as_before(repository)
    await until(lambda: is_dead(marker.read_text().strip()))
    git(repository, "config", "--unset", "filter.slow.smudge")
    assert Path((await open_worktree(str(repository), "w")).path).is_dir()


@pytest.mark.parametrize("pause_ms", range(0, 40, 4))
async def test_a_cancel_at_any_moment_leaves_all_or_nothing(repository: Path, pause_ms: int):
    opening = asyncio.ensure_future(open_worktree(str(repository), "w"))
    await asyncio.wait((opening,), timeout=pause_ms / 1000)
    opening.cancel()
    await asyncio.wait((opening,))
    if opening.cancelled():
        assert_as_before(repository)
    else:
        made = opening.result()
        assert not await close_worktree(made.path, made.branch, made.base)
        assert_as_before(repository)


async def test_a_cancel_keeps_a_branch_that_was_there_before(repository: Path, tmp_path: Path):
    git(repository, "branch", "worktree-w")
    marker = tmp_path / "smudging"
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/attributes").write_text("a.txt filter=slow\n")
    git(repository, "config", "filter.slow.smudge", f"sh -c 'echo > {marker}; exec sleep 1000'")
    opening = asyncio.ensure_future(open_worktree(str(repository), "w", approve=say_yes))
    await until(marker.exists)
    opening.cancel()
    await asyncio.wait((opening,))
    assert worktrees(repository) == []
    assert "worktree-w" in git(repository, "branch")


async def test_what_a_crash_leaves_behind_can_be_found(repository: Path, tmp_path: Path):
    async with Session(repository) as session:
        never = asyncio.Event()
        model = Player(calls(task(run_in_background=True)), [never, ended()], says("Launched."))
        agent = Agent(model, session, wait_for_agents_s=0.0)
        await agent.ask("Go.")
        kept = agent.agents.listed()[0]
        # Another process that looks now sees what a crash would leave.
        later = Agent(Player(), session).agents.listed()[0]
        assert later.status == "interrupted"
        assert later.worktree_path == kept.worktree_path
        await agent.close()


async def test_ignored_files_come_along_where_a_file_names_them(repository: Path):
    (repository / ".gitignore").write_text(".env\nbuild/\n")
    (repository / ".worktreeinclude").write_text(".env\na.txt\n")
    (repository / ".env").write_text("KEY=1\n")
    (repository / "build").mkdir()
    (repository / "build/x").write_text("x")
    made = await open_worktree(str(repository), "w")
    assert (Path(made.path) / ".env").read_text() == "KEY=1\n"
    assert not (Path(made.path) / "build").exists()


async def test_searches_in_a_worktree_find_what_is_there(repository: Path):
    async with Session(repository) as session:
        model = Player(
            calls(task()),
            calls(
                ("g1", "Glob", {"pattern": "**/b.txt"}),
                ("g2", "Grep", {"pattern": "two", "output_mode": "content"}),
            ),
            says("x"),
            says("Done."),
        )
        await Agent(model, session).ask("Go.")
    named, found = (get_result_text(block) for block in model.requests[2].messages[-1].content)
    assert named.startswith("src/b.txt")
    assert "src/b.txt" in found
    assert "two" in found


@pytest.fixture
def monorepo(repository: Path) -> Path:
    for name in ("packages/app/deep", "packages/other", "shared"):
        (repository / name).mkdir(parents=True)
        (repository / name / "f.txt").write_text(f"{name}\n")
    (repository / ".gitignore").write_text("node_modules/\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "packages")
    return repository


async def test_only_the_named_directories_are_checked_out(monorepo: Path):
    options = WorktreeOptions(sparse_paths=("packages/app", "shared"))
    made = await open_worktree(str(monorepo), "w", options=options)
    place = Path(made.path)
    found = {str(p.relative_to(place)) for p in place.rglob("*") if p.is_file()}
    here = {".git", ".gitignore", "a.txt", "packages/app/deep/f.txt", "shared/f.txt"}
    assert found == here
    assert git(place, "status", "--porcelain") == ""
    assert (monorepo / "packages/other/f.txt").exists()
    assert git(monorepo, "status", "--porcelain") == ""
    (place / "shared/new.txt").write_text("x")
    git(place, "add", ".")
    git(place, "commit", "-qm", "more")
    assert git(place, "diff", "--name-only", made.base, "HEAD") == "shared/new.txt"


async def test_a_sparse_worktree_without_changes_is_gone_afterwards(monorepo: Path):
    async with Session(monorepo, settings={"worktree": {"sparsePaths": ["shared"]}}) as session:
        model = Player(
            calls(task()),
            calls(
                ("g1", "Glob", {"pattern": "**/f.txt"}),
                ("r1", "Read", {"file_path": "shared/f.txt"}),
            ),
            says("x"),
            says("Done."),
        )
        await Agent(model, session).ask("Go.")
    listed, read = model.requests[2].messages[-1].content
    assert "shared/f.txt" in get_result_text(listed)
    assert "packages" not in get_result_text(listed)
    assert "shared" in get_result_text(read)
    assert worktrees(monorepo) == []


async def test_ignored_directories_are_linked_and_git_does_not_see_the_links(monorepo: Path):
    for name in ("node_modules", "packages/app/node_modules"):
        (monorepo / name / "lib").mkdir(parents=True)
        (monorepo / name / "lib/index.js").write_text(name)
    (monorepo / "seen").mkdir()
    (monorepo / "seen/x").write_text("not ignored")
    names = ("node_modules", "packages/app/node_modules", "shared", "seen", "missing", ".claude")
    options = WorktreeOptions(symlink_directories=names)
    places = set()
    for _ in range(2):
        made = await open_worktree(str(monorepo), "w", options=options)
        place = Path(made.path)
        places.add(place)
        for name in names[:2]:
            assert (place / name).readlink() == monorepo / name
            assert (place / name / "lib/index.js").read_text() == name
        assert not any((place / name).is_symlink() for name in names[2:])
        assert git(place, "status", "--porcelain") == ""
        assert not await close_worktree(made.path, made.branch, made.base)
    assert not any(place.exists() for place in places)
    assert (monorepo / "node_modules/lib/index.js").read_text() == "node_modules"
    assert git(monorepo, "status", "--porcelain") == "?? seen/"
    assert (monorepo / ".git/info/exclude").read_text().count("/node_modules\n") == 2


async def test_names_with_signs_of_their_own_are_ignored_by_their_letters(repository: Path):
    name = "odd [x]*! #"
    (repository / ".gitignore").write_text("odd*/\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "ignore")
    (repository / name).mkdir()
    made = await open_worktree(
        str(repository), "w", options=WorktreeOptions(symlink_directories=(name,))
    )
    place = Path(made.path)
    assert (place / name).is_symlink()
    (place / "odd x").write_text("another")
    assert git(place, "status", "--porcelain") == '?? "odd x"'


async def test_a_link_that_is_checked_out_leads_no_other_link_astray(
    repository: Path, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository / "packages").symlink_to(outside)
    (repository / ".gitignore").write_text("node_modules/\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "a link")
    (repository / "packages").unlink()
    (repository / "packages/app/node_modules").mkdir(parents=True)
    options = WorktreeOptions(symlink_directories=("packages/app/node_modules",))
    made = await open_worktree(str(repository), "w", options=options)
    assert (Path(made.path) / "packages").readlink() == outside
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "/etc", "a//b", ".", "", ".git", "a/.git/x", "a\nb"])
@pytest.mark.parametrize("setting", ["sparsePaths", "symlinkDirectories"])
async def test_places_outside_the_repository_are_refused_by_name(
    repository: Path, setting: str, name: str
):
    async with Session(repository, settings={"worktree": {setting: [name]}}) as session:
        model = Player(calls(task()), says("Done."))
        seen = [event async for event in Agent(model, session).run("Go.")]
    assert answer(seen).code == "agent.no_isolation"
    assert f"worktree.{setting} names {name!r}" in answer(seen).text
    assert worktrees(repository) == []


async def test_what_is_linked_can_be_read_and_the_rest_of_the_main_checkout_cannot(monorepo: Path):
    (monorepo / "node_modules").mkdir()
    (monorepo / "node_modules/lib.js").write_text("let it be\n")
    (monorepo / "node_modules/.env").write_text("SECRET=1\n")
    (monorepo / "build").mkdir()
    (monorepo / "build/out.js").write_text("not linked\n")
    settings = {"worktree": {"symlinkDirectories": ["node_modules"]}}
    async with Session(monorepo, settings=settings, permission_mode="acceptEdits") as session:
        model = Player(
            calls(task()),
            calls(
                ("r1", "Read", {"file_path": "node_modules/lib.js"}),
                ("b1", "Bash", {"command": "cat node_modules/lib.js"}),
                ("r2", "Read", {"file_path": str(monorepo / "build/out.js")}),
                ("r3", "Read", {"file_path": "node_modules/.env"}),
                ("w1", "Write", {"file_path": "node_modules/new.js", "content": "no"}),
                ("b2", "Bash", {"command": "echo no > node_modules/new.js"}),
            ),
            says("No."),
            says("Done."),
        )
        await Agent(model, session).ask("Go.")
    read, shown, *refused = (block for block in model.requests[2].messages[-1].content)
    assert "let it be" in get_result_text(read)
    assert "let it be" in get_result_text(shown)
    assert all(expect_type(ToolResultBlock, block).is_error for block in refused)
    assert {path.name for path in (monorepo / "node_modules").iterdir()} == {".env", "lib.js"}


async def test_hooks_of_the_repository_are_not_run(repository: Path):
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    await open_worktree(str(repository), "w")
    assert not (repository / "ran").exists()


async def test_two_agents_work_apart_at_once(repository: Path):
    def turn(request: ModelRequest):
        if len(request.messages) != 1:
            return says("Written.")
        said = get_text(request.messages[0].content[0])
        return calls((said, "Write", {"file_path": "n.txt", "content": said}))

    async with Session(repository, permission_mode="acceptEdits") as session:
        model = Player(
            calls(task("t1", "x"), task("t2", "y")), turn, turn, turn, turn, says("Done.")
        )
        await Agent(model, session, agent_limits=SpawnLimits(max_running=5)).ask("Go.")
    assert not (repository / "n.txt").exists()
    places = [Path(line.split()[0]) for line in worktrees(repository)]
    assert {(place / "n.txt").read_text() for place in places} == {"x", "y"}


def making(line: str) -> dict:
    return {"hooks": [{"type": "command", "command": line}]}


def one_write() -> Player:
    write = ("w1", "Write", {"file_path": "new.txt", "content": "x"})
    return Player(calls(task()), calls(write), says("Written."), says("Done."))


@pytest.mark.proves("HK-1")
async def test_hooks_make_and_remove_worktrees_where_there_is_no_git(project: Path, tmp_path: Path):
    place, told = tmp_path / "made here", tmp_path / "told"
    (project / "main.txt").write_text("main\n")
    hooks = {
        "WorktreeCreate": [
            making(f"cat >> {told}; echo >> {told}; mkdir '{place}'; echo noise; echo '{place}'")
        ],
        "WorktreeRemove": [making(f"cat >> {told}; cp '{place}/new.txt' {told}.new")],
    }
    allow = ["Edit", "Write", "Bash"]
    async with Session(project, hooks=hooks, permission_mode="acceptEdits", allow=allow) as session:
        model = Player(
            calls(task()),
            calls(("w1", "Write", {"file_path": "new.txt", "content": "x"})),
            calls(("w2", "Write", {"file_path": str(project / "bad.txt"), "content": "x"})),
            says("Written."),
            says("Done."),
        )
        seen = [event async for event in Agent(model, session).run("Go.")]
    made, removed = [json.loads(line) for line in told.read_text().splitlines()]
    assert made["name"].startswith("agent-")
    assert removed["worktree_path"] == str(place)
    assert (tmp_path / "told.new").read_text() == "x"
    assert not (project / "new.txt").exists()
    assert not (project / "bad.txt").exists()
    # What the hook leaves in place is named.
    data = answer(seen).data
    assert (data["worktreePath"], "worktreeBranch" in data) == (str(place), False)


REFUSED = [
    ("echo no room >&2; exit 1", "no room"),
    ("exit 3", "exit code 3"),
    ("exit 2", "exit code 2"),
    ("true", "printed no path"),
    ("echo relative/path", "not a directory"),
    ("echo $PWD/../x", ". or .."),
    ("echo /no/such/directory", "not a directory"),
    ("pwd", "the project"),
    ("echo /", "the project"),
    ("echo '{'", "not JSON"),
    ('echo \'{"hookSpecificOutput": {"worktreePath": 7}}\'', "printed no path"),
    ('echo \'{"decision": "block", "reason": "Not today."}\'', "Not today."),
]


@pytest.mark.parametrize(("line", "why"), REFUSED, ids=[line for line, _ in REFUSED])
async def test_an_agent_does_not_start_where_the_hook_made_no_worktree(
    repository: Path, line: str, why: str
):
    async with Session(repository, hooks={"WorktreeCreate": [making(line)]}) as session:
        model = Player(calls(task()), says("Done."))
        seen = [event async for event in Agent(model, session).run("Go.")]
    assert (answer(seen).ok, why in answer(seen).text) == (False, True), answer(seen).text
    assert worktrees(repository) == []


@pytest.mark.parametrize("changes", [True, False])
async def test_the_end_of_a_git_worktree_is_told_if_it_is_removed(repository: Path, changes: bool):
    heard: list[dict[str, object]] = []

    async def ear(event: dict[str, object]) -> None:
        heard.append(event)

    async with Session(
        repository, hooks={"WorktreeRemove": [ear]}, permission_mode="acceptEdits"
    ) as session:
        model = one_write() if changes else Player(calls(task()), says("Looked."), says("Done."))
        await Agent(model, session).ask("Go.")
    assert len(heard) == (0 if changes else 1)
    if heard:
        assert str(heard[0]["worktree_path"]).startswith(f"{repository}/.claude/worktrees/agent-")


async def test_a_server_or_function_names_the_worktree_in_its_answer(project: Path, tmp_path: Path):
    place = tmp_path / "made"

    async def make(event: dict[str, object]) -> dict[str, object]:
        place.mkdir()
        return {"hookSpecificOutput": {"worktreePath": str(place)}}

    async with Session(
        project, hooks={"WorktreeCreate": [make]}, permission_mode="acceptEdits"
    ) as session:
        seen = [event async for event in Agent(one_write(), session).run("Go.")]
    assert (place / "new.txt").read_text() == "x"
    assert answer(seen).data["worktreePath"] == str(place)
