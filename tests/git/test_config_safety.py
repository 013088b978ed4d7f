"""A repository that chooses a program for git is noticed, whatever the spelling."""

import subprocess

import pytest

from handaxe import Session
from handaxe.git.config_safety import READING_COMMANDS, explain_git_doubt
from handaxe.shell.analysis.program_tables import load_git_forms

HARMLESS = [
    "",
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
    '[remote "origin"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n',
    "[user]\n\tname = Somebody # with a comment\n\temail = a@b\n",
    "[core]\n\tfsmonitor = true\n",
    "[CORE]\nfilemode=false\n",
    "; only a comment\n",
    "[alias]\n\tst = status\n",
    "[pull]\n\trebase\n",
    '[gitflow "branch"]\n\tmaster = main\n',
    "[diff]\n\tsubmodule = short\n",
    "[core]\n\thooksPath = .husky/_\n",
    '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\trequired = true\n',
    '[filter "lfs"]\n\tprocess = git-lfs filter-process\n',
    '[lfs "https://example.org/info/lfs"]\n\taccess = basic\n\tlocksverify = true\n',
]  # fmt: skip
PROGRAMS = [
    "[core]\n\tfsmonitor = ./evil\n",
    "[core] fsmonitor=./evil\n",
    "[CoRe]\nFSMonitor = ./evil\n",
    "[core]\n\tpager = evil\n",
    "[core]\n\tsshCommand = evil\n",
    "[core]\n\thooksPath = ~/hooks\n",
    '[core]\n\thooksPath = "hooks"\n',
    "[core]\n\thooksPath =\n",
    "[core]\n\thooksPath = hooks # and more\n",
    '[filter "lfs"]\n\tclean = ./git-lfs clean -- %f\n',
    '[filter "lfs"]\n\tprocess = git-lfs smudge -- %f\n',
    '[filter "lfs2"]\n\tprocess = git-lfs filter-process\n',
    "[core]\n\teditor = evil\n",
    "[core]\n\tworktree = /\n",
    "[core]\n\tunheardOf = x\n",
    "[diff]\n\texternal = evil\n",
    '[diff "x"]\n\tcommand = evil\n',
    '[diff "x"]\n\ttextconv = evil\n',
    '[filter "x"]\n\tclean = evil\n',
    '[merge "x"]\n\tdriver = evil\n',
    "[gpg]\n\tprogram = evil\n",
    "[log]\n\tshowSignature = true\n",
    "[include]\n\tpath = other\n",
    '[includeIf "gitdir:/"]\n\tpath = other\n',
    "[pager]\n\tlog = evil\n",
    "[credential]\n\thelper = evil\n",
    '[submodule "x"]\n\tupdate = !evil\n',
    "# a comment that seems to go on \\\n[core]\n\tfsmonitor = ./evil\n",
    "[x]\n\ty = z\n",
    '[remote "o"]\n\turl = ssh://somewhere/x\n\tpromisor = true\n',
    '[remote "o"]\n\tpartialclonefilter = blob:none\n',
    "[extensions]\n\tpartialClone = o\n",
    "[diff]\n\tsubmodule = diff\n",
    "[alias]\n\twhatchanged = !evil\n",
    '[alias "whatchanged"]\n\tcommand = !evil\n',
    '[lfs "customtransfer.x"]\n\tpath = evil\n',
    '[lfs "extension.x"]\n\tclean = evil\n',
    '[hook "x"]\n\tcommand = evil\n',
    "[core\n",
    "no section = x\n",
    "\ufeff[core]\n",
    "x" * 300_000,
]


def is_git_clean(directory):
    return not explain_git_doubt(str(directory))


def make_git_directory(place, config):
    """What git asks of a repository, and nothing else."""
    for name in ("objects", "refs"):
        (place / name).mkdir(parents=True)
    (place / "HEAD").write_text("ref: refs/heads/main\n")
    (place / "config").write_text(config)


@pytest.mark.parametrize("config", HARMLESS)
def test_ordinary_configuration_is_clean(config, tmp_path):
    make_git_directory(tmp_path / ".git", config)
    (tmp_path / "sub").mkdir()
    assert is_git_clean(str(tmp_path))
    assert is_git_clean(str(tmp_path / "sub"))


@pytest.mark.parametrize("config", PROGRAMS)
def test_a_program_in_the_configuration_is_noticed(config, tmp_path):
    make_git_directory(tmp_path / ".git", config)
    assert not is_git_clean(str(tmp_path))


@pytest.mark.parametrize("hooks", [".husky/_", "../beside", "hooks/"])
def test_hooks_elsewhere_count_where_looking_runs_one(hooks, tmp_path):
    project = tmp_path / "project"
    make_git_directory(project / ".git", f"[core]\n\thooksPath = {hooks}\n")
    place = project / hooks
    place.mkdir(parents=True, exist_ok=True)
    (place / "pre-commit").write_text("#!/bin/sh\n")
    assert is_git_clean(project)
    (place / "post-index-change").write_text("#!/bin/sh\n")
    assert not is_git_clean(project)


