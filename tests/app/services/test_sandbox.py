"""Settings and rules become the sandbox's policy."""

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.pipeline.harness import RecordingCheckpoints
from tests.waiting import until

from handaxe import Allow, Session
from handaxe.app.services.configuration import open_configuration
from handaxe.app.services.sandbox import (
    build_confiner,
    build_sandbox_policy,
    find_sandbox_problems,
    read_sandbox_options,
)
from handaxe.app.services.service import SessionContext
from handaxe.app.session import get_parts
from handaxe.contract.faults import SetupError
from handaxe.shell.sandbox.backend import find_backend


def settled(project: Path, sandbox: dict | None = None, **more):
    """The policy of a session with these settings."""
    settings = {"sandbox": {"enabled": True, **(sandbox or {})}}
    session = Session(project, settings=settings, **more)
    policy = build_sandbox_policy(
        get_parts(session).configuration,
        session.workdir,
        get_parts(session).session_context.policy(),
        temp_directory="/t",
        aside_directory="/a",
    )
    return session, policy


def test_the_default_writes_in_the_project_and_has_no_network(project):
    session, policy = settled(project)
    home = session.workdir.home
    assert policy.roots == (str(project),)
    assert policy.network == "off"
    assert f"{home}/.ssh" in policy.deny_read
    assert ".vscode" in policy.protected_names
    assert ".git" in policy.masked_names
    assert ".yarn" not in policy.protected_names


def test_secrets_can_be_shown(project):
    session, policy = settled(project, {"filesystem": {"hideSecrets": False}})
    assert policy.deny_read == (get_parts(session).configuration.data_directory, "/")


def test_paths_are_absolute_from_home_or_from_the_project(project):
    session, policy = settled(
        project,
        {
            "filesystem": {
                "allowWrite": ["/opt/x", "~/cache", "./build", "//srv/y"],
                "denyWrite": ["locked/**", "../beside"],
                "allowRead": ["~/.ssh/known_hosts"],
            }
        },
    )
    home = session.workdir.home
    assert policy.roots[1:] == ("/opt/x", f"{home}/cache", f"{project}/build", "/srv/y")
    assert policy.deny_write[:2] == (f"{project}/locked", f"{project.parent}/beside")
    assert policy.allow_read[0] == f"{home}/.ssh/known_hosts"


def test_a_pattern_in_the_last_part_names_what_is_there(project):
    for name in ("a.pem", "b.pem", "c.txt"):
        (project / name).write_text("x")
    _, policy = settled(project, {"filesystem": {"denyRead": ["*.pem"], "hideSecrets": False}})
    assert policy.deny_read[:2] == (f"{project}/a.pem", f"{project}/b.pem")
    assert f"{project}/c.txt" not in policy.deny_read


def test_deny_rules_of_tools_hold_inside_too(project):
    _, policy = settled(
        project,
        {"filesystem": {"hideSecrets": False}},
        deny=["Read(//srv/keys)", "Read(~/x/**)", "Edit(/generated)", "Read(**/*.key)"],
    )
    assert "/srv/keys" in policy.deny_read
    assert any(path.endswith("/x") for path in policy.deny_read)
    assert f"{project}/generated" in policy.deny_write
    assert not any("*" in path for path in (*policy.deny_read, *policy.deny_write))


@pytest.mark.skipif(find_backend().name == "none", reason="no sandbox here")
async def test_patterns_of_edit_rules_hold_inside_too(project):
    (project / "src/ro").mkdir(parents=True)
    for name in ("src/ro/f", "src/x.lock", "free"):
        (project / name).write_text("old")
    # In two pieces, so that no rule sees the name before the command runs.
    write = "import sys; open(''.join(sys.argv[1:]), 'w').write('new')"

    async def yes(_request):
        return Allow()

    deny = ["Edit(ro/**)", "Edit(**/*.lock)", "Edit(later)"]
    settings = {"sandbox": {"enabled": True}}
    async with Session(project, settings=settings, deny=deny, on_ask=yes) as session:
        for name in ("src/ro/f", "src/x.lock", "later", "free"):
            await session.call("Bash", command=f'python3 -c "{write}" {name[:-2]} {name[-2:]}')

    assert (project / "src/ro/f").read_text() == "old"
    assert (project / "src/x.lock").read_text() == "old"
    assert not (project / "later").exists()
    assert (project / "free").read_text() == "new"


