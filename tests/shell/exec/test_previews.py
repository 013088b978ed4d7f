"""A command that is only tried: everything it would change is told, and nothing is changed."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.undo.commanding import whole_tree

from handaxe.contract.faults.shell import CannotPreview
from handaxe.contract.ports.shell import ShellCommand
from handaxe.shell.exec.dry_run import OverlayPreviews
from handaxe.shell.exec.overlay_mounts import find_overlay_program


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.fixture
def tree(project: Path) -> Path:
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "deep/er").mkdir(parents=True)
    (project / "deep/x.txt").write_text("x\n")
    (project / "deep/er/y.txt").write_text("y\n")
    (project / "link").symlink_to("a.txt")
    (project / "data.bin").write_bytes(b"\0\1\2" * 1000)
    return project


async def tried(root: Path, command: str, timeout_s: float = 20):
    before = whole_tree(root)
    previews = OverlayPreviews(lambda: (str(root),))
    asked = ShellCommand(call_id="c", command=command, cwd=str(root))
    try:
        return await previews.preview(asked, timeout_s)
    finally:
        assert whole_tree(root) == before
        assert os.listdir(tempfile.gettempdir()) == []


def lines(preview) -> list[str]:
    return [line for diff in preview.diffs for hunk in diff.hunks for line in hunk.lines]


def others(preview, root: Path) -> list[str]:
    return [other.replace(f"{root}/", "") for other in preview.others]


async def test_changed_lines_are_shown_and_not_made(tree):
    preview = await tried(tree, "sed -i s/two/2/ a.txt; echo done; exit 3")
    assert [diff.path for diff in preview.diffs] == [f"{tree}/a.txt"]
    assert lines(preview) == [" one", "-two", "+2"]
    assert preview.output.head == "done\n"
    assert (preview.end.how, preview.end.exit_code) == ("exit", 3)


@pytest.mark.parametrize(
    ("command", "diffs", "said"),
    [
        ("rm a.txt", ["a.txt"], []),
        ("touch a.txt; chmod 644 a.txt", [], []),
        ("chmod 600 a.txt", [], ["a.txt: mode would change from 644 to 600"]),
        ("rm -r deep", ["deep/er/y.txt", "deep/x.txt"],
         ["deep/er: directory would be deleted", "deep: directory would be deleted"]),
        ("rm -r deep; mkdir deep; echo new > deep/z", ["deep/er/y.txt", "deep/x.txt", "deep/z"],
         ["deep/er: directory would be deleted"]),
        ("mkdir -p n/m; echo 1 > n/m/f", ["n/m/f"],
         ["n/m: directory would be created", "n: directory would be created"]),
        ("ln -sfn deep link", [], ["link: link would become a link to deep"]),
        ("rm link; echo 1 > link", [], ["link: link would become a file"]),
        ("printf '\\0new' > data.bin", [], ["data.bin: content would change"]),
        ("rm data.bin; mkdir data.bin", [], ["data.bin: file would become a directory"]),
        ("mv deep moved", ["deep/er/y.txt", "deep/x.txt", "moved/er/y.txt", "moved/x.txt"],
         ["deep/er: directory would be deleted", "deep: directory would be deleted",
          "moved/er: directory would be created", "moved: directory would be created"]),
        ("rm -rf deep && echo flat > deep", ["deep/er/y.txt", "deep/x.txt"],
         ["deep/er: directory would be deleted", "deep: directory would be deleted",
          "deep: directory would become a file"]),
        (": > empty", [], ["empty: file would be created"]),
        ("true", [], []),
    ],
)  # fmt: skip
async def test_every_kind_of_change_is_told(tree, command, diffs, said):
    preview = await tried(tree, command)
    assert preview.end.exit_code == 0, preview.output.head
    assert [diff.path.removeprefix(f"{tree}/") for diff in preview.diffs] == diffs
    assert others(preview, tree) == said


async def test_nothing_outside_the_roots_can_be_written(tree, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("mine\n")
    home = Path.home()
    preview = await tried(tree, f"echo x > {home}/never-written; echo x > {outside}; cat {outside}")
    assert not (home / "never-written").exists()
    assert outside.read_text() == "mine\n"
    assert preview.diffs == ()


def tried_beside_a_mount(mounted: Path, root: Path, command: str) -> dict[str, object]:
    """Try it where a file system is mounted that only this command and its helper see."""
    program = Path(__file__).with_name("mounted_beside.py")
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    said = subprocess.run(
        [*apart, sys.executable, program, mounted, root, command],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(said.stdout)


@pytest.fixture
def shared_temp():
    """A directory in the one for temporary files that all programs share."""
    place = tempfile.mkdtemp(prefix="handaxe test ", dir="/tmp")
    yield Path(place)
    shutil.rmtree(place)


def test_a_file_system_that_somebody_mounted_below_tmp_is_no_hindrance(tree, shared_temp):
    (shared_temp / "mounted").mkdir()
    with tempfile.NamedTemporaryFile("w", dir="/tmp") as script:
        script.write("echo from a temporary file")
        script.flush()
        beside = tempfile.mkdtemp(dir="/tmp")
        (Path(beside) / "kept").write_text("kept\n")
        try:
            command = (
                f"bash {script.name}; cat {beside}/kept; echo over > {beside}/kept;"
                f"echo gone > {script.name}; echo new > /tmp/handaxe-never-made && echo 3 >> a.txt"
            )
            answer = tried_beside_a_mount(shared_temp / "mounted", tree, command)
            assert (Path(beside) / "kept").read_text() == "kept\n"
            assert Path(script.name).read_text() == "echo from a temporary file"
        finally:
            shutil.rmtree(beside)
    assert answer == {"said": "from a temporary file\nkept\n", "changed": [f"{tree}/a.txt"]}
    assert not Path("/tmp/handaxe-never-made").exists()
    assert (tree / "a.txt").read_text() == "one\ntwo\n"


def test_a_file_system_mounted_inside_a_root_is_named_as_the_reason(tree):
    answer = tried_beside_a_mount(tree / "deep/er", tree, "echo 3 >> a.txt")
    assert f"another file system is mounted below a working directory ({tree}/deep/er)" in str(
        answer["fault"]
    )


async def test_it_cannot_remount_what_it_may_not_write(tree):
    preview = await tried(tree, "mount -o remount,rw / && echo escaped; touch /usr/escaped")
    assert "escaped\n" not in preview.output.head
    assert not Path("/usr/escaped").exists()


async def test_nobody_outside_is_reached(tree):
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        port = listener.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        preview = await tried(tree, f"{sys.executable} -c {script!r} && echo reached")
        assert "Error" in preview.output.head
        assert "reached\n" not in preview.output.head
    finally:
        listener.close()


async def test_the_call_filter_holds_for_a_trial_too(tree):
    preview = await tried(
        tree, "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; unshare -U true"
    )
    assert preview.output.head.split()[:4] == ["NoNewPrivs:", "1", "Seccomp:", "2"]
    assert preview.end.exit_code != 0
    script = "import socket; socket.socket(socket.AF_UNIX)"
    preview = await tried(tree, f"{sys.executable} -c {script!r}")
    assert "Permission denied" in preview.output.head


async def test_hidden_places_are_hidden_from_a_trial(tree, tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/key").write_text("SECRET")
    (tree / ".env").write_text("SECRET")
    hidden = [str(tmp_path / "secrets"), str(tree / ".env"), str(tmp_path / "missing")]
    previews = OverlayPreviews(lambda: (str(tree),), hidden=lambda: hidden)
    command = f"cat {tmp_path}/secrets/key .env; echo new > made"
    asked = ShellCommand(call_id="c", command=command, cwd=str(tree))
    preview = await previews.preview(asked, 20)
    assert "SECRET" not in preview.output.head
    assert [diff.path for diff in preview.diffs] == [f"{tree}/made"]
    assert (tree / ".env").read_text() == "SECRET"


async def test_a_root_inside_a_hidden_place_is_still_seen(tree):
    (tree.parent / "beside").write_text("SECRET")
    previews = OverlayPreviews(lambda: (str(tree),), hidden=lambda: [str(tree.parent)])
    asked = ShellCommand(call_id="c", command="cat ../beside; cat a.txt", cwd=str(tree))
    preview = await previews.preview(asked, 20)
    assert "SECRET" not in preview.output.head
    assert preview.output.head.endswith("one\ntwo\n")


async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tree):
    marker = f"{os.getpid()}.{id(tree)}"
    preview = await tried(
        tree, f"echo early > e; (setsid sleep 300.{marker} &) ; sleep 300", timeout_s=1
    )
    assert (preview.end.how, preview.end.exit_code) == ("time_up", None)
    assert [diff.path for diff in preview.diffs] == [f"{tree}/e"]
    found = await asyncio.to_thread(
        subprocess.run, ["pgrep", "-f", f"sleep 300.{marker}"], capture_output=True, check=False
    )
    assert found.stdout == b""


async def test_endless_output_is_cut(tree):
    preview = await tried(tree, "head -c 5000000 /dev/zero | tr '\\0' y")
    assert len(preview.output.head + preview.output.tail) == 30_000
    assert preview.output.total_bytes == 5_000_000


async def test_a_root_below_another_is_covered_with_it(tree):
    previews = OverlayPreviews(lambda: (str(tree), str(tree / "deep")))
    asked = ShellCommand(call_id="c", command="rm deep/x.txt", cwd=str(tree))
    preview = await previews.preview(asked, 20)
    assert [diff.path for diff in preview.diffs] == [f"{tree}/deep/x.txt"]
    assert (tree / "deep/x.txt").exists()


async def test_without_the_program_it_says_why(tree):
    previews = OverlayPreviews(lambda: (str(tree),), program="/bin/false")
    asked = ShellCommand(call_id="c", command="rm -rf .", cwd=str(tree))
    with pytest.raises(CannotPreview, match="does not allow it"):
        await previews.preview(asked, 20)
    assert (tree / "a.txt").exists()


def test_a_program_from_a_root_is_never_taken(tree):
    assert find_overlay_program(("/",)) is None
    assert find_overlay_program((str(tree),)) is not None


async def test_output_is_text_with_its_true_totals(tree):
    coloured = await tried(tree, "printf '  \\033[31mred\\033[0m\\n10%%\\r100%%\\ncaf\\xe9'")
    long = await tried(tree, "seq 1 200000")

    assert coloured.output.head == "  red\n100%\ncaf\ufffd"
    assert coloured.output.total_lines == 3
    assert (long.output.total_bytes, long.output.total_lines) == (1_288_895, 200_000)
    assert long.output.head.startswith("1\n2\n")
    assert long.output.tail.endswith("200000\n")
