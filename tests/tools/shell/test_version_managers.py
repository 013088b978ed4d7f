"""The version that the user's prompt would run is the version that the tool runs.

Each row sets up one way of choosing versions as its users do, in the start-up file of a home. Then
an interactive bash walks through directories, and so does a session started from its prompt.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.shell.guide_hooks import read_guide_hooks

STAND_INS = Path(__file__).with_name("stand_ins.py")
SYSTEM = "/usr/local/bin:/usr/bin:/bin"
PLACES = ("old", "old/deep", "new", "plain")
WALK = """
import asyncio, sys
from handaxe import Session

async def main():
    async with Session(".", allow=["Bash"]) as session:
        for place in sys.argv[1:]:
            await session.call("Bash", command=f"cd {session.workdir.root}/{place}")
            print((await session.call("Bash", command="tool --version")).data["stdout"])

asyncio.run(main())
"""
SHIM = """#!/bin/bash
here=$PWD
while [ ! -e "$here/%(file)s" ] && [ "$here" ]; do here=${here%%/*}; done
version=$(sed 's/.* //' "$here/%(file)s" 2>/dev/null || echo 1.0)
exec "$HOME/%(versions)s/$version/bin/tool" "$@"
"""


class Machine:
    """A home with two versions of a tool, and a project that wants one or the other."""

    def __init__(self, top: Path) -> None:
        self.home, self.project = top / "home", top / "project"
        for version in ("1.0", "2.0", "3.0"):
            self.program(f"versions/{version}/bin/tool", f"#!/bin/sh\necho tool {version}\n")
        for place in PLACES:
            (self.project / place).mkdir(parents=True)

    def program(self, path: str, text: str) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def starts_with(self, text: str) -> None:
        (self.home / ".bashrc").write_text(text)

    def wants(self, file: str, text: str) -> None:
        for place, version in (("old", "1.0"), ("new", "2.0")):
            (self.project / place / file).write_text(text.format(version=version, home=self.home))

    def types(self, *lines: str) -> list[str]:
        """What comes out when somebody types this at a prompt."""
        env = {
            "HOME": str(self.home),
            "PATH": f"{self.home}/bin:{SYSTEM}",
            "HANDAXE_HOME": os.environ["HANDAXE_HOME"],
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        done = subprocess.run(
            ["bash", "-i"],
            input="\n".join([*lines, "exit"]),
            cwd=self.project,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines()

    def has_program(self, name: str) -> None:
        """The real one where it is installed."""
        real = shutil.which(name)
        self.program(
            f"bin/{name}",
            f'#!/bin/sh\nexec {real or f"{sys.executable} {STAND_INS} {name}"} "$@"\n',
        )

    def has_hooks(self, name: str) -> None:
        """The hooks of the guide."""
        self.program(".claude/settings.json", json.dumps(read_guide_hooks(name)))


def pyenv(machine: Machine) -> None:
    machine.program(".pyenv/shims/tool", SHIM % {"file": ".python-version", "versions": "versions"})
    machine.starts_with('export PATH="$HOME/.pyenv/shims:$PATH"\n')
    machine.wants(".python-version", "{version}\n")


def asdf(machine: Machine) -> None:
    machine.program(".asdf/shims/tool", SHIM % {"file": ".tool-versions", "versions": "versions"})
    machine.starts_with('. "$HOME/.asdf/asdf.sh"\n')
    machine.program(".asdf/asdf.sh", 'PATH="$HOME/.asdf/shims:$PATH"\n')
    machine.wants(".tool-versions", "tool {version}\n")


def nvm(machine: Machine) -> None:
    machine.starts_with('nvm() { export PATH="$HOME/versions/$2/bin:$PATH"; }\nnvm use 3.0\n')
    machine.wants(".nvmrc", "{version}\n")


def virtualenv(machine: Machine) -> None:
    machine.program(
        "versions/2.0/bin/activate",
        'export VIRTUAL_ENV="$HOME/versions/2.0" PATH="$HOME/versions/2.0/bin:$PATH"\n',
    )
    machine.starts_with('. "$HOME/versions/2.0/bin/activate"\n')


def direnv(machine: Machine) -> None:
    machine.has_program("direnv")
    machine.starts_with("PROMPT_COMMAND='eval \"$(direnv export bash)\"'\n" + usual("3.0"))
    machine.wants(".envrc", "PATH_add {home}/versions/{version}/bin\n")
    machine.types("cd old", "direnv allow", "cd ../new", "direnv allow")
    machine.has_hooks("direnv")


def mise(machine: Machine) -> None:
    machine.has_program("mise")
    machine.starts_with(
        "export MISE_SHELL=bash\nPROMPT_COMMAND='eval \"$(mise hook-env -s bash)\"'\n"
        + usual("3.0")
    )
    machine.wants("mise.toml", '[env]\n_.path = ["{home}/versions/{version}/bin"]\n')
    machine.types("cd old", "mise trust", "cd ../new", "mise trust")
    machine.has_hooks("mise")


def usual(version: str) -> str:
    return f'PATH="$PATH:$HOME/versions/{version}/bin"\n'


EVERYWHERE = (".", "old", "new")
# handaxe keeps what it inherited, so with these it starts where the prompt has set nothing.
OUTSIDE = (".", "plain")
MANAGERS = [
    (pyenv, "1 1 2 1", EVERYWHERE),
    (asdf, "1 1 2 1", EVERYWHERE),
    (nvm, "3 3 3 3", EVERYWHERE),
    (virtualenv, "2 2 2 2", EVERYWHERE),
    (direnv, "1 1 2 3", OUTSIDE),
    (mise, "1 1 2 3", OUTSIDE),
]


@pytest.mark.proves("SH-1")
@pytest.mark.parametrize(
    ("manager", "versions", "begin"),
    [(manager, versions, begin) for manager, versions, places in MANAGERS for begin in places],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_tool_runs_what_the_prompt_would_run(tmp_path, manager, versions, begin):
    machine = Machine(tmp_path)
    manager(machine)
    walk = [f'cd "{machine.project}/{place}"\ntool --version' for place in PLACES]
    at_the_prompt = machine.types(*walk)
    assert at_the_prompt == [f"tool {version}.0" for version in versions.split()]
    (tmp_path / "walk.py").write_text(WALK.replace('"."', repr(str(machine.project))))
    begun = machine.types(f"cd {begin}", f"{sys.executable} {tmp_path}/walk.py {' '.join(PLACES)}")
    assert begun == at_the_prompt
