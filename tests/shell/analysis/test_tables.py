"""The data files of programs, as they are read."""

import tomllib
from pathlib import Path

import pytest
from reference import decision

import handaxe.shell.analysis
from handaxe.shell.analysis.program_tables import (
    load_git_forms,
    load_programs,
    load_read_only_programs,
    load_toml,
    load_version_calls,
    make_tables,
)

FILES = sorted((Path(handaxe.shell.analysis.__file__).parent / "programs").glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_short_reader_finds_in_every_data_file_what_a_whole_toml_parser_finds(path):
    assert load_toml(path.name) == tomllib.loads(path.read_text("utf-8"))


def test_there_are_data_files():
    assert {path.stem for path in FILES} >= {"files", "git", "wrappers", "destructive"}


def test_an_entry_says_how_its_program_reads_options_or_is_read_most_strictly():
    raw = {"a": {"flags": "xy"}, "b": {"flags": "xy", "getopt": "gnu"}, "c": {"getopt": "posix"}}
    tables = make_tables(raw, getopt="exact")
    assert [(table.bundles, table.posix) for table in tables.values()] == [
        (False, True),
        (True, False),
        (True, True),
    ]


def test_what_was_not_run_is_not_read_only():
    tables = make_tables({"a": {"flags": "xy", "valued": "n", "unverified": "y n"}})
    assert tables["a"].flags == {"x"}
    assert tables["a"].valued == {}
    assert "gzcat" in load_programs()
    assert "gzcat" not in load_read_only_programs()
    for command in ("gzcat f.gz", "base64 -D a.txt", "stat -x a.txt", "cal --three"):
        assert decision(command).verdict == "ask"


def test_versions_of_programs_that_were_not_run_ask():
    raw = load_toml("system.toml")["versions"]
    assert not set(raw["unverified"].split()) & set(load_version_calls())
    for program in raw["unverified"].split():
        assert decision(f"{program} --version").verdict == "ask"


@pytest.mark.parametrize(
    "command",
    ["vim -V", "npm -V", "kubectl --version", "ksh -version", "bash -V", "hatch -v", "docker -V"],
)
def test_a_word_that_means_a_version_elsewhere_asks(command):
    assert decision(command).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "python3 -V",
        "java -version",
        "ssh -V",
        "node -v",
        "git --version",
        "gh version",
        "vim --version",
    ],
)
def test_the_words_with_which_a_program_prints_its_version_pass(command):
    assert decision(command).verdict == "allow"


def test_a_program_that_consists_of_others_asks_where_the_project_has_its_own():
    from reference import path_rules, rules

    from handaxe.shell.analysis import analyze, decide

    for own, verdict in ((frozenset(), "allow"), (frozenset({"gzip"}), "ask")):
        found = decide(
            analyze("gunzip -c f.gz", "/repo", "/home/dev"),
            rules=rules(),
            mode="default",
            working_dirs=("/repo",),
            path_verdict=path_rules(),
            project_programs=own,
        )
        assert found.verdict == verdict


def test_every_table_of_git_reads_options_as_git_does():
    assert all(table.bundles for table in load_git_forms().values())
