"""Agents that can be measured beside handaxe: how each is started against a model server of ours, and
how it spells the same work.

A rival takes part when its program is on the PATH, or named by a variable such as
`HANDAXE_BENCH_CODEX=/somewhere/codex`. Each gets a home of its own, so nobody's settings count.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from model_server import Call

LINES = (
    "unknown tool",
    "shell true",
    "read 2,000 lines",
    "write 10 KB",
    "edit in 10 KB",
    "grep rare, small tree",
)
SEARCH_LINES = (
    "unknown tool",
    "glob",
    "rare files",
    "regex, 250 lines",
    "word, 250 lines",
    "context, 50 lines",
)


class Work(NamedTuple):
    """What is asked for in one pass; files and words differ from pass to pass."""

    long: str
    new: str
    content: str
    old: str
    replacement: str
    needle: str


class Wanted(NamedTuple):
    """What is searched for."""

    needle: str
    regex: str
    word: str


class Start(NamedTuple):
    """How a program is started."""

    arguments: list[str]
    environment: dict[str, str]


class Contender(NamedTuple):
    """One agent."""

    name: str
    program: list[str]
    start: Callable[[str, Path], Start]
    """From the server's address and an own home."""
    spell: Callable[[Work], list[Call]]
    """The calls for `LINES`, in that order."""
    spell_search: Callable[[Wanted], list[Call]]
    """The calls for `SEARCH_LINES`, in that order."""


def contenders() -> list[Contender]:
    """handaxe, and whoever is installed."""
    ours = [sys.executable, "-m", "handaxe"]
    found = [Contender("handaxe", ours, _handaxe, _handaxe_calls, _handaxe_search)]
    for name, *manner in (
        ("codex", _codex, _codex_calls, _codex_search),
        ("gemini", _gemini, _gemini_calls, _gemini_search),
        ("kimi", _kimi, _kimi_calls, _kimi_search),
        ("opencode", _opencode, _opencode_calls, _opencode_search),
    ):
        program = os.environ.get(f"HANDAXE_BENCH_{name.upper()}") or shutil.which(name)
        if program:
            found.append(Contender(name, [program], *manner))
    return found


def _handaxe(url: str, home: Path) -> Start:
    environment = {
        "HANDAXE_HOME": str(home / "handaxe"), "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url,
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }  # fmt: skip
    words = ["-p", "go", "--model", "claude-x", "--permission-mode", "acceptEdits"]
    return Start(words, environment)


def _handaxe_calls(work: Work) -> list[Call]:
    edit = {"file_path": work.new, "old_string": work.old, "new_string": work.replacement}
    return [
        Call("Nope", {}),
        Call("Bash", {"command": "true", "description": "Nothing"}),
        Call("Read", {"file_path": work.long}),
        Call("Write", {"file_path": work.new, "content": work.content}),
        Call("Edit", edit),
        Call("Grep", {"pattern": work.needle}),
    ]


def _handaxe_search(wanted: Wanted) -> list[Call]:
    content = {"output_mode": "content"}
    return [
        Call("Nope", {}),
        Call("Glob", {"pattern": "**/*.py"}),
        Call("Grep", {"pattern": wanted.needle}),
        Call("Grep", {"pattern": wanted.regex, **content}),
        Call("Grep", {"pattern": wanted.word, **content}),
        Call("Grep", {"pattern": wanted.word, "-C": 2, "head_limit": 50, **content}),
    ]


def _codex(url: str, home: Path) -> Start:
    provider = f'{{name="bench",base_url="{url}/v1",env_key="BENCH_KEY",wire_api="responses"}}'
    words = [
        "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
        "-m", "gpt-5.5", "-c", 'model_provider="bench"', "-c", f"model_providers.bench={provider}",
        "go",
    ]  # fmt: skip
    return Start(words, {"CODEX_HOME": str(home), "BENCH_KEY": "k"})


def _codex_calls(work: Work) -> list[Call]:
    added = "".join(f"+{line}\n" for line in work.content.splitlines())
    old = "".join(f"-{line}\n" for line in work.old.splitlines())
    new = "".join(f"+{line}\n" for line in work.replacement.splitlines())
    patch = "*** Begin Patch\n*** {} File: {}\n{}*** End Patch\n"
    return [
        Call("nope", {}),
        Call("exec_command", {"cmd": "true"}),
        # It reads and searches by commands, and shows the model their beginning and end.
        Call("exec_command", {"cmd": f"cat {work.long}"}),
        Call("apply_patch", patch.format("Add", work.new, added)),
        Call("apply_patch", patch.format("Update", work.new, f"@@\n{old}{new}")),
        Call("exec_command", {"cmd": f"rg -l {work.needle}"}),
    ]


