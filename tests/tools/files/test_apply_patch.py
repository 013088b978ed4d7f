"""ApplyPatch: several files at once, all of them or none, under the rules of Edit."""

import stat
import subprocess
import sys
import textwrap

import pytest

from handaxe import Deny, PermissionRequest, Session
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Code, Diff
from handaxe.contract.ports.files import Files, LoadedFile
from handaxe.disk.local_files import LocalFiles
from handaxe.session.read_ledger import ReadLedger
from handaxe.tools.files.edit_faults import PatchBroken
from handaxe.tools.files.patched_files import PatchedFile, write_patches


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(path: str, *lines: str) -> list[str]:
    return [f"*** Update File: {path}", "@@", *lines]


async def read(session: Session, *names: str) -> None:
    for name in names:
        result = await session.call("Read", file_path=str(name))
        assert result.ok, result.text


def tree(root) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.proves("FT-18")
async def test_files_are_changed_added_deleted_and_moved_and_one_undo_puts_all_back(
    session, project
):
    (project / "a.py").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    (project / "gone.txt").write_text("bye\n")
    (project / "run.sh").write_text("echo 1\necho 2\n")
    (project / "run.sh").chmod(0o755)
    before = tree(project)
    await read(session, "a.py", "gone.txt", "run.sh")
    text = patch(
        *update("a.py", " one", "-two", "+2", "+2.5"),
        "*** Add File: new/b.txt",
        "+hello",
        "*** Delete File: gone.txt",
        "*** Update File: run.sh",
        "*** Move to: bin/run.sh",
        "-echo 1",
        "+echo one",
    )
    result = await session.call("ApplyPatch", input=text)
    assert result.ok, result.text
    after = tree(project)
    assert after == {
        "a.py": (b"\xef\xbb\xbfone\r\n2\r\n2.5\r\nthree", 0o644),
        "bin/run.sh": (b"echo one\necho 2\n", 0o755),
        "new/b.txt": (b"hello\n", 0o644),
    }
    assert result.text.splitlines()[1:] == [
        f"updated: {project}/a.py (+2 -1 lines)",
        f"added: {project}/new/b.txt",
        f"deleted: {project}/gone.txt",
        f"moved: {project}/run.sh to {project}/bin/run.sh (+1 -1 lines)",
    ]
    assert [file["action"] for file in result.data["files"]] == [
        "updated", "added", "deleted", "moved",
    ]  # fmt: skip
    assert [type(block) for block in result.display] == [Diff, Code, Diff]
    undone = await session.call("Undo")
    assert undone.ok, undone.text
    assert tree(project) == before
    assert not (project / "new").exists()
    assert (await session.call("Undo", redo=True)).ok
    assert tree(project) == after


async def test_what_was_written_counts_as_read_as_far_as_it_was(session, project):
    (project / "a.txt").write_text("one\ntwo\n")
    await read(session, "a.txt")
    assert (await session.call("ApplyPatch", input=patch(*update("a.txt", "-one", "+1")))).ok
    assert (await session.call("ApplyPatch", input=patch(*update("a.txt", "-two", "+2")))).ok
    moved = patch("*** Update File: a.txt", "*** Move to: b.txt")
    assert (await session.call("ApplyPatch", input=moved)).ok
    again = await session.call("Edit", file_path="b.txt", old_string="1", new_string="one")
    assert again.ok, again.text
    assert (project / "b.txt").read_text() == "one\n2\n"
    added = patch("*** Add File: c.txt", "+x")
    assert (await session.call("ApplyPatch", input=added)).ok
    assert (await session.call("Write", file_path="c.txt", content="y")).ok
    # A deleted file is forgotten: whatever comes there has to be read.
    assert (await session.call("ApplyPatch", input=patch("*** Delete File: c.txt"))).ok
    (project / "c.txt").write_text("y")
    result = await session.call("ApplyPatch", input=patch(*update("c.txt", "-y", "+z")))
    assert result.code == "file.not_read"