@pytest.mark.parametrize(
    ("network", "state"),
    [
        ({}, "off"),
        ({"allowedDomains": []}, "off"),
        ({"allowedDomains": ["a.com"]}, "listed"),
        ({"allowedDomains": ["*"]}, "open"),
        ({"allowedDomains": ["*"], "deniedDomains": ["evil.com"]}, "listed"),
        ({"allowedDomains": ["http://wrong"]}, "off"),
        ({"deniedDomains": ["a.com"]}, "off"),
    ],
)
def test_an_empty_list_is_no_network(project, network, state):
    assert settled(project, {"network": network})[1].network == state


def test_fetch_rules_are_listed_hosts_too(project):
    _, policy = settled(project, allow=["WebFetch(domain:a.com)"], deny=["WebFetch(domain:b.com)"])
    assert policy.allowed_domains == ("a.com",)
    assert policy.denied_domains == ("b.com", "*.b.com")


@pytest.mark.parametrize(
    ("command", "is_excluded"),
    [
        ("docker ps", True),
        ("docker run x", True),
        ("npm test", True),
        ("npm test --evil", False),
        ("docker ps; curl evil", False),
        ("docker ps && npm test", True),
        ("docker ps $(curl evil)", False),
        ("docker ps > /etc/x", True),
        ("dockerx", False),
        ("ls", False),
        ("", False),
        ("docker ps\ncurl evil", False),
    ],
)
def test_a_command_is_excluded_only_as_a_whole(project, command, is_excluded):
    session, _ = settled(project, {"excludedCommands": ["docker *", "npm test"]})
    wanted = read_sandbox_options(get_parts(session).configuration, session.workdir)
    assert wanted.is_excluded(command) is is_excluded


def test_what_cannot_be_honoured_is_told(project):
    session, _ = settled(
        project,
        {
            "enableWeakerNestedSandbox": True,
            "network": {"httpProxyPort": 8080, "allowedDomains": ["a.com:80"]},
            "filesystem": {"denyRead": ["**/secret/*.key"]},
        },
    )
    told = "\n".join(find_sandbox_problems(get_parts(session).configuration))
    assert "`sandbox.enableWeakerNestedSandbox` has no effect" in told
    assert "`sandbox.network.httpProxyPort` has no effect" in told
    assert "'a.com:80' is not a host" in told
    assert "'**/secret/*.key' has no effect" in told


def test_nothing_is_told_where_no_sandbox_is_asked_for(project, tmp_path):
    given = {"sandbox": {"network": {"httpProxyPort": 8080}}}
    configuration = open_configuration(str(project), home=tmp_path, given=given)
    assert find_sandbox_problems(configuration) == []


def test_only_managed_hosts_count_where_managed_settings_say_so(project):
    _, policy = settled(
        project, {"network": {"allowManagedDomainsOnly": True, "allowedDomains": ["a.com"]}}
    )
    # Arguments are not managed settings, so the switch itself does not count.
    assert policy.allowed_domains == ("a.com",)


def test_a_relative_program_is_refused(project):
    session, _ = settled(project, {"bwrapPath": "bin/bwrap"})
    with pytest.raises(SetupError, match="absolute"):
        read_sandbox_options(get_parts(session).configuration, session.workdir)


@pytest.mark.proves("SH-7")
async def test_a_sessions_own_sandbox_runs_commands(project, tmp_path):
    if find_backend().name != "bubblewrap":
        pytest.skip("needs bubblewrap")
    session, _ = settled(project, deny=["Read(.env)"])
    (project / ".env").write_text("SECRET")
    unused: Any = None
    session_context = SessionContext(
        session_id="x",
        data_home=tmp_path,
        session_directory=tmp_path / "session",
        configuration=get_parts(session).configuration,
        workdir=session.workdir,
        pipeline_context=lambda: get_parts(session).pipeline_context,
        checkpoints=RecordingCheckpoints([]),
        permissions=session.permissions,
        policy=get_parts(session).session_context.policy,
        files=unused,
        results=unused,
        emit=lambda _: None,
        is_busy=lambda: False,
    )
    confiner = build_confiner(session_context)
    assert confiner.level.means == "bubblewrap"
    assert confiner.is_confining("echo hi")
    command = "cat .env; echo x > made; echo y > ../beside; echo $TMPDIR; echo z > .mcp.json"
    confined = confiner.confine(
        ["bash", "-c", command], cwd=str(project), env={"PATH": "/usr/bin:/bin"}
    )
    done = subprocess.run(
        confined.argv,
        env=confined.env,
        pass_fds=confined.pass_fds,
        capture_output=True,
        text=True,
        check=False,
    )
    assert confined.close() == ()
    confiner.close()
    await session.close()
    assert done.stdout == f"{tmp_path}/session/tmp\n"
    assert "SECRET" not in done.stdout
    assert sorted(path.name for path in project.iterdir()) == [".env", "made"]


