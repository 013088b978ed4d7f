"""When commands are confined, when not, and when nothing runs at all."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.holding import open_descriptors

from handaxe.contract.faults.shell import NoSandbox
from handaxe.shell.sandbox import bubblewrap
from handaxe.shell.sandbox.backend import SandboxBackend, find_backend, find_bubblewrap_problem
from handaxe.shell.sandbox.confiner import LocalConfiner, SandboxRequirements
from handaxe.shell.sandbox.probe import DIMENSIONS, probe
from handaxe.shell.sandbox.protected_files import ProtectedPathGuard
from handaxe.shell.sandbox.readonly_paths import RootPathRules
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy, is_readable

NOWHERE = SandboxBackend(name="none", bubblewrap_problem="no bwrap", landlock_problem="no Landlock")


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "root").mkdir()
    return SandboxPolicy(
        roots=(f"{tmp_path}/root",),
        temp_directory=f"{tmp_path}/temp",
        aside_directory=f"{tmp_path}/aside",
    )


def guarded(top):
    return SandboxPolicy(
        roots=(str(top),), temp_directory=f"{top}/t", aside_directory=f"{top}/aside"
    )


def confiner(policy, *, means=NOWHERE, **wanted):
    return LocalConfiner(
        lambda: SandboxRequirements(**{"enabled": True, **wanted}), lambda: policy, means=means
    )


def confine(made, **more):
    return made.confine(["true"], cwd="/", env={"A": "1"}, **more)


@pytest.mark.proves("SH-7")
def test_asked_for_and_impossible_means_nothing_runs(policy):
    made = confiner(policy)
    with pytest.raises(NoSandbox, match="no bwrap; no Landlock") as raised:
        confine(made)
    assert raised.value.code == "shell.no_sandbox"
    assert not made.is_confining("true")
    assert made.level.means == "none"
    assert made.level.notes == ("Commands are not sandboxed: no bwrap; no Landlock.",)


def test_unless_settings_say_that_it_need_not_hold(policy):
    made = confiner(policy, must_hold=False)
    confined = confine(made)
    assert (confined.argv, confined.env, confined.is_confined) == (["true"], {"A": "1"}, False)
    assert not made.is_confining("true")


def test_a_weak_sandbox_is_none_where_settings_ask_for_more(policy):
    weak = SandboxBackend(name="landlock", bubblewrap_problem="no bwrap")
    made = confiner(policy, means=weak, must_be_strong=True)
    with pytest.raises(NoSandbox, match="no bwrap; Landlock is too weak for"):
        confine(made)
    assert not made.is_confining("true")
    assert made.level.means == "none"
    assert confiner(policy, means=weak).is_confining("true")
    strong = SandboxBackend(name="bubblewrap", program="/usr/bin/bwrap")
    assert confiner(policy, means=strong, must_be_strong=True).is_confining("true")


def test_not_asked_for_means_outside(policy):
    made = confiner(policy, enabled=False)
    assert confine(made).argv == ["true"]
    assert made.level.network == "open"


def test_leaving_the_sandbox_can_be_asked_for_and_forbidden(policy):
    means = SandboxBackend(name="bubblewrap", program="/usr/bin/bwrap")
    free = confiner(policy, means=means)
    assert not confine(free, unconfined=True).is_confined
    assert not free.is_confining("true", unconfined=True)
    bound = confiner(policy, means=means, may_leave=False)
    inside = confine(bound, unconfined=True)
    assert inside.argv[0] == "/usr/bin/bwrap"
    inside.close()
    assert bound.is_confining("true", unconfined=True)


def test_excluded_commands_run_outside_even_where_leaving_is_forbidden(policy):
    made = confiner(policy, may_leave=False, is_excluded=lambda command: command == "docker ps")
    assert not confine(made, command="docker ps").is_confined
    with pytest.raises(NoSandbox):
        confine(made, command="docker ps; evil")


def test_landlock_refuses_what_it_cannot_hide(policy, tmp_path):
    secret = tmp_path / "root/.env"
    secret.write_text("x")
    hiding = msgspec.structs.replace(policy, deny_read=(str(secret),))
    with pytest.raises(NoSandbox, match="Landlock cannot hide"):
        confine(confiner(hiding, means=SandboxBackend(name="landlock")))


def test_landlock_gives_no_network_where_hosts_are_listed(policy):
    listed = msgspec.structs.replace(policy, network="listed", allowed_domains=("a.com",))
    level = confiner(listed, means=SandboxBackend(name="landlock")).level
    assert level.network == "off"
    assert "have no network" in level.notes[0]


def test_closing_twice_is_fine_and_leaves_no_descriptor(policy):
    before = open_descriptors()
    for means in (
        SandboxBackend(name="bubblewrap", program="/usr/bin/bwrap"),
        SandboxBackend(name="landlock"),
    ):
        confined = confine(confiner(policy, means=means))
        assert confined.close() == confined.close() == ()
    assert open_descriptors() <= before


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Makes the one system program and the bundled one, with the versions they report."""

    def make(system: str, bundled: str | None) -> tuple[str, str]:
        found = []
        for name, version in (("system", system), ("bundled", bundled)):
            program = tmp_path / name / "bwrap"
            program.parent.mkdir()
            if version is not None:
                program.write_text(f"#!/bin/sh\necho 'bubblewrap {version}'\n")
                program.chmod(0o755)
            found.append(str(program))
        monkeypatch.setattr(bubblewrap, "SYSTEM_PLACES", (found[0],))
        monkeypatch.setattr(bubblewrap, "find_bundled_paths", lambda: (found[1],))
        return found[0], found[1]

    return make


