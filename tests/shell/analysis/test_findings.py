"""Destructive forms, proposals, explanations and second opinions."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from reference import decision

from handaxe.shell.analysis import count_from_shfmt


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard",
        "git clean -fdx",
        "git checkout -- .",
        "git restore a",
        "git stash drop",
        "git branch -D a",
        "git push --force",
        "git -C x push -f",
        "rm -rf a",
        "rm -fr a",
        "dd if=a of=b",
        "mkfs.ext4 /dev/sda",
        "shred a",
        "truncate -s 0 a",
        "find . -delete",
        "chmod -R 777 .",
        "chown -R a b",
        "kubectl delete pod a",
        "sudo rm -rf a",
        "bash -c 'git reset --hard'",
        "echo x > a",
        "xargs rm -rf",
        "kubectl -n x delete pod a",
        "git push --forc",
    ],
)
def test_destructive_forms_are_named_with_a_reason(command):
    found = decision(command).losses
    assert found
    assert all(item.reason for item in found)


@pytest.mark.parametrize(
    "command",
    [
        "git reset a",
        "git push",
        "ls",
        "rm a",
        "echo 'rm -rf /'",
        "git clean -n",
        "find . -name x",
        "echo x >> a",
    ],
)
def test_harmless_forms_are_not_called_destructive(command):
    assert decision(command).losses == []


@pytest.mark.parametrize(
    "command", ["rm -rf /", "sudo rm -rf ~", "rm -rf .", "rm -rf /usr", "rm -rf *", 'rm -rf "$x"/*']
)
def test_critical_removals_are_marked(command):
    assert decision(command).is_critical


def test_a_decision_names_part_rule_and_source():
    found = decision("ls && rm x", deny=["Bash(rm:*)"])
    assert [part.verdict for part in found.parts] == ["allow", "deny"]
    assert (found.rule, found.source, found.by) == ("Bash(rm:*)", "test", "rule")
    assert found.parts[1].text == "rm x"


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("npm run build --x", ["Bash(npm run build *)"]),
        ("cargo build --release && cargo test", ["Bash(cargo build *)", "Bash(cargo test *)"]),
        ("mytool a b", ["Bash(mytool a *)"]),
        ("git commit -m x", ["Bash(git commit -m x)"]),
        ("python x.py", ["Bash(python x.py)"]),
        ("bash x.sh", ["Bash(bash x.sh)"]),
        ("env make a", ["Bash(env make a)"]),
        ("sudo make", []),
        ("curl a", ["Bash(curl a)"]),
        ("$x a", []),
        ("echo x > a", []),
        ("rm -rf /", []),
        ("echo 'a", []),
    ],
)
def test_proposals_are_narrow(command, rules):
    found = decision(command)
    assert [item.rule for item in found.proposals] == rules


def test_a_proposed_rule_would_allow_its_examples_only():
    for proposal in decision("npm run build --x; mytool a").proposals:
        for example in proposal.would_match:
            assert decision(example, allow=[proposal.rule]).verdict == "allow"
        for example in proposal.would_not_match:
            assert decision(example, allow=[proposal.rule]).verdict == "ask"


def test_a_decision_lists_the_paths_it_rests_on():
    found = decision("cat src/../a.txt | grep x < b.txt")
    paths = [(use.path, use.joined, use.access) for use in found.uses]
    assert ("/repo/a.txt", "/repo/src/../a.txt", "read") in paths
    assert ("/repo/b.txt", "/repo/b.txt", "read") in paths


def _shfmt(text: str) -> int | None:
    ran = subprocess.run(
        ["shfmt", "--to-json"], input=text.encode(), capture_output=True, check=False
    )
    return count_from_shfmt(ran.stdout) if ran.returncode == 0 else None


@pytest.mark.skipif(shutil.which("shfmt") is None, reason="needs shfmt")
def test_shfmt_agrees_on_ordinary_compounds():
    for command in (
        "ls | wc -l && pwd",
        "for f in a b; do cat $f; done",
        "if [ -f a ]; then cat a; fi",
    ):
        assert decision(command, cross_check=_shfmt).verdict == "allow"


def test_a_disagreeing_reader_means_ask():
    assert decision("ls | wc -l", cross_check=lambda _text: 3).verdict == "ask"
    assert decision("ls | wc -l", cross_check=lambda _text: None).verdict == "ask"
