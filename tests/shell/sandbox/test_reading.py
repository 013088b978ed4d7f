"""A sandbox that shows only what programs need: what cannot be read, and that work goes on."""

import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from handaxe.process.temp_dir import TempDirectory
from handaxe.shell.sandbox.readable_paths import (
    HOME_PLACES,
    SYSTEM_PLACES,
    find_readable_paths,
    find_system_secrets,
)

CANARY = "CANARY"


@pytest.fixture(params=["bubblewrap", "landlock"])
def means(request):
    return request.param


@pytest.fixture
def closed(field):
    """The project, with everything hidden that no list names, and canaries all around."""
    for place in ("beside", "home/notes", "home/.cargo", "home/.config/tool", "data/packs"):
        (field.top / place).mkdir(parents=True)
        (field.top / place / "canary").write_text(f"{CANARY}\n")
    (field.home / ".cargo/credentials.toml").write_text(f"{CANARY}\n")
    (field.home / ".cargo/config.toml").write_text("SHOWN\n")
    (field.home / ".gitconfig").write_text("[user]\n\tname = A B\n\temail = a@example.com\n")
    (field.root / "out").symlink_to(field.top / "beside")
    (field.root / "key").symlink_to(field.top / "beside/canary")
    (field.home / ".cargo/canary").unlink()
    home, environment = str(field.home), {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    secrets = (f"{home}/.ssh", f"{home}/.cargo/credentials.toml", *find_system_secrets())
    field.policy = msgspec.structs.replace(
        field.policy,
        deny_read=("/", f"{field.top}/data", *secrets),
        allow_read=find_readable_paths(home, environment),
        home_directory=home,
    )
    field.own()
    return field


HIDDEN = {
    "another directory of the home": "cat $HOME/notes/canary",
    "a file of the home": "cat $HOME/note",
    "a configuration in the home": "cat $HOME/.config/tool/canary",
    "a secret in a shown place": "cat $HOME/.cargo/credentials.toml",
    "beside the project": "cat ../beside/canary",
    "beside the project, in full": "cat $OUTSIDE/beside/canary",
    "the data of handaxe": "cat $OUTSIDE/data/packs/canary",
    "a link in the project to a file": "cat key",
    "a link in the project to a directory": "cat out/canary",
    "a link made inside": "ln -s $OUTSIDE/beside made; cat made/canary",
    "a hard link": "ln $OUTSIDE/beside/canary made && cat made",
    "its own root": "cat /proc/self/root$OUTSIDE/beside/canary",
    "the root of the first process": "cat /proc/1/root$OUTSIDE/beside/canary",
    "the root of its parent": "cat /proc/$PPID/root$OUTSIDE/beside/canary",
    "the directory of its parent": "cat /proc/$PPID/cwd/../beside/canary",
    "its own directory": "cat /proc/self/cwd/../beside/canary",
    "a bind": "mkdir m; mount --bind $OUTSIDE m; cat m/beside/canary",
    "a namespace": "unshare -Urm sh -c 'umount -l /; cat $OUTSIDE/beside/canary'",
    "what covers it taken away": "umount -l $HOME; umount -l /; cat $HOME/notes/canary",
    "what covers it opened": "chmod 777 / $HOME $OUTSIDE; cat $OUTSIDE/beside/canary",
    "a copy": "cp -r $OUTSIDE/beside copy && cat copy/canary",
    "a search": "grep -rs CANAR[Y] $HOME $OUTSIDE/beside $OUTSIDE/data",
    "a descriptor": "exec 9< $OUTSIDE/beside/canary && cat <&9",
    "a program of the command": '/usr/bin/python3 -c \'import os; print(open(os.environ["OUTSIDE"] + "/beside/canary").read())\'',
}


@pytest.mark.proves("SH-7")
def test_nothing_outside_can_be_read(closed):
    """All in one command: what counts is that no line of the output is a canary."""
    tried = [f"( {command} ) && echo '{name} was read'" for name, command in HIDDEN.items()]
    _, output = closed.run("\n".join([*tried, "echo END"]))
    assert output.endswith("END\n")
    assert "was read" not in output
    assert CANARY not in output


def test_other_directories_of_the_machine_cannot_be_read(closed):
    with ExitStack() as stack:
        places: list[str] = []
        for place in ("/tmp", "/srv", "/mnt", "/dev/shm", "/var/lib", "/var/tmp"):
            if os.access(place, os.W_OK):
                places.append(stack.enter_context(TempDirectory("canary", place)).path)
                Path(places[-1]).chmod(0o755)
                Path(places[-1], "file").write_text(CANARY)
        tried = [f"cat {place}/file; ls {place} && echo LISTED" for place in places]
        _, output = closed.run("\n".join([*tried, "echo END"]))
    assert places
    assert output.endswith("END\n")
    assert CANARY not in output
    assert "LISTED" not in output


def test_passwords_of_the_system_cannot_be_read(closed):
    files = [path for path in map(Path, find_system_secrets()) if path.is_file()]
    _, output = closed.run("\n".join([*(f"cat {path}" for path in files), "echo END"]))
    secret = {line for path in files for line in path.read_text("utf-8", "replace").splitlines()}
    assert output.endswith("END\n")
    assert not secret & set(output.splitlines())


def test_what_another_process_has_open_cannot_be_read(closed, uid):
    with (closed.top / "beside/canary").open() as held:
        holder = subprocess.Popen(
            ["sleep", "60"],
            stdin=held,
            user=uid,
            group=uid,
            extra_groups=[],
            cwd=closed.top / "beside",
        )
        try:
            for way in ("fd/0", "cwd/canary", f"root{closed.top}/beside/canary"):
                code, output = closed.run(f"cat /proc/{holder.pid}/{way}")
                assert (code != 0, CANARY in output) == (True, False), way
        finally:
            holder.kill()
            holder.wait()


WORK = {
    "git": (
        "git",
        "git add file.txt; git commit -qm x; git log --format=%an | grep 'A B'; git status --short",
    ),
    "python": (
        "python3",
        "/usr/bin/python3 -c 'import ssl, json, sqlite3; print(ssl.OPENSSL_VERSION)'",
    ),
    "node": ("node", "node -e 'console.log(require(\"os\").cpus().length)'"),
    "npm": ("npm", "npm --version"),
    "gcc": ("gcc", "echo 'int main(void) { return 0; }' > a.c; gcc a.c -o a; ./a"),
    "make": ("make", "printf 'all:\\n\\techo made > made\\n' > Makefile; make -s; cat made"),
    "rg": ("rg", "rg plain file.txt"),
    "cargo": ("cargo", "cargo --version"),
    "pip": ("pip", "pip --version"),
    "uv": ("uv", "uv --version"),
    "bash": ("bash", "cat > s.sh <<'END'\ncat <<INNER\n$((1 + 1))\nINNER\nEND\nbash s.sh | grep 2"),
    "mktemp": ("mktemp", 'f=$(mktemp); echo x > "$f"; cat "$f"; mktemp -d'),
    "virtual environment": (
        "python3",
        "/usr/bin/python3 -m venv --without-pip v; v/bin/python -c 'import sys; print(sys.prefix)'",
    ),
    "users": ("getent", "id -u; getent passwd root; hostname"),
    "certificates": ("ls", "test ! -d /etc/ssl/certs || ls /etc/ssl/certs > /dev/null"),
    "processors": ("nproc", "nproc; cat /proc/cpuinfo > /dev/null"),
    "home": ("grep", "cd; pwd; grep SHOWN ~/.cargo/config.toml"),
    "children": ("sleep", "for i in 1 2 3; do (exit 0) & done; wait; sleep 0"),
}


@pytest.mark.proves("SH-7")
def test_ordinary_work_goes_on(closed):
    path = "/usr/local/bin:/usr/bin:/bin"
    tried = [
        f"( set -e; {command} ) || echo '{name} failed'"
        for name, (program, command) in WORK.items()
        if shutil.which(program, path=path)
    ]
    assert len(tried) > 9
    _, output = closed.run("\n".join([*tried, "echo END"]))
    assert output.endswith("END\n"), output
    assert "failed" not in output, output
    assert closed.told == ()


def test_nothing_can_be_written_where_nothing_is_shown(closed):
    places = ("/new", "$HOME/new", "$OUTSIDE/new", "/run/new", "/var/tmp/new")
    tried = [f"echo x > {place} && echo WRITTEN" for place in places]
    _, output = closed.run("\n".join([*tried, "echo END"]))
    assert output.endswith("END\n")
    assert "WRITTEN" not in output
    assert not Path("/new").exists()


def test_more_can_be_shown_and_hidden_again(closed):
    closed.policy = msgspec.structs.replace(
        closed.policy,
        allow_read=(*closed.policy.allow_read, f"{closed.top}/beside", str(closed.home)),
        deny_read=(*closed.policy.deny_read, f"{closed.home}/notes"),
    )
    code, output = closed.run("cat key && cat $HOME/note")
    assert (code, output) == (0, f"{CANARY}\nreadable\n")
    code, output = closed.run("cat $HOME/notes/canary || cat $HOME/.cargo/credentials.toml")
    assert (code != 0, CANARY in output) == (True, False)


def test_what_is_shown_is_found_by_its_links_too(closed):
    real, name = closed.top / "tools", closed.home / "tools"
    (real / "bin").mkdir(parents=True)
    (real / "bin/word").write_text("SHOWN\n")
    name.symlink_to(real)
    closed.own()
    closed.policy = msgspec.structs.replace(
        closed.policy, allow_read=(*closed.policy.allow_read, f"{name}/bin")
    )
    code, output = closed.run(f"cat {name}/bin/word {real}/bin/word")
    assert (code, output) == (0, "SHOWN\nSHOWN\n")


@pytest.mark.proves("SH-7")
@pytest.mark.parametrize("is_known", [True, False], ids=["before", "since"])
def test_a_command_cannot_exchange_a_shown_place_for_another(closed, is_known):
    """An environment in the project is shown by its name; what it is then, a command decides."""
    (closed.root / "venv").mkdir()
    closed.own()
    shown = (*closed.policy.allow_read, f"{closed.root}/venv", f"{closed.root}/venv/bin")
    closed.policy = msgspec.structs.replace(closed.policy, allow_read=shown)
    if is_known:
        closed.run("true")
    code, output = closed.run("rmdir venv && ln -s $OUTSIDE/beside venv")
    assert code == 0, output
    code, output = closed.run("cat venv/canary; cat venv/bin; cat $OUTSIDE/beside/canary")
    assert code != 0
    assert CANARY not in output


def test_a_listed_host_is_reached_where_little_can_be_read(closed, means, uid):
    if (means, uid) != ("bubblewrap", 0):
        pytest.skip("one means is enough, and only its own user sees the Python of the tests")
    closed.policy = msgspec.structs.replace(
        closed.policy, network="listed", allowed_domains=("localhost",)
    )
    code, output = closed.run(
        '/usr/bin/python3 -c \'import os, socket; socket.create_connection(("127.0.0.1", 47128)); print(os.environ["http_proxy"])\''
    )
    assert code == 0, output


@pytest.mark.parametrize(
    ("environment", "is_shown"),
    [
        ({"VIRTUAL_ENV": "{top}/venv"}, True),
        ({"PATH": "/usr/bin:{top}/venv/bin"}, False),
        ({"GOPATH": "{top}"}, False),
        ({"VIRTUAL_ENV": "relative"}, False),
        ({"JAVA_HOME": "/"}, False),
        ({"JAVA_HOME": "{home}"}, False),
        ({"CONDA_PREFIX": "{top}"}, False),
    ],
)
def test_variables_show_programs_and_never_a_home(tmp_path, environment, is_shown):
    home = tmp_path / "home"
    for place in ("home", "venv/bin", "venv/share"):
        (tmp_path / place).mkdir(parents=True)
    given = {name: text.format(top=tmp_path, home=home) for name, text in environment.items()}
    shown = find_readable_paths(str(home), given)
    assert (f"{tmp_path}/venv" in shown) is is_shown
    assert not {"/", "/home", str(tmp_path), str(home)} & set(shown)


def test_every_shown_place_has_a_reason_and_none_is_a_whole_home():
    for path, reason in {**SYSTEM_PLACES, **HOME_PLACES}.items():
        assert reason
        assert path.startswith("/") == (path in SYSTEM_PLACES)
        assert ".." not in path
    assert not {"", ".", ".config", ".local", ".local/share", ".cache"} & set(HOME_PLACES)
