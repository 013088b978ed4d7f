"""Create the shell of a session from its settings."""

import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from handaxe.config.settings import Settings, split_prefix
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.shell import Confiner, RunningCommand
from handaxe.shell.exec.bash_binary import BashConfig
from handaxe.shell.exec.capture import FILE_FROM_BYTES
from handaxe.shell.exec.environment.command_environment import build_environment_filter
from handaxe.shell.exec.local_shell import LocalShell, ShellLimits
from handaxe.shell.exec.retention import prune_outputs
from handaxe.text.redact import Redactor

TASKS = "tasks"
"""The directory of command output, below a session's directory."""

_DAY_S = 86_400.0
PRUNE_EVERY_BYTES = 64 << 20
"""After writing this much, the total size of output is checked again."""
_written: dict[Path, int] = {}
"""The bytes that this process has written since its last check, by sessions directory."""


def create_shell(
    session_directory: Path,
    settings: Settings,
    inherited: Mapping[str, str],
    *,
    more: Mapping[str, str] | None = None,
    confiner: Confiner | None = None,
    on_end: Callable[[RunningCommand], None] | None = None,
    redactor: Redactor | None = None,
) -> LocalShell:
    """A shell that saves output below the session's directory.

    `more` are additional variables of commands; `redactor` removes secrets from output.
    """
    if sys.platform != "linux":
        raise SetupError("Commands currently run only on Linux; other tools work here.")
    options = settings.shell
    sessions = session_directory.parent
    if sessions not in _written:
        _make_room(sessions, settings)
    env_filter = build_environment_filter(settings, more)
    shell = LocalShell(
        session_directory / TASKS,
        environment=env_filter.environment(inherited),
        confiner=confiner,
        on_end=on_end,
        on_written=lambda size: _note_written(size, sessions, settings),
        limits=ShellLimits(
            max_file_bytes=options.max_output_bytes,
            max_session_bytes=options.max_session_bytes,
            runaway_bytes=options.runaway_bytes,
            file_from_bytes=min(FILE_FROM_BYTES, options.max_inline_chars),
        ),
        asks_login_shell=options.activation == "auto",
        bash=BashConfig(options.program, split_prefix(options), options.snapshot),
    )
    removed = [name for name in inherited if env_filter.is_removed_secret(name)]
    shell.protect_secrets(Redactor() if redactor is None else redactor, removed)
    return shell


def _note_written(size: int, sessions: Path, settings: Settings) -> None:
    _written[sessions] += size
    if _written[sessions] >= PRUNE_EVERY_BYTES:
        _make_room(sessions, settings)


def _make_room(sessions: Path, settings: Settings) -> None:
    """Delete old output in the background."""
    _written[sessions] = 0
    days = settings.cleanup_period_days or settings.retention_days
    limits = {"max_bytes": settings.shell.max_kept_bytes, "max_age_s": days * _DAY_S}
    threading.Thread(
        target=prune_outputs, args=(sessions, TASKS), kwargs=limits, daemon=True
    ).start()
