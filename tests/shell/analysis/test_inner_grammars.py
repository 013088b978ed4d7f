"""Paths and names inside jq filters, revisions, pathspecs and line ranges, held against the programs."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess

import pytest
from reference import decision

from handaxe.shell.analysis.programs.embedded_languages import is_plain_jq
from handaxe.shell.analysis.programs.operands import (
    find_revision_paths,
    split_line_range,
)

CANARY = "FROM-THE-ENVIRONMENT"
SECRET = "FROM-THE-SECRET-FILE"


class _Filters:
    """Makes jq filters; with `leaks` some of them read the environment."""

    def __init__(self, seed: int, *, leaks: bool) -> None:
        self.random = random.Random(seed)
        self.leaves = [".", ".a", ".env", ".a.env", '"env"', ".env?", "1", '."env"', '.["env"]']
        if leaks:
            self.leaves += ["env", "$ENV", "$ ENV", "$ENV.CANARY", "env.CANARY", "$#x\nENV"]

    def make(self, depth: int = 3) -> str:
        if depth == 0 or self.random.random() < 0.25:
            return self.random.choice(self.leaves)
        one, two, three = (self.make(depth - 1) for _ in range(3))
        return self.random.choice(
            [
                f"({one})",
                f"[{one}]",
                f"{one} | {two}",
                f"({one}, {two})",
                f"{{env: ({one})}}",
                f"{{env, a: ({one})}}",
                f"{{a: ({one}), env}}",
                f'{{"a": ({one}), "env": ({two})}}',
                f"{{a: {one}, env: {two}}}",
                f"{{({one} | tostring): ({two})}}",
                f'"x env \\({one}) env"',
                f'"\\("\\({one})")\\({two})"',
                f"if {one} then {two}, {three} else {one} end",
                f"{{a: if {one} then {two}, {three} else {one} end}}",
                f"# env\n{one}",
                f"{one} # env\n",
                f"({one} // {two})",
                f". as {{env: $x}} | {one}",
                f"try ({one}) catch ({two})",
                f"reduce ({one}) as $x (0; {two})",
            ]
        )


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_no_jq_filter_that_counts_as_plain_prints_the_environment():
    filters = _Filters(7, leaks=True)
    printed = plain = 0
    for _ in range(70):
        text = filters.make()
        if "env" not in text.lower():
            continue
        ran = subprocess.run(
            ["jq", "-n", text],
            env={"CANARY": CANARY},
            capture_output=True,
            check=False,
            timeout=20,
        )
        leaks = CANARY.encode() in ran.stdout + ran.stderr
        printed += leaks
        plain += is_plain_jq(text)
        assert not (leaks and is_plain_jq(text)), text
    assert printed > 8
    assert plain > 8


def test_jq_filters_without_the_environment_are_plain():
    filters = _Filters(8, leaks=False)
    made = [filters.make() for _ in range(500)]
    assert [text for text in made if not is_plain_jq(text)] == []


def _git(place, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    ran = subprocess.run(
        ["git", *who, *words], cwd=place, capture_output=True, check=False, timeout=20
    )
    return (ran.stdout + ran.stderr).decode("utf-8", "replace")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    place = tmp_path_factory.mktemp("repository")
    (place / "sub").mkdir()
    _git(place, "init", "-q")
    for number, message in enumerate(["first", "a: colon", "{b:} braces"]):
        for name in (".env", "sub/.env.local", "a.txt"):
            (place / name).write_text(
                f"def f():\n    {SECRET if 'env' in name else 'x'} {number}\n"
            )
        _git(place, "add", "-f", ".")
        _git(place, "commit", "-qm", message)
    for name in (".env", "sub/.env.local"):
        (place / name).write_text(f"def f():\n    {SECRET} changed\n")
    return place


REVISIONS = [
    "HEAD", "@", "main", "HEAD~1", "HEAD^{commit}", "HEAD^{/a:}", "HEAD^{/{b:}}", "HEAD^{tree}", "HEAD@{0}", "", ":0", ":/a:", "HEAD^0", "^HEAD", "HEAD^{/b:}",
]  # fmt: skip
PATHS = [".env", "./.env", "sub/.env.local", "./sub/../.env", "a.txt", "/.env", ":.env"]


def test_every_revision_with_which_git_shows_a_file_names_its_path(repository):
    shown = 0
    for revision, path in itertools.product(REVISIONS, PATHS):
        text = f"{revision}:{path}"
        if SECRET in _git(repository, "show", text):
            shown += 1
            assert text == ":/.env" or any(".env" in found for found in find_revision_paths(text))
            assert decision(f"git show '{text}'").verdict == "ask", text
    assert shown > 15


PATHSPECS = [
    ".env", "*.env", ".env*", "*env*", ":(glob)**/.env", ":(top).env", ":/.env", ":/*.env", ":(icase).ENV", "sub/.env*", "sub/*.local", ":(glob)sub/.e*", "[.]env", ".en?",
    ":(glob,top).env", ":(literal).env", "sub/.env.local", ":(top,icase)SUB/.ENV.LOCAL", "?env", ":!a.txt", ":^a.txt", "*.txt", "a.txt", ".", "sub",
]  # fmt: skip
WHOLE_TREE = {":!a.txt", ":^a.txt", ".", "sub", "sub/*.local"}
"""These name no such file: when they run the tracked files are looked at."""


def test_every_pathspec_that_spells_a_secret_file_asks(repository):
    shown = 0
    for spec in PATHSPECS:
        if SECRET in _git(repository, "diff", "--", spec) and spec not in WHOLE_TREE:
            shown += 1
            assert decision(f"git diff -- '{spec}'").verdict == "ask", spec
    assert shown > 12


RANGES = [
    "1,2",
    "1,+1",
    "/def/,+1",
    "/d:*e/,+1",
    "^/def/,2",
    ":f",
    ":d\\ef",
    "/a\\/:b/,1",
    "1",
    "2,$",
]


def test_every_line_range_with_which_git_shows_a_file_names_its_path(repository):
    shown = 0
    for text in [f"{lines}:{path}" for lines in RANGES for path in (".env", "sub/.env.local")]:
        if SECRET in _git(repository, "log", f"-L{text}"):
            shown += 1
            assert (split_line_range(text) or "").endswith((".env", ".env.local")), text
            assert decision(f"git log -L '{text}'").verdict == "ask", text
    assert shown > 8
