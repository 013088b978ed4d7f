"""The permission road of commands: what explain says, and what only a look at the machine tells."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.expected_types import require

from handaxe import Allow, Session
from handaxe.app.explain import explain
from handaxe.app.services import session_shell
from handaxe.app.session import get_parts
from handaxe.contract.faults.shell import CannotStart
from handaxe.contract.ports.shell import ConfinementLevel, Confiner, Shell
from handaxe.contract.readable_files import ReadableFiles
from handaxe.permission.policy import PermissionQuery, make_policy
from handaxe.pipeline.hook_events import is_covered_by_rule
from handaxe.shell.exec.shfmt import find_cross_check

TABLE = tomllib.loads((Path(__file__).parents[1] / "shell/analysis/table.toml").read_text("utf-8"))[
    "group"
]


class RefusingShell(Shell):
    """Starts nothing, so that any command may be sent to it."""

    async def start(self, command):
        raise CannotStart(f"{command.command!r} is only judged here")


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch):
    monkeypatch.setattr(session_shell, "open_local_shell", lambda *_: RefusingShell())


@pytest.mark.proves("PM-3", "SH-6")
@pytest.mark.parametrize("group", TABLE, ids=lambda group: group["title"])
async def test_the_pipeline_decides_what_explain_says(group, project):
    rules: dict[str, Any] = {
        name: [f"Bash({text})" if text else "Bash" for text in group.get(name, [])]
        for name in ("allow", "ask", "deny")
    }
    rules["deny"] += [f"Read({path})" for path in group.get("deny_read", [])]
    rules["deny"] += [f"Edit({path})" for path in group.get("deny_edit", [])]
    mode = group.get("mode", "default")
    different = []
    async with Session(project, permission_mode=mode, **rules) as session:
        for command in group["commands"]:
            result = (await session.call("Bash", command=command)).to_json()
            if "\0" in command:
                # No shell can be given it, so there is nothing to decide.
                assert result["code"] == "shell.bad_command"
                continue
            policy, workdir = get_parts(session).session_context.policy(), session.workdir
            call_input = {"command": command}
            wanted = explain("Bash", call_input, policy, workdir, cross_check=find_cross_check())
            if result["decision"] != wanted:
                different.append((command, result["decision"], wanted))
            assert result["ok"] is False
            started = result["code"] == "shell.cannot_start"
            assert started == (wanted["verdict"] == "allow"), command
    assert different == []


async def verdict(session, command, **more):
    return (await session.call("Bash", command=command, **more)).decision


@pytest.mark.proves("SH-6")
@pytest.mark.parametrize(
    "command",
    [
        "cat out.txt", "cat *.txt", "cat dir/x", "head -1 dir/../a.txt", "ls dir", "wc -l < out.txt",
        "grep -c x a.txt out.txt", "cat d*/x", "cat [^b]*",
    ],
)  # fmt: skip
async def test_a_link_out_of_the_roots_is_judged_where_it_leads(command, project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/x").write_text("secret\n")
    (project / "a.txt").write_text("one\n")
    (project / "out.txt").symlink_to(tmp_path / "elsewhere/x")
    (project / "dir").symlink_to(tmp_path / "elsewhere")
    async with Session(project) as session:
        assert (await verdict(session, "cat a.txt")).verdict == "allow"
        decision = await verdict(session, command)
        assert decision.verdict == "ask", decision
        assert any(part.cause == "link" for part in decision.parts)
    # Where both ends are allowed, it may run; where the far end is denied, no rule helps.
    there = f"Read(/{tmp_path}/elsewhere/**)"
    async with Session(project, allow=[there, "Read(out.txt)"]) as session:
        assert (await verdict(session, "cat out.txt")).verdict == "allow"
    for allow in ([], ["Bash"]):
        async with Session(project, allow=allow, deny=[there]) as session:
            assert (await verdict(session, "cat out.txt")).verdict == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat src/*/*",
        "cat */*/*",
        "head -1 src/*/key",
        'for f in src/*; do cat "$f"/*; done',
        'for f in src/*; do for h in "$f"/*; do cat "$h"; done; done',
        "grep -r x src/*",
        "wc -l s*/d*/k*",
    ],
)
async def test_a_glob_that_goes_through_a_link_out_of_the_roots_asks(command, project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/key").write_text("x")
    (project / "src").mkdir(exist_ok=True)
    async with Session(project) as session:
        assert (await verdict(session, command)).verdict == "allow"
        (project / "src/dir").symlink_to(tmp_path / "elsewhere")
        assert (await verdict(session, command)).verdict != "allow"


@pytest.mark.proves("SH-6")
async def test_a_link_to_a_denied_file_inside_is_denied_whatever_is_allowed(project):
    (project / "secret").mkdir()
    (project / "secret/key").write_text("x\n")
    (project / "k").symlink_to("secret/key")
    async with Session(project, allow=["Bash"], deny=["Read(secret/**)"]) as session:
        for command in ("cat k", "base64 k", "cp k copy", "cat < k", "cat ./k | wc", "cat ?"):
            assert (await verdict(session, command)).verdict in {"deny", "ask"}, command
        assert (await verdict(session, "cat k")).rule == "Read(secret/**)"


async def test_writes_through_links_are_judged_where_they_lead(project, tmp_path):
    (tmp_path / "elsewhere").write_text("")
    (project / "out").symlink_to(tmp_path / "elsewhere")
    (project / "hooks").symlink_to(project / ".git/hooks")
    (project / ".git/hooks").mkdir(parents=True)
    (project / "twin").hardlink_to(tmp_path / "elsewhere")
    (project / "a").write_text("")
    async with Session(project, permission_mode="acceptEdits") as session:
        assert (await verdict(session, "echo x > a")).verdict == "allow"
        for command in ("echo x > out", "touch hooks/pre-commit", "cp a out", "echo x > twin"):
            assert (await verdict(session, command)).verdict == "ask", command


async def test_a_glob_with_no_end_asks(project, monkeypatch):
    from handaxe.pipeline import command_decision as commands

    monkeypatch.setattr(commands, "MAX_MATCHES", 3)
    for n in range(5):
        (project / f"{n}.txt").touch()
    async with Session(project) as session:
        assert (await verdict(session, "cat *.md")).verdict == "allow"
        assert (await verdict(session, "cat *.txt")).verdict == "ask"


@pytest.mark.proves("SH-6")
async def test_git_looks_only_where_the_repository_names_no_program(project):
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    config = project / ".git/config"
    async with Session(project) as session:
        assert (await verdict(session, "git status")).verdict == "allow"
        config.write_text("[core]\n\tfsmonitor = ./evil\n")
        decision = await verdict(session, "git status")
        assert decision.verdict == "ask"
        assert "core.fsmonitor in " in decision.reason
        assert (await verdict(session, "ls")).verdict == "allow"


@pytest.mark.proves("PM-4")
async def test_a_person_is_asked_about_the_whole_command_with_rules_that_would_help(project):
    asked = []

    async def on_ask(request):
        asked.append(request)
        return Allow(by="user", remember="session", rules=tuple(p.rule for p in request.proposals))

    async with Session(project, on_ask=on_ask) as session:
        result = await session.call("Bash", command="ls && npm test -- --watch")
        assert result.code == "shell.cannot_start"
        (request,) = asked
        assert request.input["command"] == "ls && npm test -- --watch"
        assert request.cwd == str(project)
        (proposal,) = request.proposals
        assert proposal.rule == "Bash(npm test *)"
        assert "npm test" in proposal.would_match
        decision = result.decision
        assert (require(decision).verdict, require(decision).by) == ("allow", "user")
        assert [part.verdict for part in require(decision).parts] == ["allow", "ask"]
        assert (await verdict(session, "npm test")).rule == "Bash(npm test *)"
        assert len(asked) == 1


@pytest.mark.parametrize("word", ["allow", "deny"])
async def test_a_hook_may_answer_a_default_question_and_nothing_stronger(word, project):
    async def hook(event):
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word}}

    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}
    async with Session(project, ask=["Bash(git push:*)"], hooks=hooks) as session:
        assert (await verdict(session, "make")).verdict == word
        for command in ("git push", "rm -rf /", "echo x > .git/config"):
            expected = "deny" if word == "deny" else "ask"
            assert (await verdict(session, command)).verdict == expected, command


def test_a_hook_that_is_meant_for_some_commands_hears_of_those():
    policy = make_policy(roots=["/repo"], home="/home/dev")
    for command, is_meant in [
        ("ls", False),
        ("git log", True),
        ("ls && FOO=1 git log", True),
        ("echo git", False),
        ("$x log", True),
    ]:
        request = PermissionQuery(tool="Bash", command=command)
        assert is_covered_by_rule("Bash(git *)", request, policy) == is_meant, command


async def test_the_model_is_told_which_part_and_what_would_help(project):
    async with Session(project, deny=["Bash(rm:*)"]) as session:
        asked = await session.call("Bash", command="ls && npm run lint")
        assert asked.text == (
            "The command needs approval (in `npm run lint`): npm is not in the read-only set. To run "
            "it without approval, add the allow rule Bash(npm run lint *). This run cannot prompt for approval."
        )
        denied = await session.call("Bash", command="rm a")
        assert denied.text == "The command was denied: the deny rule Bash(rm:*) covers it."


async def test_a_link_outside_leads_round_no_rule(project, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far/key").write_text("x")
    (tmp_path / "near").symlink_to(tmp_path / "far/key")
    deny = [f"Read(/{tmp_path}/far/**)"]
    async with Session(project, allow=["Bash"], deny=deny) as session:
        assert (await verdict(session, f"cat {tmp_path}/near")).verdict == "deny"


class Sandbox(Confiner):
    """Says that commands will be confined; here only the word counts."""

    @property
    def level(self):
        return ConfinementLevel(means="bubblewrap", network="off", files="roots")

    def is_confining(self, command, *, unconfined=False):
        return not unconfined

    def get_readable_files(self):
        return ReadableFiles()

    def confine(self, argv, **_):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("make", "allow"),
        ("npm test && python x.py", "allow"),
        ("make > log.txt", "allow"),
        ("make > /etc/log", "ask"),
        ("make > .git/config", "ask"),
        ("rm -rf /", "ask"),
        ("rm -rf build", "allow"),
        ("git push --force", "ask"),
        ("curl x", "deny"),
        ("docker ps", "ask"),
        ("make \u200b", "ask"),
        ("make (", "ask"),
    ],
)
async def test_a_sandbox_answers_only_for_want_of_a_rule(command, wanted, project):
    rules: dict[str, Any] = {"deny": ["Bash(curl:*)"], "ask": ["Bash(docker:*)", "Bash"]}
    settings = {"sandbox": {"enabled": True}}
    async with Session(project, settings=settings, **rules) as session:
        get_parts(session).pipeline_context.ports[Confiner] = Sandbox()
        assert (await verdict(session, command)).verdict == wanted
        assert (await verdict(session, command, dangerouslyDisableSandbox=True)).verdict != "allow"
        session.set_mode("plan")
        assert (await verdict(session, command)).verdict != "allow"


async def test_auto_allowing_can_be_switched_off(project):
    settings = {"sandbox": {"enabled": True, "autoAllowBashIfSandboxed": False}}
    async with Session(project, settings=settings) as session:
        get_parts(session).pipeline_context.ports[Confiner] = Sandbox()
        assert (await verdict(session, "make")).verdict == "ask"


async def test_a_command_runs_where_it_was_judged(project):
    (project / "in").mkdir()
    places = []

    class Noting(RefusingShell):
        async def start(self, command):
            places.append(command.cwd)
            return await super().start(command)

    async def on_ask(request):
        session.workdir.move(str(project / "in"))
        return Allow()

    async with Session(project, on_ask=on_ask) as session:
        get_parts(session).services.background._shell._shell = Noting()
        await session.call("Bash", command="make")
    assert places == [str(project)]


async def test_a_link_to_where_a_process_stands_is_no_way_round_a_rule(project):
    (project / "keys").mkdir()
    (project / "keys" / "k").write_text("secret")
    (project / "here").symlink_to("/proc/self/cwd")
    async with Session(project, deny=["Read(/keys/**)"], allow=["Bash(cat *)"]) as session:
        for command in ("cat here/keys/k", "cat /proc/self/cwd/keys/k", "cat h*/keys/k"):
            result = await session.call("Bash", command=command)
            assert result.code in {"permission.asked", "permission.denied"}
