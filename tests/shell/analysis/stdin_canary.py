"""What a proposed rule covers, run for real with a program on its standard input.

No command that a proposed rule covers may make a file out of what is piped into it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from reference import decision

CANARY = "CANARY"
PAYLOADS = {
    "shell": "touch CANARY\n",
    "python": "open('CANARY', 'w')\n",
    "perl": "open(F, '>CANARY');\n",
    "ruby": "File.write('CANARY', '')\n",
    "javascript": "require('fs').writeFileSync('CANARY', '')\n",
    "tcl": "open CANARY w\n",
    "lua": "io.open('CANARY', 'w')\n",
    "make": "all x:; touch CANARY\n",
    "editor": "a\nx\n.\nw CANARY\n:!touch CANARY\n!touch CANARY\n",
    "sql": ".shell touch CANARY\n\\! touch CANARY\n",
    "m4": "syscmd(touch CANARY)\n",
    "patch": "--- /dev/null\n+++ b/CANARY\n@@ -0,0 +1 @@\n+x\n",
    "names": "CANARY\n",
    "awk": 'BEGIN { system("touch CANARY") }\n',
    "debugger": "shell touch CANARY\nshell\n",
}
TAILS = (
    "",
    "-",
    "-s",
    "-i",
    "-c",
    "-e",
    "-n",
    "-x",
    "-f -",
    "-T -",
    "--stdin",
    "--files-from=-",
    "x",
    "x -",
    "x y",
    "/dev/stdin",
    "-f /dev/stdin",
    "-c /dev/stdin",
    "@/dev/stdin",
    "run",
    "shell",
    "test -",
    "build",
    "exec sh",
    "sh",
    "bash",
    "-exec sh ;",
    "--help",
    "5 sh",
)
"""What may stand behind a program: ways to standard input, and words that name another program."""


def covered_texts(*commands: str, tails: Iterable[str] = TAILS) -> Iterator[str]:
    """Every text of ours that a rule covers which is proposed for one of these commands."""
    rules: set[str] = set()
    for command in commands:
        for proposal in decision(command).proposals:
            if proposal.rule in rules:
                continue
            rules.add(proposal.rule)
            exact = proposal.rule.removeprefix("Bash(").removesuffix(")")
            head = exact.removesuffix(" *")
            more = () if head == exact else (f"{head} {tail}".strip() for tail in tails)
            for text in dict.fromkeys((command, *proposal.would_match, *more)):
                if decision(text, allow=[proposal.rule]).verdict == "allow":
                    yield text


def makes_canary(text: str, payload: str, *, path: str, timeout_s: float = 2.0) -> bool:
    """Whether a file appears if a command gets this on its standard input."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {"PATH": path, "HOME": directory, "LC_ALL": "C", "TERM": "dumb"}
        ran = subprocess.Popen(
            ["bash", "--norc", "-c", text],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            ran.communicate(payload.encode(), timeout=timeout_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ran.pid, signal.SIGKILL)
        ran.wait()
        return (Path(directory) / CANARY).exists()
