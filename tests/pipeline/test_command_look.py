"""The second step of a verdict: what a look at the disk adds to what the text says."""

import io
import subprocess
import tarfile
import zipfile
from typing import Any

import pytest
from tests.expected_types import require

from handaxe import Session

PROTECTED = {".git/hooks/pre-commit": "x", ".mcp.json": "{}", "sub/.vscode/settings.json": "{}"}


@pytest.fixture
def tree(tmp_path):
    """A project with links that lead out of it, and trees that hold protected names."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (outside / "g").write_text("precious\n")
    for name in ("s/g", "s/h", "a.txt", "src/x.py", "clean/n/m.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x\n")
    (project / "tree").mkdir()
    (project / "tree/g").symlink_to(outside / "g")
    for name, text in PROTECTED.items():
        (project / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / "t" / name).write_text(text)
    return project


async def verdict(tree, command, mode="default", **rules):
    async with Session(tree, permission_mode=mode, home=tree.parent / "home", **rules) as session:
        return require((await session.call("Bash", command=command)).decision).verdict


@pytest.mark.proves("PM-3", "SH-6")
@pytest.mark.parametrize(
    "command",
    ["cp s/g tree", "cp s/g tree/", "cp -t tree s/g", "cp -f s/g tree/g", "mv s/g tree", "cp s/g s/h tree",
     "cp -r t/. .", "cp -r t new", "mv t new", "cp -a t new", "cp t/.mcp.json .", "sed -in s/x/x/ .mcp.jso",
     "cp a.txt .MCP.json", "mv .env e && cat e", "touch tree/g", "cp -rT t ."],
)  # fmt: skip
async def test_accept_edits_asks_for_what_a_copy_would_really_write(command, tree):
    (tree / ".env").write_text("A=1\n")
    assert await verdict(tree, command, "acceptEdits") == "ask"
    assert (tree.parent / "outside/g").read_text() == "precious\n"


@pytest.mark.parametrize("command", ["cp s/g new", "cp -r clean new", "mv clean new", "cp s/g src"])
async def test_accept_edits_lets_plain_copies_pass(command, tree):
    assert await verdict(tree, command, "acceptEdits") == "allow"


@pytest.mark.parametrize("rule", ["Edit(**/m.txt)", "Edit(clean/n/*)", "Edit(clean/**)"])
@pytest.mark.parametrize(
    "command",
    ["rm -r clean", "rm -rf cl*", "rm -r clean/n", "find clean -delete", "mv clean new",
     "find clean -name 'm*' -exec rm {} +", "chmod -R 600 clean", "rm -r src clean"],
)  # fmt: skip
async def test_a_rule_for_a_file_holds_for_its_directory_too(rule, command, tree):
    assert await verdict(tree, command, allow=["Bash"], deny=[rule]) in {"ask", "deny"}
    assert (tree / "clean/n/m.txt").stat().st_mode & 0o777 == 0o644


async def test_a_rule_for_a_file_leaves_other_directories_alone(tree):
    assert await verdict(tree, "rm -r src", allow=["Bash"], deny=["Edit(**/m.txt)"]) == "allow"
    assert await verdict(tree, "rm -rf s*", allow=["Bash"], deny=["Edit(clean/**)"]) == "allow"


@pytest.mark.parametrize("rule", ["Bash(cp:*)", "Bash"])
async def test_an_allow_rule_is_none_for_protected_names_in_a_tree(rule, tree):
    assert await verdict(tree, "cp -r t new", allow=[rule]) == "ask"
    assert await verdict(tree, "cp s/g tree", allow=[rule]) == "ask"
    assert await verdict(tree, "cp -r clean new", allow=[rule]) == "allow"


def make_tar(path, name):
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = 1
        archive.addfile(info, io.BytesIO(b"x"))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("src/new.py", "allow"),
        (".git/hooks/pre-commit", "ask"),
        ("./.mcp.json", "ask"),
        ("../up", "ask"),
    ],
)
async def test_an_archive_is_judged_by_the_names_in_it(name, wanted, tree):
    make_tar(tree / "a.tgz", name)
    with zipfile.ZipFile(tree / "a.zip", "w") as archive:
        archive.writestr(name, "x")
    assert await verdict(tree, "tar -xzf a.tgz", allow=["Bash(tar:*)"]) == wanted
    assert await verdict(tree, "unzip -o a.zip", allow=["Bash(unzip:*)"]) == wanted


async def test_an_archive_that_cannot_be_read_asks(tree):
    (tree / "a.tgz").write_bytes(b"no archive")
    assert await verdict(tree, "tar -xzf a.tgz", allow=["Bash(tar:*)"]) == "ask"
    assert await verdict(tree, "tar -xz < a.tgz", allow=["Bash(tar:*)"]) == "ask"


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("grep -rn x .", "ask"), ("grep -rn x src", "allow"), ("rg --hidden x", "ask"), ("rg x", "allow"),
        ("grep -rn --include=*.py x .", "allow"), ("grep -rn --include='.env*' x .", "ask"),
        ("grep -rn --exclude=.env x .", "allow"), ("rg -g '.env' x", "ask"), ("diff -r src clean", "allow"),
        ("diff -r . clean", "ask"), ("cat .env", "ask"), ("grep -rn x src clean", "allow"),
    ],
)  # fmt: skip
async def test_a_sweep_asks_where_it_would_show_secrets(command, wanted, tree):
    (tree / ".env").write_text("SECRET=1\n")
    assert await verdict(tree, command) == wanted


@pytest.mark.parametrize("name", [".env.example", ".env.sample", ".env.template"])
async def test_an_example_holds_no_secrets(name, tree):
    (tree / name).write_text("SECRET=\n")
    (tree / "tree/g").unlink()
    assert await verdict(tree, "grep -rn x .") == "allow"


@pytest.mark.parametrize(
    "command",
    ["find src -name '*.py' -print0 | xargs -0 grep -n x", "find src -name '*.py' | xargs wc -l"],
)
async def test_listed_names_are_looked_at(command, tree):
    assert await verdict(tree, command) == "allow"
    for name, target in (("l.py", "/etc/hostname"), ("-n.py", None), (".env.py", None)):
        path = tree / "src" / name
        path.symlink_to(target) if target else path.write_text("x\n")
        assert await verdict(tree, command) == "ask" or name == "-n.py"
        path.unlink()
    (tree / "src/a b.py").write_text("x\n")
    assert await verdict(tree, "find src -name '*.py' | xargs wc -l") == "ask"
    assert await verdict(tree, "find src -name '*.py' -print0 | xargs -0 wc -l") == "allow"


def git(tree, *arguments):
    given = ["-c", "user.name=a", "-c", "user.email=b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *given, *arguments], cwd=tree, check=True, capture_output=True)


async def test_history_asks_only_if_secrets_were_ever_tracked(tree):
    git(tree, "init")
    git(tree, "add", "src")
    git(tree, "commit", "-m", "one")
    (tree / ".env").write_text("A=1\n")
    commands = ("git log -p", "git show", "git diff")
    for command in (*commands, "git log --oneline"):
        assert await verdict(tree, command) == "allow", command
    git(tree, "add", "-f", ".env")
    git(tree, "commit", "-m", "two")
    for command in commands:
        assert await verdict(tree, command) == "ask", command
    git(tree, "rm", "--cached", ".env")
    git(tree, "commit", "-m", "three")
    assert await verdict(tree, "git log -p") == "ask"
    assert await verdict(tree, "git diff") == "allow"
    assert await verdict(tree, "git log --oneline") == "allow"


async def test_what_undo_could_not_hold_asks_although_a_rule_allows_it(tree):
    rules: dict[str, Any] = {"allow": ["Bash"]}
    assert await verdict(tree, "rm -rf clean", **rules) == "allow"
    off = {"fileCheckpointingEnabled": False}
    assert await verdict(tree, "rm -rf src", settings=off, **rules) == "ask"
    assert (tree / "src").exists()


@pytest.mark.parametrize(
    "command",
    ["mv dd dq; cat dq/inner", "mv dd dq && cat dq/up/g", "cp -a dd ds; cat ds/inner", "mv dd dt; touch dt/hooks/evil",
     "cp -r dd eg; echo x > eg/settings"],
)  # fmt: skip
async def test_a_later_part_cannot_go_through_links_that_an_earlier_one_moves(command, tree):
    (tree / ".env").write_text("A=1\n")
    (tree / "dd").mkdir()
    links = {
        "inner": "../.env",
        "up": tree.parent / "outside",
        "hooks": "../t",
        "settings": "../.mcp.json",
    }
    for name, target in links.items():
        (tree / "dd" / name).symlink_to(target)
    assert await verdict(tree, command, "acceptEdits") == "ask"
    assert not (tree / ".mcp.json").exists()


@pytest.mark.parametrize(
    "command",
    ["cp -P lenv other; cat other", "cp -d lenv other && cat other", "cp -a lenv other; head other",
     "cp -rL dd copy; cat copy/inner", "cp -r dd copy; cat copy/inner"],
)  # fmt: skip
async def test_a_secret_cannot_be_shown_through_a_copied_link(command, tree):
    (tree / ".env").write_text("A=1\n")
    (tree / "lenv").symlink_to(".env")
    (tree / "dd").mkdir()
    (tree / "dd/inner").symlink_to("../.env")
    assert await verdict(tree, command, "acceptEdits") == "ask"


async def test_plain_files_may_be_moved_and_shown_in_one_command(tree):
    assert await verdict(tree, "mv s new && cat new/h", "acceptEdits") == "allow"
    assert await verdict(tree, "ln -s .env e; cat e", allow=["Bash(ln:*)"]) == "ask"


@pytest.mark.parametrize(
    "command",
    ["mv clean x2; grep -r x x2", "cp -r clean x3; rg --hidden x x3", "mv clean x6; find x6 -type f | xargs cat",
     "cp -r clean x5 && diff -r x5 src", "mkdir -p objects refs; echo 'ref: refs/heads/x' > HEAD; echo a > config; git status",
     "mv t/.git/hooks x; git status"],
)  # fmt: skip
async def test_a_look_is_not_trusted_after_an_earlier_part_changed_the_place(command, tree):
    git(tree, "init")
    assert await verdict(tree, command, "acceptEdits") == "ask"


async def test_git_may_look_after_a_plain_edit(tree):
    git(tree, "init")
    assert await verdict(tree, "sed -i s/x/y/ a.txt && git diff", "acceptEdits") == "allow"
    assert await verdict(tree, "touch b.txt && git status", "acceptEdits") == "allow"


@pytest.mark.parametrize(
    "command",
    ["git diff main side", "git log --all --binary", "git diff-tree -p side", "git show :/two", "git log -p --all",
     "git cat-file -p side:.env", "git diff --no-index src clean"],
)  # fmt: skip
async def test_secrets_of_other_branches_ask(command, tree):
    git(tree, "init")
    git(tree, "add", "src")
    git(tree, "commit", "-m", "one")
    git(tree, "checkout", "-q", "-b", "side")
    (tree / ".env").write_text("A=1\n")
    git(tree, "add", "-f", ".env")
    git(tree, "commit", "-m", "two")
    git(tree, "checkout", "-q", "main")
    assert await verdict(tree, command) == "ask"
