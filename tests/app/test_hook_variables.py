"""Variables that hooks leave for later commands: real programs, real commands."""

import asyncio
import json

import pytest

from handaxe import Session
from handaxe.app.session import get_parts
from handaxe.contract.events import HookRan

pytestmark = pytest.mark.proves("HK-1")


def leaving(text: str) -> dict:
    """A hook that leaves this text in the file for variables."""
    line = f'cat > "$CLAUDE_ENV_FILE" <<"END_OF_HOOK"\n{text}\nEND_OF_HOOK'
    return {"hooks": [{"type": "command", "command": line}]}


async def printed(session: Session, *names: str) -> list[str]:
    result = await session.call("Bash", command=f"printenv {' '.join(names)}")
    return result.data["stdout"].splitlines()


LEFT = [
    ("export MINE=plain", "plain"),
    ("MINE=unexported", "unexported"),
    ("export MINE='two words'; export OTHER=x", "two words"),
    ('declare -x MINE="q\\"uote"', 'q"uote'),
    ("export MINE=$'tab\\there';", "tab\there"),
    ('export HALF=a\nexport MINE="$HALF/b"', "a/b"),
    ('export MINE="$(echo made)"', "made"),
    ("echo noise; echo noise >&2; export MINE=quiet", "quiet"),
    ("export MINE=before; exit 3", "before"),
    ("export MINE=kept\nif then", "kept"),
    ("export MINE=a; unset MINE", None),
    ("", None),
    ("# nothing", None),
]


@pytest.mark.parametrize(("text", "found"), LEFT, ids=[text for text, _ in LEFT])
async def test_what_a_hook_leaves_at_the_start_commands_find(project, text, found):
    async with Session(project, allow="Bash", hooks={"SessionStart": [leaving(text)]}) as session:
        assert await printed(session, "MINE") == ([] if found is None else [found])


async def test_later_hooks_build_on_what_earlier_ones_left(project):
    (project / "sub").mkdir()
    hooks = {
        "SessionStart": [leaving('export PATH="$PATH:/first" ONE=1 TWO=2')],
        "CwdChanged": [leaving('export PATH="$PATH:/second" TWO=3; unset ONE')],
    }
    async with Session(project, allow="Bash", hooks=hooks) as session:
        found = await printed(session, "ONE", "TWO", "PATH")
        assert (found[:2], found[2].endswith(":/first")) == (["1", "2"], True)
        await session.call("Bash", command="cd sub")
        async with asyncio.timeout(30):
            while get_parts(session).pipeline_context.hooks.variables.get("TWO") != "3":
                await asyncio.sleep(0.01)
        assert "ONE" not in get_parts(session).pipeline_context.hooks.variables
        two, path = await printed(session, "TWO", "PATH")
    assert (two, path.endswith(":/first:/second")) == ("3", True)


async def test_of_two_hooks_the_later_written_wins_whoever_is_faster(project):
    slow = leaving("export MINE=first")
    slow["hooks"][0]["command"] = "sleep 0.2; " + slow["hooks"][0]["command"]
    hooks = {"SessionStart": [slow, leaving("export MINE=second")]}
    async with Session(project, allow="Bash", hooks=hooks) as session:
        assert await printed(session, "MINE") == ["second"]


STEERING = ["PATH", "LD_PRELOAD", "GIT_SSH_COMMAND", "NODE_OPTIONS", "HTTPS_PROXY", "PYTHONPATH"]


@pytest.mark.parametrize("name", STEERING)
@pytest.mark.parametrize("whose", ["project", "user"])
async def test_a_projects_hook_leaves_no_variable_that_chooses_what_runs(project, name, whose):
    hooks = {"SessionStart": [leaving(f'export {name}="/odd:${name}" HARMLESS=1')]}
    if whose == "project":
        (project / ".claude").mkdir()
        (project / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
        given = None
    else:
        given = hooks
    seen = []
    async with Session(project, trusted=True, hooks=given) as session:
        session.subscribe(seen.append)
        assert (await session.call("Glob", pattern="*")).ok
        left = get_parts(session).pipeline_context.hooks.variables
        assert left["HARMLESS"] == "1"
        assert (name in left) is (whose == "user")
    (ran,) = [event for event in seen if isinstance(event, HookRan)]
    assert any(name in sentence for sentence in ran.told) is (whose == "project")


OWN = ["BASH_ENV", "ENV", "IFS", "PWD", "SHLVL", "CLAUDE_CODE_SESSION_ID", "HANDAXE_SESSION_ID"]


@pytest.mark.parametrize("name", OWN)
async def test_what_the_shell_and_the_session_own_no_hook_sets(project, name):
    hooks = {"SessionStart": [leaving(f"export {name}=/odd MINE=1")]}
    async with Session(project, allow="Bash", hooks=hooks) as session:
        assert await printed(session, "MINE") == ["1"]
        assert get_parts(session).pipeline_context.hooks.variables == {"MINE": "1"}


@pytest.mark.parametrize(
    ("event", "has_file"),
    [("SessionStart", True), ("PreToolUse", False), ("PostToolUse", False), ("SessionEnd", False)],
)
async def test_only_some_events_have_the_file_and_none_stays(
    project, tmp_path, monkeypatch, event, has_file
):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    seen = tmp_path / "seen"
    line = f'printf %s "${{CLAUDE_ENV_FILE-none}}" > {seen}'
    hooks = {event: [{"hooks": [{"type": "command", "command": line}]}]}
    async with Session(project, allow="Bash", hooks=hooks) as session:
        await session.call("Glob", pattern="*")
    assert (seen.read_text() != "none") is has_file
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        "export MINE=1 > x; exit 1",
        'echo export MINE=1 > "$CLAUDE_ENV_FILE"; exit 1',
        'head -c 300000 /dev/zero | tr "\\0" a > "$CLAUDE_ENV_FILE"',
        'rm "$CLAUDE_ENV_FILE"',
        'rm "$CLAUDE_ENV_FILE"; mkdir "$CLAUDE_ENV_FILE"',
    ],
)
async def test_a_hook_that_fails_or_leaves_nonsense_leaves_nothing(project, line):
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": line}]}]}
    async with Session(project, allow="Bash", hooks=hooks) as session:
        assert (await session.call("Bash", command="echo fine")).ok
        assert get_parts(session).pipeline_context.hooks.variables == {}
