"""A repository that chooses a program for git is noticed, whatever the spelling."""

import subprocess

import pytest

from handaxe.host.git_configuration import is_git_clean

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
]  # fmt: skip
PROGRAMS = [
    "[core]\n\tfsmonitor = ./evil\n",
    "[core] fsmonitor=./evil\n",
    "[CoRe]\nFSMonitor = ./evil\n",
    "[core]\n\tpager = evil\n",
    "[core]\n\tsshCommand = evil\n",
    "[core]\n\thooksPath = hooks\n",
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
    "[core\n",
    "no section = x\n",
    "\ufeff[core]\n",
    "x" * 300_000,
]


@pytest.mark.parametrize("config", HARMLESS)
def test_ordinary_configuration_is_clean(config, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text(config)
    (tmp_path / "sub").mkdir()
    assert is_git_clean(str(tmp_path))
    assert is_git_clean(str(tmp_path / "sub"))


@pytest.mark.parametrize("config", PROGRAMS)
def test_a_program_in_the_configuration_is_noticed(config, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text(config)
    assert not is_git_clean(str(tmp_path))


def test_bytes_that_are_no_text_are_not_trusted(tmp_path):
    (tmp_path / ".git").mkdir()
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
    for name in ("objects", "refs"):
        (fake / name).mkdir(parents=True)
    (fake / "HEAD").write_text("ref: refs/heads/main\n")
    (fake / "config").write_text("[core]\n\tfsmonitor = ./evil\n")
    assert is_git_clean(str(tmp_path))
    assert not is_git_clean(str(fake))


@pytest.mark.parametrize("content", ["gitdir: nowhere", "nonsense"])
def test_a_file_in_place_of_the_repository_is_followed(content, tmp_path):
    (tmp_path / ".git").write_text(content)
    assert is_git_clean(str(tmp_path)) == (content != "nonsense")
