"""Files of instructions: which are found, what they import, what is left out and said."""

from pathlib import Path

import pytest

from handaxe.agent.memory.instruction_files import InstructionFiles, InstructionPaths
from handaxe.disk.local_files import LocalFiles


def places_of(project: Path, directory: Path | None = None, **more) -> InstructionPaths:
    return InstructionPaths(
        directory=str(directory or project),
        project=str(project),
        home=str(project.parent / "home"),
        users=(str(project.parent / "home" / ".claude"),),
        **more,
    )


async def load(project: Path, directory: Path | None = None, **more):
    found = await InstructionFiles(LocalFiles(), places_of(project, directory, **more)).load()
    short = str(project.parent) + "/"
    texts = [(text.path.removeprefix(short), text.scope, text.text) for text in found.texts]
    return texts, [note.replace(short, "") for note in found.notes]


def write(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


async def test_the_chain_goes_from_the_user_to_the_directory(project: Path):
    for name, text in {
        "home/.claude/CLAUDE.md": "user",
        "project/CLAUDE.md": "top",
        "project/CLAUDE.local.md": "mine",
        "project/sub/.claude/CLAUDE.md": "deep",
        "project/sub/AGENTS.md": "agents",
        "project/other/CLAUDE.md": "never",
    }.items():
        path = project.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    texts, notes = await load(project, project / "sub")
    assert texts == [
        ("home/.claude/CLAUDE.md", "user", "user"),
        ("project/CLAUDE.md", "project", "top"),
        ("project/CLAUDE.local.md", "local", "mine"),
        ("project/sub/.claude/CLAUDE.md", "project", "deep"),
        ("project/sub/AGENTS.md", "project", "agents"),
    ]
    assert notes == []


async def test_nothing_is_loaded_twice(project: Path):
    (project / "CLAUDE.md").write_text("See @AGENTS.md for more.")
    (project / "AGENTS.md").write_text("the rules")
    (project / "CLAUDE.local.md").symlink_to("AGENTS.md")
    texts, _ = await load(project)
    assert [(path, text) for path, _, text in texts] == [
        ("project/AGENTS.md", "the rules"),
        ("project/CLAUDE.md", "See @AGENTS.md for more."),
    ]


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("@x.md", True),
        ("see @x.md.", True),
        ("see @./x.md, and", True),
        ("`@x.md`", False),
        ("```\n@x.md\n```", False),
        ("~~~\n@x.md\n", False),
        ("me@x.md", False),
        ("<!-- @x.md -->", False),
        ("@nothing.md @someone", False),
    ],
)
async def test_imports_are_found_outside_code_only(project: Path, text: str, imported: bool):
    (project / "x.md").write_text("X")
    (project / "CLAUDE.md").write_text(text)
    texts, _ = await load(project)
    assert ("project/x.md" in [path for path, _, _ in texts]) == imported


async def test_imports_go_four_deep_and_in_circles_once(project: Path):
    for number in range(7):
        (project / f"f{number}.md").write_text(f"{number} @f{number + 1}.md")
    (project / "CLAUDE.md").write_text("@f0.md @CLAUDE.md")
    texts, notes = await load(project)
    names = {path for path, _, _ in texts}
    assert names == {f"project/f{n}.md" for n in range(4)} | {"project/CLAUDE.md"}
    assert notes == ["project/f3.md imports project/f4.md: nested more than 4 deep, skipped."]


async def test_a_project_cannot_import_what_lies_outside(project: Path):
    secret = project.parent / "home" / "secret.md"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("secret")
    (project / "link.md").symlink_to(secret)
    (project / "CLAUDE.md").write_text(f"@~/secret.md @{secret} @../home/secret.md @link.md")
    texts, notes = await load(project)
    assert "secret" not in [text for _, _, text in texts]
    assert len(notes) == 4
    (project.parent / "home" / ".claude").mkdir()
    (project.parent / "home" / ".claude" / "CLAUDE.md").write_text("@~/secret.md")
    texts, _ = await load(project)
    assert "secret" in [text for _, _, text in texts]


async def test_comments_go_and_code_stays(project: Path):
    (project / "CLAUDE.md").write_text("a<!-- x\ny -->b\n```\n<!-- kept -->\n```\n")
    texts, _ = await load(project)
    assert texts[0][2] == "ab\n```\n<!-- kept -->\n```"


async def test_rules_for_certain_files_wait_for_them(project: Path):
    rules = project / ".claude" / "rules" / "web"
    rules.mkdir(parents=True)
    (rules / "css.md").write_text("---\npaths: ['**/*.css', '{a,b}/*.js']\n---\nNo ids.")
    (rules.parent / "all.md").write_text("Be brief.")
    files = InstructionFiles(LocalFiles(), places_of(project))
    assert [text.text for text in (await files.load()).texts] == ["Be brief."]
    assert (await files.load_nested([f"{project}/c/x.js", f"{project}/x.py"])).texts == ()
    assert [text.text for text in (await files.load_nested([f"{project}/b/x.js"])).texts] == [
        "No ids."
    ]
    assert (await files.load_nested([f"{project}/x.css"])).texts == ()


async def test_files_further_down_wait_for_a_file_beside_them(project: Path):
    write(project, **{"CLAUDE.md": "top", "a/CLAUDE.md": "@more.md\na",
        "a/more.md": "more", "a/b/AGENTS.md": "b", "c/CLAUDE.md": "c"})  # fmt: skip
    (project.parent / "CLAUDE.md").write_text("above")
    files = InstructionFiles(LocalFiles(), places_of(project))
    assert [text.text for text in (await files.load()).texts] == ["above", "top"]
    other = files.copy(str(project))
    found = await files.load_nested([f"{project}/a/b/x.py", f"{project.parent}/d/y.py"])
    assert [text.text for text in found.texts] == ["more", "@more.md\na", "b"]
    assert (await files.load_nested([f"{project}/a/z.py"])).texts == ()
    assert [text.text for text in (await other.load_nested([f"{project}/c/x"])).texts] == ["c"]
    assert [text.text for text in (await other.again([f"{project}/a/b/AGENTS.md"])).texts] == ["b"]


@pytest.mark.parametrize("pattern", ["{0}/a/CLAUDE.md", "**/a/CLAUDE.md", "{0}/a/**", "{0}/a"])
async def test_excluded_files_do_not_count(project: Path, pattern: str):
    write(project, **{"CLAUDE.md": "top", "a/CLAUDE.md": "a"})
    excludes = (pattern.format(project), "[")
    texts, _ = await load(project, project / "a", excludes=excludes)
    assert [text for _, _, text in texts] == ["top"]
    files = InstructionFiles(LocalFiles(), places_of(project, excludes=excludes))
    assert (await files.load_nested([f"{project}/a/x"])).texts == ()


async def test_a_bad_pattern_of_a_rule_is_named(project: Path):
    rule = project / ".claude/rules/x.md"
    rule.parent.mkdir(parents=True)
    rule.write_text("---\npaths: ['[']\n---\nNo ids.")
    texts, notes = await load(project)
    assert texts == []
    assert ".claude/rules/x.md" in notes[0]


async def test_what_is_too_long_or_unreadable_is_said(project: Path):
    (project / "CLAUDE.md").write_text("x" * 50_000)
    (project / "AGENTS.md").write_bytes(b"\0\1binary")
    (project / "CLAUDE.local.md").mkdir()
    texts, notes = await load(project)
    assert "40,000 of 50,000 characters" in notes[0]
    assert "read " in texts[0][2][-200:]
    assert len(texts[0][2]) < 41_000
