"""Running ripgrep: ended in time, tried again where the machine was short of something."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from search_tree import grep, lines, names, plant
from tests.holding import open_descriptors
from tests.waiting import until

from handaxe import Session
from handaxe.contract.faults.search import RipgrepFailed
from handaxe.contract.ports.search import TextQuery
from handaxe.search.deadline import SearchDeadline
from handaxe.search.hidden_paths import ExclusionFilter
from handaxe.search.local_search import LocalSearch
from handaxe.search.rg import rg_binary as program
from handaxe.search.rg import ripgrep
from handaxe.search.rg.rg_binary import find_ripgrep
from handaxe.search.rg.ripgrep import Ripgrep
from handaxe.search.walk.root import SearchPlace

# A stand-in does not confirm what it tells.
pytestmark = pytest.mark.usefixtures("settled")
RG = find_ripgrep(()) or pytest.fail("the tests need ripgrep")
BUNDLED = find_ripgrep((), "")


def stand_in(folder: Path, script: str) -> str:
    """A program in ripgrep's place; it may go on as ripgrep."""
    path = folder / "stand-in"
    path.write_text(f"#!/bin/sh\nRG={RG}\n{script}\n")
    path.chmod(0o755)
    return str(path)


def answer(rg: str, root: Path, pattern: str = "foo", **query):
    whole = TextQuery(pattern=pattern, root=str(root), **query)
    with SearchPlace(str(root), is_file=False, respect_ignore=True) as place:
        return Ripgrep(
            rg, whole, place, SearchDeadline(whole.timeout_s), ExclusionFilter(str(root))
        ).answer()


def children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found.update(map(int, (task / "children").read_text().split()))
    return found


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return plant(tmp_path / "root", {"a.txt": "foo\n", "b/c.txt": "foo\n"})


def test_too_few_threads_means_one_retry_with_one(root, tmp_path):
    rg = stand_in(
        tmp_path,
        'case " $* " in *" --threads=1 "*) exec $RG "$@";; esac\n'
        "echo 'failed to spawn thread: Os { code: 11, kind: WouldBlock }' >&2; exit 101",
    )

    assert names(answer(rg, root), root) == ["a.txt", "b/c.txt"]


def test_too_little_memory_means_one_retry_without_the_largest_files(root, tmp_path):
    rg = stand_in(
        tmp_path,
        'case " $* " in *" --max-filesize=256M "*) exec $RG "$@";; esac\n'
        "echo 'memory allocation of 2147483648 bytes failed' >&2; exit 134",
    )

    assert names(answer(rg, root), root) == ["a.txt", "b/c.txt"]


def test_what_came_before_a_failure_is_not_told_twice(root, tmp_path):
    rg = stand_in(
        tmp_path,
        'case " $* " in *" --max-filesize=256M "*) exec $RG "$@";; esac\n'
        "printf './a.txt\\0001:foo\\n'; echo 'memory allocation failed' >&2; exit 134",
    )

    found = answer(rg, root, mode="content")

    assert lines(found, root) == ["a.txt:1:foo", "b/c.txt:1:foo"]


def test_a_second_refusal_is_final(root, tmp_path):
    log = tmp_path / "log"
    rg = stand_in(tmp_path, f"echo run >> {log}; echo 'os error 11' >&2; exit 101")

    with pytest.raises(RipgrepFailed):
        answer(rg, root)

    assert log.read_text() == "run\nrun\n"


async def test_a_broken_ripgrep_is_a_fault_with_its_message(root, tmp_path, monkeypatch):
    rg = stand_in(tmp_path, "case $1 in --version) exec $RG $1;; esac; echo oh no >&2; exit 139")
    (tmp_path / "bin").mkdir()
    shutil.move(rg, tmp_path / "bin/rg")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    with pytest.raises(RipgrepFailed, match="oh no"):
        await grep(LocalSearch(), root, "foo")


async def test_without_ripgrep_searches_say_what_to_install(root, tmp_path, monkeypatch):
    monkeypatch.setattr(program, "_list_script_directories", tuple)
    monkeypatch.setenv("PATH", str(tmp_path))

    async with Session(root) as session:
        for name in ("Grep", "Glob"):
            result = await session.call(name, pattern="foo")
            assert result.code == "search.no_ripgrep"
            assert "Install ripgrep 15 or newer" in result.text


