"""Runs random commands in real bash with recorders as programs, and compares with the verdicts.

By hand: `uv run python tests/shell/analysis/recorder_fuzz.py --commands 50000`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from grammar import CHANGING, LOOKING, PROTECTED, WRITERS, Maker
from reference import decision

from handaxe.shell.sandbox.bubblewrap import find_bubblewrap

BASH = "/bin/bash"
REAL = ["bash", "sh", "env", "timeout", "nice", "nohup", "xargs", "setsid", "stdbuf"]
RECORDED = [*LOOKING, *CHANGING, "sed", "find", "git", "id", "date", "rg"]
READERS = frozenset((*LOOKING, "find", "git", "rg", "sed"))
"""The grammar makes only forms of these that read."""
RULES: list[tuple[str, ...]] = [
    ("echo",),
    ("cat", "seq"),
    ("printf", "test", "read", "let", "declare"),
    ("grep", "wc"),
    ("cp", "mv"),
    ("ln", "tar", "install"),
]
"""Programs that rules with content allow; they and what only looks may run, nothing else."""
CODE = "a[$(evil)]"
"""What runs a program when bash takes it for a number or a name."""
SOURCE = r"""
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char exe[4096], line[8192];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n < 0) return 1;
    exe[n] = 0;
    char *slash = strrchr(exe, '/');
    if (!slash) return 1;
    const char *run = getenv("RECORDED_RUN");
    int counts = strcmp(slash + 1, "seq") == 0 || strcmp(slash + 1, "evil") == 0;
    int length = snprintf(line, sizeof line, "%s\x1f%s", run ? run : "", slash + 1);
    for (int i = 1; i < argc && length < 8000; i++)
        length += snprintf(line + length, sizeof line - length, "\x1f%.200s", argv[i]);
    length += snprintf(line + length, sizeof line - length, "\x1e");
    strcpy(slash, "/../log");
    int fd = open(exe, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0 || write(fd, line, length) < 0) return 1;
    close(fd);
    const char *said = getenv("RECORDED_OUTPUT");
    if (!said) said = "rm evil";
    printf("%s\n", counts ? "1" : said);
    return 0;
}
"""


class Recorder:
    """A throw-away directory with recorder programs."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.writers = root / "writers"
        self.log = root / "log"
        self.work = root / "work"
        self.dirty = True
        self.number = 0
        self.clean: dict[str, str] = {}
        self.bin.mkdir(parents=True)
        (root / "recorder.c").write_text(SOURCE)
        built = root / "recorder"
        subprocess.run(["cc", "-O1", "-o", built, root / "recorder.c"], check=True)
        for name in RECORDED:
            os.link(built, self.bin / name)
        for name in REAL:
            os.symlink(str(shutil.which(name)), self.bin / name)
        self.writers.mkdir()
        for name in WRITERS:
            os.symlink(str(shutil.which(name)), self.writers / name)

    def reset(self) -> None:
        self.log.write_text("")
        if not self.dirty:
            return
        shutil.rmtree(self.work, ignore_errors=True)
        for name in ("src", ".git/hooks", ".vscode"):
            (self.work / name).mkdir(parents=True)
        for name in ("a.txt", "b.txt", "q.txt", "src/c.txt", ".git/config", ".mcp.json", ".env"):
            (self.work / name).write_text(f"{name}\n")
        (self.work / "n.txt").write_text(f"{CODE}\n")
        self.clean = self.tree()
        self.dirty = False

    def tree(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.work)): path.read_text(errors="replace")
            if path.is_file()
            else ""
            for path in sorted(self.work.rglob("*"))
        }

    def run(
        self, command: str, *, output: str = "", real_writers: bool = False
    ) -> tuple[list[str], list[str]]:
        """The programs that ran, and the files that changed.

        `output` is what the recorders print. Real writers run only where bubblewrap keeps
        everything but the throw-away directory as it is.
        """
        self.reset()
        self.number += 1
        # What an earlier command left running must not be taken for this one's doing.
        run = str(self.number)
        env = {"PATH": str(self.bin), "HOME": str(self.work), "LANG": "C.UTF-8"}
        env["RECORDED_RUN"] = run
        if output:
            env["RECORDED_OUTPUT"] = output
        confined: list[str] = []
        if real_writers:
            env["PATH"] = f"{self.writers}:{self.bin}"
            root = str(self.work.parent)
            confined = [str(find_bubblewrap()), "--unshare-all", "--die-with-parent"]
            confined += ["--ro-bind", "/", "/", "--dev", "/dev", "--bind", root, root, "--"]
        process = subprocess.Popen(
            [*confined, BASH, "--norc", "--noprofile", "-c", command],
            cwd=self.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            pass  # The whole group is ended below either way.
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
        if "&" in command or "(" in command or "`" in command:
            time.sleep(0.005)
        lines = self.log.read_text(errors="replace").split("\x1e")
        fields = [line.split("\x1f") for line in lines if line]
        # Whoever was started with an empty environment cannot say whose it is, and counts.
        ran = [_name_call(*call) for whose, *call in fields if whose in {run, ""}]
        after = self.tree()
        names = {*after, *self.clean}
        changed = sorted(name for name in names if after.get(name) != self.clean.get(name))
        self.dirty = bool(changed)
        return ran, changed


def _name_call(program: str, *arguments: str) -> str:
    """The program's name, with the option that makes sed a writer."""
    in_place = any(given.startswith(("-i", "-ni", "--i")) for given in arguments)
    return "sed -i" if program == "sed" and in_place else program


def fuzz(commands: int, seed: int, *, verbose: bool = False) -> tuple[Counter[str], list[str]]:
    """Numbers, and the commands that broke a promise."""
    counts: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory(prefix="handaxe-fuzz-") as directory:
        recorder = Recorder(Path(directory))
        for number in range(commands):
            command = Maker(seed * 1_000_003 + number).command()
            counts["commands"] += 1
            _check(command, recorder, counts, broken)
            if verbose and number % 2000 == 1999:
                _say(f"{number + 1} {dict(counts)} {len(broken)} broken")
    return counts, broken


def _check(command: str, recorder: Recorder, counts: Counter[str], broken: list[str]) -> None:
    plain = decision(command).verdict
    denied = decision(command, allow=["Bash"], deny=["Bash(rm:*)"]).verdict
    counts[f"plain {plain}"] += 1
    counts[f"denying {denied}"] += 1
    if plain != "allow" and denied != "allow":
        return
    if "\0" in command:
        return
    ran, changed = recorder.run(command)
    counts["run"] += 1
    if plain == "allow":
        wrong = [name for name in ran if name not in READERS]
        if wrong:
            broken.append(f"ALLOWED ran {wrong}: {command!r}")
        if changed:
            broken.append(f"ALLOWED changed files: {command!r}")
    if denied == "allow" and "rm" in ran:
        broken.append(f"DENIED rm ran: {command!r}")


def fuzz_rules(
    commands: int, seed: int, *, verbose: bool = False
) -> tuple[Counter[str], list[str]]:
    """The same for rules with content, and for writers in acceptEdits."""
    counts: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory(prefix="handaxe-fuzz-", dir="/var/tmp") as directory:
        recorder = Recorder(Path(directory))
        for number in range(commands):
            command = Maker(seed * 1_000_003 + number).command_for_rules()
            if "\0" in command:
                continue
            counts["commands"] += 1
            _check_rules(command, recorder, counts, broken)
            _check_edits(command, recorder, counts, broken)
            if verbose and number % 2000 == 1999:
                _say(f"{number + 1} {dict(counts)} {len(broken)} broken")
    return counts, broken


def _check_rules(command: str, recorder: Recorder, counts: Counter[str], broken: list[str]) -> None:
    for programs in RULES:
        rules = [f"Bash({program}:*)" for program in programs]
        if decision(command, allow=rules).verdict != "allow":
            continue
        counts[f"rule {programs[0]}"] += 1
        writes = bool(set(programs) & set(WRITERS))
        if writes and find_bubblewrap() is None:
            continue
        for output in ("", CODE):
            ran, changed = recorder.run(command, output=output, real_writers=writes)
            wrong = sorted({*ran} - READERS - {*programs})
            lost = [name for name in changed if not writes or is_protected(name)]
            if wrong or lost:
                broken.append(f"RULES {rules} ran {wrong} changed {lost}: {command!r}")
                break


def _check_edits(command: str, recorder: Recorder, counts: Counter[str], broken: list[str]) -> None:
    if find_bubblewrap() is None or decision(command, "acceptEdits").verdict != "allow":
        return
    counts["acceptEdits"] += 1
    ran, changed = recorder.run(command, real_writers=True)
    wrong = [name for name in ran if name in {"evil", "curl", "npm"}]
    lost = [name for name in changed if is_protected(name)]
    if wrong or lost:
        broken.append(f"ACCEPT EDITS ran {wrong} changed {lost}: {command!r}")


def is_protected(name: str) -> bool:
    """Whether a name of the tree at its top is one that no edit may touch."""
    return name.partition("/")[0] in {place.partition("/")[0] for place in PROTECTED}


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commands", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rules", action="store_true", help="fuzz rules with content")
    options = parser.parse_args()
    start = time.perf_counter()
    search = fuzz_rules if options.rules else fuzz
    counts, broken = search(options.commands, options.seed, verbose=True)
    for line in broken[:50]:
        _say(line)
    _say(f"{dict(counts)} {len(broken)} broken, {time.perf_counter() - start:.0f} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