@pytest.mark.proves("FT-18")
async def test_nothing_is_written_unless_every_hunk_of_every_file_fits(session, project):
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "b.txt").write_text("x\nx\n")
    before = tree(project)
    await read(session, "a.txt", "b.txt")
    text = patch(
        *update("a.txt", "-one", "+1"),
        "*** Add File: new.txt",
        "+hello",
        *update("b.txt", "-x", "+y", "@@", "-z", "+q"),
    )
    result = await session.call("ApplyPatch", input=text)
    assert result.code == "edit.many_matches"
    assert "b.txt, hunk 1 of 2: Found 2 places" in result.text
    assert "b.txt, hunk 2 of 2: String to replace not found" in result.text
    codes = [failure["code"] for failure in result.data["failures"]]
    assert codes == ["edit.many_matches", "edit.no_match"]
    assert tree(project) == before


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (update("a.txt", "-two", "+2"), "file.not_read"),
        (["*** Delete File: a.txt"], "file.not_read"),
        (update("read.txt", "+new"), "patch.no_place"),
        (update("read.txt", "-one", "+1", "@@", " one", "-two"), "patch.overlap"),
        (update("read.txt", "-one", "+1", "@@", "-one", "-two"), "patch.overlap"),
        (update("read.txt", " one"), "edit.no_change"),
        (update("missing.txt", "-one"), "file.not_found"),
        (["*** Add File: read.txt", "+x"], "file.exists"),
        (["*** Update File: read.txt", "*** Move to: a.txt"], "file.exists"),
        (["*** Delete File: folder"], "file.is_directory"),
        (["*** Update File: read.txt", "*** Move to: folder"], "file.is_directory"),
        (["*** Delete File: link.txt"], "file.not_regular"),
        (["*** Update File: link.txt", "*** Move to: b.txt"], "file.not_regular"),
        ([*update("read.txt", "-one"), "*** Delete File: ./read.txt"], "patch.invalid"),
        ([*update("read.txt", "-one"), *update("link.txt", "-two")], "patch.invalid"),
        (update("read.txt", "one"), "patch.invalid"),
        (["*** Delete File: /etc/passwd"], "permission.asked"),
        (["*** Delete File: ../outside.txt"], "permission.asked"),
        ([*update("read.txt", "-one"), "*** Add File: /outside/x", "+x"], "permission.asked"),
        (["*** Update File: read.txt", "*** Move to: ../moved.txt"], "permission.asked"),
        (["*** Add File: outside-link/x.txt", "+x"], "permission.asked"),
        (["*** Add File: .git/config", "+x"], "permission.asked"),
        (update("secret.txt", "-s", "+t"), "permission.denied"),
        (["*** Update File: read.txt", "*** Move to: secret/x.txt"], "permission.denied"),
        (update("latin.txt", "-\u00e9", "+\u4e2d"), "file.cannot_encode"),
        (update("binary.bin", "-x", "+y"), "file.not_read"),
    ],
)
async def test_what_edit_refuses_a_patch_refuses_too(project, lines, code):
    for name in ("a.txt", "read.txt"):
        (project / name).write_text("one\ntwo\n")
    (project / "secret.txt").write_text("s\n")
    (project / "latin.txt").write_bytes("caf\u00e9 d\u00e9j\u00e0 vu\n\u00e9\n".encode("latin-1"))
    (project / "binary.bin").write_bytes(b"\0\1\2" * 50)
    (project.parent / "outside.txt").write_text("o\n")
    (project.parent / "elsewhere").mkdir()
    (project / "outside-link").symlink_to(project.parent / "elsewhere")
    (project / "folder").mkdir()
    (project / "link.txt").symlink_to("read.txt")
    before = tree(project.parent)
    async with Session(
        project, permission_mode="acceptEdits", deny=["Edit(secret*)", "Edit(secret/**)"]
    ) as session:
        await read(session, "read.txt", "latin.txt")
        result = await session.call("ApplyPatch", input=patch(*lines))
    assert result.code == code, result.text
    assert tree(project.parent) == before


async def test_a_file_that_changed_since_it_was_read_is_refused_with_the_change(session, project):
    (project / "a.txt").write_text("one\ntwo\n")
    await read(session, "a.txt")
    (project / "a.txt").write_text("one\nTWO\n")
    for lines in (update("a.txt", "-one", "+1"), ["*** Delete File: a.txt"]):
        result = await session.call("ApplyPatch", input=patch(*lines))
        assert result.code == "file.changed"
        assert "+TWO" in result.text
    assert (project / "a.txt").read_text() == "one\nTWO\n"


@pytest.mark.proves("FT-8")
async def test_tolerance_and_help_are_those_of_edit(project):
    (project / "a.py").write_text("def f():\n\tif x:\n\t\treturn 1\n\nlast = 2\n")
    text = patch(*update("a.py", "     if x:", "-        return 1", "+        return 2"))
    async with Session(
        project, permission_mode="acceptEdits", settings={"edit": {"tolerance": "exact"}}
    ) as session:
        await read(session, "a.py")
        exact = await session.call("ApplyPatch", input=text)
        assert exact.code == "edit.no_match"
        assert "Nearest: lines 2-3" in exact.text
    async with Session(project, permission_mode="acceptEdits") as session:
        await read(session, "a.py")
        missed = await session.call("ApplyPatch", input=patch(*update("a.py", "-lost = 2")))
        sent = "If you mean that place, send: the hunk with these lines:\n-last = 2\n\n"
        assert sent in missed.text
        wrong_end = patch(*update("a.py", "-def f():", "+def g():", "*** End of File"))
        ended = await session.call("ApplyPatch", input=wrong_end)
        assert "but not at the end of the file" in ended.text
        header = patch("*** Update File: a.py", "@@ last = 2", "-def f():", "+def g():")
        assert "but not after 'last = 2'" in (await session.call("ApplyPatch", input=header)).text
        visible = await session.call("ApplyPatch", input=text)
        assert visible.data["files"][0]["matched_with"] == "indentation"
        assert "except for indentation" in visible.text
    assert (project / "a.py").read_text() == "def f():\n\tif x:\n\t\treturn 2\n\nlast = 2\n"


