"""A rule for a command is no rule for every file it can write: operands count like redirections."""

from pathlib import Path

import pytest
from tests.expected_types import require

from handaxe import Session

PROGRAMS = """
    cp tee touch mv sed ln dd install mkdir curl chmod tar truncate sort rm gzip rsync
"""
RULES = [f"Bash({name}:*)" for name in PROGRAMS.split()]
ASKED = [
    "cp hk .git/hooks/pre-commit",
    "cp hk .handaxe/settings.local.json",
    "cp -t .git/hooks hk",
    "cp --target-directory=.git hk",
    "cp ../outside/.bashrc .",
    "timeout 5 cp hk .git/hooks/x",
    "cp hk $(echo .git/x)",
    "cp hk .g*/x",
    "cp hk up/x",
    "cp hk hooks/x",
    "tee ../outside/t < hk",
    "tee -a ../outside/t < hk",
    "touch .bashrc",
    "touch ../outside/t",
    "mv hk .git/hooks/x",
    "mv ../outside/.bashrc b",
    "sed -i s/x/y/ ../outside/.bashrc",
    "sed -n 'w .git/hooks/x' hk",
    "ln -s hk .vscode",
    "ln -s ../outside/.bashrc",
    "dd if=hk of=.git/hooks/x",
    "install -m 755 hk .git/hooks/x",
    "install -d .git/made",
    "mkdir -p .git/made/too",
    "curl -sSo .bashrc file:///etc/hostname",
    "chmod 600 ../outside/.bashrc",
    "tar czf ../outside/t.tgz hk",
    "tar xzf t.tgz -C ../outside",
    "truncate -s 0 ../outside/.bashrc",
    "sort -o .bashrc hk",
    "rm ../outside/.bashrc",
    "gzip ../outside/.bashrc",
]
FREE = [
    "cp hk copy",
    "cp hk sub",
    "cp hk in/copy",
    "tee sub/t < hk",
    "tee /dev/null < hk",
    "touch a *.txt",
    "touch -r /etc/hostname a",
    "mkdir -p a/b/c",
    "sed -i -e '/nothing/d' hk",
    "sed -i 's/x/y/' hk",
    "ln -s /etc/hostname link",
    "install -m 755 hk sub/x",
    "chmod +x hk",
    "tar czf t.tgz hk",
    "gzip -c /etc/hostname",
    "for f in a b; do cp hk $f; done",
]


FREE_WITH_BASH = [
    "export A=1; touch a",
    "export A=1 B; echo x | tee a",
    "readonly A=1; declare -x B=2; mkdir d",
    "unset A; cp hk copy",
    "trap '' TERM; touch a",
    "trap - TERM; touch a",
    "source ./env.sh && touch a",
    "f() { touch a; }; f",
    "pushd sub && touch a && popd",
    "cd $(git rev-parse --show-toplevel) && touch a",
    "((i++)); touch a",
    "eval 'cd sub'; cp hk copy",
]
ASKED_WITH_BASH = [
    "export A=1; touch .bashrc",
    "source ./env.sh && cp hk .git/hooks/x",
    "f() { touch ../outside/t; }; f",
    "export HOME=/nowhere; cd; touch x",
    "export CDPATH=/nowhere; cd /nowhere/etc; touch x",
    "pushd sub && rm ../../outside/.bashrc",
    "trap 'cd /' DEBUG; cp hk $(pwd)/x",
    'unset A; cp hk "$A"',
]


@pytest.fixture
def place(project: Path) -> Path:
    (project / "hk").write_text("x\n")
    (project / "b.txt").write_text("b\n")
    for name in ("sub", ".git/hooks", "../outside"):
        (project / name).mkdir(parents=True)
    (project / "../outside/.bashrc").write_text("old\n")
    (project / "up").symlink_to("../outside")
    (project / "hooks").symlink_to(".git/hooks")
    (project / "in").symlink_to("sub")
    return project


def guarded(place: Path) -> dict[str, bytes]:
    places = (place / ".git", place / "../outside", place / ".bashrc", place / ".handaxe")
    files = [file for at in places for file in (at, *at.rglob("*")) if file.is_file()]
    return {str(file): file.read_bytes() for file in files}


@pytest.mark.parametrize("rules", [RULES, ["Bash"]], ids=["by program", "whole tool"])
@pytest.mark.parametrize("command", ASKED)
async def test_what_it_writes_outside_or_among_the_protected_asks(command, rules, place):
    before = guarded(place)
    async with Session(place, allow=rules) as session:
        answer = await session.call("Bash", command=command)
    assert answer.code == "permission.asked", answer.text
    assert guarded(place) == before


@pytest.mark.parametrize("command", FREE)
async def test_ordinary_work_inside_the_project_runs_unasked(command, place):
    async with Session(place, allow=RULES) as session:
        answer = await session.call("Bash", command=command)
    assert require(answer.decision).verdict == "allow", answer.text


@pytest.mark.parametrize("command", FREE_WITH_BASH)
async def test_a_rule_for_all_of_bash_also_allows_it_where_the_directory_is_not_known(
    command, place
):
    async with Session(place, allow=["Bash"]) as session:
        answer = await session.call("Bash", command=command)
    assert require(answer.decision).verdict == "allow", answer.text


@pytest.mark.parametrize("command", ASKED_WITH_BASH)
async def test_names_that_say_enough_ask_all_the_same(command, place):
    before = guarded(place)
    async with Session(place, allow=["Bash"]) as session:
        answer = await session.call("Bash", command=command)
    assert answer.code == "permission.asked", answer.text
    assert guarded(place) == before


async def test_a_rule_that_spells_the_command_out_is_enough_but_not_for_protected_files(place):
    outside, protected = "cp hk ../outside/t", "cp hk .git/hooks/pre-commit"
    async with Session(place, allow=[f"Bash({outside})", f"Bash({protected})"]) as session:
        assert (await session.call("Bash", command=outside)).ok
        assert (await session.call("Bash", command="cp hk ../outside/u")).code
        assert (await session.call("Bash", command=protected)).code == "permission.asked"


async def test_an_edit_rule_for_the_place_outside_is_enough(place):
    outside = place.parent / "outside"
    async with Session(place, allow=["Bash(touch:*)", f"Edit(/{outside}/**)"]) as session:
        assert (await session.call("Bash", command="touch ../outside/t")).ok
        assert not (await session.call("Bash", command="touch .git/t")).ok


async def test_no_hook_answers_for_a_protected_operand(place):
    async def yes(event):
        said = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        return {"hookSpecificOutput": said}

    async with Session(place, allow=["Bash"], hooks={"PreToolUse": [yes]}) as session:
        answer = await session.call("Bash", command="cp hk .git/hooks/x")
    assert answer.code == "permission.asked"


async def test_nobody_is_asked_where_nobody_may_be(place):
    async with Session(place, allow=["Bash(cp:*)"], permission_mode="dontAsk") as session:
        assert (await session.call("Bash", command="cp hk copy")).ok
        assert (await session.call("Bash", command="cp hk .git/x")).code == "permission.denied"
