"""The sandbox of a session: settings, rules and protected names joined into one policy."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from handaxe.app.services.service import SessionContext
from handaxe.config.project import Configuration
from handaxe.config.source import SettingEntry
from handaxe.contract.faults import SetupError
from handaxe.disk.safe_open import resolve_links
from handaxe.permission.denied_paths import make_read_deny_check, make_write_deny_check
from handaxe.permission.policy import Policy
from handaxe.permission.protected_paths import PROTECTED_ENDINGS, PROTECTED_NAMES, PROTECTED_PAIRS
from handaxe.rules.path_scopes import compile_scopes
from handaxe.session.workdir import Workdir
from handaxe.shell.analysis import BashRule, PathVerdict, ShellRules, analyze, decide
from handaxe.shell.exec.environment.command_environment import build_environment_filter
from handaxe.shell.exec.shfmt import find_cross_check
from handaxe.shell.sandbox.bubblewrap_views import is_replaced
from handaxe.shell.sandbox.confiner import LocalConfiner, SandboxRequirements
from handaxe.shell.sandbox.host_allowlist import find_pattern_problem
from handaxe.shell.sandbox.readable_paths import (
    find_credentials,
    find_readable_paths,
    find_system_secrets,
)
from handaxe.shell.sandbox.readonly_paths import RootPathRules
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy
from handaxe.storage.home import (
    SHARED,
    find_data_home,
    get_shared_servers_file,
    get_user_directories,
)

_SHARED_SECRETS = (".credentials.json", "projects", "history.jsonl")
"""Files in ~/.claude with logins and conversations."""

_WRITTEN_BY_TOOLS = {".yarn", ".pnp.cjs", ".pnp.loader.mjs", ".hg", ".svn", ".jj", ".sl", ".bzr"}
"""Protected from file tools, but written by other programs."""
_INSIDE_OTHERS = (".hg/hgrc", ".jj/repo/config.toml")
_MASKED = (".git", ".claude", ".handaxe", ".vscode", ".idea", ".mcp.json")
_MASKED_AT_HOME = (
    ".gitconfig", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv",
)  # fmt: skip
_UNUSED = {
    ("sandbox", "credentials"): "handaxe does not replace credentials in requests",
    ("sandbox", "enableWeakerNestedSandbox"): "handaxe never weakens the sandbox",
    ("sandbox", "enableWeakerNetworkIsolation"): "handaxe never weakens the sandbox",
    ("sandbox", "network", "httpProxyPort"): "handaxe uses its own proxy",
    ("sandbox", "network", "socksProxyPort"): "handaxe uses its own proxy",
    ("sandbox", "network", "tlsTerminate"): "handaxe does not decrypt connections",
}
"""Settings of other programs that handaxe does not support, with the reason."""
_GLOB_SIGNS = "*?["


def build_confiner(session_context: SessionContext) -> LocalConfiner:
    """The sandbox of one session; reads settings and rules for every command."""
    temp, aside = (str(session_context.session_directory / name) for name in ("tmp", "refused"))
    last: tuple[object, SandboxPolicy] | None = None

    def policy() -> SandboxPolicy:
        nonlocal last
        rules = session_context.policy()
        place = session_context.workdir
        rests_on = (
            id(session_context.configuration.merged),
            id(rules.book),
            place.roots,
            place.free_to_read,
        )
        if last is None or last[0] != rests_on or _has_patterns(session_context.configuration):
            made = build_sandbox_policy(
                session_context.configuration,
                session_context.workdir,
                rules,
                temp_directory=temp,
                aside_directory=aside,
            )
            last = (rests_on, made)
        return last[1]

    return LocalConfiner(
        lambda: read_sandbox_options(session_context.configuration, session_context.workdir),
        policy,
        ruled=lambda: _make_file_rules(session_context.policy()),
        ledger=str(session_context.data_home / "sandbox"),
        recovered=session_context.recovered,
    )


def _make_file_rules(policy: Policy) -> RootPathRules:
    return RootPathRules(
        hides=make_read_deny_check(policy),
        keeps=make_write_deny_check(policy),
        rests_on=policy.book,
    )


def read_sandbox_options(configuration: Configuration, workdir: Workdir) -> SandboxRequirements:
    """The sandbox options of settings."""
    options = configuration.settings.sandbox
    rules = tuple(BashRule(text, "sandbox.excludedCommands") for text in options.excluded_commands)
    bwrap = options.bwrap_path
    if bwrap is not None and not bwrap.startswith("/"):
        raise SetupError(f"sandbox.bwrapPath must be an absolute path; got {bwrap!r}.")
    return SandboxRequirements(
        enabled=options.enabled,
        must_hold=options.fail_if_unavailable or bool(options.fail_if_weak),
        must_be_strong=options.fail_if_weak,
        may_leave=options.allow_unsandboxed_commands,
        is_excluded=lambda command: bool(rules) and _is_covered(command, rules, workdir),
        ignored=options.ignore_violations,
        bwrap=bwrap,
    )


def build_sandbox_policy(
    configuration: Configuration,
    workdir: Workdir,
    policy: Policy,
    *,
    temp_directory: str,
    aside_directory: str,
) -> SandboxPolicy:
    """The current policy."""
    options = configuration.settings.sandbox
    home = workdir.home.rstrip("/")
    repositories = [
        found for root in workdir.roots if (found := find_shared_repository(root)) is not None
    ]
    written = _resolve_paths(configuration, "allowWrite", home)
    roots = (*workdir.roots, *written, *repositories)
    allow_read, deny_read = _find_read_paths(configuration, workdir, policy, home)
    deny_write = [
        *_resolve_paths(configuration, "denyWrite", home),
        *_list_denied_paths(policy, "Edit"),
    ]
    deny_write += [f"{root}/{name}" for root in roots for name in _INSIDE_OTHERS]
    deny_write += [f"{home}/{first}/{name}" for first, name in sorted(PROTECTED_PAIRS)]
    allowed, denied = _collect_domains(configuration, policy)
    is_open = "*" in allowed and not denied
    return SandboxPolicy(
        roots=tuple(dict.fromkeys(roots)),
        shallow_roots=tuple(path for path in written if path not in workdir.roots),
        temp_directory=temp_directory,
        aside_directory=aside_directory,
        own_places=configuration.own_places,
        deny_write=tuple(dict.fromkeys(deny_write)),
        deny_read=tuple(dict.fromkeys(deny_read)),
        allow_read=tuple(dict.fromkeys(allow_read)),
        home_directory=home,
        protected_names=PROTECTED_NAMES - _WRITTEN_BY_TOOLS,
        protected_endings=PROTECTED_ENDINGS,
        protected_pairs=PROTECTED_PAIRS,
        masked_names=_MASKED + (_MASKED_AT_HOME if home in roots else ()),
        confines_files=not options.filesystem.disabled,
        network="open" if is_open else "listed" if allowed else "off",
        allowed_domains=tuple(allowed),
        denied_domains=tuple(denied),
        unix_sockets=tuple(
            home + path[1:] if path.startswith("~/") else path
            for path in options.network.allow_unix_sockets
        ),
        all_unix_sockets=options.network.allow_all_unix_sockets,
        local_binding=options.network.allow_local_binding,
    )


def _find_read_paths(
    configuration: Configuration, workdir: Workdir, policy: Policy, home: str
) -> tuple[list[str], list[str]]:
    """Readable and hidden paths; the more specific one wins."""
    options = configuration.settings.sandbox
    allowed = _resolve_paths(configuration, "allowRead", home)
    denied = [*_resolve_paths(configuration, "denyRead", home), *_list_denied_paths(policy, "Read")]
    # It has old contents of files of all projects and sessions.
    denied += [configuration.data_directory, os.path.realpath(find_data_home())]
    if options.filesystem.hide_secrets:
        shared = dict.fromkeys((get_user_directories()[0], f"{home}/{SHARED}"))
        denied += [f"{place}/{name}" for place in shared for name in _SHARED_SECRETS]
        denied.append(get_shared_servers_file())
        denied += [*find_credentials(home, os.environ, workdir.roots), *find_system_secrets()]
    # Commands may read the programs on their search path.
    seen = build_environment_filter(configuration.settings).environment(os.environ)
    programs = find_readable_paths(home, seen)
    # Commands have a private `/tmp`; programs they run may be in the real one.
    allowed += filter(is_replaced, programs)
    if options.auto_allow_bash_if_sandboxed and "/" not in allowed:
        # Reads of a confined command are not asked about, so it gets only what it needs.
        denied.append("/")
        allowed += programs
        allowed += workdir.spellings
        if "user" in configuration.sources:
            allowed += [f"{place}/skills" for place in get_user_directories()]
    return [*allowed, *workdir.free_to_read], denied


def find_sandbox_problems(configuration: Configuration) -> list[str]:
    """Sandbox settings without effect, for the user."""
    if not configuration.settings.sandbox.enabled:
        return []
    told: list[str] = []
    for path, why in _UNUSED.items():
        told += [
            f"{entry.origin}: `{entry.name}` has no effect: {why}."
            for entry in configuration.merged.entries.get(path, ())
        ]
    for key in ("allowedDomains", "deniedDomains"):
        told += [
            f"{entry.origin}: `{entry.name}`: {problem}."
            for entry in _list_entries(configuration, ("sandbox", "network", key))
            if (problem := find_pattern_problem(entry.value)) is not None
        ]
    for key in ("allowWrite", "denyWrite", "denyRead", "allowRead"):
        told += [
            f"{entry.origin}: `{entry.name}`: {entry.value!r} has no effect: only the last "
            "part of a path may be a pattern. Use a Read or Edit rule instead."
            for entry in _list_entries(configuration, ("sandbox", "filesystem", key))
            if not _can_be_found(entry.value)
        ]
    return told


def _is_covered(command: str, rules: tuple[BashRule, ...], workdir: Workdir) -> bool:
    """Whether every part of a command is excluded, or harmless beside one that is."""
    found = decide(
        analyze(command, workdir.current, workdir.home),
        rules=ShellRules(allow=rules),
        path_verdict=lambda _path, _access: PathVerdict("allow", "", None, None),
        working_dirs=workdir.roots,
        cross_check=find_cross_check(),
    )
    return found.verdict == "allow" and any(part.rule is not None for part in found.parts)


def _collect_domains(configuration: Configuration, policy: Policy) -> tuple[list[str], list[str]]:
    only_managed = configuration.settings.sandbox.network.allow_managed_domains_only
    listed = _list_entries(configuration, ("sandbox", "network", "allowedDomains"))
    allowed = [
        entry.value for entry in listed if not only_managed or entry.origin.source == "policy"
    ]
    denied = [
        entry.value
        for entry in _list_entries(configuration, ("sandbox", "network", "deniedDomains"))
    ]
    for rule in policy.rules:
        domain = (rule.specifier or "").removeprefix("domain:")
        if rule.tool != "WebFetch" or domain == rule.specifier or not domain:
            continue
        if rule.behaviour == "deny":
            denied += [domain, f"*.{domain.removeprefix('*.')}"]
        elif rule.source == "session":
            # A yes to one page says nothing of what commands may reach.
            continue
        elif rule.behaviour == "allow" and (not only_managed or rule.source == "policy"):
            allowed.append(domain)
    return (
        [pattern for pattern in dict.fromkeys(allowed) if find_pattern_problem(pattern) is None],
        [pattern for pattern in dict.fromkeys(denied) if find_pattern_problem(pattern) is None],
    )


def _list_denied_paths(policy: Policy, tool: str) -> Iterable[str]:
    """The literal paths of deny rules."""
    for rule in policy.rules:
        if rule.behaviour != "deny" or rule.tool != tool or not rule.specifier:
            continue
        for scope in compile_scopes(rule, policy.book.anchors)[0]:
            # A bare name covers any depth, so protect it at the top before it exists.
            is_bare = tool == "Edit" and scope.segments[:1] == (None,) != scope.segments
            segments = scope.segments[1:] if is_bare else scope.segments
            names = [segment.literal for segment in segments if segment is not None]
            if None not in names and len(names) == len(segments):
                yield "/".join([scope.anchor.rstrip("/"), *(name or "" for name in names)]) or "/"


def _resolve_paths(configuration: Configuration, key: str, home: str) -> list[str]:
    """The paths of one list: absolute, from home, or relative to their settings file."""
    found: list[str] = []
    options = configuration.settings.sandbox.filesystem
    only_managed = key == "allowRead" and options.allow_managed_read_paths_only
    for entry in _list_entries(configuration, ("sandbox", "filesystem", key)):
        if only_managed and entry.origin.source != "policy":
            continue
        if not _can_be_found(entry.value):
            continue
        path = _make_absolute(entry, configuration.root, home)
        found += _expand_glob(path) if any(sign in path for sign in _GLOB_SIGNS) else [path]
    return found


def _has_patterns(configuration: Configuration) -> bool:
    """Whether a list has patterns."""
    options = configuration.settings.sandbox.filesystem
    lists = (options.allow_write, options.deny_write, options.deny_read, options.allow_read)
    return any(_has_glob(text) for texts in lists for text in texts)


def _make_absolute(entry: SettingEntry, root: str, home: str) -> str:
    text = entry.value.removesuffix("/**").removesuffix("/*") or "/"
    if text == "~" or text.startswith("~/"):
        return os.path.normpath(home + text[1:])
    if text.startswith("/"):
        return os.path.normpath("/" + text.lstrip("/"))
    file = entry.origin.file
    base = file.rpartition("/")[0] if entry.origin.source in {"user", "policy"} and file else root
    return os.path.normpath(f"{base}/{text}")


def _can_be_found(text: str) -> bool:
    """Whether only the last part of a path is a pattern."""
    start = text.removesuffix("/**").removesuffix("/*").rpartition("/")[0]
    return bool(text) and "**" not in text.removesuffix("/**") and not _has_glob(start)


def _has_glob(text: str) -> bool:
    return any(sign in text for sign in _GLOB_SIGNS)


def _expand_glob(path: str) -> Sequence[str]:
    from fnmatch import fnmatchcase

    directory, _, pattern = path.rpartition("/")
    try:
        names = os.listdir(directory or "/")
    except OSError:
        return []
    return sorted(f"{directory}/{name}" for name in names if fnmatchcase(name, pattern))


def _list_entries(configuration: Configuration, path: tuple[str, ...]) -> list[SettingEntry]:
    return [entry for entry in configuration.merged.entries.get(path, ()) if entry.kind == "item"]


def find_shared_repository(root: str) -> str | None:
    """The git directory that a linked worktree shares with its main checkout.

    Both must name each other: a project alone cannot make a path outside writable.
    """
    pointer = f"{root}/.git"
    try:
        named = Path(pointer).read_text("utf-8", "surrogateescape")
        if not named.startswith("gitdir: "):
            return None
        own = resolve_links(os.path.join(root, named[len("gitdir: ") :].rstrip("\n")))  # noqa: PTH118
        back = Path(own, "gitdir").read_text("utf-8", "surrogateescape").rstrip("\n")
        if resolve_links(back) != resolve_links(pointer):
            return None
        shared = Path(own, "commondir").read_text("utf-8", "surrogateescape").rstrip("\n")
    except OSError:
        return None
    common = resolve_links(os.path.join(own, shared))  # noqa: PTH118
    is_inside = own.startswith(f"{common}/worktrees/")
    return common if is_inside and common.endswith("/.git") else None
