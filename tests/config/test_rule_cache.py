"""What a settings file forbade is not forgotten when it breaks between two runs."""

import json
import os
from pathlib import Path

import pytest

from handaxe import Session, SetupError
from handaxe.config.rule_cache import DIRECTORY, MAX_BYTES, MAX_FILES, RuleCache
from handaxe.config.source import read_text

pytestmark = pytest.mark.proves("ST-2")

BROKEN = [
    "{",
    "",
    '{"permissions": {"deny": []}',
    "[]",
    "\x00",
    '{"permissions": {"deny": ["Read(/x',
]


def write(file: Path, text: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text if isinstance(text, str) else json.dumps(text))


def rules(**lists: list[str] | str) -> dict[str, object]:
    return {"permissions": lists}


async def code_of(project: Path, home: Path, name: str = "README") -> str | None:
    async with Session(project, home=home, trusted=True) as session:
        return (await session.call("Read", file_path=name)).code


@pytest.fixture
def file(project: Path) -> Path:
    (project / "README").write_text("hello\n")
    (project / "OTHER").write_text("hello\n")
    return project / ".claude" / "settings.json"


MISTAKEN = [
    '{"permisions": {"deny": ["Read(/README)"]}}',
    '{"permissions": {"dney": ["Read(/README)"]}}',
    '{"permissions": {"denied_files": ["Read(/README)"]}}',
    '{"permissions": {"deny": ["Read(/README"]}}',
    '{"permissions": {"deny": [["Read(/README)"]]}}',
    '{"permissions": {"deny": {"Read": "/README"}}}',
    '{"permissions": {"deny": [7]}}',
    '{"permissions": ["Read(/README)"]}',
    '{"permissions": "deny"}',
    '{"deny": ["Read(/README)"]}',
    '{"PERMISSIONS": {"deny": ["Read(/README)"]}}',
    '{"forbidden": ["Read(/README)"]}',
    '{"rules": {"deny": ["Read(/README)"]}}',
    '{"permissions.dney": ["Read(/README)"]}',
]


@pytest.mark.parametrize("text", MISTAKEN)
async def test_a_mistake_that_may_have_been_a_rule_takes_no_rule_away(
    project, file, tmp_path, text
):
    write(file, rules(deny=["Read(/README)"], ask=["Read(/OTHER)"]))
    home = tmp_path / "data"
    async with Session(project, home=home, trusted=True) as session:
        assert (await session.call("Read", file_path="README")).code == "permission.denied"
        write(file, text)
        for _ in range(2):
            assert (await session.call("Read", file_path="README")).code == "permission.denied"
            assert not (await session.call("Read", file_path="OTHER")).ok
        assert any("still apply" in warning for warning in session.warnings)
    # Neither does it between two runs, nor while it waits there.
    for _ in range(2):
        assert await code_of(project, home) == "permission.denied"
        assert await code_of(project, home, "OTHER") == "permission.asked"
    async with Session(project, home=home, trusted=True) as session:
        write(file, rules(deny=["Read(/OTHER)"]))
        assert (await session.call("Read", file_path="README")).ok
        assert (await session.call("Read", file_path="OTHER")).code == "permission.denied"
        assert session.warnings == ()
    assert await code_of(project, home) is None


@pytest.mark.parametrize(
    "text", ["{}", '{"permissions": {}}', '{"permissions": {"alow": []}}', '{"modle": "x"}']
)
async def test_a_rule_that_was_taken_out_is_gone(project, file, tmp_path, text):
    write(file, rules(deny=["Read(/README)"]))
    async with Session(project, home=tmp_path / "data", trusted=True) as session:
        assert (await session.call("Read", file_path="README")).code == "permission.denied"
        write(file, text)
        assert (await session.call("Read", file_path="README")).ok
    assert await code_of(project, tmp_path / "data") is None


@pytest.mark.parametrize("text", BROKEN)
async def test_a_file_that_broke_between_two_runs_still_denies(project, file, tmp_path, text):
    write(file, rules(deny=["Read(/README)"], ask=["Read(/OTHER)"], allow=["Write", "Bash"]))
    assert await code_of(project, tmp_path / "data") == "permission.denied"
    write(file, text)
    for _ in range(2):
        async with Session(project, home=tmp_path / "data", trusted=True) as session:
            assert (await session.call("Read", file_path="README")).code == "permission.denied"
            assert not (await session.call("Read", file_path="OTHER")).ok
            # What it allowed is not remembered.
            assert not (await session.call("Write", file_path="new", content="x")).ok
            assert any("still apply" in warning for warning in session.warnings)


@pytest.mark.parametrize(
    ("history", "code"),
    [
        ([rules(deny=["Read(/README)"]), rules(), "{"], None),
        ([rules(deny=["Read(/README)"]), rules(deny=["Read(/OTHER)"]), "{"], None),
        ([rules(), rules(deny=["Read(/README)"]), "{"], "permission.denied"),
        ([rules(deny=["Read(/README)"]), "{", "{{", "}"], "permission.denied"),
        ([rules(deny=["Read(/README)"]), "{", rules()], None),
        (["{", "{"], None),
        ([rules(deny="Read(/README)"), "{"], "permission.denied"),
    ],
)
async def test_what_was_last_valid_counts(project, file, tmp_path, history, code):
    for text in history:
        write(file, text)
        last = await code_of(project, tmp_path / "data")
    assert last == code