@pytest.mark.proves("FT-18")
async def test_if_one_file_cannot_be_written_those_before_it_are_put_back(session, project):
    (project / "a.txt").write_text("one\n")
    (project / "b.sh").write_text("bye\n")
    (project / "b.sh").chmod(0o750)
    before = tree(project)
    await read(session, "a.txt", "b.sh")
    # That a file stands where a directory has to be is known only when it is written.
    text = patch(
        *update("a.txt", "-one", "+1"),
        "*** Delete File: b.sh",
        "*** Add File: c.txt",
        "+x",
        "*** Add File: c.txt/d.txt",
        "+x",
    )
    result = await session.call("ApplyPatch", input=text)
    assert result.code == "patch.broken_off", result.text
    names = [str(project / name) for name in ("c.txt", "b.sh", "a.txt")]
    assert result.data["restored"] == names
    assert result.data["left"] == []
    assert "Restored" in result.text
    assert tree(project) == before
    # Nothing is to be undone, and the file counts as read still.
    assert (await session.call("Undo")).code == "undo.nothing"
    assert (await session.call("ApplyPatch", input=patch(*update("a.txt", "-one", "+1")))).ok


async def test_what_cannot_be_put_back_is_named(project):
    (project / "a.txt").write_bytes(b"one\n")
    files = LocalFiles()
    ports = {Files: files, ReadLedger: ReadLedger()}
    ctx = ToolContext("c1", ports, frozenset(ports), lambda _: None)
    path = str(project / "a.txt")
    first = PatchedFile(
        path=path, action="updated", before=await files.load(path), pieces=[b"two\n"]
    )
    (project / "b.txt").write_bytes(b"two\n")
    version = (await files.load(str(project / "b.txt"))).version
    # Somebody else's content comes between our two writes: what we wrote first is gone.
    between = LoadedFile(b"other\n", version)
    second = PatchedFile(path=path, action="updated", before=between, pieces=[b"three\n"])
    impossible = PatchedFile(path=f"{path}/below.txt", action="added", before=None, pieces=[b"x"])
    with pytest.raises(PatchBroken) as broken:
        await write_patches([first, second, impossible], ctx)
    assert broken.value.data["restored"] == [path]
    assert broken.value.data["left"] == [path]
    assert "Could not be restored" in broken.value.sentence
    assert (project / "a.txt").read_bytes() == b"other\n"


async def test_in_plan_mode_no_format_of_an_edit_works(project):
    (project / "a.txt").write_text("one\n")
    async with Session(project, permission_mode="plan") as session:
        await read(session, "a.txt")
        names = {tool["name"] for tool in session.tools()}
        assert not names & {"Edit", "MultiEdit", "ApplyPatch", "Write"}
        calls = {
            "ApplyPatch": {"input": patch(*update("a.txt", "-one", "+1"))},
            "apply_patch": {"input": patch("*** Delete File: a.txt")},
            "MultiEdit": {"file_path": "a.txt", "edits": [{"old_string": "o", "new_string": "0"}]},
        }
        for tool, call_input in calls.items():
            assert not (await session.call(tool, **call_input)).ok
    assert (project / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("rule", ["Edit", "ApplyPatch", "apply_patch", "MultiEdit"])
async def test_a_rule_against_one_format_is_a_rule_against_all(project, rule):
    (project / "a.txt").write_text("one\n")
    async with Session(project, permission_mode="acceptEdits", deny=[rule]) as session:
        await read(session, "a.txt")
        result = await session.call("ApplyPatch", input=patch(*update("a.txt", "-one", "+1")))
        assert result.code == "permission.denied"
        names = {tool["name"] for tool in session.tools()}
        assert not names & {"Edit", "MultiEdit", "ApplyPatch"}


async def test_every_path_is_asked_for_and_the_question_shows_the_change(project):
    (project / "a.txt").write_text("one\n")
    asked = []

    async def on_ask(request: PermissionRequest) -> Deny:
        asked.append(request)
        return Deny()

    async with Session(project, on_ask=on_ask) as session:
        await read(session, "a.txt")
        text = patch(*update("a.txt", "-one", "+1"), "*** Add File: b.txt", "+x")
        await session.call("ApplyPatch", input=text)
    [request] = asked
    diff, code = request.preview
    assert diff.hunks[0].lines == ("-one", "+1")
    assert code.text == "x\n"


async def test_hooks_for_edit_hear_of_every_format(project):
    (project / "a.txt").write_text("one\n")
    log = project.parent / "log"
    command = f"cat >> {log}; exit 2"
    hooks = {
        "PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": command}]}]
    }
    async with Session(project, permission_mode="acceptEdits", hooks=hooks) as session:
        await read(session, "a.txt")
        result = await session.call("ApplyPatch", input=patch(*update("a.txt", "-one", "+1")))
    assert result.code == "hook.blocked"
    assert '"tool_name":"ApplyPatch"' in log.read_text().replace(": ", ":")