async def test_a_cancelled_search_ends_at_once_and_leaves_no_process(root, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    pid_file = tmp_path / "pid"
    rg = stand_in(
        tmp_path,
        "case $1 in --version) exec $RG $1;; esac\n"
        f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; sleep 600",
    )
    shutil.move(rg, tmp_path / "bin/rg")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    before = children()
    task = asyncio.create_task(grep(LocalSearch(), root, "foo"))
    await until(pid_file.exists)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not is_alive(int(pid_file.read_text()))
    assert children() <= before


def test_a_search_that_takes_too_long_gives_what_it_found(root, tmp_path):
    rg = stand_in(tmp_path, "printf './a.txt\\0'; exec sleep 600")

    found = answer(rg, root, timeout_s=2)

    assert names(found, root) == ["a.txt"]
    assert not found.is_complete
    assert found.unvisited == [f"{root}/b"]


def test_what_could_not_be_read_is_counted_however_much_it_is(root, tmp_path):
    rg = stand_in(
        tmp_path,
        "printf './a.txt\\000'\n"
        'i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo "rg: ./d$i: Denied (os error 13)" >&2; done\n'
        "exit 2",
    )

    found = answer(rg, root)

    assert (names(found, root), found.skipped.unreadable) == (["a.txt"], 1000)


def test_a_flood_is_stopped_when_the_page_is_full(root, tmp_path):
    rg = stand_in(tmp_path, "printf './a.txt\\0'; exec yes '1:foo'")

    # The stand-in never ends by itself.
    found = answer(rg, root, mode="content", limit=10)

    assert (found.shown_lines, found.has_more, found.total_lines) == (10, True, None)


def test_many_searches_leave_no_descriptor_and_no_child(root):
    answer(RG, root)
    before, running = open_descriptors(), children()

    for mode in ("files", "content", "count") * 5:
        answer(RG, root, mode=mode, limit=1)

    assert open_descriptors() <= before
    assert children() <= running


def test_the_users_ripgrep_settings_are_not_read(root, tmp_path, monkeypatch):
    settings = tmp_path / "ripgreprc"
    settings.write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(settings))

    assert lines(answer(RG, root, mode="content"), root) == ["a.txt:1:foo", "b/c.txt:1:foo"]


def test_a_long_search_gives_the_same_lines_as_a_short_one(tmp_path, monkeypatch):
    files = {f"d{n % 7}/e{n % 3}/f{n}": "foo\nx\nfoo\n" for n in range(200)}
    root = plant(tmp_path / "root", files)
    queries: list[dict[str, Any]] = [
        {}, {"limit": 30}, {"limit": None}, {"before": 1, "limit": 50, "offset": 20},
    ]  # fmt: skip
    for query in queries:
        short = answer(RG, root, mode="content", **query)
        with monkeypatch.context() as patched:
            patched.setattr(ripgrep, "GLANCE_S", 0.0)
            long = answer(RG, root, mode="content", **query)
        assert (long.lines, long.has_more) == (short.lines, short.has_more)


def test_a_link_put_in_the_place_of_the_root_is_not_followed(root, tmp_path):
    from handaxe.contract.faults import ToolFault

    (tmp_path / "moved").symlink_to(root)

    with pytest.raises(ToolFault):
        answer(RG, tmp_path / "moved")


class TestFindingRipgrep:
    @pytest.mark.parametrize(
        ("version", "wins"), [("99.0.0", True), ("15.0.0", True), ("14.1.1", False), ("?", False)]
    )
    def test_a_system_one_wins_if_it_is_new_enough(self, tmp_path, version, wins):
        own = tmp_path / "rg"
        own.write_text(f"#!/bin/sh\necho 'ripgrep {version}'\n")
        own.chmod(0o755)

        assert find_ripgrep((), str(tmp_path)) == (str(own) if wins else BUNDLED)

    def test_one_that_cannot_run_is_not_taken(self, tmp_path):
        (tmp_path / "rg").write_bytes(b"\x7fELF of another machine")
        (tmp_path / "rg").chmod(0o755)

        assert find_ripgrep((), str(tmp_path)) == BUNDLED

    def test_its_version_is_asked_once(self, tmp_path):
        own = tmp_path / "rg"
        own.write_text(f"#!/bin/sh\necho run >> {tmp_path}/log; echo 'ripgrep 99.0.0'\n")
        own.chmod(0o755)

        for _ in range(3):
            assert find_ripgrep((), str(tmp_path)) == str(own)
        assert (tmp_path / "log").read_text() == "run\n"

    def test_one_from_a_working_directory_is_never_taken(self, tmp_path, monkeypatch):
        monkeypatch.setattr(program, "_list_script_directories", tuple)
        inside = tmp_path / "project/bin"
        inside.mkdir(parents=True)
        shutil.copy(RG, inside / "rg")
        link = tmp_path / "elsewhere"
        link.mkdir()
        (link / "rg").symlink_to(inside / "rg")
        search_path = f"{inside}:{link}:relative:."

        assert find_ripgrep((str(tmp_path / "project"),), search_path) is None
        assert find_ripgrep((), search_path) == f"{inside}/rg"
