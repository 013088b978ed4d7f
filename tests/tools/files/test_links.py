"""The file that is checked is the file that is opened: links of every kind, for every file tool."""

import os

import pytest

from handaxe import Allow, Session


@pytest.fixture
def outside(tmp_path):
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret.txt").write_text("secret\n")
    return place


READ = {"tool": "Read"}


async def code_of(session, tool, path):
    call_input = {"file_path": str(path)}
    if tool == "Write":
        call_input["content"] = "changed\n"
    if tool == "Edit":
        call_input |= {"old_string": "", "new_string": "changed\n"}
    return (await session.call(tool, call_input)).code


@pytest.mark.parametrize("tool", ["Read", "Write", "Edit"])
@pytest.mark.parametrize(
    "spelling",
    [
        "link",
        "chain",
        "dirlink/secret.txt",
        "dirlink/new.txt",
        "dangling",
        "up/../../outside/secret.txt",
    ],
)
async def test_a_link_to_the_outside_asks_and_nothing_is_opened(
    session, project, outside, tool, spelling
):
    (project / "link").symlink_to(outside / "secret.txt")
    (project / "chain").symlink_to("link")
    (project / "dirlink").symlink_to(outside)
    (project / "dangling").symlink_to(outside / "new.txt")
    (project / "up").mkdir()
    assert await code_of(session, tool, project / spelling) == "permission.asked"
    assert sorted(p.name for p in outside.iterdir()) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "secret\n"


async def test_the_answer_for_the_outside_does_not_tell_what_is_there(session, project, outside):
    (project / "dirlink").symlink_to(outside)
    texts = set()
    for name in ("secret.txt", "missing.txt"):
        result = await session.call("Read", file_path=str(outside / name))
        assert result.code == "permission.asked"
        texts.add(result.text.replace(name, "NAME"))
        result = await session.call("Read", file_path=str(project / "dirlink" / name))
        assert result.code == "permission.asked"
    assert len(texts) == 1


async def test_a_link_inside_the_project_is_written_through_and_stays_a_link(session, project):
    (project / "real.txt").write_text("old\n")
    (project / "link.txt").symlink_to("real.txt")
    await session.call("Read", file_path="link.txt")
    result = await session.call("Write", file_path="link.txt", content="new\n")
    assert result.ok, result.text
    assert (project / "link.txt").is_symlink()
    assert (project / "real.txt").read_text() == "new\n"


async def test_reading_a_link_counts_as_reading_its_target(session, project):
    (project / "real.txt").write_text("old\n")
    (project / "link.txt").symlink_to("real.txt")
    await session.call("Read", file_path="link.txt")
    result = await session.call("Edit", file_path="real.txt", old_string="old", new_string="new")
    assert result.ok, result.text


async def test_a_dangling_link_inside_creates_its_target(session, project):
    (project / "link.txt").symlink_to("sub/new.txt")
    result = await session.call("Write", file_path="link.txt", content="x\n")
    assert result.ok, result.text
    assert (project / "link.txt").is_symlink()
    assert (project / "sub/new.txt").read_text() == "x\n"


async def test_a_loop_of_links_is_an_error_at_once(session, project):
    (project / "a").symlink_to("b")
    (project / "b").symlink_to("a")
    for tool in ("Read", "Write"):
        assert await code_of(session, tool, "a") == "file.bad_path"


async def test_a_deny_rule_holds_through_a_link_and_for_the_links_own_place(project):
    (project / "secret").mkdir()
    (project / "secret/a.txt").write_text("x\n")
    (project / "open.txt").symlink_to("secret/a.txt")
    (project / "secret/link.txt").symlink_to("../plain.txt")
    (project / "plain.txt").write_text("y\n")
    async with Session(project, deny=["Read(secret/**)"]) as session:
        for name in ("open.txt", "secret/a.txt", "secret/link.txt", "./secret/../secret/a.txt"):
            assert await code_of(session, "Read", name) == "permission.denied", name
        assert await code_of(session, "Read", "plain.txt") is None


async def test_an_allow_rule_for_the_link_alone_does_not_open_its_target(project, outside):
    (project / "link").symlink_to(outside / "secret.txt")
    async with Session(project, allow=[f"Read({project}/link)", "Read(/link)"]) as session:
        assert await code_of(session, "Read", "link") == "permission.asked"
    async with Session(project, allow=[f"Read(/{outside}/**)"]) as session:
        assert await code_of(session, "Read", "link") == "permission.asked"
    async with Session(project, allow=[f"Read(/{outside}/**)", "Read(/link)"]) as session:
        assert await code_of(session, "Read", "link") is None


async def test_a_yes_for_a_link_outside_is_asked_again_for_where_it_leads(
    project, outside, tmp_path
):
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("far\n")
    (outside / "hop").symlink_to(elsewhere)
    asked = []

    async def on_ask(request):
        asked.append(request.reason)
        return Allow()

    async with Session(project, on_ask=on_ask) as session:
        result = await session.call("Read", file_path=str(outside / "hop"))
    assert result.ok
    assert "far" in result.text
    assert len(asked) == 2
    assert str(elsewhere) in asked[1]


