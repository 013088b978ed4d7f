"""A throw-away tree, what changes in it, and what a trace of system calls says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

from handaxe.shell.analysis.program_tables import load_programs, split_names

WRITING = sorted(
    split_names(
        "creat unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir link linkat symlink "
        "symlinkat truncate chmod fchmodat chown lchown fchownat mknod mknodat utimensat utime "
        "setxattr lsetxattr removexattr sethostname settimeofday clock_settime mount kill tkill"
    )
)
CALLS = [
    "execve",
    "execveat",
    "connect",
    "sendto",
    "sendmsg",
    "open",
    "openat",
    "openat2",
    *WRITING,
]
INTERPRETERS = {
    **dict.fromkeys(("npm", "eslint", "prettier", "tsc"), frozenset({"node"})),
    **dict.fromkeys(("pip", "pip3"), frozenset({"uname"})),
    "uvx": frozenset({"uv"}),
    "pipenv": frozenset({"file"}),
}
"""What a program is started by, or asks the system with."""
_EXEC = re.compile(r'execve(?:at)?\("([^"]*)".*= 0$')
_OPEN = re.compile(r'(?:open|openat|openat2|creat)\((?:[^,"]*, )?"((?:[^"\\]|\\.)*)"(.*)$')
_FREE = re.compile(
    r"/dev/(null|tty|pts/\d+|stdout|stderr|full)$|/proc/|pipe:|.*\.git/(worktrees/[^/]+/)?index(\.lock)?$"
)
_FAMILY = re.compile(r"sa_family=AF_(INET6?|UNIX)")


class Recorder:
    """Directories a program may see, and their state before it ran."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.places = [self.work, root / "home", root / "outside", root / "tmp"]
        for place in self.places:
            place.mkdir(parents=True)
        (root / "outside" / "canary.txt").write_text("outside\n")
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        if "LD_LIBRARY_PATH" in os.environ:
            self.environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        self._fill()
        self.before = self._look()

    def strace(self, trace: Path) -> list[str]:
        calls = ",".join(f"?{call}" for call in CALLS)
        return ["strace", "-f", "--seccomp-bpf", "-qq", "-s", "400", "-e", f"trace={calls}",
                "-e", "signal=none", "-o", str(trace)]  # fmt: skip

    def _fill(self) -> None:
        work = self.work
        for name in ("d1", "d2", "src"):
            (work / name).mkdir()
        texts = {
            "a.txt": "one\ntwo\nthree\n",
            "b.txt": "one\nthree\ntwo x\n",
            "src/c.py": "x = 1\n",
        }
        texts |= {
            "d1/same.txt": "1\n",
            "d2/same.txt": "2\n",
            "d1/only.txt": "x\n",
            "n.txt": "1 2\n3 4\n",
        }
        texts |= {"data.json": '{"a": {"env": 1}, "b": [1, 2]}\n', "t.csv": "a,b\n1,2\n"}
        for name, text in texts.items():
            (work / name).write_text(text)
        (work / "link").symlink_to("a.txt")
        shutil.copy(shutil.which("true") or "/bin/true", work / "program")
        with tarfile.open(work / "t.tar", "w") as archive:
            archive.add(work / "a.txt", "a.txt")
        with tarfile.open(work / "t.tar.gz", "w:gz") as archive:
            archive.add(work / "a.txt", "a.txt")
        with zipfile.ZipFile(work / "t.zip", "w") as archive:
            archive.write(work / "a.txt", "a.txt")
        for tool, end in (
            ("gzip", "gz"),
            ("bzip2", "bz2"),
            ("xz", "xz"),
            ("zstd", "zst"),
            ("lz4", "lz4"),
        ):
            if shutil.which(tool):
                ran = subprocess.run(
                    [tool, "-c", str(work / "a.txt")], capture_output=True, check=False
                )
                (work / f"f.{end}").write_bytes(ran.stdout)
        self._make_repository()

    def _make_repository(self) -> None:
        def git(*words: str) -> None:
            who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
            subprocess.run(["git", *who, *words], cwd=self.work, env=self.environment,
                           check=True, capture_output=True)  # fmt: skip

        git("init", "-q")
        git("add", ".")
        git("commit", "-qm", "first")
        (self.work / "a.txt").write_text("one\ntwo\nthree\nfour\n")
        git("commit", "-qam", "second: fix")
        git("tag", "v1")
        git("branch", "other", "HEAD~1")
        (self.work / "b.txt").write_text("changed\n")
        git("stash")
        (self.work / "new.txt").write_text("new\n")
        git("remote", "add", "origin", "https://example.invalid/x.git")
        git("config", "user.name", "a")
        git("config", "user.email", "a@b")
        git("status")

    def _look(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for place in self.places:
            for directory, folders, files in os.walk(place):
                for name in (*folders, *files):
                    path = os.path.join(directory, name)
                    if path.endswith("/.git/index"):
                        continue
                    info = os.lstat(path)
                    kept = f"{info.st_mode} {info.st_uid} {info.st_size} {info.st_ino}"
                    if os.path.isfile(path) and not os.path.islink(path):
                        kept += f" {info.st_mtime_ns}"
                    found[path] = kept
        return found

    def find_changes(self) -> list[str]:
        """What is new, gone or different since the last look."""
        after = self._look()
        if after == self.before:
            return []
        changed = sorted(
            path for path in {*after, *self.before} if after.get(path) != self.before.get(path)
        )
        self.before = after
        return [os.path.relpath(path, self.root) for path in changed][:6]


def read_trace(trace: Path, program: str, texts: list[str]) -> list[str]:
    """What the calls did beyond reading: programs run, files written, connections, words opened."""
    events: list[str] = []
    started: set[str] = set()
    executed = 0
    for line in trace.read_text("utf-8", "replace").splitlines():
        pid, _, call = line.partition(" ")
        call = " ".join(call.split())
        started.add(pid)
        name = call.partition("(")[0]
        if name.startswith("execve"):
            found = _EXEC.search(call)
            if found:
                executed += 1
                ran = os.path.basename(found.group(1))
                allowed = {program, *INTERPRETERS.get(program, ()), *_uses(program)}
                if executed > 1 and ran not in allowed:
                    events.append(f"ran {found.group(1)}")
        elif name in ("open", "openat", "openat2", "creat"):
            events.extend(_judge_open(call, texts, program))
        elif name in ("connect", "sendto", "sendmsg"):
            events.extend(_judge_connection(call))
        elif name in ("kill", "tkill"):
            # Signal 0 only asks; a program may end what it started itself.
            target, _, sent = call.partition("(")[2].partition(", ")
            if not sent.startswith("0)") and target not in started:
                events.append(f"called {call[:160]}")
        elif name in WRITING and call.endswith("= 0") and not _is_free_change(call):
            events.append(f"called {call[:160]}")
    return list(dict.fromkeys(events))[:4]


def _uses(program: str) -> frozenset[str]:
    table = load_programs().get(program)
    return table.uses if table else frozenset()


def _judge_open(call: str, texts: list[str], program: str) -> list[str]:
    found = _OPEN.match(call)
    if found is None:
        return []
    path, rest = found.groups()
    # Relative to the working directory: below another descriptor it is another file.
    if path in texts and "AT_FDCWD" in call:
        return [f"opened {path!r}, which the table takes for text"]
    writes = re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND", rest)
    failed = "= -1" in rest
    if program in ("java", "javac") and path.isdigit():
        return []  # Java's own counters below /tmp, gone when it ends.
    if writes and not failed and not _FREE.match(path):
        return [f"opened {path} for writing"]
    return []


def _judge_connection(call: str) -> list[str]:
    found = _FAMILY.search(call)
    if (
        found is None
        or "nscd/socket" in call
        or call.rstrip().endswith("(No such file or directory)")
    ):
        return []
    return [f"called {call[:160]}"]


def _is_free_change(call: str) -> bool:
    """Whether git's index was refreshed, which every status does, or Java's counters are gone."""
    return ".git/index" in call or "/hsperfdata_" in call
