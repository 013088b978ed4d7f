"""`handaxe tour` shows what it says it shows, needs no network, and leaves nothing behind."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from handaxe.frontends.cli.commands.tour import NEXT
from handaxe.frontends.cli.render import BlockRenderer
from handaxe.frontends.cli.tour.page import TourChapter, TourPage, load_story
from handaxe.frontends.cli.tour.runner import TourRunner

COMMAND = [sys.executable, "-m", "handaxe", "tour"]
MAX_S = 60
STORY = load_story()
NO_NETWORK = """
import socket, sys

def refuse(event, args):
    if event == "socket.getaddrinfo":
        raise PermissionError("no names in a tour")
    if event == "socket.connect" and args[0].family != socket.AF_UNIX:
        raise PermissionError("no connections in a tour")

sys.addaudithook(refuse)
"""

# Of each thing that the tour promises: what the reader sees when it really happened.
HAPPENED = {
    "search": "shop/till.py:11:    return net(price, count) * VAT",
    "read": '1→"""The till of a tea shop."""',
    "a tolerant edit": "differs only in indentation",
    "a tolerant edit's own tab": "+\tpython3 -m unittest -v",
    "a refused edit": "refused: edit.many_matches",
    "a better edit": "+    return net(price, count) * (1 + VAT)",
    "a lost update": "refused: file.changed",
    "a parallel batch": "4 calls in ",
    "a background test run": "Command running in background with ID: bash_",
    "its end": "<status>completed</status>\n   <exit_code>0</exit_code>",
    "its tests": "Ran 1 test in ",
    "a sub-agent": "Explore: Grep(",
    "its report": "net() in shop/till.py has no test of its own.",
    "a deny rule": "The deny rule Read(*.key)",
    "a question": "| Write asks for permission in the project",
    "a no": "| Allow?  n no hooks, please    <- the tour answers",
    "the no's effect": "The call was refused. no hooks, please",
    "plan mode": "Plan mode is on",
    "plan mode's refusal": "Plan mode is read-only. Write may modify files",
    "an agreed plan": "The user approved the plan. The permission mode is acceptEdits again.",
    "a yes": "| Allow?  y    <- the tour answers",
    "a removed directory": "In the project now: Makefile, deploy.key, shop/\n",
    "undo": "recreated: notes/suppliers.md",
    "a directory that is back": "In the project now: Makefile, deploy.key, notes/, shop/, tests/\n",
}


def take_the_tour(
    tmp_path: Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "temporary").mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path / "temporary"),
        "HANDAXE_HOME": str(tmp_path / "home"),
        **(more or {}),
    }
    return subprocess.run(
        COMMAND,
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
        timeout=MAX_S,
    )


def take_the_tour_on_a_terminal(more: Mapping[str, str]) -> str:
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    with subprocess.Popen(
        COMMAND, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, **more}
    ) as tour:
        os.close(theirs)
        shown = b""
        while chunk := read_terminal(ours):
            shown += chunk
    os.close(ours)
    assert tour.returncode == 0
    return shown.decode()


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        # Linux answers so when the other end of a terminal is closed.
        return b""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What one tour in a pipe shows."""
    tour = take_the_tour(tmp_path_factory.mktemp("tour"))
    assert (tour.returncode, tour.stderr) == (0, ""), tour.stdout
    return tour.stdout


def test_every_chapter_is_told(shown: str):
    for number, chapter in enumerate(STORY.chapter, 1):
        assert f"\n{number}. {chapter.title}\n" in shown
        assert f"   you > {chapter.prompt}\n" in shown


@pytest.mark.parametrize("thing", HAPPENED)
def test_everything_that_is_promised_visibly_happens(shown: str, thing: str):
    assert HAPPENED[thing] in shown


def test_every_refusal_and_every_answer_of_the_story_is_shown(shown: str):
    for chapter in STORY.chapter:
        for code in set(chapter.ends) - {"ok"}:
            assert f"refused: {code}" in shown
    answers = sum(len(chapter.answers) for chapter in STORY.chapter)
    assert shown.count("<- the tour answers") == answers