only_root = pytest.mark.skipif(
    os.getuid() != 0, reason="a program of root can only be made by root"
)


@only_root
@pytest.mark.parametrize(
    ("system", "bundled", "chosen"),
    [
        ("0.11.0", "0.11.0", "system"), ("0.12.3", "0.11.0", "system"), ("1.0.0", None, "system"),
        ("0.10.0", "0.11.0", "bundled"), ("0.8.0", "0.11.0", "bundled"), ("0.8.0", None, "system"),
        ("0.7.0", None, None), ("no number", None, None),
    ],
)  # fmt: skip
def test_a_system_program_that_is_new_enough_wins(places, system, bundled, chosen):
    found = dict(zip(("system", "bundled"), places(system, bundled), strict=True))
    assert bubblewrap.find_bubblewrap(("/elsewhere",)) == found.get(chosen)


@only_root
def test_a_system_program_that_others_can_change_is_never_used(places):
    system, bundled = places("0.11.0", "0.11.0")
    for mode in (0o775, 0o757):
        Path(system).chmod(mode)
        assert bubblewrap.find_bubblewrap() == bundled
    Path(system).chmod(0o755)
    os.chown(system, 65534, -1)
    assert bubblewrap.find_bubblewrap() == bundled


def test_a_program_in_a_root_is_never_used(places):
    system, bundled = places("0.11.0", "0.11.0")
    assert bubblewrap.find_bubblewrap((str(Path(system).parent),)) == bundled
    assert bubblewrap.find_bubblewrap((str(Path(system).parents[1]),)) is None


def test_a_link_into_a_root_is_never_followed(places, tmp_path, monkeypatch):
    system, _ = places("0.11.0", None)
    link = tmp_path / "link"
    link.symlink_to(system)
    monkeypatch.setattr(bubblewrap, "SYSTEM_PLACES", (str(link),))
    assert bubblewrap.find_bubblewrap((str(Path(system).parent),)) is None