@pytest.mark.parametrize(
    "text",
    [
        '{"permissions": {"deny": ["Read(/README)"], "allow": ["Write"]},}',
        '{"permissions": {"deny": ["Read(/README)"',
        '{// why\n"permissions": {"deny": ["Read(/x)" "Read(/README)"]}}',
        '{"permissions": {"deny": ["Read(/README)",]} "allow": []',
        '{"permissions": {"allow": ["Read"], "deny": ["Read(/README)"], "ask": [',
        '{"model": "\xff", "permissions": {"deny": ["Read(/README)"]}}',
    ],
)
async def test_what_can_be_made_out_in_a_broken_file_is_forbidden(project, file, tmp_path, text):
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode("latin-1"))
    for _ in range(2):
        assert await code_of(project, tmp_path / "data") == "permission.denied"
        assert await code_of(project, tmp_path / "data", "OTHER") is None


async def test_rules_beside_a_mistake_are_remembered(project, file, tmp_path):
    write(file, {"permissions": {"deny": ["Read(/README)", 7], "dney": ["Write"]}, "modle": "x"})
    assert await code_of(project, tmp_path / "data") == "permission.denied"
    write(file, "{")
    assert await code_of(project, tmp_path / "data") == "permission.denied"
    file.write_text("")
    file.chmod(0)
    assert await code_of(project, tmp_path / "data") == "permission.denied"


@pytest.mark.parametrize("mode", ["acceptEdits", "auto", "bypassPermissions"])
async def test_with_unknown_rules_only_strict_modes_are_there(project, file, tmp_path, mode):
    user = Path(os.environ["HANDAXE_CONFIG_HOME"]) / "settings.json"
    skill = project / ".claude/skills/x/SKILL.md"
    write(skill, "---\nallowed-tools: Write\n---\nx")
    write(user, rules(allow=["Write"]))
    options = {"home": tmp_path / "data", "trusted": True}
    async with Session(project, **options) as session:
        assert (await session.call("Write", file_path="a", content="x")).ok
        session.set_mode(mode)
        write(file, "{")
        assert not (await session.call("Write", file_path="b", content="x")).ok
        assert session.permissions.mode == "default"
        with pytest.raises(SetupError, match="cannot be read"):
            session.set_mode(mode)
    with pytest.raises(SetupError, match="Fix the file"):
        Session(project, permission_mode=mode, **options)
    for allowed in ("default", "plan", "dontAsk"):
        async with Session(project, permission_mode=allowed, **options) as session:
            assert (await session.call("Read", file_path="README")).ok
            assert (await session.call("Bash", command="cat README")).ok
            await session.call("Skill", skill="x")
            assert not (await session.call("Write", file_path="b", content="x")).ok


async def test_rules_of_one_file_are_not_those_of_another(project, file, tmp_path):
    write(file, rules(deny=["Read(/README)"]))
    assert await code_of(project, tmp_path / "data") == "permission.denied"
    file.unlink()
    write(file.with_name("settings.local.json"), "{")
    assert await code_of(project, tmp_path / "data") is None


async def test_a_file_that_cannot_be_read_denies_as_well(project, file, tmp_path):
    write(file, rules(deny=["Read(/README)"]))
    assert await code_of(project, tmp_path / "data") == "permission.denied"
    file.unlink()
    file.mkdir()
    assert await code_of(project, tmp_path / "data") == "permission.denied"


async def test_nothing_is_written_twice_nor_into_the_project(project, file, tmp_path):
    home = tmp_path / "data"
    write(file, rules(allow=["Read"]))
    await code_of(project, home)
    assert not (home / DIRECTORY).exists()
    write(file, rules(deny=["Read(/README)"]))
    await code_of(project, home)
    (record,) = (home / DIRECTORY).iterdir()
    os.utime(record, ns=(1, 1))
    await code_of(project, home)
    write(file, rules(deny=["Read(/README)"], allow=["Write"]))
    await code_of(project, home)
    assert record.stat().st_mtime_ns == 1
    assert sorted(path.name for path in file.parent.iterdir()) == ["settings.json"]


def fragment(file: str, *deny: str):
    return read_text(json.dumps(rules(deny=list(deny))), source="user", file=file)


def test_the_records_are_few_and_small(tmp_path):
    memory = RuleCache(tmp_path)
    for number in range(MAX_FILES + 20):
        memory.keep(fragment(f"/{number}", "Read"))
    assert len(list((tmp_path / DIRECTORY).iterdir())) == MAX_FILES
    memory.keep(fragment("/large", "x" * MAX_BYTES))
    assert memory.entries("/large", "user") == ()


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"file": "/other"}', b"\xff"])
def test_a_damaged_record_is_nobodys_problem(tmp_path, damage):
    memory = RuleCache(tmp_path)
    memory.keep(fragment("/one", "Read"))
    (record,) = (tmp_path / DIRECTORY).iterdir()
    record.write_bytes(damage)
    assert memory.entries("/one", "user") == ()
    memory.keep(fragment("/one", "Read"))
    assert [entry.value for entry in memory.entries("/one", "user")] == ["Read"]


def test_where_nothing_can_be_written_nothing_breaks(tmp_path):
    (tmp_path / "home").write_text("a file")
    memory = RuleCache(tmp_path / "home")
    memory.keep(fragment("/one", "Read"))
    assert memory.entries("/one", "user") == ()
