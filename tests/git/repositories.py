"""Repositories in every shape that git knows, with a canary wherever configuration runs one."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

SLOTS = {
    "core.fsmonitor": "[core]\n\tfsmonitor = {0}\n",
    "core.sshCommand": "[core]\n\tsshCommand = {0}\n",
    "core.pager": "[core]\n\tpager = {0}\n[pager]\n\tstatus = {0}\n\tlog = {0}\n",
    "core.editor": "[core]\n\teditor = {0}\n",
    "core.askPass": "[core]\n\taskPass = {0}\n",
    "core.hooksPath": "[core]\n\thooksPath = {1}\n",
    "diff.external": "[diff]\n\texternal = {0}\n",
    "diff.command": '[diff "x"]\n\tcommand = {0}\n',
    "diff.textconv": '[diff "x"]\n\ttextconv = {0}\n',
    "filter.clean": '[filter "x"]\n\tclean = {0}\n\trequired\n',
    "filter.smudge": '[filter "x"]\n\tsmudge = {0}\n',
    "filter.process": '[filter "x"]\n\tprocess = {0}\n',
    "merge.driver": '[merge "x"]\n\tdriver = {0}\n',
    "credential.helper": "[credential]\n\thelper = !{0}\n",
    "gpg.program": "[gpg]\n\tprogram = {0}\n[log]\n\tshowSignature = true\n",
    "alias": "[alias]\n\tstatus = !{0}\n\twhatchanged = !{0}\n",
    "include": "[include]\n\tpath = {2}\n",
    "includeIf": '[includeIf "gitdir:**"]\n\tpath = {2}\n',
    "hook": '[hook "x"]\n\tevent = post-checkout\n\tcommand = {0}\n',
    "lfs": '[lfs "customtransfer.x"]\n\tpath = {0}\n',
}
"""By the slot, a configuration that names a program there."""


def git(place: Path, *words: str) -> str:
    given = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *given, *words], cwd=place, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@cache
def _make_template() -> TemporaryDirectory[str]:
    kept = TemporaryDirectory()
    place = Path(kept.name)
    git(place, "init", "-q", "-b", "main")
    (place / "a").write_text("a\n")
    (place / ".gitattributes").write_text("a filter=x diff=x merge=x\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    (place / "a").write_text("b\n")
    os.utime(place / "a", (1, 1))
    for sample in (place / ".git/hooks").iterdir():
        sample.unlink()
    return kept


def make_repository(place: Path) -> Path:
    """A repository whose one file goes through every driver, and has to be looked at again."""
    shutil.copytree(_make_template().name, place, dirs_exist_ok=True)
    return place


class Canary:
    """A program that leaves a trace when it runs."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self._trace = place / "ran"
        self.program = place / "canary"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self._trace}\ncat\n')
        self.program.chmod(0o755)
        hooks = place / "hooks"
        hooks.mkdir()
        for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
            (hooks / name).symlink_to(self.program)
        included = place / "included"
        included.write_text(SLOTS["core.fsmonitor"].format(self.program))
        with included.open("a") as file:
            file.write(SLOTS["filter.smudge"].format(self.program))
        self._named = (self.program, hooks, included)

    @property
    def has_run(self) -> bool:
        return self._trace.exists()

    def take_trace(self) -> bool:
        """Whether it has run since the last time."""
        was_there = self._trace.exists()
        self._trace.unlink(missing_ok=True)
        return was_there

    def config(self, slot: str) -> str:
        return SLOTS[slot].format(*self._named)

    def set(self, config: Path, slot: str = "core.fsmonitor") -> None:
        """Name the canary in a configuration that is there."""
        with config.open("a") as file:
            file.write(self.config(slot))