def test_why_bubblewrap_fails_is_said(tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    problem = find_bubblewrap_problem(str(broken))
    assert problem == "bubblewrap does not work here: No permissions to create new namespace"
    found = find_backend(bwrap=str(broken))
    assert found.name in {"landlock", "none"}
    assert found.bubblewrap_problem == problem


@pytest.mark.proves("SH-7")
def test_the_probe_says_for_every_dimension_what_holds():
    found = probe()
    assert [one.name for one in found] == list(DIMENSIONS)
    if find_backend().name == "bubblewrap":
        assert {one.standing for one in found} == {"ok"}
    nothing = probe(NOWHERE)
    assert {(one.standing, one.reason) for one in nothing} == {("no", "no bwrap; no Landlock")}


def test_the_more_specific_of_two_words_wins(policy):
    denied = msgspec.structs.replace(
        policy, deny_read=("/home/a", "/home/a/b/c"), allow_read=("/home/a/b",)
    )
    assert not is_readable(denied, "/home/a/x")
    assert is_readable(denied, "/home/a/b/x")
    assert not is_readable(denied, "/home/a/b/c/x")
    assert is_readable(denied, "/home/ab")


@pytest.mark.parametrize("allowed", [True, False])
def test_an_allowed_place_inside_a_hidden_one_is_read(field, allowed):
    (field.home / ".ssh/known").mkdir()
    (field.home / ".ssh/known/hosts").write_text("KNOWN\n")
    field.own()
    place = (str(field.home / ".ssh/known"),) if allowed else ()
    field.policy = msgspec.structs.replace(field.policy, allow_read=place)
    _, output = field.run("cat $HOME/.ssh/known/hosts; cat $HOME/.ssh/id")
    assert ("KNOWN" in output) is allowed
    assert "SECRET" not in output


def test_files_that_rules_hide_are_hidden_in_roots_too(field, means):
    if means != "bubblewrap":
        pytest.skip("Landlock refuses instead")
    deep = field.root / "a/b/c/d/e"
    deep.mkdir(parents=True)
    (field.root / "app").mkdir()
    for place in (field.root / "app", deep):
        (place / ".env").write_text("SECRET\n")
    field.own()
    field.ruled = RootPathRules(hides=lambda path: path.endswith("/.env"))
    code, output = field.run(
        "cat app/.env || cat */.env; cat a/b/c/d/e/.env; ln app/.env x && cat x"
    )
    assert code != 0
    assert "SECRET" not in output


def test_files_that_rules_keep_stay_as_they_are(field):
    (field.root / "app/made").mkdir(parents=True)
    for name in ("app/x.lock", "app/made/code.py", "app/free"):
        (field.root / name).write_text("old")
    field.own()
    field.ruled = RootPathRules(keeps=lambda path: path.endswith((".lock", "/made")))

    field.run(
        "cd app; for f in x.lock made/code.py made/more free; do echo new > $f; done; rm x.lock"
    )

    assert (field.root / "app/x.lock").read_text() == "old"
    assert (field.root / "app/made/code.py").read_text() == "old"
    assert not (field.root / "app/made/more").exists()
    assert (field.root / "app/free").read_text() == "new\n"


@pytest.mark.parametrize("target", ["nowhere", "/nowhere/at/all", ".claude", "/proc/1/root/x"])
def test_a_protected_name_may_be_a_link_that_leads_nowhere(field, target):
    (field.root / ".claude").symlink_to(target)
    field.own()

    _, output = field.run("echo made > y; cat y; mkdir nowhere; echo bad > nowhere/settings.json")

    assert "made" in output
    assert (field.root / ".claude").is_symlink()
    if target == "nowhere":
        assert not (field.root / "nowhere").exists()


def test_a_switched_off_file_sandbox_leaves_the_rest(field):
    field.policy = msgspec.structs.replace(field.policy, confines_files=False)
    code, output = field.run("echo x > $OUTSIDE/free && unshare -Ur true")
    assert code != 0, output
    assert (field.top / "free").exists()


def test_a_root_inside_a_repository_is_no_repository_of_its_own(field, means):
    sub = field.root / "sub"
    sub.mkdir()
    (sub / "file").write_text("x")
    field.own()
    field.policy = msgspec.structs.replace(field.policy, roots=(str(sub),))
    code, output = field.run("cd sub && git rev-parse --show-toplevel && git status --short .")
    assert code == 0, output
    assert str(field.root) in output
    assert sorted(os.listdir(sub)) == ["file"]


def test_unix_sockets_can_be_allowed(field):
    import socket

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{field.root}/door")
        os.chmod(f"{field.root}/door", 0o777)
        door.listen()
        field.policy = msgspec.structs.replace(field.policy, all_unix_sockets=True)
        code, output = field.run(
            "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"door\")'"
        )
        assert code == 0, output


def test_refusals_can_be_left_untold(field):
    field.wanted = SandboxRequirements(enabled=True, ignored={"touch": (".envrc",)})
    field.run("touch .envrc")
    assert field.told == ()
    assert not (field.root / ".envrc").exists()


def test_putting_back_never_follows_a_link(tmp_path):
    """A command may leave a link where a directory was; what it leads to is not ours."""
    root, other = tmp_path / "root", tmp_path / "other"
    (root / ".git").mkdir(parents=True)
    (root / ".git/config").write_text("old")
    other.mkdir()
    (other / "config").write_text("precious")
    guard = ProtectedPathGuard(
        [f"{root}/.git/config"], guarded(tmp_path), directories=[f"{root}/.git"]
    )
    subprocess.run(["rm", "-r", root / ".git"], check=True)
    (root / ".git").symlink_to(other)
    told = guard.restore()
    assert (other / "config").read_text() == "precious"
    assert not (root / ".git").is_symlink()
    assert len(told) == 2


def test_what_a_guard_puts_back_is_whole_and_nothing_is_lost(tmp_path):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "one").write_text("1")
    (hooks / "one").chmod(0o755)
    (hooks / "link").symlink_to("one")
    guard = ProtectedPathGuard([str(hooks)], guarded(tmp_path))
    assert guard.restore() == ()
    guard = ProtectedPathGuard([str(hooks)], guarded(tmp_path))
    (hooks / "one").write_text("evil")
    (hooks / "two").write_text("evil")
    assert len(guard.restore()) == 1
    assert sorted(os.listdir(hooks)) == ["link", "one"]
    assert (hooks / "one").read_text() == "1"
    assert os.access(hooks / "one", os.X_OK)
    (kept,) = (tmp_path / "aside").iterdir()
    assert (kept / "two").read_text() == "evil"


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    from handaxe.shell.sandbox import mount_points as placeholders

    ledger, root = tmp_path / "ledger", tmp_path / "root"
    ledger.mkdir()
    root.mkdir()
    (root / ".git").mkdir()
    os.mknod(root / ".mcp.json", 0o140644)
    (root / ".vscode").write_text("mine now")
    left = [str(root / name) for name in (".git", ".mcp.json", ".vscode", ".idea")]
    ended = subprocess.Popen(["true"])
    ended.wait()
    (ledger / f"placeholders-{ended.pid}").write_text("\0".join(left))
    held = placeholders.acquire_mount_points([str(root / "new")], str(ledger))
    assert sorted(path.name for path in root.iterdir()) == [".vscode", "new"]
    own = os.getpid()
    assert sorted(p.name for p in ledger.iterdir()) == [f"placeholders-{own}", f"unused-{own}"]
    placeholders.release_mount_points(held, str(ledger))
    assert [path.name for path in root.iterdir()] == [".vscode"]


