"""Rules offered for "always allow": narrow, true, and in plain words."""

from __future__ import annotations

import pytest
from reference import decision

from handaxe.shell.analysis.programs.wrappers import SHELLS, load_wrappers

RUNS_ANYTHING = """
docker exec c sh
docker exec -it c bash
docker run image
docker run --rm image sh -c x
docker compose exec c sh
podman exec c sh
kubectl exec p -- sh
kubectl run p --image=x
kubectl debug p
powershell x
pwsh -c x
vim x
vi x
nvim x
emacs x
nano x
less x
man ls
python3 x.py
python3.12 x.py
/usr/bin/python3 x.py
pypy3 x.py
node x.js
java -jar x.jar
Rscript x.R
julia x.jl
ts-node x.ts
npx x
uv run x
uvx x
poetry run x
pipenv run x
bundle exec x
rails runner x
rails console
npm exec x
pnpm dlx x
yarn exec x
ssh host
tmux new x
screen x
tar xf a
rsync -a a b
xterm -e x
make
at now
crontab -e
timeout 5 make
nice make
sudo make
watch make
nix-shell
nix develop
direnv exec . x
gdb x
psql -c x
sqlite3 a.db
ansible all -a x
parallel x
"""


@pytest.mark.parametrize("command", RUNS_ANYTHING.strip().split("\n"))
def test_no_prefix_is_offered_for_what_can_run_anything(command):
    for proposal in decision(command).proposals:
        assert proposal.rule == f"Bash({command})"


def test_no_shell_and_no_wrapper_is_ever_offered_as_a_prefix():
    for program in sorted(SHELLS | load_wrappers().keys()):
        for proposal in decision(f"{program} a b").proposals:
            assert not proposal.rule.startswith(f"Bash({program} *"), program


@pytest.mark.parametrize(
    "command", [r"foo\ bar x", "'foo bar' x", '"foo bar" x', "foo'  'bar x", r"foo\;bar x"]
)
def test_a_quoted_blank_in_a_program_never_becomes_two_words(command):
    for proposal in decision(command).proposals:
        assert decision("foo bar x", allow=[proposal.rule]).verdict == "ask"
        assert decision("foo bar y", allow=[proposal.rule]).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    ["npm run build", "npm run build --x", "pytest", "mytool a", "cargo test", "ruff $(bar)"],
)
def test_a_prefix_has_three_different_examples_and_a_meaning_in_words(command):
    for proposal in decision(command).proposals:
        assert len(set(proposal.would_match)) == 3
        assert len(set(proposal.would_not_match)) == 3
        assert proposal.meaning.startswith("any command that starts with ")


@pytest.mark.proves("PM-3")
@pytest.mark.parametrize(
    ("command", "leaves"),
    [
        ("make test", False),
        ("mytool a && npm run build", False),
        ("mytool foo $(mytool bar)", False),
        ("pytest *.py", False),
        ("a x; b x; c x; d x; e x", False),
        ("make > out.txt", True),
        ("make test > out.txt 2>&1", True),
        ("a x; b x; c x; d x; e x; f x", True),
        ("mytool; $x", True),
        ("FOO=1 mytool", True),
        ("mytool; f() { ls; }", True),
        ("mytool; rm -rf /", True),
        ('mytool; python "$x"', True),
    ],
)
def test_a_decision_says_whether_the_proposed_rules_are_enough(command, leaves):
    found = decision(command)
    assert found.proposals_leave_questions is leaves
    after = decision(command, allow=[proposal.rule for proposal in found.proposals])
    assert (after.verdict == "ask") is leaves


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("git -C /repo log", "allow"),
        ("git -C src log --oneline", "allow"),
        ("git -C . log", "allow"),
        ("git --no-pager -C src log", "allow"),
        ("timeout 5 git -C src log", "allow"),
        ("git -C /etc log", "ask"),
        ("git -C .. log", "ask"),
        ("git -C src/../.. log", "ask"),
        ('git -C "$x" log', "ask"),
        ("git -C ~ log", "ask"),
        ("git -C /repo-evil log", "ask"),
        ("git -c a=b log", "ask"),
        ("git --git-dir=x log", "ask"),
        ("git -C src push", "ask"),
        ("git -C src -c core.pager=x log", "ask"),
        ("cd /etc && git -C . log", "ask"),
    ],
)
def test_an_allow_rule_sees_through_a_directory_of_git_inside_the_project(command, verdict):
    assert decision(command, allow=["Bash(git log:*)"]).verdict == verdict
