"""Timeouts of commands, and what happens when one is reached."""

import re
from collections.abc import Iterable

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.job_state import JobState
from handaxe.shell.analysis.analyzer import analyze


class CommandTimeout(msgspec.Struct, frozen=True, kw_only=True):
    """The timeout of one command."""

    timeout_s: float
    budget_s: float | None
    """After this time the command moves to the background in any case."""
    notes: tuple[str, ...] = ()

    @property
    def wait_s(self) -> float:
        """The longest time to wait for it."""
        return self.timeout_s if self.budget_s is None else min(self.timeout_s, self.budget_s)


def choose_timeout(timeout_ms: float | None, settings: Settings) -> CommandTimeout:
    """The timeout of a command, at most the maximum."""
    options = settings.shell
    most = max(options.max_timeout_ms, options.default_timeout_ms)
    notes: tuple[str, ...] = ()
    wanted = timeout_ms if timeout_ms is not None else options.default_timeout_ms
    if wanted > most:
        notes = (f"Timeout reduced from {wanted:,.0f} ms to the maximum of {most:,} ms.",)
        wanted = most
    elif wanted <= 0:
        notes = (
            (
                f"Timeout must be positive, not {wanted:g}; using the default of "
                f"{options.default_timeout_ms:,} ms."
            ),
        )
        wanted = options.default_timeout_ms
    return CommandTimeout(
        timeout_s=wanted / 1000,
        budget_s=options.blocking_budget_s if settings.background_tasks else None,
        notes=notes,
    )


def can_move(command: str) -> bool:
    """Whether a command may continue in the background after its timeout.

    Not a mere sleep, not git, which would hold its locks, and not a command that the parser cannot
    read.
    """
    facts = analyze(command)
    runs_git = "git" in facts.programs
    return not facts.problems and not runs_git and command.split(maxsplit=1)[:1] != ["sleep"]


def format_duration(seconds: float) -> str:
    """Format a duration like `2m 0s`, `15s`, `0.5s`."""
    if seconds < 60:
        return f"{seconds:g}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest}s"


_IDLE = frozenset({"sleep", "echo", "printf", "true", ":", "date", "wait", "seq"})
_RUNNERS = frozenset({"timeout", "bash", "sh"})
_LOOK_AT_PROCESSES = frozenset({"pgrep", "pidof"})
_SLEEP = re.compile(r"\bsleep\s+[\d.$\"]")
_WORD = re.compile(r"[\w./~+-]{3,}")
_FILE = re.compile(r"(?!/dev/)(?=.*[A-Za-z]).*[./].*")


def find_awaited_jobs(command: str, running: Iterable[JobState]) -> list[JobState]:
    """The background jobs that a sleeping command waits for."""
    if _SLEEP.search(command) is None:
        return []
    programs = analyze(command).programs
    if "sleep" not in programs and not programs <= _RUNNERS:
        return []
    if programs <= _IDLE:
        return list(running)
    words = set(_WORD.findall(command)) - programs
    if not programs & _LOOK_AT_PROCESSES:
        words = set(filter(_FILE.fullmatch, words))
    return [state for state in running if _is_named(state, command, words)]


def _is_named(state: JobState, command: str, words: set[str]) -> bool:
    """Whether a command names a job: its id, its output, or a word of its command."""
    return state.job_id in command or not words.isdisjoint(_WORD.findall(state.command or ""))
