"""Draws command lines from public documentation that is read from a directory.

The directory holds one folder for each source, called `OWNER+NAME` after its repository. The
documentation itself is not part of this project: only digests of the lines are kept, with marks.
"""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TLDR = "tldr-pages+tldr"
SHEETS = "cheat+cheatsheets"
SEED = 20261
OTHER_PAGES = 45
OTHER_LINES = 60
DOCUMENTS = {
    "k88hudson+git-flight-rules": ["README.md"],
    "BurntSushi+ripgrep": ["GUIDE.md", "FAQ.md", "README.md"],
    "jlevy+the-art-of-command-line": ["README.md"],
    "python+devguide": ["**/*.rst", "**/*.md"],
    "onceupon+Bash-Oneliner": ["README.md"],
    "sharkdp+fd": ["README.md", "CONTRIBUTING.md"],
}
_PROGRAMS = """
ls cat head tail wc grep egrep fgrep rg find fd stat file du df diff cmp comm sort uniq cut tr sed
awk jq tree nl tac rev paste join fold fmt column expand unexpand od xxd hexdump strings cksum sum
md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum base32 base64 basename dirname readlink
realpath pwd echo printf seq test true false date cal uname whoami id groups hostname uptime free
nproc arch tty which type whereis whatis ps pgrep pidof lscpu lsblk env printenv expr factor numfmt
tsort shuf zcat zgrep gzip gunzip zless xargs tee tar unzip zipinfo less more bc man look pr ptx
split csplit cp mv rm mkdir touch ln chmod truncate install dd od getconf locale getopt git
"""
_GIT_PAGES = """
git git-annotate git-archive git-bisect git-blame git-branch git-cat-file git-check-attr
git-check-ignore git-check-mailmap git-check-ref-format git-cherry git-config git-count-objects
git-describe git-diff git-diff-files git-diff-index git-diff-tree git-difftool git-for-each-ref
git-fsck git-grep git-help git-log git-ls-files git-ls-remote git-ls-tree git-merge-base git-name-rev
git-notes git-range-diff git-reflog git-remote git-rev-list git-rev-parse git-shortlog git-show
git-show-branch git-show-ref git-stash git-status git-submodule git-tag git-var git-verify-commit
git-version git-whatchanged git-worktree git-add git-commit git-checkout git-reset git-clean git-rm
pip pip-list pip-show pip-freeze pip-check npm npm-ls node python
"""

PROGRAMS = frozenset(_PROGRAMS.split())
PAGES = frozenset((*PROGRAMS, *_GIT_PAGES.split()))

_PLACES = [
    (r"path/to/(dir|folder|repo|source|target)\w*(\s+path/to/\S+)+( \.\.\.)?", "src docs"),
    (r"path/to/[\w.]+(\s+path/to/\S+)+( \.\.\.)?", "a.txt b.txt"),
    (r"path/to/(dir|folder|repo|root|project)\S*", "src"),
    (r"path/to/\w*file\w*", "a.txt"),
    (r"path/to/\w+?\d*\.(\w[\w.]*)", r"a.\1"),
    (r"path/to/\S*", "a.txt"),
    (r"(file|filename|input|FILE)", "a.txt"),
    (r"(dir|directory|folder)", "src"),
    (r"(count|integer|number|n|N)", "3"),
    (r"(pid|PID)", "4242"),
    (r"command\d?", "git status"),
    (r"(commit|commit_hash|commit-id|hash)\d?", "HEAD"),
    (r"(branch|branch_name|branch-name|my-branch)\d?", "main"),
]


class Drawn(NamedTuple):
    """One command line and where it comes from."""

    command: str
    source: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.command.encode()).hexdigest()[:16]


def draw(sources: Path) -> list[Drawn]:
    """The lines that the seed draws, each once, as bash accepts them."""
    found: dict[str, Drawn] = {}
    for drawn in (*_draw_pages(sources / TLDR / "pages"), *_draw_documents(sources)):
        found.setdefault(drawn.command, drawn)
    return [drawn for drawn in found.values() if _is_plain(drawn.command)]