def _codex_search(wanted: Wanted) -> list[Call]:
    # What a model would write: nothing here is sorted.
    commands = (
        "rg --files -g '*.py' | head -100",
        f"rg -l '{wanted.needle}'",
        f"rg -n '{wanted.regex}' | head -250",
        f"rg -n '{wanted.word}' | head -250",
        f"rg -n -C2 '{wanted.word}' | head -50",
    )
    return [Call("nope", {}), *(Call("exec_command", {"cmd": line}) for line in commands)]


def _gemini(url: str, home: Path) -> Start:
    _write(home / ".gemini" / "settings.json", {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True}, "privacy": {"usageStatisticsEnabled": False},
    })  # fmt: skip
    words = ["--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", "go"]
    return Start(words, {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": url})


def _gemini_calls(work: Work) -> list[Call]:
    edit = {"file_path": work.new, "old_string": work.old, "new_string": work.replacement}
    return [
        Call("nope", {}),
        Call("run_shell_command", {"command": "true"}),
        Call("read_file", {"file_path": work.long}),
        Call("write_file", {"file_path": work.new, "content": work.content}),
        Call("replace", {**edit, "instruction": "Change the end."}),
        Call("grep_search", {"pattern": work.needle}),
    ]


def _gemini_search(wanted: Wanted) -> list[Call]:
    return [
        Call("nope", {}),
        Call("glob", {"pattern": "**/*.py"}),
        Call("grep_search", {"pattern": wanted.needle, "names_only": True}),
        Call("grep_search", {"pattern": wanted.regex, "total_max_matches": 250}),
        Call("grep_search", {"pattern": wanted.word, "total_max_matches": 250}),
        Call("grep_search", {"pattern": wanted.word, "total_max_matches": 10, "context": 2}),
    ]


def _kimi(url: str, home: Path) -> Start:
    settings = home / "config.toml"
    settings.write_text(
        f'default_model = "x"\n[providers.bench]\ntype = "openai_legacy"\nbase_url = "{url}/v1"\n'
        'api_key = "k"\n[models.x]\nprovider = "bench"\nmodel = "x"\nmax_context_size = 200000\n'
    )
    return Start(["--config-file", str(settings), "--print", "--yolo", "-p", "go"], {})


def _kimi_calls(work: Work) -> list[Call]:
    edit = {"old": work.old, "new": work.replacement}
    return [
        Call("nope", {}),
        Call("Shell", {"command": "true"}),
        # It gives no more than a thousand lines at a time.
        Call("ReadFile", {"path": work.long, "n_lines": 1000}),
        Call("WriteFile", {"path": work.new, "content": work.content}),
        Call("StrReplaceFile", {"path": work.new, "edit": edit}),
        Call("Grep", {"pattern": work.needle, "output_mode": "files_with_matches"}),
    ]


def _kimi_search(wanted: Wanted) -> list[Call]:
    content = {"output_mode": "content", "head_limit": 250}
    return [
        Call("nope", {}),
        # It refuses a pattern that begins with `**`.
        Call("Glob", {"pattern": "pkg*/**/*.py"}),
        Call("Grep", {"pattern": wanted.needle, "output_mode": "files_with_matches"}),
        Call("Grep", {"pattern": wanted.regex, **content}),
        Call("Grep", {"pattern": wanted.word, **content}),
        Call("Grep", {"pattern": wanted.word, "-C": 2, **content, "head_limit": 50}),
    ]


def _opencode(url: str, home: Path) -> Start:
    model = {"name": "x", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "bench",
        "options": {"baseURL": f"{url}/v1", "apiKey": "k"}, "models": {"x": model},
    }  # fmt: skip
    _write(home / ".config" / "opencode" / "opencode.json", {
        "provider": {"bench": provider}, "model": "bench/x", "small_model": "bench/x",
        "autoupdate": False, "share": "disabled",
    })  # fmt: skip
    quiet = ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
    environment = {f"OPENCODE_DISABLE_{name}": "1" for name in quiet}
    return Start(["run", "-m", "bench/x", "go"], environment)


def _opencode_calls(work: Work) -> list[Call]:
    edit = {"filePath": work.new, "oldString": work.old, "newString": work.replacement}
    return [
        Call("nope", {}),
        Call("bash", {"command": "true", "description": "Nothing"}),
        Call("read", {"filePath": work.long}),
        Call("write", {"filePath": work.new, "content": work.content}),
        Call("edit", edit),
        Call("grep", {"pattern": work.needle}),
    ]


def _opencode_search(wanted: Wanted) -> list[Call]:
    # It has no other mode and no other number than a hundred matches.
    patterns = (wanted.needle, wanted.regex, wanted.word, wanted.word)
    greps = [Call("grep", {"pattern": pattern}) for pattern in patterns]
    return [Call("nope", {}), Call("glob", {"pattern": "**/*.py"}), *greps]


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))