async def test_a_directory_whose_name_begins_like_the_project_is_outside(
    session, project, tmp_path
):
    evil = tmp_path / "project-evil"
    evil.mkdir()
    (evil / "a.txt").write_text("x\n")
    assert await code_of(session, "Read", evil / "a.txt") == "permission.asked"


async def test_a_link_swapped_in_after_the_check_is_not_followed(project, outside, monkeypatch):
    """Swap the directory for a link at the very moment between decision and opening."""
    from handaxe.disk import local_files as host_files

    (project / "dir").mkdir()
    (project / "dir/secret.txt").write_text("harmless\n")
    real_open = host_files.open_regular_at

    def swap_then_open(path):
        if (project / "dir").is_dir() and not (project / "dir").is_symlink():
            os.rename(project / "dir", project / "moved")
            (project / "dir").symlink_to(outside)
        return real_open(path)

    monkeypatch.setattr(host_files, "open_regular_at", swap_then_open)
    async with Session(project) as session:
        result = await session.call("Read", file_path="dir/secret.txt")
    assert not result.ok
    assert "secret\n" not in result.text
    assert result.code in {"permission.asked", "file.changed"}


async def test_mode_owner_and_attributes_survive(session, project):
    path = project / "run.sh"
    path.write_text("echo old\n")
    os.chmod(path, 0o750)
    os.chown(path, 1234, 2345) if os.getuid() == 0 else None
    before = path.stat()
    await session.call("Read", file_path="run.sh")
    result = await session.call("Edit", file_path="run.sh", old_string="old", new_string="new")
    assert result.ok, result.text
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


@pytest.mark.proves("FT-11")
@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfone\r\ntwo\r\n", b"one\rtwo\r", b"one\ntwo", "one\r\ntwo\r\n".encode("utf-16")],
)
async def test_marks_endings_and_the_missing_last_newline_survive_an_edit(
    session, project, content
):
    (project / "a.txt").write_bytes(content)
    await session.call("Read", file_path="a.txt")
    result = await session.call("Edit", file_path="a.txt", old_string="two", new_string="2")
    assert result.ok, result.text
    wide = content.startswith(b"\xff\xfe")
    old, new = ("two".encode("utf-16-le"), "2".encode("utf-16-le")) if wide else (b"two", b"2")
    assert (project / "a.txt").read_bytes() == content.replace(old, new)


@pytest.mark.proves("FT-10")
async def test_what_a_hook_did_after_a_write_is_known_and_shown(project):
    async def formatter(event):
        path = event["tool_input"]["file_path"]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("x=1", "x = 1"))

    async with Session(
        project, permission_mode="acceptEdits", hooks={"PostToolUse": [formatter]}
    ) as session:
        result = await session.call("Write", file_path="a.py", content="x=1\n")
        assert result.ok
        assert "-x=1" in result.text
        assert "+x = 1" in result.text
        again = await session.call("Edit", file_path="a.py", old_string="x = 1", new_string="x = 2")
        assert again.ok, again.text


@pytest.mark.parametrize("tool", ["Read", "Edit"])
async def test_a_link_that_leads_nowhere_is_not_its_own_near_name(session, project, tool):
    (project / "link.txt").symlink_to("gone.txt")
    more = {"old_string": "a", "new_string": "b"} if tool == "Edit" else {}
    result = await session.call(tool, {"file_path": "link.txt", **more})
    assert result.code == "file.not_found"
    assert result.text.startswith("File does not exist.")
    assert "is a link that leads nowhere" in result.text
    assert "Did you mean" not in result.text


async def test_what_a_session_changed_under_one_name_it_knows_under_the_others(project):
    one, two, copy = (project / name for name in ("one.txt", "two.txt", "copy.txt"))
    one.write_text("a\nb\n")
    os.link(one, two)
    copy.write_text("a\nb\n")
    async with Session(project, permission_mode="acceptEdits") as session:
        for file in (one, two, copy):
            assert (await session.call("Read", file_path=str(file))).ok
        edit = {"old_string": "a", "new_string": "A"}
        assert (await session.call("Edit", edit, file_path=str(one))).ok
        edit = {"old_string": "b", "new_string": "B"}
        result = await session.call("Edit", edit, file_path=str(two))
        assert result.ok, result.text
        result = await session.call("Write", file_path=str(one), content="c\n")
        assert result.ok, result.text
        assert two.read_text() == "c\n"
        # The same content and time, but another file: somebody else changed this one.
        copy.write_text("c\n")
        os.utime(copy, ns=(one.stat().st_atime_ns, one.stat().st_mtime_ns))
        result = await session.call("Write", file_path=str(copy), content="d\n")
        assert result.code == "file.changed"
        # And what somebody else writes under either name is not known.
        two.write_text("somebody\n")
        for file in (one, two):
            assert (await session.call("Write", file_path=str(file), content="d\n")).code == (
                "file.changed"
            )
