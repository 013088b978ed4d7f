"""What a command can touch, and what its exit code means."""

import pytest

from handaxe.shell.analysis import analyze
from handaxe.shell.analysis.effects.destructive_commands import is_irreversible

NOTHING, DIFFER, FALSE = "No matches found", "Files differ", "Condition is false"


@pytest.mark.proves("SH-3")
@pytest.mark.parametrize(
    ("command", "meaning"),
    [
        ("grep x a", NOTHING), ("rg x", NOTHING), ("egrep x a", NOTHING), ("fgrep x a", NOTHING),
        ("/usr/bin/grep x a", NOTHING), ("cat a | grep x", NOTHING), ("ls; grep x a", NOTHING),
        ("cd s && grep x a", NOTHING), ("grep a b || grep c d", NOTHING), ("echo; grep x a", NOTHING),
        ("find /x", "Some directories could not be read"), ("diff a b", DIFFER), ("test -e x", FALSE),
        ("[ -e x ]", FALSE), ("[[ -e x ]]", FALSE), ("git diff --quiet", DIFFER),
        ("git -C x --no-pager grep y", NOTHING), ("git -c a=b diff", DIFFER),
        ("grep x a; ls", None), ("make && grep x a", None), ("! grep x a", None), ("grep x &", None),
        ("if grep x a; then ls; fi", None), ("false", None), ("git status", None), ("", None),
        ("grep 'x", None), ("grep x a && make", None), ("grep x a | sort", None), ("exit 1", None),
        ("(grep x a)", NOTHING), ("{ ls; grep x a; }", NOTHING), ("(grep x a; make)", None),
        ("zgrep x a.gz", NOTHING), ("pgrep x", NOTHING), ("ag x", NOTHING), ("cmp a b", DIFFER),
        ("env grep x a", NOTHING), ("env A=1 B='2 3' diff a b", DIFFER), ("env", None),
        ("env -u A grep x a", None), ("env A=1", None), ("env A=1 make", None),
        ("grep x a && diff a b", None),
        ("timeout 5 grep x a", NOTHING), ("LC_ALL=C nice -n 5 diff a b", DIFFER),
        ("command rg x", NOTHING), ("stdbuf -oL timeout 9s git grep x", NOTHING),
        ("timeout 5 make", None), ("timeout --wat 5 grep x a", None), ("xargs grep x", None),
    ],
)  # fmt: skip
def test_exit_code_one_is_an_answer_where_every_command_it_may_come_from_answers_so(
    command, meaning
):
    assert analyze(command).meaning_of_one == meaning


def test_a_failed_cd_is_no_answer():
    assert analyze("cd s && grep x a").meaning_after_cd is None


@pytest.mark.proves("SH-6")
@pytest.mark.parametrize(
    ("command", "looks", "moves", "lasts"),
    [
        ("ls -la | wc -l", True, False, False), ("cat /etc/passwd", True, False, False),
        ("cd src && git status", False, True, False), ("cd src && ls", True, True, False),
        ("git log", True, False, False), ("npm test", False, False, False),
        ("echo a > b", False, False, False), ("echo a > /etc/b", False, False, True),
        ("rm -rf build", False, False, False), ("rm -rf /etc/x", False, False, True),
        ("rm -rf /", False, False, True), ("git reset --hard", False, False, False),
        ("git clean -fdx", False, False, False), ("git push --force", False, False, True),
        ("dd if=/dev/zero of=/dev/sda", False, False, True), ("kubectl delete x", False, False, True),
        ("pushd x", False, True, False), ("ls (", False, True, False), ("", True, False, False),
        ("sed -i s/a/b/ x", False, False, False), ("git rebase -i x", False, False, True),
    ],
)  # fmt: skip
def test_what_a_command_touches(command, looks, moves, lasts):
    facts = analyze(command, "/repo", "/home/dev")
    found = (facts.only_reads, facts.changes_directory, is_irreversible(facts, ("/repo",)))
    assert found == (looks, moves, lasts)