def test_placeholders_never_replace_anything_and_leave_what_somebody_put_in(tmp_path):
    from handaxe.shell.sandbox import mount_points as placeholders

    root, ledger = tmp_path / "root", str(tmp_path / "ledger")
    root.mkdir()
    paths = [str(root / name) for name in (".vscode", ".mcp.json", ".idea")]
    for _ in range(3):
        assert placeholders.acquire_mount_points(paths, ledger) == paths
        assert (root / ".mcp.json").is_socket()
        assert list((root / ".idea").iterdir()) == []
        placeholders.release_mount_points(paths, ledger)
        assert list(root.iterdir()) == []
    held = placeholders.acquire_mount_points(paths, ledger)
    (root / ".vscode/mine").write_text("mine")
    (root / "new").write_text("{}")
    (root / "new").replace(root / ".mcp.json")
    placeholders.release_mount_points(held, ledger)
    assert sorted(path.name for path in root.iterdir()) == [".mcp.json", ".vscode"]
    assert (root / ".vscode/mine").read_text() == "mine"
    (root / ".idea").mkdir()
    inode = (root / ".idea").stat().st_ino
    assert placeholders.acquire_mount_points(paths, ledger) == []
    assert (root / ".idea").stat().st_ino == inode


def test_commands_do_not_see_masks_in_git(field):
    code, output = field.run("git add -A && git status --short && ls -A")
    assert code == 0, output
    assert field.told == ()


def test_libraries_to_be_loaded_count_only_inside(policy):
    made = confiner(policy, means=SandboxBackend(name="bubblewrap", program="/usr/bin/bwrap"))
    confined = made.confine(["true"], cwd="/", env={"LD_PRELOAD": "/evil.so", "A": "1"})
    confined.close()
    assert "LD_PRELOAD" not in confined.env
    assert confined.argv[-3:] == ["/usr/bin/env", "LD_PRELOAD=/evil.so", "true"]