def test_a_batch_is_told_with_its_time_and_the_sum_of_its_times(shown: str):
    assert re.search(r"4 calls in [\d.]+ s; their times add up to [\d.]+ s", shown)


def test_the_end_says_what_to_try_next_to_each_kind_of_user(shown: str):
    assert shown.endswith(NEXT)
    for kind in ("command line", "MCP", "Python program"):
        assert kind in NEXT


@pytest.mark.parametrize("line", re.findall(r"^ {6}handaxe (\w+)", NEXT, re.MULTILINE))
def test_the_commands_to_try_next_exist(line: str):
    ran = subprocess.run(
        [sys.executable, "-m", "handaxe", line, "--help"], capture_output=True, check=False
    )
    assert ran.returncode == 0


def test_no_name_of_a_temporary_place_is_shown(shown: str):
    assert "handaxe-tour-" not in shown


def test_a_tour_leaves_nothing_behind_neither_files_nor_processes(tmp_path: Path):
    assert take_the_tour(tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []
    assert [cwd for cwd in directories_of_processes() if str(tmp_path) in cwd] == []


def directories_of_processes() -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append(str((process / "cwd").readlink()))
        except OSError:
            continue  # it ended meanwhile, or is somebody else's
    return found


def test_a_tour_needs_no_network_and_no_key(tmp_path: Path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(NO_NETWORK)
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"), "")
    tour = take_the_tour(tmp_path, {"PYTHONPATH": path, **keys})
    assert (tour.returncode, tour.stderr) == (0, "")


@pytest.mark.parametrize("place", ["project", "user"])
def test_settings_and_agents_that_lie_around_do_not_change_the_tour(tmp_path: Path, place: str):
    around = tmp_path / ".claude" if place == "project" else tmp_path / "user" / ".claude"
    (around / "agents").mkdir(parents=True)
    (around / "settings.json").write_text('{"permissions": {"deny": ["Bash"]}}')
    (around / "agents" / "explore.md").write_text(
        "---\nname: Explore\ndescription: Another one.\ntools: Brief\n---\nRefuse.\n"
    )
    tour = take_the_tour(tmp_path, {"HOME": str(tmp_path / "user")})
    assert (tour.returncode, tour.stderr) == (0, "")


def test_a_terminal_without_unicode_gets_what_it_can_show(tmp_path: Path):
    tour = take_the_tour(tmp_path, {"PYTHONIOENCODING": "ascii"})
    assert (tour.returncode, tour.stderr) == (0, "")
    assert '1?"""The till of a tea shop."""' in tour.stdout


@pytest.mark.parametrize("different", [{"ends": ("ok",)}, {"answers": ("y", "y")}])
async def test_a_tour_that_goes_otherwise_than_it_says_does_not_end_well(
    tmp_path: Path, different: dict[str, tuple[str, ...]]
):
    first = msgspec.structs.replace(STORY.chapter[0], **different)
    assert await tell(tmp_path / "as it is", STORY.chapter[0])
    assert not await tell(tmp_path / "different", first)


async def tell(place: Path, chapter: TourChapter) -> bool:
    (place / "project").mkdir(parents=True)
    story = msgspec.structs.replace(STORY, chapter=(chapter,))
    page = TourPage(place, BlockRenderer(colour=False))
    return await TourRunner(story, place / "project", page).go(place / "home")


def test_the_tour_is_plain_in_a_pipe_and_coloured_on_a_terminal_that_wants_it(shown: str):
    assert "\x1b[" not in shown
    coloured = take_the_tour_on_a_terminal({})
    assert "\x1b[32m+    return net" in coloured
    assert "\x1b[31mrefused: file.changed\x1b[0m" in coloured
    assert "\x1b[" not in take_the_tour_on_a_terminal({"NO_COLOR": "1"})


def test_a_reader_who_leaves_early_is_no_trouble():
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tour:
        assert tour.stdout is not None
        assert tour.stderr is not None
        tour.stdout.readline()
        tour.stdout.close()
        said = tour.stderr.read()
    assert "Traceback" not in said
