"""A small reference of the path rules, for tests of shell verdicts only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, cast

from handaxe.session.permission_state import Mode
from handaxe.shell.analysis import (
    BashRule,
    PathVerdict,
    Repository,
    RestrictedPath,
    ShellDecision,
    ShellRules,
    analyze,
    decide,
    make_literal_component,
)

PROTECTED = {".git", ".vscode", ".idea", ".claude", ".husky", ".cargo"}
PROTECTED_FILES = {".gitconfig", ".bashrc", ".profile", ".zshrc", ".mcp.json", ".npmrc"}


def inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def path_rules(
    mode: str = "default",
    dirs: Iterable[str] = ("/repo",),
    deny_read: Iterable[str] = (),
    deny_edit: Iterable[str] = (),
) -> Callable[[str, str], PathVerdict]:
    """Read inside is free, outside asks; writes ask unless acceptEdits; protected and .env ask."""

    def judge(path: str, access: str) -> PathVerdict:
        denied = deny_read if access == "read" else [*deny_edit, *deny_read]
        for prefix in denied:
            if inside(path, prefix):
                return PathVerdict("deny", "a deny rule covers it", f"Read({prefix})", "test")
        if not any(inside(path, directory) for directory in dirs):
            return PathVerdict("ask", "outside the working directories")
        parts = path.split("/")
        if access == "write":
            if PROTECTED & set(parts) or parts[-1] in PROTECTED_FILES:
                return PathVerdict("ask", "a protected path", is_binding=True)
            if mode != "acceptEdits":
                return PathVerdict("ask", "a write in this mode")
        if parts[-1] == ".env" or parts[-1].startswith(".env."):
            return PathVerdict("ask", "may hold secrets")
        return PathVerdict("allow", "inside the project")

    return judge


def fence(path: str, tool: Literal["Read", "Edit"]) -> RestrictedPath:
    """The literal place that a deny rule closes."""
    names = tuple(make_literal_component(part) for part in path.split("/") if part)
    return RestrictedPath(names, tool, "deny", f"{tool}({path})", "test")


def rules(
    allow: Iterable[str] = (), ask: Iterable[str] = (), deny: Iterable[str] = ()
) -> ShellRules:
    def made(texts: Iterable[str]) -> tuple[BashRule, ...]:
        out: list[BashRule] = []
        for text in texts:
            inner = text[5:-1] if text.startswith("Bash(") else ""
            out.append(BashRule(inner, "test"))
        return tuple(out)

    return ShellRules(made(allow), made(ask), made(deny))


def verdict(command: str, mode: str = "default", **kwargs) -> str:
    return decision(command, mode, **kwargs).verdict


def decision(
    command: str,
    mode: str = "default",
    *,
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
    deny_read: Iterable[str] = (),
    deny_edit: Iterable[str] = (),
    dirs: tuple[str, ...] = ("/repo",),
    cwd: str = "/repo",
    git_clean: bool = True,
    cross_check=None,
) -> ShellDecision:
    return decide(
        analyze(command, cwd, "/home/dev"),
        rules=rules(allow, ask, deny),
        mode=cast("Mode", mode),
        working_dirs=dirs,
        path_verdict=path_rules(mode, dirs, deny_read, deny_edit),
        repository=Repository(is_clean=git_clean),
        written_verdict=path_rules("acceptEdits", dirs, deny_read, deny_edit),
        fences=(
            *(fence(path, "Read") for path in deny_read),
            *(fence(path, "Edit") for path in deny_edit),
        ),
        cross_check=cross_check,
    )