def _draw_pages(pages: Path) -> Iterator[Drawn]:
    listed = sorted([*pages.glob("common/*.md"), *pages.glob("linux/*.md")])
    others = [page for page in listed if page.stem not in PAGES]
    drawn = random.Random(SEED).sample(others, OTHER_PAGES)
    for page in [*(page for page in listed if page.stem in PAGES), *sorted(drawn)]:
        lines = re.findall(r"^`(.+)`$", page.read_text("utf-8"), re.MULTILINE)
        for number, line in enumerate(lines):
            name = f"{TLDR.replace('+', '/')} {page.parent.name}/{page.name}"
            yield Drawn(_fill(line, long=bool(number % 2)), name)


def _fill(line: str, *, long: bool) -> str:
    """The line with plain names for its placeholders."""

    def replace(found: re.Match[str]) -> str:
        return _name_for(found[1], long=long)

    line = line.replace("\\{\\{", "\0").replace("\\}\\}", "\1")
    line = re.sub(r"\{\{(.*?)\}\}(?!\})", replace, line)
    return line.replace("\0", "{{").replace("\1", "}}").strip()


def _name_for(text: str, *, long: bool) -> str:
    text = text.strip()
    if text.startswith("[") and text.endswith("]") and "|" in text:
        forms = text[1:-1].split("|")
        return forms[-1 if long else 0]
    if "|" in text and " | " not in text:
        text = text.split("|")[0]
    text = re.sub(r"\s*\.\.\.$", "", text)
    for shape, name in _PLACES:
        if re.fullmatch(shape, text):
            return re.sub(shape, name, text)
    return re.sub(r"\bpath/to/(\w+)", r"src/\1", text)


def _draw_documents(sources: Path) -> Iterator[Drawn]:
    everyday: list[Drawn] = []
    others: list[Drawn] = []
    for drawn in _read_documents(sources):
        first = drawn.command.split()[0] if drawn.command.split() else ""
        (everyday if first in PROGRAMS else others).append(drawn)
    yield from everyday
    yield from random.Random(SEED).sample(others, min(OTHER_LINES, len(others)))


def _read_documents(sources: Path) -> Iterator[Drawn]:
    for folder, patterns in DOCUMENTS.items():
        files = {file for pattern in patterns for file in (sources / folder).glob(pattern)}
        for file in sorted(files):
            name = f"{folder.replace('+', '/')} {file.relative_to(sources / folder)}"
            for line in _code_lines(file.read_text("utf-8", errors="replace")):
                yield Drawn(_fill_angles(line), name)
    for file in sorted((sources / SHEETS).iterdir()):
        if file.name in PAGES and file.is_file():
            for line in _sheet_lines(file.read_text("utf-8", errors="replace")):
                yield Drawn(_fill_angles(line), f"{SHEETS.replace('+', '/')} {file.name}")


def _fill_angles(line: str) -> str:
    return re.sub(r"<([\w ./-]+)>", lambda found: _name_for(found[1], long=False), line).strip()


def _code_lines(text: str) -> Iterator[str]:
    fences = r"^[ ]*```+[ ]*(?:sh|bash|shell|console|text)?[ ]*\n(.*?)^[ ]*```"
    blocks = [found[1] for found in re.finditer(fences, text, re.MULTILINE | re.DOTALL)]
    rst = r"^([ ]*)(?:\.\. code-block:: (?:bash|shell|console)|.*::)\s*\n((?:\1[ ]+\S.*\n|\s*\n)+)"
    blocks += [found[2] for found in re.finditer(rst, text, re.MULTILINE)]
    for block in blocks:
        lines = [line.strip() for line in block.splitlines()]
        prompted = [line[2:] for line in lines if line.startswith(("$ ", "% "))]
        for line in prompted or lines:
            yield re.split(r"\s+#\s", line)[0].strip()


def _sheet_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "---", "tags", "syntax")):
            yield re.split(r"\s+#\s", line.strip())[0]


def _is_plain(command: str) -> bool:
    """Whether it is one whole line of ASCII that bash can read."""
    if not command.isascii() or not command.strip() or command.endswith("\\"):
        return False
    if command.startswith("#") or "{{" in command or "..." in command or len(command) > 300:
        return False
    # A line of output or a sentence does not begin with the name of a program.
    if not re.match(r"[a-z_][\w.+-]*(\s|$)", command):
        return False
    read = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
    return read.returncode == 0
