"""Settings files on disk: found, read again when touched, and safe when they break."""

import asyncio
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.counted_work import steps_of

import handaxe
from handaxe.app.services.configuration import open_configuration
from handaxe.config import file_watch as watch
from handaxe.config import settings_paths as places
from handaxe.config.files import SettingsFile
from handaxe.config.project import Configuration
from handaxe.config.trust_store import TrustRecord

BROKEN = '{"permissions": {\n'


def write(path: Path, data) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


def rules(*, allow=(), ask=(), deny=()):
    return {"permissions": {"allow": list(allow), "ask": list(ask), "deny": list(deny)}}


@pytest.fixture
def managed(tmp_path, monkeypatch) -> Path:
    directory = tmp_path / "managed"
    monkeypatch.setattr(places, "MANAGED_DIRECTORIES", (str(directory),))
    return directory


@pytest.fixture
def own(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("HANDAXE_CONFIG_HOME", str(tmp_path / "own"))
    return tmp_path / "own" / "settings.json"


@pytest.fixture
def shared(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "shared"))
    return tmp_path / "shared" / "settings.json"


def opened(project, **options) -> Configuration:
    return open_configuration(
        os.path.realpath(project), home=Path(os.environ["HANDAXE_HOME"]), **options
    )


def permissions(configuration):
    return configuration.settings.permissions


@pytest.mark.proves("ST-2")
def test_a_file_written_right_after_a_look_is_seen_by_the_next(project, own):
    configuration = opened(project)
    for turn in range(200):
        configuration.refresh()
        write(own, {"model": f"m{turn}"})
        configuration.refresh()
        assert configuration.settings.model == f"m{turn}"
        own.unlink()


@pytest.mark.proves("ST-2")
def test_every_place_is_read_and_the_higher_one_wins(project, own, shared, managed):
    order = [
        shared,
        own,
        project / ".claude/settings.json",
        project / ".handaxe/settings.json",
        project / ".claude/settings.local.json",
        project / ".handaxe/settings.local.json",
    ]
    for at, path in enumerate(order):
        write(path, {"model": f"m{at}", **rules(deny=[f"D{at}"])})
        assert opened(project, trusted=True).settings.model == f"m{at}"
    flags = {"model": "flags"}
    assert opened(project, trusted=True, given=flags).settings.model == "flags"
    write(managed / "managed-settings.json", {"model": "managed"})
    assert opened(project, trusted=True, given=flags).settings.model == "managed"
    write(managed / "managed-settings.d" / "10-more.json", {"model": "later"})
    found = opened(project, trusted=True, given=flags)
    assert found.settings.model == "later"
    assert permissions(found).deny == ("D0", "D1", "D2", "D3", "D4", "D5")
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("sources", "deny"),
    [
        (None, ("U", "P", "L")),
        ("user,project,local", ("U", "P", "L")),
        ("user", ("U",)),
        (["local", "project"], ("P", "L")),
        ("", ()),
        ((), ()),
    ],
)
def test_sources_can_be_chosen_and_managed_settings_are_no_choice(
    project, own, managed, sources, deny
):
    write(own, rules(deny=["U"]))
    write(project / ".claude/settings.json", rules(deny=["P"]))
    write(project / ".claude/settings.local.json", rules(deny=["L"]))
    write(managed / "managed-settings.json", rules(deny=["M"]))
    assert permissions(opened(project, sources=sources)).deny == (*deny, "M")


def test_a_source_that_does_not_exist_is_an_error(project):
    with pytest.raises(handaxe.SetupError, match="'project'"):
        opened(project, sources="user,projct")


def test_in_the_home_directory_the_users_file_is_not_a_projects_file(project, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / ".claude"))
    write(project / ".claude/settings.json", rules(allow=["Write"]))
    found = opened(project)
    assert permissions(found).allow == ("Write",)
    assert [rule.source for rule in found.rules("user")] == ["user"]
    assert found.warnings == ()


def test_rules_keep_file_and_line(project, own):
    write(own, '{\n "permissions": {\n  "deny": [\n   "A",\n   "B"\n ]}}')
    assert [(rule.text, rule.file, rule.line) for rule in opened(project).rules("user")] == [
        ("A", str(own), 4),
        ("B", str(own), 5),
    ]


@pytest.mark.proves("ST-2")
@pytest.mark.parametrize("name", [".claude/settings.json", ".handaxe/settings.json"])
def test_a_changed_file_is_noticed_at_once(project, name):
    found = opened(project)
    for at in range(30):
        write(project / name, rules(deny=[f"D{at % 10}"]))
        found.refresh()
        assert permissions(found).deny == (f"D{at % 10}",)
    (project / name).unlink()
    found.refresh()
    assert permissions(found).deny == ()


def test_a_file_that_is_replaced_through_a_link_is_noticed(project, own, tmp_path):
    target = tmp_path / "dotfiles" / "settings.json"
    write(target, rules(deny=["A"]))
    own.parent.mkdir()
    own.symlink_to(target)
    found = opened(project)
    other = tmp_path / "dotfiles" / "new.json"
    write(other, rules(deny=["B"]))
    other.rename(target)
    found.refresh()
    assert permissions(found).deny == ("B",)