async def test_a_formatter_behind_the_patch_is_taken_in(project):
    (project / "a.txt").write_text("one\n")
    command = "echo formatted >> a.txt"
    hooks = {
        "PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": command}]}]
    }
    async with Session(project, permission_mode="acceptEdits", hooks=hooks) as session:
        await read(session, "a.txt")
        text = patch(*update("a.txt", "-one", "+1"), "*** Add File: b.txt", "+x")
        result = await session.call("ApplyPatch", input=text)
        assert "+formatted" in result.text
        again = await session.call("ApplyPatch", input=patch(*update("a.txt", "-formatted")))
        assert again.ok, again.text


async def test_a_large_patch_of_many_hunks_and_files(session, project):
    lines = [f"line {number}" for number in range(5_000)]
    parts = []
    for name in ("a.txt", "b.txt", "c.txt"):
        (project / name).write_text("\n".join(lines) + "\n")
        await read(session, name)
        parts += [f"*** Update File: {name}"]
        for number in range(0, 5_000, 10):
            parts += ["@@", f" line {number}", f"-line {number + 1}", f"+changed {number + 1}"]
    result = await session.call("ApplyPatch", input=patch(*parts))
    assert result.ok, result.text[:500]
    for name in ("a.txt", "b.txt", "c.txt"):
        after = (project / name).read_text().splitlines()
        assert sum(line.startswith("changed") for line in after) == 500
        assert len(after) == 5_000


KILLED = """
import asyncio, os, signal, sys
from handaxe import Session
from handaxe.disk.local_files import LocalFiles

project, survives = sys.argv[1], int(sys.argv[2])
write = {"left": survives}
for name in ("replace", "remove"):
    def wrap(real):
        async def counted(self, *args, **kwargs):
            if not write["left"]:
                os.kill(os.getpid(), signal.SIGKILL)
            write["left"] -= 1
            return await real(self, *args, **kwargs)
        return counted
    setattr(LocalFiles, name, wrap(getattr(LocalFiles, name)))

async def main():
    async with Session(project, permission_mode="acceptEdits", session_id="killed") as session:
        for name in ("a.txt", "b.txt", "d.txt"):
            assert (await session.call("Read", file_path=name)).ok
        await session.call("ApplyPatch", input=sys.stdin.read())

asyncio.run(main())
"""


@pytest.mark.proves("FT-18")
@pytest.mark.parametrize("survives", [0, 1, 2, 3, 4])
async def test_after_a_kill_between_two_files_undo_puts_everything_back(
    project, tmp_path, survives
):
    for name in ("a.txt", "b.txt", "d.txt"):
        (project / name).write_text(f"{name}\n")
    before = tree(project)
    text = patch(
        *update("a.txt", "-a.txt", "+A"),
        "*** Delete File: b.txt",
        "*** Add File: x/c.txt",
        "+new",
        "*** Update File: d.txt",
        "*** Move to: e.txt",
        "-d.txt",
        "+E",
    )
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    command = [sys.executable, str(script), str(project), str(survives)]
    ran = subprocess.run(command, input=text, text=True, check=False, capture_output=True)
    assert ran.returncode == -9, ran.stderr
    # Every file is old or new, and whole.
    allowed = {b"a.txt\n", b"A\n", b"b.txt\n", b"new\n", b"d.txt\n", b"E\n"}
    assert {content for content, _ in tree(project).values()} <= allowed
    async with Session(project, permission_mode="acceptEdits", session_id="killed") as session:
        result = await session.call("Undo")
        if survives:
            assert result.ok, result.text
        else:
            assert result.code == "undo.nothing"
    assert tree(project) == before