def git(*arguments, cwd):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


def test_commits_in_a_linked_worktree_reach_its_repository(tmp_path):
    if find_backend().name != "bubblewrap":
        pytest.skip("needs bubblewrap")
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git("init", "-q", ".", cwd=main)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=main)
    git("worktree", "add", "-q", str(linked), cwd=main)
    _, policy = settled(linked)
    assert policy.roots == (str(linked), f"{main}/.git")
    from handaxe.shell.sandbox.confiner import LocalConfiner, SandboxRequirements

    own = msgspec.structs.replace(
        policy, temp_directory=f"{tmp_path}/t", aside_directory=f"{tmp_path}/a"
    )
    confiner = LocalConfiner(lambda: SandboxRequirements(enabled=True), lambda: own)
    command = (
        "echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm second; "
        "git config core.pager evil; echo evil > $(git rev-parse --git-common-dir)/hooks/pre-commit; true"
    )
    confined = confiner.confine(
        ["bash", "-c", command], cwd=str(linked), env={"PATH": "/usr/bin:/bin"}
    )
    subprocess.run(confined.argv, env=confined.env, pass_fds=confined.pass_fds, check=True)
    assert confined.close() == ()
    log = subprocess.run(
        ["git", "log", "--oneline"], cwd=linked, capture_output=True, text=True, check=True
    )
    assert len(log.stdout.splitlines()) == 2
    assert "evil" not in (main / ".git/config").read_text()
    assert not (main / ".git/hooks/pre-commit").exists()


def test_a_project_alone_cannot_name_a_repository_outside(tmp_path, project):
    other = tmp_path / "other"
    other.mkdir()
    git("init", "-q", ".", cwd=other)
    (other / ".git/worktrees/x").mkdir(parents=True)
    (other / ".git/worktrees/x/commondir").write_text("../..\n")
    (other / ".git/worktrees/x/gitdir").write_text("/elsewhere/.git\n")
    (project / ".git").write_text(f"gitdir: {other}/.git/worktrees/x\n")
    assert settled(project)[1].roots == (str(project),)


def test_a_session_tells_what_its_sandbox_cannot_do(project):
    session, _ = settled(project, {"network": {"httpProxyPort": 8080}})
    assert any("httpProxyPort" in warning for warning in session.warnings)


@pytest.mark.skipif(find_backend().name == "none", reason="nothing can be confined here")
async def test_a_directory_that_was_closed_does_not_hold_up_the_session(project):
    async with Session(project, settings={"sandbox": {"enabled": True}}) as session:

        async def bash(command: str):
            return await session.call("Bash", command=command)

        closed = await bash("mkdir -p shut && cd shut && chmod 000 .")
        assert closed.ok, closed.text
        refused = await bash("pwd")
        assert refused.code == "shell.no_directory"
        assert f"Shell cwd was reset to {project}" in refused.text
        again = await bash("pwd")
        assert again.text.startswith(f"{project}\n")
        (project / "shut").chmod(0o755)


@pytest.mark.skipif(find_backend().name != "bubblewrap", reason="trials need bubblewrap")
async def test_a_trial_cannot_read_what_the_sandbox_hides(project, tmp_path, monkeypatch):
    (tmp_path / "home/.ssh").mkdir(parents=True)
    (tmp_path / "home/.ssh/id").write_text("SECRET")
    (project / "keys.txt").write_text("SECRET")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    settings = {"sandbox": {"enabled": True}, "permissions": {"deny": ["Read(./keys.*)"]}}
    async with Session(project, settings=settings, permission_mode="bypassPermissions") as session:
        code = """awk 'BEGIN { while ((getline l < ("key" "s.txt")) > 0) print l }'"""
        command = f"x=id; cat ~/.ssh/$x; {code}; echo new > made"
        result = await session.call("Bash", command=command, dry_run=True)
        assert "SECRET" not in result.text
        assert result.data["changedFiles"] == [f"{project}/made"]
        assert not (project / "made").exists()