def test_bytes_that_are_no_text_are_not_trusted(tmp_path):
    make_git_directory(tmp_path / ".git", "")
    (tmp_path / ".git/config").write_bytes(b"[core]\n\tfilemode = \xff\n")
    assert not is_git_clean(str(tmp_path))


def test_a_fresh_repository_and_its_worktrees_are_clean(tmp_path):
    def git(*words):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    git("worktree", "add", "other")
    assert is_git_clean(str(tmp_path))
    assert is_git_clean(str(tmp_path / "other"))
    (tmp_path / ".git/hooks/post-index-change").write_text("#!/bin/sh\n")
    assert not is_git_clean(str(tmp_path / "other"))


def test_a_directory_that_looks_like_a_repository_is_one(tmp_path):
    fake = tmp_path / "data"
    make_git_directory(fake, "[core]\n\tfsmonitor = ./evil\n")
    assert is_git_clean(str(tmp_path))
    assert not is_git_clean(str(fake))


@pytest.mark.parametrize("content", ["gitdir: nowhere", "nonsense", "gitdir:", "gitdir: \0"])
def test_a_file_that_leads_to_no_repository_is_not_trusted(content, tmp_path):
    (tmp_path / ".git").write_text(content)
    assert not is_git_clean(tmp_path)


def git(place, *words):
    given = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *given, *words], cwd=place, check=True, capture_output=True)


def repository(place):
    place.mkdir()
    git(place, "init", "-q")
    (place / "a").write_text("a\n")
    git(place, "add", "a")
    git(place, "commit", "-q", "-m", "first")
    return place


@pytest.fixture(params=["submodule", "embedded", "own gitfile", "version 4", "nested"])
def nested(request, tmp_path):
    """A project with a repository inside that git descends into, and that one's configuration."""
    top = repository(tmp_path / "top")
    other = repository(tmp_path / "other")
    if request.param == "embedded":
        inner = repository(top / "sm")
        git(top, "add", "sm")
        return top, inner / ".git/config"
    if request.param == "own gitfile":
        repository(top / "sm")
        (top / "sm/.git").rename(tmp_path / "elsewhere")
        (top / "sm/.git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
        git(top, "add", "sm")
        return top, tmp_path / "elsewhere/config"
    if request.param == "nested":
        git(other, "submodule", "add", "-q", str(repository(tmp_path / "third")), "deep")
        git(other, "commit", "-q", "-m", "deep")
    git(top, "submodule", "add", "-q", str(other), "sm")
    git(top, "submodule", "update", "-q", "--init", "--recursive")
    if request.param == "version 4":
        git(top, "update-index", "--index-version", "4")
    if request.param == "nested":
        return top, top / ".git/modules/sm/modules/deep/config"
    return top, top / ".git/modules/sm/config"


async def test_a_repository_inside_chooses_no_program_either(nested, tmp_path):
    top, config = nested
    ran = tmp_path / "ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\n")
    evil.chmod(0o755)
    async with Session(top) as session:
        assert explain_git_doubt(str(top)) == ""
        for command in ("git status", "git diff"):
            assert (await session.call("Bash", command=command)).ok
        with config.open("a") as file:
            file.write(f"[core]\n\tfsmonitor = {evil}\n")
        for command in ("git status", "git diff", "git status --short"):
            asked = await session.call("Bash", command=command)
            assert asked.code == "permission.asked"
            assert "core.fsmonitor" in asked.text
    assert not ran.exists()
    git(top, "status")
    assert ran.exists()


def test_a_submodule_that_is_not_checked_out_counts_too(tmp_path):
    top = repository(tmp_path / "top")
    git(top, "submodule", "add", "-q", str(repository(tmp_path / "other")), "sm")
    git(top, "submodule", "deinit", "-f", "sm")
    assert is_git_clean(str(top))
    with (top / ".git/modules/sm/config").open("a") as file:
        file.write("[diff]\n\texternal = evil\n")
    assert not is_git_clean(str(top))


def test_a_submodule_is_clean_seen_from_inside(tmp_path):
    top = repository(tmp_path / "top")
    git(top, "submodule", "add", "-q", str(repository(tmp_path / "other")), "sm")
    assert is_git_clean(str(top / "sm"))
    git(top / "sm", "config", "core.worktree", "../../../elsewhere")
    assert not is_git_clean(str(top / "sm"))
    assert not is_git_clean(str(top))


@pytest.mark.parametrize(
    "content", [b"DIRC", b"DIRC\0\0\0\x09\0\0\0\x01\0\0\xe0\0", b"x\0\0\xe0\0"]
)
def test_an_index_that_cannot_be_read_is_not_trusted(content, tmp_path):
    top = repository(tmp_path / "top")
    (top / ".git/index").write_bytes(content + b"\0\0\xe0\0")
    assert "are unknown" in explain_git_doubt(str(top))


async def test_the_reason_names_the_key(tmp_path):
    top = repository(tmp_path / "top")
    git(top, "config", "x.y", "z")
    async with Session(top) as session:
        asked = await session.call("Bash", command="git log")
    assert "x.y in " in asked.text


def test_the_commands_that_pass_unasked_are_those_of_the_analysis():
    assert load_git_forms().keys() == READING_COMMANDS