@pytest.mark.proves("ST-2")
@pytest.mark.parametrize("broken", [BROKEN, "", "[]", "\ufeff{", '{"a": 1,}', "// x\n{}"])
def test_a_file_that_breaks_keeps_what_it_forbade_and_loses_what_it_allowed(project, own, broken):
    write(own, {**rules(allow=["A"], ask=["B"], deny=["C"]), "read": {"line_format": "tab"}})
    found = opened(project)
    write(own, broken)
    found.refresh()
    assert permissions(found).deny == ("C",)
    assert permissions(found).ask == ("B",)
    assert permissions(found).allow == ()
    assert found.settings.read.line_format == "tab"
    (told,) = found.warnings
    assert told.startswith((f"{own}:1: ", f"{own}:2: "))
    assert "still apply" in told
    write(own, rules(allow=["A"]))
    found.refresh()
    assert permissions(found).allow == ("A",)
    assert (permissions(found).deny, found.warnings) == ((), ())


@pytest.mark.proves("ST-2")
def test_where_nobody_knows_what_a_file_forbade_no_file_allows(project, own, shared):
    write(own, BROKEN)
    write(shared, rules(deny=["A"], allow=["B"]))
    found = opened(project, given=rules(allow=["C"]))
    assert permissions(found).deny == ("A",)
    assert permissions(found).allow == ("C",)
    (told,) = found.warnings
    assert told.startswith(f"{own}:2: it is not JSON: the file ends where a name")
    assert "no allow rule of any file counts" in told
    write(own, "{}")
    found.refresh()
    assert permissions(found).allow == ("B", "C")


@pytest.mark.parametrize("how", ["directory", "fifo", "huge", "not_utf8", "loop"])
def test_what_is_no_readable_text_file_is_told_and_never_waited_for(project, own, how):
    own.parent.mkdir()
    if how == "directory":
        own.mkdir()
    elif how == "fifo":
        os.mkfifo(own)
    elif how == "huge":
        own.write_bytes(b" " * (3 << 20))
    elif how == "not_utf8":
        own.write_bytes(b'{"model": "\xff"}')
    else:
        own.symlink_to(own)
    (told,) = opened(project).warnings
    assert told.startswith(str(own))


@pytest.mark.proves("ST-2")
@pytest.mark.parametrize("text", [BROKEN, '{"permissions": {"deny": 3}}', '{"permissions": []}'])
def test_nothing_starts_without_managed_settings_that_can_be_read(project, managed, text):
    write(managed / "managed-settings.json", text)
    with pytest.raises(handaxe.SetupError, match="managed"):
        opened(project)


def test_an_unknown_key_in_managed_settings_is_only_told(project, managed):
    write(managed / "managed-settings.json", {"permisions": {}})
    (told,) = opened(project).warnings
    assert "permissions" in told


def test_managed_settings_that_break_or_go_away_stay_in_force(project, managed):
    file = managed / "managed-settings.d" / "a.json"
    write(file, rules(allow=["A"], deny=["B"]))
    found = opened(project)
    write(file, BROKEN)
    found.refresh()
    assert (permissions(found).allow, permissions(found).deny) == (("A",), ("B",))
    file.unlink()
    found.refresh()
    assert permissions(found).deny == ("B",)
    assert found.warnings


def test_the_command_that_trusts_can_be_pasted(tmp_path):
    project = tmp_path / "my project"
    write(project / ".claude/settings.json", rules(allow=["A"]))
    (told,) = opened(project).warnings
    assert f"`handaxe trust '{project}'`" in told


def trust(record, folder, configuration):
    record.trust(str(folder), {wish.key: wish.note for wish in configuration.find_requests()})


def test_trust_is_for_one_real_folder_and_can_be_taken_back(project, tmp_path):
    write(project / ".claude/settings.json", rules(allow=["A"], deny=["B"]))
    below = project / "below"
    write(below / ".claude/settings.json", rules(allow=["C"]))
    found = opened(project)
    assert (permissions(found).allow, permissions(found).deny) == ((), ("B",))
    (told,) = found.warnings
    assert "this workspace has not been trusted" in told
    assert f"`handaxe trust {project}`" in told
    link = tmp_path / "link"
    link.symlink_to(project)
    record = TrustRecord(Path(os.environ["HANDAXE_HOME"]))
    trust(record, link, found)
    found.refresh()
    assert permissions(found).allow == ("A",)
    assert found.warnings == ()
    assert permissions(opened(below)).allow == ()
    record.revoke(str(project))
    found.refresh()
    assert permissions(found).allow == ()


def test_trust_can_come_from_the_host_program_or_the_users_settings(project, own):
    write(project / ".claude/settings.json", rules(allow=["A"]))
    assert permissions(opened(project, trusted=True)).allow == ("A",)
    write(own, {"trusted_folders": [str(project)]})
    assert permissions(opened(project)).allow == ("A",)
    assert permissions(opened(project, trusted=False)).allow == ()
    own.unlink()
    write(project / ".handaxe/settings.json", {"trusted_folders": [str(project)]})
    assert permissions(opened(project)).allow == ()


