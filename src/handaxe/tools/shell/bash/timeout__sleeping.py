"""Commands that only pass the time until background work is done, or keep looking at it.

Whoever sleeps for something else, such as a server that has to come up, is not meant.
"""

import re
from collections.abc import Iterable

from handaxe.contract.job_state import JobState
from handaxe.shell.analysis.analyzer import analyze

_IDLE = frozenset({"sleep", "echo", "printf", "true", ":", "date", "wait", "seq"})
_RUNNERS = frozenset({"timeout", "bash", "sh"})
_LOOK_AT_PROCESSES = frozenset({"pgrep", "pidof"})
_SLEEP = re.compile(r"\bsleep\s+[\d.$\"]")
_WORD = re.compile(r"[\w./~+-]{3,}")
_FILE = re.compile(r"(?!/dev/)(?=.*[A-Za-z]).*[./].*")


def find_awaited_jobs(command: str, running: Iterable[JobState]) -> list[JobState]:
    """The work whose end a command sleeps for."""
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
    """Whether a command speaks of some work: its id, its output, a word of its own command."""
    return state.job_id in command or not words.isdisjoint(_WORD.findall(state.command or ""))
