"""A rule allows what destroys work only if it spells that form out."""

import pytest
from reference import rules

from handaxe.shell import PathVerdict, decide


def verdict(command, *allow):
    found = decide(
        command, rules=rules(allow=allow), path_verdict=lambda path, access: PathVerdict("allow")
    )
    return found.verdict


@pytest.mark.proves("SH-6")
@pytest.mark.parametrize(
    ("command", "rule", "expected"),
    [
        ("git reset --hard", "Bash(git:*)", "ask"),
        ("git reset --hard", "Bash(git reset:*)", "ask"),
        ("git reset --hard", "Bash(*)", "ask"),
        ("git reset --hard", "Bash", "ask"),
        ("git reset --hard", "Bash(git reset --hard)", "allow"),
        ("git reset --hard HEAD~1", "Bash(git reset --hard:*)", "allow"),
        ("git reset --soft HEAD~1", "Bash(git reset:*)", "allow"),
        ("git clean -fdx", "Bash(git *)", "ask"),
        ("git clean -fdx", "Bash(git clean -fdx)", "allow"),
        ("git push --force", "Bash(git push:*)", "ask"),
        ("git push origin main", "Bash(git push:*)", "allow"),
        ("git checkout -- .", "Bash(git checkout:*)", "ask"),
        ("rm -rf build", "Bash(rm:*)", "ask"),
        ("rm -rf build", "Bash(rm -rf:*)", "allow"),
        ("rm notes.txt", "Bash(rm:*)", "allow"),
        ("npm test", "Bash(npm:*)", "allow"),
    ],
)
def test_a_destructive_form_needs_a_rule_that_names_it(command, rule, expected):
    assert verdict(command, rule) == expected