def test_other_hooks_than_those_that_were_trusted_do_not_count(project):
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo 1"}]}]}}
    write(project / ".claude/settings.json", {**hooks, **rules(allow=["A"])})
    found = opened(project)
    assert found.merged.hooks == ()
    record = TrustRecord(Path(os.environ["HANDAXE_HOME"]))
    trust(record, project, found)
    found.refresh()
    assert len(found.merged.hooks) == 1
    hooks["hooks"]["Stop"][0]["hooks"][0]["command"] = "echo evil"
    write(project / ".claude/settings.json", {**hooks, **rules(allow=["A"])})
    found.refresh()
    assert found.merged.hooks == ()
    assert permissions(found).allow == ("A",)
    assert "changed since this workspace was trusted" in found.warnings[0]
    assert "echo evil" in found.warnings[0]


def test_a_damaged_record_of_trust_trusts_nobody(project):
    write(project / ".claude/settings.json", rules(allow=["A"]))
    record = TrustRecord(Path(os.environ["HANDAXE_HOME"]))
    trust(record, project, opened(project))
    Path(record.path).write_text("{")
    found = opened(project)
    assert permissions(found).allow == ()
    assert "damaged" in found.warnings[0]


def test_additional_directories_are_relative_to_the_project_and_missing_ones_are_told(project, own):
    (project.parent / "beside").mkdir()
    write(own, {"permissions": {"additionalDirectories": ["../beside", "../gone"]}})
    found, problems = opened(project).directories()
    assert [os.path.realpath(path) for path in found] == [str(project.parent / "beside")]
    assert "gone" in problems[0]


def test_noticing_that_nothing_changed_costs_little(project, own, monkeypatch):
    look = watch.read_stamp
    write(own, rules(deny=["A"]))
    write(project / ".claude/settings.json", rules(deny=["A"]))
    found = opened(project)
    # The clock of files has to move on: what was written just now is read once more.
    time.sleep(0.06)
    found.refresh()
    looked = []
    monkeypatch.setattr(watch, "read_stamp", lambda path: looked.append(path) or look(path))
    monkeypatch.setattr(SettingsFile, "read", lambda *_, **__: pytest.fail("nothing has changed"))
    assert steps_of(found.refresh) < 200
    assert str(own) in looked
    assert len(looked) == len(set(looked))


async def test_calls_that_begin_together_share_one_look_and_calls_of_one_task_do_not(
    project, own, monkeypatch
):
    write(project / "a.txt", {})
    async with handaxe.Session(project) as session:
        looks = []
        refresh = Configuration.refresh
        monkeypatch.setattr(Configuration, "refresh", lambda self: looks.append(1) or refresh(self))
        await asyncio.gather(*(session.call("Read", file_path="a.txt") for _ in range(20)))
        assert len(looks) == 1
        for behaviour in ("deny", "allow", "deny"):
            write(own, rules(**{behaviour: ["Read(a.txt)"]}))
            result = await session.call("Read", file_path="a.txt")
            assert result.ok is (behaviour == "allow")


async def test_tasks_that_a_host_starts_at_once_each_look_for_themselves(project, own, monkeypatch):
    write(project / "a.txt", {})
    loop = asyncio.get_running_loop()
    loop.set_task_factory(
        lambda loop, coroutine, **more: asyncio.Task(coroutine, loop=loop, **more)
    )
    looks = []
    async with handaxe.Session(project) as session:
        refresh = Configuration.refresh
        monkeypatch.setattr(Configuration, "refresh", lambda self: looks.append(1) or refresh(self))
        await asyncio.gather(*(session.call("Read", file_path="a.txt") for _ in range(20)))
    assert len(looks) >= 20


def test_a_project_without_settings_files_opens_with_little_work(project):
    opened(project)
    assert steps_of(lambda: opened(project)) < 5_000


def test_local_settings_of_a_repository_count_in_all_of_it_and_shared_ones_do_not(project):
    part = project / "apps" / "web"
    part.mkdir(parents=True)
    top = project / ".claude"
    write(top / "settings.local.json", rules(deny=["Read(.env)"], allow=["Edit(/src/**)"]))
    write(top / "settings.json", rules(deny=["Bash"]))
    assert permissions(opened(part)).deny == ()
    (project / ".git").mkdir()
    assert permissions(opened(part)).deny == ()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    assert permissions(opened(part)).deny == ("Read(.env)",)
    # What git passes over does not hide the repository above.
    (part / ".git").mkdir()
    assert permissions(opened(part)).deny == ("Read(.env)",)
    assert permissions(opened(part)).allow == ()
    write(part / ".claude" / "settings.local.json", rules(deny=["Read(x)"]))
    trusted = opened(part, trusted=True)
    assert permissions(trusted).deny == ("Read(.env)", "Read(x)")
    assert permissions(trusted).allow == ("Edit(/src/**)",)
    assert permissions(opened(part, sources="project")).deny == ()