@pytest.mark.skipif(find_backend().name != "bubblewrap", reason="only bubblewrap has views")
async def test_a_command_that_was_proved_to_look_only_gets_nothing_to_write_to(project):
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / "a.txt").write_text("a\n")
    async with Session(project, settings={"sandbox": {"enabled": True}}) as session:
        confiner = build_confiner(get_parts(session).session_context)

        def tried(command: str, judged: str) -> subprocess.CompletedProcess[bytes]:
            confined = confiner.confine(
                ["bash", "-c", command], cwd=str(project), env={"PATH": "/usr/bin"}, command=judged
            )
            try:
                return subprocess.run(
                    confined.argv,
                    env=confined.env,
                    pass_fds=confined.pass_fds,
                    cwd=project,
                    capture_output=True,
                    check=False,
                )
            finally:
                confined.close()

        assert tried("cat a.txt; echo x > $TMPDIR/t", "cat a.txt").stdout == b"a\n"
        assert b"Read-only" in tried("echo x > new", "cat a.txt").stderr
        assert tried("git status --short", "git status --short").stdout == b"?? a.txt\n"
        assert tried("echo x > new", "echo x > new").returncode == 0
        assert sorted(path.name for path in project.iterdir()) == [".git", "a.txt", "new"]


@pytest.mark.parametrize("unavailable", [True, False])
async def test_below_the_least_that_settings_ask_for_no_command_runs(project, unavailable):
    sandbox = {
        "enabled": True,
        "bwrapPath": "/bin/false",
        "failIfWeak": True,
        "failIfUnavailable": unavailable,
    }
    async with Session(
        project, settings={"sandbox": sandbox}, permission_mode="bypassPermissions"
    ) as session:
        result = await session.call("Bash", command="touch made")
    assert result.code == "shell.no_sandbox"
    assert not (project / "made").exists()


@pytest.mark.skipif(find_backend().name == "none", reason="no sandbox here")
@pytest.mark.parametrize(
    ("command", "sandbox", "told"),
    [
        ("echo x > /usr/x", {}, "write only in the working directories"),
        (
            "curl -sS -m 3 http://example.com",
            {},
            "reaches no host, as sandbox.network.allowedDomains names none",
        ),
        ("echo x > /usr/x", {"allowUnsandboxedCommands": False}, "$TMPDIR."),
        ("echo x > /usr/x", {"ignoreViolations": {"/usr": ["/usr/x"]}}, None),
        ("ls nowhere", {}, None),
        ("echo 'permission denied'", {}, None),
    ],
)
async def test_a_failure_that_may_come_from_the_sandbox_says_so(project, command, sandbox, told):
    async def yes(_request):
        return Allow()

    settings = {"sandbox": {"enabled": True, **sandbox}}
    async with Session(project, settings=settings, on_ask=yes) as session:
        result = await session.call("Bash", command=command)

    hinted = "The sandbox may be the reason" in result.text
    assert hinted is (told is not None)
    assert told is None or told in result.data["stderr"]
    can_leave = sandbox.get("allowUnsandboxedCommands", True)
    assert ("dangerouslyDisableSandbox" in result.text) is (hinted and can_leave)


@pytest.mark.skipif(find_backend().name != "bubblewrap", reason="needs bubblewrap")
async def test_undo_leaves_what_keeps_protected_files_away_from_a_running_command(project):
    async def yes(_request):
        return Allow()

    wait = "while [ ! -e go ]; do sleep 0.05; done"
    evil = "mkdir -p .claude; echo evil > .claude/settings.json; echo evil > .mcp.json"
    settings = {"sandbox": {"enabled": True}}
    async with Session(project, settings=settings, on_ask=yes) as session:
        running = await session.call(
            "Bash", command=f"touch one; {wait}; {evil}", run_in_background=True
        )
        await until((project / "one").exists)
        await session.call("Bash", command="touch two")
        told = [await session.undo(), await session.undo()]
        (project / "go").touch()
        await session.call("TaskOutput", task_id=running.data["backgroundTaskId"])
        told.append(await session.undo())

    assert not (project / ".claude").exists()
    assert not (project / ".mcp.json").exists()
    assert not any(".claude" in result.text or "HEAD" in result.text for result in told)
    assert not (project / "two").exists()
